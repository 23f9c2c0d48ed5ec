// Command report measures how threads of programs share a processor, on Hardtack and on
// Debian's Linux, and writes docs/bench/sched.md.
//
//	report [-reps 3] [-load 4s]
//
// It needs what bench/os/report needs.
package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

// counted runs where the clock counts instructions: the sleeper for ten seconds of it.
const counted = "/bench/osbench delay 12000\n/bench/osbench shares 10000\n/bench/osbench -t yield\n"

// spinner runs beside the servers.
const spinner = "& /bench/osbench spin 1 100000000\n"

func run() error {
	load := flag.Duration("load", 4*time.Second, "length of one load from the host")
	reps := flag.Int("reps", 3, "boots of each system for the loads from the host")
	flag.Parse()
	b, qemu, err := osbench.Setup("linux,hardtack", report.Log)
	if err != nil {
		return err
	}
	b.Machine, b.Reps, b.Load = "microvm", *reps, *load
	rows, err := b.Count(counted)
	if err != nil {
		return err
	}
	cores := osbench.HostCores()
	times, err := b.TakeServed(spinner)
	if err != nil {
		return err
	}
	var p strings.Builder
	fmt.Fprintf(&p, head, b.Linux.Release, qemu)
	writeCounted(&p, rows)
	writeServed(&p, times, cores, *reps)
	return report.WritePage(filepath.Join(b.Dirs.Repo, "docs", "bench"), "sched.md", p.String(), nil)
}

const head = `# Threads that share a processor

Hardtack and Debian's Linux %s run the same programs on one CPU of the same QEMU (%s,
microvm, TCG, 512 MiB). ` + "`make bench-sched`" + ` writes this page. Decision 0172 says how threads are
scheduled.

`

// shares are Linux's weights of nice 0, 5, 10 and 19, in percent of their sum.
var shares = []struct {
	name  string
	title string
	want  float64
}{{"share0", "nice 0", 1024 / 14.84}, {"share5", "nice 5", 335 / 14.84}, {"share10", "nice 10", 110 / 14.84}, {"share19", "nice 19", 15 / 14.84}}

func writeCounted(p *strings.Builder, rows osbench.Instructions) {
	on := func(name string, s osbench.OS) osbench.Result { return rows[name][s] }
	h, l := osbench.OnHardtack, osbench.OnLinux
	p.WriteString(`## Counted

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
}

func writeServed(p *strings.Builder, times osbench.Times, cores float64, reps int) {
	fmt.Fprintf(p, `
## Servers beside a process that spins

Clients on the host load Redis and NGINX in the guest while a process in the guest spins.
Medians of %d turns of each system, with the lowest in parentheses; the two systems
alternate. Two threads on the host did %.2f times the work of one; below 1.8 the host was
busy, and the rates mean little. Processor time is that of the host thread that runs the guest.
The guest never idles, so this time includes the spinning process: a low figure also means that
the spinner got little.

| | Hardtack | Linux | ratio |
| --- | ---: | ---: | ---: |
`, 4*reps, cores)
	for _, l := range osbench.Loads {
		h, x := times[l.Name][osbench.OnHardtack], times[l.Name][osbench.OnLinux]
		fmt.Fprintf(p, "| %s | %s | %s | %.2f |\n", l.Title, report.Cell(h), report.Cell(x), report.Median(h)/report.Median(x))
	}
	for _, l := range osbench.Loads {
		h, x := times[l.Name+" guest"][osbench.OnHardtack], times[l.Name+" guest"][osbench.OnLinux]
		fmt.Fprintf(p, "| processor time a request, µs: %s | %s | %s | %.2f |\n", strings.Replace(l.Title, "/s", "", 1), report.Cell(h), report.Cell(x), report.Median(h)/report.Median(x))
	}
}
