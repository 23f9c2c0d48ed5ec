package membench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table is the runs of one machine.
type Table struct {
	Memory string
	CPUs   int
	Each   time.Duration // of a run
	Same   bool          // all are the same user's
	ICount bool          // the guest's clock counts instructions, one a nanosecond
	Kernel string        // what it is called on the page; "" for this one
	Date   string        // when it was measured; "" where nobody noted it
	Runs   []Run
}

// Report is all that was measured.
type Report struct {
	QEMU   string
	Tables []Table
}

// Add puts a table into the report, in place of one of the same machine.
func (r *Report) Add(t Table) {
	for i := range r.Tables {
		if r.Tables[i].title() == t.title() {
			r.Tables[i] = t
			return
		}
	}
	r.Tables = append(r.Tables, t)
	slices.SortStableFunc(r.Tables, func(a, b Table) int { return strings.Compare(a.key(), b.key()) })
}

func (t *Table) key() string {
	n, _ := strconv.Atoi(strings.TrimRight(t.Memory, "MG"))
	return fmt.Sprintf("%s %08d %d %v", t.Kernel, n, t.CPUs, t.Same)
}

// pairs reports whether each run has several offenders.
func (t *Table) pairs() bool {
	return len(t.Runs) > 0 && !slices.ContainsFunc(t.Runs, func(r Run) bool { return !strings.Contains(r.Offenders, "+") })
}

func (t *Table) title() string {
	s := fmt.Sprintf("%s, %d CPU", t.Memory, t.CPUs)
	if t.CPUs > 1 {
		s += "s"
	}
	if t.pairs() {
		s += ", pairs"
	}
	if t.Same {
		s += ", one user"
	}
	if t.Kernel != "" {
		s += ", " + t.Kernel
	}
	return s
}

// Markdown is the page docs/bench/memory.md.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, r.QEMU)
	for i := range r.Tables {
		r.Tables[i].write(&b)
	}
	r.missing(&b)
	b.WriteString("\n## Offenders\n\n| name | what it takes |\n| --- | --- |\n")
	for _, k := range Kinds {
		fmt.Fprintf(&b, "| %s | %s |\n", k.Name, k.Text)
	}
	return b.String()
}

// longRun is the length of the run in figure 10 of the paper.
const longRun = 25 * time.Minute

// missing names the machines that were not measured, or not with all offenders for a minute.
func (r *Report) missing(b *strings.Builder) {
	b.WriteString("\n## Not measured\n\nThe full experiment is a minute for each of the offenders below, alone and in pairs.\n\n")
	for _, memory := range []string{"48M", "128M", "512M"} {
		for cpus := 1; cpus <= 2; cpus++ {
			for _, pairs := range []bool{false, true} {
				b.WriteString(r.lacks(memory, cpus, pairs))
			}
		}
	}
	if !slices.ContainsFunc(r.Tables, func(t Table) bool { return t.Each >= longRun }) {
		fmt.Fprintf(b, "- A run of %v: not run.\n", longRun)
	}
}

// lacks is what a machine lacks, as an item of a list.
func (r *Report) lacks(memory string, cpus int, pairs bool) string {
	want := Table{Memory: memory, CPUs: cpus}
	if pairs {
		want.Runs = []Run{{Offenders: "+"}}
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		switch {
		case t.title() != want.title():
		case len(t.Runs) >= len(Kinds) && t.Each >= time.Minute:
			return ""
		default:
			return fmt.Sprintf("- %s: %d runs of %v, of %d.\n", t.title(), len(t.Runs), t.Each, len(Kinds))
		}
	}
	return fmt.Sprintf("- %s: not run.\n", want.title())
}

const head = `# Exhausted memory

A well-behaved program runs beside offenders that take all the memory they can get. Written by
` + "`make bench-memory`" + `, %s (TCG).

Process 1 runs as root and the offenders as user 1000. The well-behaved program runs as user
1001, or also as user 1000 where the table says "one user". In each round it makes a pipe, a
file in /tmp, a child, a socket pair and a UDP socket, passes a byte or a page through each, and
releases them. Each process of an offender takes as much of one resource as it can get and
holds it while its parent starts the next process. Process 1 restarts whatever was killed.

- *failed*: calls of the well-behaved program that failed; *deaths*: how often it was killed.
- *median*, *worst*: duration of its rounds, in milliseconds of the guest's clock. Unless that
  counts instructions, load on the host lengthens both, the worst more.
- *killed after*: seconds from the first peak in memory use to the first death of an offender.
  The peak is the first moment within 1/64 of the most memory in use before that death.
  A dash means that no offender was killed: limits stopped them all.
- *used*: percent of memory in use at that peak.
- *root*: whether root could start a program at the end.

![worst rounds](memory.svg)

The figure has the worst rounds in multiples of the median, in order, for each table. The goal is
10 at most.
`

func (t *Table) write(b *strings.Builder) {
	good := 0
	for _, r := range t.Runs {
		if r.Good() {
			good++
		}
	}
	fmt.Fprintf(b, "\n## %s\n\n%d runs of %v; in %d of them no call failed, no innocent process died, and root was served.\n\n",
		t.title(), len(t.Runs), t.Each, good)
	if t.Date != "" {
		fmt.Fprintf(b, "Measured on %s.\n\n", t.Date)
	}
	if t.ICount {
		b.WriteString("The guest's clock counts instructions, one a nanosecond: load on the host changes nothing.\n\n")
	}
	b.WriteString("| offenders | rounds | failed | deaths | median | worst | killed after | used | root |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, r := range t.Runs {
		b.WriteString(r.row())
	}
}

func (r *Run) row() string {
	if r.Broken != "" && r.Rounds == 0 {
		return fmt.Sprintf("| %s | **%s** | | | | | | | |\n", r.Offenders, strings.ReplaceAll(r.Broken, "\n", " "))
	}
	killed, root := "—", "yes"
	if r.Killed >= 0 {
		killed = fmt.Sprintf("%.2f", max(r.Killed-r.Gone, 0).Seconds())
	}
	if !r.Root {
		root = "**no**"
	}
	if r.Broken != "" {
		root = "**" + r.Broken + "**"
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }
	return fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s | %d | %s |\n", r.Offenders, r.Rounds, bold(r.Failed), bold(r.Deaths),
		ms(r.Median), ms(r.Worst), killed, r.Used, root)
}

// bold is a number that should be 0.
func bold(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("**%d**", n)
}
