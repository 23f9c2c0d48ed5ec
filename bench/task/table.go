package taskbench

import (
	"fmt"
	"slices"
	"strings"

	"hardtack/bench/internal/report"
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
	workers := []string{"one worker", "two workers"}
	for _, p := range []string{"fib", "stress"} {
		for i, w := range workers {
			versus := func(a, b string) float64 { return r.ratio(k(a, p, i+1), k(b, p, i+1)) }
			least(p+": rayon / fast form, "+w, []float64{3, 2.5}[i], versus("rayon", "fast"))
			least(p+": rayon's join / Join, "+w, 2, versus("rayon", "join"))
			least(p+": rayon's join / Spawn and Sync, "+w, 2, versus("rayon", "ordinary"))
			// Both forms: as written, and what gcc makes of it (see callCost).
			most(p+": fast form / C as Lace, "+w, 1.5, versus("fast", "lace"))
			most(p+": fast form with a loop / C as Lace, "+w, 1.5, versus("loop", "lace"))
			most(p+": fast form / the least C, "+w, 1.5, versus("fast", "direct"))
			most(p+": fast form with a loop / the least C, "+w, 1.5, versus("loop", "direct"))
		}
		least(p+": WaitGroup / fast form, one worker", 100, r.ratio(k("waitgroup", p, 1), k("fast", p, 1)))
	}
	least("fib: sequential Go / fast form, two workers", 1.4, r.ratio(k("go", "fib", 1), k("fast", "fib", 2)))
	for _, p := range []string{"sort", "bigsort"} {
		name := fmt.Sprintf("sort of %d million", Sizes[p]/1_000_000)
		for i, w := range workers {
			most(name+": task / rayon, same algorithm, "+w, 1.15, r.ratio(k("ordinary", p, i+1), k("rayon", p, i+1)))
		}
		least(name+": one worker / two workers", 1.9, r.ratio(k("ordinary", p, 1), k("ordinary", p, 2)))
	}
	if l := r.Latencies; len(l) == 4 {
		most("message to a task of the same run-time / Go channel, least", 2, l[3].Min/l[0].Min)
		most("message to a task of the same run-time / Go channel, medians", 2, l[3].Median/l[0].Median)
	}
	for _, a := range r.Added {
		most("an added core's first task, by "+a.How+", median, ms", 10, a.Median/1000)
	}
	for _, c := range r.Cancelled {
		most(fmt.Sprintf("computed by each worker after the end of the Run's context, workers: %d, mean, ms", c.Workers), 1,
			mean(c.Processors)/1000/float64(c.Workers))
	}
	if m := r.Removal; m != nil {
		most("worst message while a core is removed, median of the repetitions, ms", 5, m.During/1000)
	}
	return out
}

// Markdown is the page.
func (r *Result) Markdown(machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Fork-join tasks

Written by `+"`make bench-task`"+`; do not edit. %s
Two threads did %.2f times the work of one before the run. (2 means that both cores were
free; below 1.8 the figures for two workers are unreliable.)

Processes took turns in rounds. fib(%d) and stress(%d) spawn at every call and do nothing
else. Figures are nanoseconds per call: the minimum of all repetitions, with the median in
brackets. The processor time beside them is that of all threads, including start-up, in the
process that computed least; it varies little with host load. Much slower systems run
smaller trees: oneTBB and OpenMP fib(%d) and stress(%d), goroutine-based ones fib(%d) and
stress(%d). Ratios are ratios of minima, unless a goal says otherwise.

`, machine, r.Both, Sizes["fib"], Sizes["stress"], slow["fib"], slow["stress"], slower["fib"], slower["stress"])
	for _, p := range []string{"fib", "stress"} {
		fmt.Fprintf(&b, "## %s, nanoseconds per call\n\n| | one worker | processor time | two workers | processor time |\n| --- | ---: | ---: | ---: | ---: |\n", p)
		for _, c := range r.Contenders {
			if c.Missing != "" {
				fmt.Fprintf(&b, "| %s | not built: %s | | | |\n", c.Title, strings.ReplaceAll(c.Missing, "|", "/"))
				continue
			}
			r.row(&b, c.Title, c.Name, p, 1)
		}
		b.WriteString("\n")
	}
	b.WriteString(r.callCost())
	fmt.Fprintf(&b, "![Nanoseconds a call](task.svg)\n\n## Merge sort of int32, milliseconds\n\nAll use the same algorithm: branch-free merges from both ends, in parallel above 16,384\nelements; runs below 4,096 are sorted by one worker, starting from a sorting network of\neight. Allocating the second array counts. Each sorted 20 million %d times, 100 million\nonce. Processor time includes filling the array.\n\n| | one worker | processor time | two workers | processor time |\n| --- | ---: | ---: | ---: | ---: |\n", len(r.Figures[Key{"ordinary", "sort", 1}]))
	for _, p := range []string{"sort", "bigsort"} {
		for _, c := range r.Contenders {
			if c.Missing == "" && c.Runs(p) && r.Min(Key{c.Name, p, 1}) > 0 {
				title := strings.TrimSuffix(c.Title, ", Spawn and Sync")
				r.row(&b, fmt.Sprintf("%d million, %s", Sizes[p]/1_000_000, title), c.Name, p, 1e6)
			}
		}
	}
	r.messages(&b)
	if len(r.Added) > 0 {
		b.WriteString("\n## An added core\n\nTime from the change to the first task on another worker, in a busy run on one core: the\nminimum, with the median in brackets, ms.\n\n| added by | |\n| --- | ---: |\n")
		for _, a := range r.Added {
			fmt.Fprintf(&b, "| %s | %.2f (%.2f) |\n", a.How, a.Min/1000, a.Median/1000)
		}
	}
	r.cancelled(&b)
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
			verdict = "not judged: one core was busy"
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

// callCost tells what the comparison with C is bound by.
func (r *Result) callCost() string {
	k := func(c, p string, w int) Key { return Key{c, p, w} }
	if r.Min(k("calls", "fib", 1)) == 0 || r.Min(k("lace", "fib", 1)) == 0 {
		return ""
	}
	return fmt.Sprintf(`A call in Go costs %.2f times as much as in C (fib; stress: %.2f). But gcc turns the last
call of such a recursion into a loop, so it calls a function only for every other task; the
row of C shows the calls without that. Go's compiler does not do this. "last call a loop" is
the fast form with the loop written by hand: the same work as in C, with a spawn for each
call. With the recursion written as in the other programs, C of Lace's kind is %.2f times as
fast as the fast form in fib and %.2f times in stress (one worker).

Both C programs are this project's (bench/task/ref/direct.c), not Lace itself. "as Lace"
does everything that Lace's macros do at a spawn and a sync; "the least" omits what this
design does not need.

`, r.ratio(k("go", "fib", 1), k("calls", "fib", 1)), r.ratio(k("go", "stress", 1), k("calls", "stress", 1)),
		r.ratio(k("fast", "fib", 1), k("lace", "fib", 1)), r.ratio(k("fast", "stress", 1), k("lace", "stress", 1)))
}

// overhead is the breakdown of where the time of stress goes.
func (r *Result) overhead() string {
	var b strings.Builder
	b.WriteString("\n## Where the time goes\n\n")
	if len(r.Parts) > 0 {
		all := 0.0
		for _, p := range r.Parts {
			all += p.Nanos
		}
		b.WriteString("A call of stress in the fast form, on one worker, measured step by step: the calls alone,\nthen with one more step at a time.\n\n| | ns a call | |\n| --- | ---: | ---: |\n")
		for _, p := range r.Parts {
			fmt.Fprintf(&b, "| %s | %.2f | %.0f %% |\n", p.Name, p.Nanos, 100*p.Nanos/all)
		}
	}
	b.WriteString("\nThe workers' whole time: the calls, the run-time's overhead on one worker, and what two\nworkers use beyond that: stealing, waiting and effects of the machine.\n\n| | calls | run-time | two workers |\n| --- | ---: | ---: | ---: |\n")
	for _, p := range []string{"fib", "stress"} {
		plain := r.Min(Key{"go", p, 1})
		for _, c := range r.Contenders {
			one, two := r.Min(Key{c.Name, p, 1}), 2*r.Min(Key{c.Name, p, 2})
			if c.Name == "loop" {
				continue // it has other calls than the sequential program
			}
			if plain > 0 && one > 0 && two > 0 && strings.HasPrefix(c.Title, "task,") {
				all := max(one, two, plain)
				fmt.Fprintf(&b, "| %s: %s | %.0f %% | %.0f %% | %.0f %% |\n", p, strings.TrimPrefix(c.Title, "task, "), 100*min(plain, one)/all, 100*max(0, one-plain)/all, 100*max(0, all-max(one, plain))/all)
			}
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

// row is a contender's, with one worker and with two.
func (r *Result) row(b *strings.Builder, title, contender, program string, unit float64) {
	fmt.Fprintf(b, "| %s |", title)
	for workers := 1; workers <= 2; workers++ {
		k := Key{contender, program, workers}
		if r.Min(k) == 0 {
			b.WriteString(" — | — |")
			continue
		}
		fmt.Fprintf(b, " %s (%s) | %s |", figure(r.Min(k)/unit), figure(r.Median(k)/unit), figure(report.Least(r.Processor[k])/unit))
	}
	b.WriteString("\n")
}

func figure(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// cancelled is the table of Runs whose context ends.
func (r *Result) cancelled(b *strings.Builder) {
	if len(r.Cancelled) == 0 {
		return
	}
	b.WriteString("\n## A cancelled Run\n\nTime from the end of the context until the Run returns, and the processor time of all\nthreads meanwhile, in microseconds. A worker that waits for a processor that another\nprogram uses is late too, but computes nothing.\n\n| workers | time: least | median | mean | most | processor time: least | median | mean | most |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.Cancelled {
		fmt.Fprintf(b, "| %d |", c.Workers)
		for _, v := range [][]float64{c.Time, c.Processors} {
			fmt.Fprintf(b, " %.0f | %.0f | %.0f | %.0f |", report.Least(v), report.Median(v), mean(v), slices.Max(v))
		}
		b.WriteString("\n")
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// messages are the tables of figures 5.10 and 5.11.
func (r *Result) messages(b *strings.Builder) {
	if len(r.Latencies) > 0 {
		b.WriteString("\n## Messages\n\nOne way, 8 bytes: half of a round trip made by a task, by the kind of receiver, beside a Go\nchannel. Nanoseconds: the minimum, with the median in brackets; processor time is the\nminimum of all threads together, including the bind of the connection.\n\n| receiver | | processor time |\n| --- | ---: | ---: |\n")
		for _, l := range r.Latencies {
			fmt.Fprintf(b, "| %s | %.0f (%.0f) | %.0f |\n", l.Receiver, l.Min, l.Median, l.Processor)
		}
	}
	if m := r.Removal; m != nil {
		fmt.Fprintf(b, "\nWhile the receiving task's core is removed and the connection bound again, the\nworst of %d messages took %s one way. Just before, without a removal, the worst of as many\ntook %s. (Medians of the repetitions, and their range.)\n\n![Messages while a core is removed](task-removal.svg)\n", len(m.Trips), micros(m.AllDuring), micros(m.AllBefore))
	}
}

// micros is the median and the range of sorted microseconds.
func micros(v []float64) string {
	return fmt.Sprintf("%.1f µs (%.1f–%.1f)", v[len(v)/2], v[0], v[len(v)-1])
}
