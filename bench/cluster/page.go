package clusterbench

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Report is all that was measured.
type Report struct {
	Steps            []string // those that were measured
	QEMU             string
	Archive          int64 // bytes of the boot archive
	Apart, ApartBusy *Churn
	ApartComputes    *Churn // beside a cluster that computes in user mode
	One, OneBusy     *Churn
	Calls            Calls
	Bell             Bell
	Restarts         []int64
	TalkNear         int64
	Service          int64
	TalkFar          int64
	TalkPaused       int64
	TalkFrames       int64
	Near, Far        Single
	Panics           Panics
	Moved            Moved
	Scales           []Scale
	Beside           []Scale // a processor's jobs beside clusters that compute
	Redis            Redis
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func millions(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }

// Markdown is docs/bench/cluster.md.
func (r *Report) Markdown() string {
	b := new(strings.Builder)
	r.isolation(b)
	r.figures(b)
	r.parts(b)
	r.scaling(b)
	b.WriteString(kept)
	return b.String()
}

// isolation compares the server's requests.
func (r *Report) isolation(b *strings.Builder) {
	fmt.Fprintf(b, `# Clusters

Several kernels in one machine ([clusters.md](../clusters.md)). Written by `+"`make bench-cluster`"+`: %s, TCG,
`+"`-icount shift=0,sleep=off`"+`. One instruction takes a nanosecond of the machine's clock, and the
machine has one clock for all its processors. Two clusters of one processor each, 256 and 128 MiB;
the boot archive has %.1f MB.

## Isolation from the collector

A server answers requests on one processor: a message over TCP within the machine, a look at
a file, an answer. On the other one a program churns the kernel's heap, beside %s files that
stay: files, pipes, connections, processes. It does so in the other cluster, or in the same
kernel of two processors, where both programs are bound to theirs. Instructions a request, counted by
a plugin of the emulator: those of the server's processor, and those of the other one while the
server's is halted. Waiting for a lock by polling counts too little, which favours the one kernel.

| | requests | mean | 50 %% | 99 %% | 99.99 %% | longest | collections |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`, r.QEMU, float64(r.Archive)/1e6, thousands(aliveFiles))
	for _, row := range []struct {
		name string
		c    *Churn
	}{{"two clusters, the other idle", r.Apart}, {"two clusters, the other computes in user mode", r.ApartComputes},
		{"two clusters, the other churns", r.ApartBusy}, {"one kernel, idle", r.One}, {"one kernel, churns", r.OneBusy}} {
		c := row.c
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %d |\n", row.name, thousands(int64(len(c.Requests))), thousands(c.Mean()), thousands(c.Percentile(5000)),
			thousands(c.Percentile(9900)), thousands(c.Percentile(9999)), thousands(c.Percentile(10000)), c.Collections)
	}
	fmt.Fprintf(b, `
What churn changes, mean, 99.99 %% and longest: in another cluster %s, %s, %s;
in the same kernel %s, %s, %s. The goal is 1 %%. The 99 %% changes by %s in another cluster:
the machine's clock goes on during the other processor's turns, so more timers fall into the
requests. A cluster that only computes in user mode does the same without a heap: it changes mean, 99 %%, 99.99 %% and
longest by %s, %s, %s, %s. The longest requests of two clusters are probably those
that the server's own kernel collects in. Churn made %s MB of garbage in the
other cluster, and %s MB in the one kernel. *Collections* are those of the churning kernel.

![the longest request of each hundredth of a run](cluster.svg)
`, change(r.Apart, r.ApartBusy, 0), change(r.Apart, r.ApartBusy, 9999), change(r.Apart, r.ApartBusy, 10000),
		change(r.One, r.OneBusy, 0), change(r.One, r.OneBusy, 9999), change(r.One, r.OneBusy, 10000),
		change(r.Apart, r.ApartBusy, 9900), change(r.Apart, r.ApartComputes, 0), change(r.Apart, r.ApartComputes, 9900),
		change(r.Apart, r.ApartComputes, 9999), change(r.Apart, r.ApartComputes, 10000), millions(r.ApartBusy.Bytes), millions(r.OneBusy.Bytes))
}

// figures are single ones.
func (r *Report) figures(b *strings.Builder) {
	fmt.Fprintf(b, `
## Starts, calls, panics

| | measured | goal |
| --- | ---: | ---: |
| another cluster, from `+"`restart`"+` to its first user instruction: stop, fill its memory, boot; %d times | %s to %s M instructions | 12 M (boot alone) |
| a doorbell between processes, both kernels asleep: the write that rings, and from the interrupt to the program that waits; medians | %s + %s instructions | 4,000 |
| a doorbell between kernels: to ring, and from there to the other's bottom half | %s + %s instructions | |
| the same with an answer by doorbell, each kernel asleep until the other rings | %s instructions | |
| a call to another monitor and its answer, both kernels asleep | %s instructions | |
| the same without a pause between calls | %s instructions | |
| a message and its answer between processes of one kernel, neither polls, median | %s instructions | |
| the same between processes of two clusters, in rings | %s instructions, %.1f × | |
| the same after a pause of 5 ms, so that both wait in Go's poller | %s instructions | |
| the same of an interface with long messages, in frames | %s instructions, %.1f × | |
| a call of a kernel service and its answer, by typed channel (`+"`metrics.frames`"+`) | %s instructions | |
| a message one way within a kernel while both poll: sent, received, medians | %s + %s instructions | |
| the same between two clusters | %s + %s instructions, %.2f × | 1.25 × |
| memory of one more cluster, which shares the pages of the boot archive | %.1f MiB | 24 MiB |
| a panic of one cluster: requests that a server in another one lost, of %s | %d | 0 |
| the same: to the first answer of the next life, with its pause of 0.1 s or more before it; %d times | %s to %s ms | 1,000 ms |
`, len(r.Restarts), millions(slices.Min(r.Restarts)), millions(slices.Max(r.Restarts)),
		thousands(r.Bell.Ring), thousands(r.Bell.Wake), thousands(r.Calls.Ring), thousands(r.Calls.Wake), thousands(r.Calls.Back), thousands(r.Calls.Asleep), thousands(r.Calls.Awake), thousands(r.TalkNear), thousands(r.TalkFar), float64(r.TalkFar)/float64(r.TalkNear),
		thousands(r.TalkPaused), thousands(r.TalkFrames), float64(r.TalkFrames)/float64(r.TalkNear), thousands(r.Service), thousands(r.Near.Send), thousands(r.Near.Receive),
		thousands(r.Far.Send), thousands(r.Far.Receive), float64(r.Far.Send+r.Far.Receive)/float64(r.Near.Send+r.Near.Receive),
		float64(otherMemory-r.Calls.Unused)/(1<<20), thousands(r.Panics.Sent), r.Panics.Lost,
		len(r.Panics.First), thousands(slices.Min(r.Panics.First)/1e6), thousands(slices.Max(r.Panics.First)/1e6))
	b.WriteString(`
In the emulator a processor runs until its turn is over while another one polls, so that polling
shows no gain in a round trip: the rows of polling are of single calls that need not wait, with the
reading of the clock before and after. A cluster that panics again at once rests longer each time; the shortest time is that
of the first panic. Frames between processes of two clusters are copied by both kernels.

The doorbell's program is in C and waits in ` + "`Await`" + `. A round trip in Go has two doorbells; the rest is package msg,
Go's way into and out of system calls, and the way of both threads to sleep. After a pause the doorbell finds a goroutine in Go's
poller: epoll, the goroutine that reads the ring, and the one that waits for the message.
`)
}

// parts says where the instructions of a call go.
func (r *Report) parts(b *strings.Builder) {
	b.WriteString(`
## A call between monitors

What both kernels execute for a call and its answer, timers, pauses and doorbells of the
measurement included, by part:

| | instructions a call | |
| --- | ---: | ---: |
`)
	for _, p := range r.Calls.Parts {
		if n := p.Instructions / monitorCalls; n > 0 {
			fmt.Fprintf(b, "| %s | %s | %.0f %% |\n", p.Name, thousands(n), 100*float64(p.Instructions)/float64(r.Calls.Instructions))
		}
	}
}

// kept are figures that take too long to measure each time.
const kept = `
## Measured by hand

| | measured, 23 and 24 November 2026 if no other day is named | goal |
| --- | ---: | ---: |
| both clusters of a machine, from power-on to the first user instruction of the second | 12.6 M instructions | |
| frames free in the first kernel before a storm of ends, moves and programs, and after each third of it, its garbage collected; two clusters | 51,664, 50,822, 50,889, 50,887 | no leak |
| the same with four | 51,211, 49,973, 49,871, 50,036 | |
| the same with two, a storm of 600 s on 27 November: 14,331 programs, 1,044 processors and 1,814 pieces of memory moved, 753 ends | 51,529, 49,001, 49,029, 48,950 | |
| the same with two, which share the archive's pages, a storm of 200 s on 27 November: 4,042 programs, 776 processors and 1,415 pieces of memory moved, 261 ends | 54,843, 52,435, 52,430, 52,180 | |
| frames free or the storm program's own, before a storm of 480 s and after each eighth of it; two clusters, 27 November | 55,615, 54,384, 54,353, 54,348, 54,373, 54,484, 54,393, 54,215, 54,354 | no leak |
| the same with four, 320 s | 55,081, 53,671, 53,749, 53,804, 53,584, 53,822, 53,765, 53,819, 53,726 | |
| bytes alive on the first kernel's heap after the eighths; two clusters | 1,344,112 to 1,365,568, the last four 1,363,744 to 1,365,568 | |
| frames free in the first kernel before and after 1,000 restarts of another one, 27 November | 25,789; 25,609 | no leak |
| longest request of a server beside a cluster that is idle, that churns, that computes in user mode: means of five boots each, 27 November | 198,595; 199,817, +0.6 %; 147,445 | 1 % |
| its 99.99 % in the same boots | 54,733; 55,363, +1.2 %; 61,004, +11 % | 1 % |
| its 99 % | 14,049; 15,092, +7 %; 20,239, +44 % | |
| the same of five boots of an earlier kernel that day, idle and churning: longest, 99.99 % | 194,579, 202,554, +4.1 %; 56,773, 58,441, +2.9 % | 1 % |
| a further cluster of 128 MiB without a process, an archive of 14.5 MB, 27 November: memory that it uses; before it shared the archive's pages | 5.1 MiB; 19.8 MiB | 24 MiB |
| foreign pages in either kernel's tables | 0 | 0 |
| rows of the [OS table](os.md) in a machine with one cluster, against the same kernel without what serves clusters (443 KB of 17.8 MB), least of three boots each, 27 November | -0.8 % (fork) to +0.15 % (boot); all but fork and exec within 0.15 % | 0.5 % |

In single boots the 99.99 % was 52,181 to 60,267 beside an idle cluster, 53,708 to 59,700 beside a busy one, and 58,341 to
64,392 beside one that computes in user mode, whose kernel does next to nothing: the machine has one clock, which the
other processor's turns move on.

The kernel without clusters starts no other kernel, has no monitor, no network between clusters, no ` + "`/dev/cluster`" + `, no service
` + "`clusters`" + ` and no doorbell among its interrupts. Single boots of one kernel differ by up to 2 % (fork).

In storms the frames that were fewer later on were the storm program's own (its heap grew from 6.4 to 8.8 MB) and parts of the
kernel's heap that were free and not given back yet (0.1 to 0.7 MB). What is left does not fall. The first third of a storm fills caches. Without a collection, 3,169 frames were missing after 3,000
restarts: probably garbage, and caches that had filled.
`

const (
	aliveFiles  = 5000      // ALIVE in guest/cluster.c
	otherMemory = 128 << 20 // of the second cluster (two)
)

// change is by how much a percentile grows from one run to another; that of 0 is the mean.
func change(from, to *Churn, n int) string {
	a, b := from.Mean(), to.Mean()
	if n > 0 {
		a, b = from.Percentile(n), to.Percentile(n)
	}
	if b > 3*a {
		return fmt.Sprintf("%.0f times as much", float64(b)/float64(a))
	}
	return fmt.Sprintf("%+.1f %%", 100*(float64(b)/float64(a)-1))
}

// SVG draws the longest request of each hundredth of a run.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "percent of the requests", "instructions, the longest request"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	for _, l := range []struct {
		name string
		r    Requests
		c    color.Color
	}{{"one kernel, churns", r.OneBusy.Requests, color.RGBA{0xc0, 0, 0, 0xff}}, {"two clusters, the other churns", r.ApartBusy.Requests, color.RGBA{0x2f, 0x6f, 0x9f, 0xff}}} {
		line, err := plotter.NewLine(longest(l.r, 100))
		if err != nil {
			return err
		}
		line.Color = l.c
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	return p.Save(7*vg.Inch, 3.5*vg.Inch, name)
}

// longest divides requests into n parts and takes the longest of each.
func longest(r Requests, n int) (xys plotter.XYs) {
	for i := range n {
		part := r[len(r)*i/n : len(r)*(i+1)/n]
		if len(part) > 0 {
			xys = append(xys, plotter.XY{X: float64(i), Y: float64(part.Percentile(10000))})
		}
	}
	return xys
}
