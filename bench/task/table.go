package taskbench

import (
	"fmt"
	"strings"
)

// ratio gives a/b of the least figures, 0 if one is missing.
func (r *Result) ratio(a, b Key) float64 {
	x, y := r.Min(a), r.Min(b)
	if x == 0 || y == 0 {
		return 0
	}
	return x / y
}

// A Goal is a ratio that the project wants, and what was measured.
type Goal struct {
	Text     string
	Want     float64
	AtMost   bool // else at least
	Measured float64
	Two      bool // it needs both cores
}

func (g Goal) Met() bool {
	return g.Measured != 0 && (g.AtMost && g.Measured <= g.Want || !g.AtMost && g.Measured >= g.Want)
}

// both tells whether a goal of this text is about two cores.
func both(text string) bool {
	return strings.Contains(text, "two workers") || strings.HasPrefix(text, "message")
}

// Goals compares the least figures of both sides.
func (r *Result) Goals() []Goal {
	k := func(c, p string, w int) Key { return Key{c, p, w} }
	var out []Goal
	least := func(text string, want, got float64) { out = append(out, Goal{text, want, false, got, both(text)}) }
	most := func(text string, want, got float64) { out = append(out, Goal{text, want, true, got, both(text)}) }
	for _, p := range []string{"fib", "stress"} {
		least(p+": rayon / fast form, one worker", 3, r.ratio(k("rayon", p, 1), k("fast", p, 1)))
		least(p+": rayon / fast form, two workers", 2.5, r.ratio(k("rayon", p, 2), k("fast", p, 2)))
		least(p+": rayon / ordinary form, one worker", 2, r.ratio(k("rayon", p, 1), k("ordinary", p, 1)))
		least(p+": rayon / ordinary form, two workers", 2, r.ratio(k("rayon", p, 2), k("ordinary", p, 2)))
		most(p+": fast form / direct stack in C, one worker", 1.5, r.ratio(k("fast", p, 1), k("direct", p, 1)))
		most(p+": fast form / direct stack in C, two workers", 1.5, r.ratio(k("fast", p, 2), k("direct", p, 2)))
		least(p+": WaitGroup / fast form, one worker", 100, r.ratio(k("waitgroup", p, 1), k("fast", p, 1)))
	}
	least("fib: sequential Go / fast form, two workers", 1.4, r.ratio(k("go", "fib", 1), k("fast", "fib", 2)))
	most("sort: task / rayon, same algorithm, one worker", 1.15, r.ratio(k("ordinary", "sort", 1), k("rayon", "sort", 1)))
	most("sort: task / rayon, same algorithm, two workers", 1.15, r.ratio(k("ordinary", "sort", 2), k("rayon", "sort", 2)))
	least("sort: one worker / two workers", 1.9, r.ratio(k("ordinary", "sort", 1), k("ordinary", "sort", 2)))
	if l := r.Latencies; len(l) == 4 {
		most("message to a task of the same run-time / Go channel", 2, l[3].Min/l[0].Min)
	}
	if m := r.Removal; m != nil {
		most("worst message while a core is removed, ms", 5, m.During/1000)
	}
	return out
}

// Markdown is the page.
func (r *Result) Markdown(machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Fork-join tasks

Written by `+"`make bench-task`"+`; do not edit. %s
Two threads did %.2f times the work of one before the run (2 would be a machine of
our own; below 1.8 the figures for two workers say little).

Each figure comes from processes that took turns in rounds. fib(%d) and stress(%d)
spawn at every call and do nothing else: the figures are nanoseconds a call, the
least of all repetitions and, in brackets, the median. Systems that are much slower
run smaller trees. Ratios are those of the least figures.

`, machine, r.Both, Sizes["fib"], Sizes["stress"])
	for _, p := range []string{"fib", "stress"} {
		fmt.Fprintf(&b, "## %s, nanoseconds a call\n\n| | one worker | two workers |\n| --- | ---: | ---: |\n", p)
		for _, c := range r.Contenders {
			if c.Missing != "" {
				fmt.Fprintf(&b, "| %s | not built: %s | |\n", c.Title, strings.ReplaceAll(c.Missing, "|", "/"))
				continue
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Title, r.cell(Key{c.Name, p, 1}, 1), r.cell(Key{c.Name, p, 2}, 1))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "![Nanoseconds a call](task.svg)\n\n## Merge sort of %d int32, milliseconds\n\nThe same algorithm in all: merges without branches on the data, from both ends,\nparallel above 16,384 elements; runs below 4,096 sorted by one worker.\n\n| | one worker | two workers |\n| --- | ---: | ---: |\n", Sizes["sort"])
	for _, c := range r.Contenders {
		if c.Missing == "" && c.Runs("sort") {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Title, r.cell(Key{c.Name, "sort", 1}, 1e6), r.cell(Key{c.Name, "sort", 2}, 1e6))
		}
	}
	r.messages(&b)
	b.WriteString("\n## Goals\n\n| | goal | measured | |\n| --- | ---: | ---: | --- |\n")
	for _, g := range r.Goals() {
		sign, verdict := "≥", "missed"
		if g.AtMost {
			sign = "≤"
		}
		if g.Met() {
			verdict = "met"
		}
		if g.Two && r.Both < 1.8 {
			verdict = "not judged: the cores were not both there"
		}
		if g.Measured == 0 {
			fmt.Fprintf(&b, "| %s | %s %g | — | not measured |\n", g.Text, sign, g.Want)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s %g | %.2f | %s |\n", g.Text, sign, g.Want, g.Measured, verdict)
	}
	b.WriteString(r.overhead())
	return b.String()
}

// overhead is the breakdown of where the time of stress goes.
func (r *Result) overhead() string {
	var b strings.Builder
	b.WriteString("\n## Where the time goes\n\nstress on one worker: the calls themselves, and what the run-time adds to them.\n\n| | calls | run-time |\n| --- | ---: | ---: |\n")
	plain := r.Min(Key{"go", "stress", 1})
	for _, c := range []string{"fast", "ordinary"} {
		if all := r.Min(Key{c, "stress", 1}); all > 0 && plain > 0 {
			fmt.Fprintf(&b, "| %s form | %.0f %% | %.0f %% |\n", c, 100*min(1, plain/all), 100*max(0, 1-plain/all))
		}
	}
	if t := r.Trace; t != nil {
		fmt.Fprintf(&b, `
stress(%d) on two workers, fast form, from a trace (`+"`hardtack task trace`"+` makes a
page of one): %.0f %% of the workers' time in tasks, %.0f %% asleep in joins, %.0f %% asleep
without work, %.0f %% looking for work. %d tasks were stolen, %d times something was
shared, of %.0f spawns, in %.0f µs.
`, Sizes["stress"], 100*t.Tasks, 100*t.Join, 100*t.Parked, 100*t.Search, t.Steals, t.Shared, (Calls("stress", Sizes["stress"])-1)/2, t.Micros)
	}
	return b.String()
}

func (r *Result) cell(k Key, unit float64) string {
	if r.Min(k) == 0 {
		return "—"
	}
	f := func(v float64) string {
		if v /= unit; v < 100 {
			return fmt.Sprintf("%.2f", v)
		}
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%s (%s)", f(r.Min(k)), f(r.Median(k)))
}

// messages are the tables of figures 5.10 and 5.11.
func (r *Result) messages(b *strings.Builder) {
	if len(r.Latencies) > 0 {
		b.WriteString("\n## Messages\n\nOne way, 8 bytes, half of a round trip that a task makes, by who receives; a Go\nchannel beside it. Nanoseconds, the least and in brackets the median.\n\n| receiver | |\n| --- | ---: |\n")
		for _, l := range r.Latencies {
			fmt.Fprintf(b, "| %s | %.0f (%.0f) |\n", l.Receiver, l.Min, l.Median)
		}
	}
	if m := r.Removal; m != nil {
		fmt.Fprintf(b, "\nWhile the receiving task's core is removed and the connection bound again, the\nworst of %d messages took %.1f µs one way; the worst of as many without a removal,\nright before, %.1f µs (the repetition with the least worst).\n\n![Messages while a core is removed](task-removal.svg)\n", len(m.Trips), m.During, m.Before)
	}
}
