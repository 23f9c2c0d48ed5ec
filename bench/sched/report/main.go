// Command report measures how threads of programs share a processor, on Hardtack and on
// Debian's Linux, and writes docs/bench/sched.md.
//
//	report [-what counted,crowd,four,served] [-reps 3] [-load 4s]
//
// It needs what bench/os/report needs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

// counted runs where the clock counts instructions: the sleeper for ten seconds of it.
const counted = "/bench/osbench delay 12000\n/bench/osbench shares 10000\n/bench/osbench -t yield\n"

// crowd are programs that wake each other; crowded are those for two CPUs.
const (
	crowd   = "/bench/osbench hack 10 20\n/bench/osbench crowd\n"
	crowded = "/bench/osbench online\n/bench/osbench talk 2000\n/bench/osbench talk 2000 apart\n/bench/osbench urgent 1000\n/bench/osbench delay 1000\n" + crowd
)

// spinner runs beside the servers.
const spinner = "& /bench/osbench spin 1 100000000\n"

func run() error {
	load := flag.Duration("load", 4*time.Second, "length of one load from the host")
	reps := flag.Int("reps", 3, "boots of each system for the loads from the host")
	what := flag.String("what", "counted,crowd,four,served", "sections to measure; the page keeps the others")
	flag.Parse()
	b, qemu, err := osbench.Setup("linux,hardtack", report.Log)
	if err != nil {
		return err
	}
	b.Machine, b.Reps, b.Load = "microvm", *reps, *load
	dir := filepath.Join(b.Dirs.Repo, "docs", "bench")
	old, err := os.ReadFile(filepath.Join(dir, page))
	if err != nil {
		return err
	}
	var p strings.Builder
	fmt.Fprintf(&p, head, b.Linux.Release, qemu)
	for _, s := range sections {
		p.WriteString(s.title)
		if !slices.Contains(strings.Split(*what, ","), s.name) {
			kept, err := section(string(old), s.title)
			if err != nil {
				return err
			}
			p.WriteString(kept)
		} else if err := s.write(&b, &p); err != nil {
			return err
		}
	}
	return report.WritePage(dir, page, p.String(), nil)
}

const page = "sched.md"

var sections = []struct {
	name, title string
	write       func(*osbench.Bench, *strings.Builder) error
}{
	{"counted", "\n## Counted on one CPU\n", writeCounted},
	{"crowd", "\n## Threads that wake each other\n", writeCrowded},
	{"four", "\n## Servers on four CPUs\n", writeFour},
	{"served", "\n## Servers beside a process that spins\n", writeServed},
}

// section returns what a page has below a title.
func section(page, title string) (string, error) {
	_, text, ok := strings.Cut(page, title)
	if !ok {
		return "", fmt.Errorf("the page has no section %q", strings.TrimSpace(title))
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text, nil
}

const head = `# Threads that share a processor

Hardtack and Debian's Linux %s run the same programs on the same QEMU (%s,
microvm, TCG, 512 MiB). ` + "`make bench-sched`" + ` writes this page. Decision 0172 says how threads are
scheduled.
`

// shares are Linux's weights of nice 0, 5, 10 and 19, in percent of their sum.
var shares = []struct {
	name  string
	title string
	want  float64
}{{"share0", "nice 0", 1024 / 14.84}, {"share5", "nice 5", 335 / 14.84}, {"share10", "nice 10", 110 / 14.84}, {"share19", "nice 19", 15 / 14.84}}

func writeCounted(b *osbench.Bench, p *strings.Builder) error {
	rows, err := b.Count(1, counted)
	if err != nil {
		return err
	}
	on := func(name string, s osbench.OS) osbench.Result { return rows[name][s] }
	h, l := osbench.OnHardtack, osbench.OnLinux
	p.WriteString(`
The CPU counts instructions (-icount shift=0,sleep=off); a millisecond is a million.

The first two rows show how late a process wakes from sleeps of one millisecond (up to
10,000 of them) while another process spins.

| | Hardtack | Linux |
| --- | ---: | ---: |
`)
	fmt.Fprintf(p, "| late, median, ms | %.3f | %.3f |\n", on("delay", h).Median, on("delay", l).Median)
	fmt.Fprintf(p, "| late, worst, ms | %.3f | %.3f |\n", on("delay", h).Minimum, on("delay", l).Minimum)
	fmt.Fprintf(p, "| sched_yield between two processes, instructions | %.0f | %.0f |\n", on("yield", h).Median, on("yield", l).Median)
	p.WriteString(`
Four processes spin for 10 seconds. Each row is one process's share, in percent.

| | by weight | Hardtack | Linux |
| --- | ---: | ---: | ---: |
`)
	for _, s := range shares {
		fmt.Fprintf(p, "| %s | %.2f | %.2f | %.2f |\n", s.title, s.want, on(s.name, h).Median, on(s.name, l).Median)
	}
	return nil
}

func writeCrowded(b *osbench.Bench, p *strings.Builder) error {
	one, err := b.Count(1, crowd)
	if err != nil {
		return err
	}
	two, err := b.Count(2, crowded)
	if err != nil {
		return err
	}
	p.WriteString(`
Counted, too. With two CPUs the clock counts the instructions of both together, and QEMU
runs one CPU at a time. So nothing here shows what a second CPU gains: the rows show the
work of waking others, and the waits that scheduling adds.

- *Round trip:* two processes send a byte to and fro over pipes, wherever they are put, or
  each bound to a CPU of its own.
- *hackbench:* 10 groups of 20 senders and 20 receivers, processes, over Unix sockets, 20
  messages to each receiver from each sender.
- *schbench:* a messenger wakes 16 processes through futexes as they ask for their next
  request, 16,000 times in all. Each computes for 0.1 ms a request, so that most of them
  wait for a CPU.
- *Urgent:* a SCHED_FIFO process sleeps 1 ms again and again while 8 others spin.
- *Bound:* a process sleeps 1 ms again and again beside one that spins, both bound to the first CPU.

| | Hardtack | Linux | ratio | goal |
| --- | ---: | ---: | ---: | ---: |
`)
	row := func(r map[osbench.OS]osbench.Result, title, format, goal string, get func(osbench.Result) float64) {
		h, l := get(r[osbench.OnHardtack]), get(r[osbench.OnLinux])
		fmt.Fprintf(p, "| %s | "+format+" | "+format+" | %.2f | %s |\n", title, h, l, h/l, goal)
	}
	median := func(r osbench.Result) float64 { return r.Median }
	other := func(r osbench.Result) float64 { return r.Minimum }
	row(two["talk"], "pipe round trip, 2 CPUs, instructions", "%.0f", "≤ 0.5", median)
	row(two["apart"], "the same, each bound to a CPU", "%.0f", "≤ 0.5", median)
	for i, rows := range []osbench.Instructions{one, two} {
		cpus := []string{"1 CPU", "2 CPUs"}[i]
		row(rows["hack"], "hackbench, "+cpus+", ms", "%.1f", "≤ 0.7", median)
		row(rows["crowd"], "schbench, "+cpus+", wake-up, median, ms", "%.4f", "", other)
		row(rows["crowd"], "schbench, "+cpus+", wake-up, 99.9 %, ms", "%.2f", "≤ 0.7", median)
	}
	row(two["urgent"], "urgent, 2 CPUs, late, median, ms", "%.3f", "", median)
	row(two["urgent"], "urgent, 2 CPUs, late, worst, ms", "%.3f", "≤ 0.1 ms", other)
	row(two["delay"], "bound, 2 CPUs, late, median, ms", "%.3f", "", median)
	row(two["delay"], "bound, 2 CPUs, late, worst, ms", "%.3f", "≤ 0.1 ms", other)
	return nil
}

func writeServed(b *osbench.Bench, p *strings.Builder) error {
	cores := osbench.HostCores()
	times, err := b.TakeServed(spinner)
	if err != nil {
		return err
	}
	fmt.Fprintf(p, `
Clients on the host load Redis and NGINX in a guest of one CPU while a process in it spins.
Medians of %d turns of each system, with the lowest in parentheses; the two systems
alternate. Two threads on the host did %.2f times the work of one; below 1.8 the host was
busy, and the rates mean little. Processor time is that of the host thread that runs the guest.
The guest never idles, so this time includes the spinning process: a low figure also means that
the spinner got little.

| | Hardtack | Linux | ratio |
| --- | ---: | ---: | ---: |
`, 4*b.Reps, cores)
	for _, l := range osbench.Loads {
		h, x := times[l.Name][osbench.OnHardtack], times[l.Name][osbench.OnLinux]
		fmt.Fprintf(p, "| %s | %s | %s | %.2f |\n", l.Title, report.Cell(h), report.Cell(x), report.Median(h)/report.Median(x))
	}
	for _, l := range osbench.Loads {
		h, x := times[l.Name+" guest"][osbench.OnHardtack], times[l.Name+" guest"][osbench.OnLinux]
		fmt.Fprintf(p, "| processor time a request, µs: %s | %s | %s | %.2f |\n", strings.Replace(l.Title, "/s", "", 1), report.Cell(h), report.Cell(x), report.Median(h)/report.Median(x))
	}
	return nil
}
