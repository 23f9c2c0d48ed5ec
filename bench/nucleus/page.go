package nucleusbench

import (
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// kernels are those that a table has figures of.
func (r *Report) kernels(f Figures, row string) []string {
	var names []string
	for _, k := range r.Kernels {
		if len(f[row][k]) > 0 {
			names = append(names, k)
		}
	}
	return names
}

func head(b *strings.Builder, first string, names []string) {
	b.WriteString("| " + first + " | " + strings.Join(names, " | ") + " |\n| --- |" + strings.Repeat(" ---: |", len(names)) + "\n")
}

// costTable has the median of each operation, and its ratio to the kernel without a
// control.
func (r *Report) costTable() string {
	var b strings.Builder
	if len(r.Rows) == 0 {
		return ""
	}
	names := r.kernels(r.Costs, r.Rows[0])
	head(&b, "operation", names)
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |", row)
		for _, k := range names {
			v := r.Costs.Median(row, k)
			if none := r.Costs.Median(row, "none"); none != 0 && k != "none" {
				fmt.Fprintf(&b, " %.0f (%+.0f %%) |", v, 100*(v/none-1))
			} else {
				fmt.Fprintf(&b, " %.0f |", v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// redisTable has median and extreme of each number of servers.
func (r *Report) redisTable(f Figures, best func(row, kernel string) float64) string {
	var b strings.Builder
	names := r.kernels(f, "1")
	head(&b, "servers, with two clients each", names)
	for n := 1; n <= Servers; n++ {
		row := strconv.Itoa(n)
		fmt.Fprintf(&b, "| %s |", row)
		for _, k := range names {
			fmt.Fprintf(&b, " %.0f (%.0f) |", f.Median(row, k), best(row, k))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *Report) whenTimed() string {
	if r.Earlier {
		return "\nThese figures are from an earlier run, with the kernel of that day."
	}
	return ""
}

// Markdown is the page.
func (r *Report) Markdown() string {
	return fmt.Sprintf(`# The nucleus under its concurrency controls

Written by `+"`make bench-nucleus`"+` (bench/nucleus), %s, machine microvm, TCG. The
controls are those of `+"`hardtack build --control`"+`, [0083](../decisions/0083-concurrency-controls.md).

User programs' system calls are Go code and do not enter the nucleus. The nucleus serves
the Go runtime's threads, which wait or are woken when a CPU runs out of work or gets some.

## Operations

Guest instructions on one CPU, entry and exit included, counted with `+"`-icount`"+`, as
`+"`/proc/hardtack/nucleus`"+` shows them. The cost over none is in parentheses; there is no
contention. "Alone" is an operation that excludes all others under fine, which visits the
marks of the running CPUs for that. A turn is two goroutines with their own threads that
hand a value there and back, Go's scheduler included.

%s
Elphinstone et al. (*An Evaluation of Coarse-Grained Locking for Multicore Microkernels*,
figure 4, x86) found that big costs 3 %% over none and fine 20 %%, of a whole system call
with IPC.

## Redis on four virtual CPUs

The experiment of the paper's figure 7: servers with two clients each, in one machine with
%d virtual CPUs; GET of random keys through the loopback interface. Go's scheduler places
the threads.

Instructions of the whole machine per request, counted with -icount. In this mode, QEMU
runs the CPUs in turn on one host thread, and a CPU that waits for a lock gives up its
turn. So this is the cost of a control in instructions, with few waits. Medians of %d
boots, each the median of three windows of 40 ms; the minimum is in parentheses.

%s
Requests per second of wall-clock time, with one host thread for each virtual CPU. The host
has fewer processors than the guest, and other programs use them too (two spinning threads
did %.2f times the work of one). With %d virtual CPUs on two processors, throughput cannot
grow beyond two servers, and a CPU that holds a lock, or is next in its queue, is often not
running. So the figures show how each control copes with an oversubscribed host, not how it
scales. Medians, with the greatest in parentheses.%s

%s
![requests a second](nucleus.svg)
`, r.QEMU, r.costTable(), CPUs, r.Rounds, r.redisTable(r.Counted, r.Counted.Min), r.Cores, CPUs, r.whenTimed(), r.redisTable(r.Timed, r.Timed.Max))
}

// SVG draws requests a second over servers.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Redis on %d virtual CPUs", CPUs)
	p.X.Label.Text = "servers, with two clients each"
	p.Y.Label.Text = "requests/s"
	p.Y.Min = 0
	var lines []any
	for _, k := range r.kernels(r.Timed, "1") {
		var xy plotter.XYs
		for n := 1; n <= Servers; n++ {
			xy = append(xy, plotter.XY{X: float64(n), Y: r.Timed.Median(strconv.Itoa(n), k)})
		}
		lines = append(lines, k, xy)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	p.Legend.Top = false
	return p.Save(6*vg.Inch, 4*vg.Inch, name)
}
