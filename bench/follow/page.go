package followbench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	osbench "hardtack/bench/os"
)

// A Report is all that was measured, by system.
type Report struct {
	QEMU, Linux string
	Speeds      map[osbench.OS][]Speed
	Overheads   map[osbench.OS]map[string]Parts // by the form of spawns
	Stages      map[osbench.OS]Parts
	Latencies   map[osbench.OS][]Latency
	Removals    map[osbench.OS]*Removal
	Players     map[osbench.OS][]Point
	Regex       map[osbench.OS][]Point
	Rows        map[osbench.OS]map[string]map[string][]Work // by title and policy
	Touches     map[osbench.OS]map[string]string            // logs by what ran
}

// NewReport returns an empty one.
func NewReport() *Report {
	return &Report{Speeds: map[osbench.OS][]Speed{}, Overheads: map[osbench.OS]map[string]Parts{}, Stages: map[osbench.OS]Parts{},
		Latencies: map[osbench.OS][]Latency{}, Removals: map[osbench.OS]*Removal{}, Players: map[osbench.OS][]Point{},
		Regex: map[osbench.OS][]Point{}, Rows: map[osbench.OS]map[string]map[string][]Work{}, Touches: map[osbench.OS]map[string]string{}}
}

// Figures can be measured one by one.
var Figures = []string{"speed", "overhead", "stages", "latency", "removal", "players", "regex", "rows", "touches"}

// forms of figure 5.7.
var forms = []struct{ name, title string }{{"ordinary", "Spawn and Sync"}, {"fast", "fast form"}}

// Measure measures one of the figures on one system.
func (b *Bench) Measure(r *Report, figure string, on osbench.OS) (err error) {
	switch figure {
	case "speed":
		r.Speeds[on], err = b.Speeds(on)
	case "overhead":
		r.Overheads[on] = map[string]Parts{}
		for _, form := range forms {
			if r.Overheads[on][form.name], err = b.Overhead(on, form.name); err != nil {
				return err
			}
		}
	case "stages":
		r.Stages[on], err = b.Stages(on)
	case "latency":
		r.Latencies[on], err = b.Latencies(on)
	case "removal":
		r.Removals[on], err = b.Removal(on)
	case "players":
		r.Players[on], err = b.Points(on, hotpotato, 1, 8)
	case "regex":
		r.Regex[on], err = b.Points(on, regex, 4, 8)
	case "rows":
		r.Rows[on], err = b.Rows(on)
	case "touches":
		r.Touches[on], err = b.Touches(on)
	}
	return err
}

// Markdown is docs/bench/follow.md.
func (r *Report) Markdown() string {
	p := new(strings.Builder)
	fmt.Fprintf(p, `# Tasks and channels in the guest

Written by `+"`make bench-follow`"+`. Packages [task](task.md) and [affinity](affinity.md) on Hardtack and
on Debian's Linux %s: the same binaries, in the same emulator (%s, microvm, TCG, 1 GiB).
The figures are those of the two papers that the packages follow: a task parallel run-time for
Barrelfish (P, 5.3 to 5.11), and channel-aware scheduling in the Go runtime (A, 1 to 5).

The host has fewer processors than these machines, so time on the clock says nothing about
speed-ups. A plugin of the emulator counts the instructions that each virtual processor executes,
the kernel's included, between two marks in the program. A halted processor executes nothing.

- *Counted on several processors:* the emulator runs each virtual processor in a thread of the
  host. The *critical path* of a run is what the processor executed that executed most. The host
  gives the threads turns that are not quite equal, which makes the critical path longer: a
  speed-up is a lower bound. (With `+"`-icount`"+` QEMU 7.2 gives a processor that never pauses all of the
  time, which is why it cannot be used here.)
- *Counted clock:* with `+"`-icount shift=0,sleep=off`"+` one processor runs at a time, and the clock
  advances by a nanosecond an instruction of any of them. Figures repeat, whatever the host does.
`, r.Linux, r.QEMU)
	r.speeds(p)
	r.overheads(p)
	r.stages(p)
	r.latencies(p)
	r.removals(p)
	r.points(p, "Hotpotato by the number of players (A, figure 2)", "Millions of instructions of the critical path, 50,000 hops", "players", r.Players, "follow-players.svg")
	r.points(p, "Fast regex by the number of workers (A, figure 5)", "Millions of instructions of the critical path, a text of 2 MiB", "workers", r.Regex, "follow-regex.svg")
	r.rows(p)
	r.touches(p)
	return p.String()
}

// both are the systems that have something.
func both[T any](m map[osbench.OS]T) (list []osbench.OS) {
	for _, s := range Systems {
		if _, ok := m[s]; ok {
			list = append(list, s)
		}
	}
	return list
}

func (r *Report) speed(on osbench.OS, program string, cpus int) Work {
	for _, s := range r.Speeds[on] {
		if s.Program == program && s.CPUs == cpus {
			return s.Work
		}
	}
	return Work{}
}

func (r *Report) speeds(p *strings.Builder) {
	if len(r.Speeds) == 0 {
		return
	}
	p.WriteString(`
## Speed-up (P, figures 5.3 to 5.5)

The critical path on one processor, divided by that on several: the best of three repetitions.
In parentheses: the instructions of all processors as a multiple of those on one. What goes
beyond 1 is stealing, looking for work, and the kernel.

| processors |`)
	for _, s := range speeds {
		for _, on := range both(r.Speeds) {
			fmt.Fprintf(p, " %s, %v |", s.title, on)
		}
	}
	p.WriteString("\n| ---: |" + strings.Repeat(" ---: |", len(speeds)*len(both(r.Speeds))) + "\n")
	for _, cpus := range processors {
		fmt.Fprintf(p, "| %d |", cpus)
		for _, s := range speeds {
			for _, on := range both(r.Speeds) {
				one, w := r.speed(on, s.name, 1), r.speed(on, s.name, cpus)
				fmt.Fprintf(p, " %.2f (%.2f) |", one.Most/w.Most, w.Sum/one.Sum)
			}
		}
		p.WriteString("\n")
	}
	p.WriteString(`
The paper's fib reached 1.5 on four cores, its merge sort about 3 on four and 4.5 on eight. In
merge sort here the merges are parallel, too.

![speed-up](follow-speed.svg)
`)
}

// shares writes a table of parts, one column a system.
func shares(p *strings.Builder, unit string, columns []string, parts []Parts) {
	names := map[string]bool{}
	sums := make([]float64, len(parts))
	for i, c := range parts {
		for name, n := range c {
			names[name] = true
			sums[i] += n
		}
	}
	order := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Compare(parts[0][b], parts[0][a]) })
	p.WriteString("\n| " + unit + " |")
	for _, c := range columns {
		p.WriteString(" " + c + " | |")
	}
	p.WriteString("\n| --- |" + strings.Repeat(" ---: | ---: |", len(columns)) + "\n")
	row := func(name string, get func(i int) float64) {
		p.WriteString("| " + name + " |")
		for i := range columns {
			fmt.Fprintf(p, " %s | %.1f %% |", count(get(i)), 100*get(i)/sums[i])
		}
		p.WriteString("\n")
	}
	for _, name := range order {
		row(name, func(i int) float64 { return parts[i][name] })
	}
	row("all", func(i int) float64 { return sums[i] })
}

// count is a number of instructions.
func count(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.1f", n)
	}
	s := fmt.Sprintf("%.0f", n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (r *Report) overheads(p *strings.Builder) {
	if len(r.Overheads) == 0 {
		return
	}
	fmt.Fprintf(p, `
## What the run-time costs (P, figure 5.7)

stress(%d), which does nothing but spawn, on one worker and one processor, by the counted clock.
Instructions a call, by the source line that they belong to. In the paper 37 %% were outside of its
run-time, 23 %% context switches, 17 %% memory, 7 %% the queue, 16 %% the scheduler. Here a task that nobody
stole runs in its parent's stack, so there are neither switches nor memory to manage.
`, overheadDepth)
	for _, form := range forms {
		var columns []string
		var parts []Parts
		for _, on := range both(r.Overheads) {
			columns = append(columns, form.title+", "+on.String())
			each := Parts{}
			for name, n := range r.Overheads[on][form.name] {
				each[name] = n / (2<<overheadDepth - 1)
			}
			parts = append(parts, each)
		}
		shares(p, "instructions a call", columns, parts)
	}
}

func (r *Report) stages(p *strings.Builder) {
	if len(r.Stages) == 0 {
		return
	}
	p.WriteString(`
## Where a message goes (P, figure 5.9)

A message of 8 bytes from a task to a task of another run-time, half of a round trip; one
processor, counted clock, so both ends' work is in it, and no waiting but what polls. The paper's
message waited 5 µs of 6 for its sender's messaging thread, and as long again at the receiver. Here there
is none: the task writes into the ring itself.
`)
	var columns []string
	var parts []Parts
	for _, on := range both(r.Stages) {
		columns, parts = append(columns, on.String()), append(parts, r.Stages[on])
	}
	shares(p, "instructions a message", columns, parts)
}

func (r *Report) latencies(p *strings.Builder) {
	if len(r.Latencies) == 0 {
		return
	}
	p.WriteString(`
## A message by its receiver (P, figure 5.10)

One way, 8 bytes, from a task; counted clock, all processors together. Median of five rounds of 1,000
trips, with the least in parentheses. On two processors it has what one end polls while the other works.
There, a processor that polls without pausing keeps the other from running until the next
timer (see above), so the medians say little; Hardtack has fewer timers than Linux.

| receiver | processors |`)
	systems := both(r.Latencies)
	for _, on := range systems {
		fmt.Fprintf(p, " %v |", on)
	}
	p.WriteString(" ratio |\n| --- | ---: |" + strings.Repeat(" ---: |", len(systems)+1) + "\n")
	for i, l := range r.Latencies[systems[0]] {
		fmt.Fprintf(p, "| %s | %d |", l.Receiver, l.CPUs)
		for _, on := range systems {
			fmt.Fprintf(p, " %s (%s) |", count(r.Latencies[on][i].Median), count(r.Latencies[on][i].Min))
		}
		fmt.Fprintf(p, " %.2f |\n", r.Latencies[systems[0]][i].Median/r.Latencies[systems[len(systems)-1]][i].Median)
	}
}

func (r *Report) removals(p *strings.Builder) {
	if len(r.Removals) == 0 {
		return
	}
	p.WriteString(`
## Messages while a processor is turned off (P, figure 5.11)

A task of a run-time with two workers talks to an ordinary goroutine. In the middle something writes 0 to
/sys/devices/system/cpu/cpu1/online, and the connection is bound again. Counted clock, two processors,
one way; the repetition with the median worst of five. Before the removal, too, the worst messages
are late by the turns that the emulator gives the processors. On the host's processors the worst is
in [task.md](task.md).

| | worst before | worst while it goes |
| --- | ---: | ---: |
`)
	for _, on := range both(r.Removals) {
		fmt.Fprintf(p, "| %v | %.0f µs | %.0f µs |\n", on, r.Removals[on].Quiet, r.Removals[on].Worst)
	}
	p.WriteString("\n![messages around the removal](follow-removal.svg)\n")
}

func (r *Report) points(p *strings.Builder, title, unit, what string, points map[osbench.OS][]Point, picture string) {
	if len(points) == 0 {
		return
	}
	fmt.Fprintf(p, `
## %s

%s, on %d processors, in parentheses those of all processors. *Go* is the program
built by unmodified Go, the others by `+"`hardtack go`"+`. One run each: how the host shares its time out shows.

| %s |`, title, unit, pointCPUs, what)
	systems := both(points)
	for _, on := range systems {
		for _, policy := range Policies {
			fmt.Fprintf(p, " %v, %s |", on, policyTitle(policy))
		}
	}
	p.WriteString("\n| ---: |" + strings.Repeat(" ---: |", len(systems)*len(Policies)) + "\n")
	for _, first := range points[systems[0]] {
		if first.Policy != Policies[0] {
			continue
		}
		fmt.Fprintf(p, "| %d |", first.N)
		for _, on := range systems {
			for _, policy := range Policies {
				w := find(points[on], policy, first.N)
				fmt.Fprintf(p, " %.0f (%.0f) |", w.Most/1e6, w.Sum/1e6)
			}
		}
		p.WriteString("\n")
	}
	fmt.Fprintf(p, "\n![%s](%s)\n", strings.ToLower(title), picture)
}

func policyTitle(policy string) string {
	if policy == "go" {
		return "Go"
	}
	return "*" + policy + "*"
}

func find(points []Point, policy string, n int) Work {
	for _, x := range points {
		if x.Policy == policy && x.N == n {
			return x.Work
		}
	}
	return Work{}
}

func (r *Report) rows(p *strings.Builder) {
	if len(r.Rows) == 0 {
		return
	}
	systems := both(r.Rows)
	fmt.Fprintf(p, `
## The rows of bench/affinity

Instructions of unmodified Go divided by those of each policy, on %d processors; more than 1 is
fewer instructions. First all processors together, then the critical path; the least of %d runs
each, the policies in turn. Counting does not see what moving cache lines costs, which is the
policies' point: [affinity.md](affinity.md) has times. It does see what the policies themselves cost.

| program |`, rowCPUs, rowReps)
	for _, on := range systems {
		for _, policy := range rowPolicies[1:] {
			fmt.Fprintf(p, " %v, %s |", on, policyTitle(policy))
		}
	}
	p.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(systems)*(len(rowPolicies)-1)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(p, "| %s |", row.title)
		for _, on := range systems {
			base := least(r.Rows[on][row.title]["go"])
			for _, policy := range rowPolicies[1:] {
				w := least(r.Rows[on][row.title][policy])
				fmt.Fprintf(p, " %.2f, %.2f |", base.Sum/w.Sum, base.Most/w.Most)
			}
		}
		p.WriteString("\n")
	}
}

// least has the least sum and the least critical path of some runs.
func least(all []Work) (w Work) {
	for i, x := range all {
		if i == 0 || x.Sum < w.Sum {
			w.Sum = x.Sum
		}
		if i == 0 || x.Most < w.Most {
			w.Most = x.Most
		}
	}
	return w
}

func (r *Report) touches(p *strings.Builder) {
	if len(r.Touches) == 0 {
		return
	}
	p.WriteString(`
## Over time (A, figures 1, 3 and 4)

Touches of channels a second on four processors, and those from another processor than the
touch before, which stand in for the paper's HITM events: the emulator has no caches. The drawing is
shaded while the process was bound. The clock is the machine's own; how fast it computes
depends on the host.
`)
	for _, on := range both(r.Touches) {
		fmt.Fprintf(p, "\n![on %v](%s)\n", on, touchesFile(on))
	}
}

func touchesFile(on osbench.OS) string {
	return "follow-touches-" + strings.ToLower(on.String()) + ".svg"
}
