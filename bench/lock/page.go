package lockbench

import (
	"fmt"
	"image/color"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"hardtack/bench/internal/report"
	"hardtack/tool/repairman"
)

// Fit is the model of the points, with one service time and with a transfer, and the
// report of the second.
func (r *Result) Fit() (plain, fit repairman.Fit, rep *repairman.Report, err error) {
	if plain, err = repairman.Delays(r.Points); err != nil {
		return plain, fit, nil, err
	}
	if fit, err = repairman.Transfers(r.Points); err != nil {
		return plain, fit, nil, err
	}
	rep = &repairman.Report{Unit: "cycles", PerSecond: r.PerSecond, Cores: 16, Efficiency: 0.9}
	for _, s := range repairman.Series(r.Points) {
		rep.Loads = append(rep.Loads, repairman.Load{Name: fmt.Sprintf("delay %.0f", s[0].Delay), Model: fit.With(s[0]), Points: s})
	}
	return plain, fit, rep, nil
}

// CSV is the points as "hardtack model" reads them.
func (r *Result) CSV() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# one-way IPC under a big lock; hardtack model --ghz %.4g --transfer docs/bench/%s.csv\ncores,throughput,delay\n", r.PerSecond/1e9, r.name())
	for _, p := range r.Points {
		fmt.Fprintf(&b, "%d,%.0f,%.0f\n", p.Cores, p.Throughput*r.PerSecond, p.Delay)
	}
	return b.String()
}

// goal is a row of the goals' table.
type goal struct {
	text     string
	want     float64
	atMost   bool
	measured float64
	spent    float64 // the same from processor time, 0 for none
	missing  string
}

// spent is the ratio of the least processor times.
func (r *Result) spent(a, b string) float64 {
	if y := r.Processor[b].Min(); y > 0 {
		return r.Processor[a].Min() / y
	}
	return 0
}

// ratio is the median of what each round gives: its two figures were taken one after
// the other.
func (r *Result) ratio(a, b string) float64 {
	x, y := r.ByRound[a], r.ByRound[b]
	var ratios Cell
	for i := range min(len(x), len(y)) {
		if y[i] != 0 {
			ratios = append(ratios, x[i]/y[i])
		}
	}
	return ratios.Median()
}

func (r *Result) goals(plain, fit repairman.Fit) []goal {
	var out []goal
	limits := map[string]float64{"big": 1.05, "fine": 1.2, "rtm": 1.2}
	for _, c := range Controls[1:] {
		out = append(out, goal{c + " / none, with a system call for entry and exit", limits[c], true, r.ratio("entry "+c, "entry none"), r.spent("entry "+c, "entry none"), r.Missing[c]})
	}
	for _, c := range []string{"fine", "rtm"} {
		out = append(out, goal{c + ", independent pairs: two cores / one", 1.9, false, r.ratio("pairs 1 "+c, "pairs 2 "+c), 2 * r.spent("pairs 1 "+c, "pairs 2 "+c), r.Missing[c]})
	}
	return append(out,
		goal{"sync.Mutex / Elided, two threads, disjoint data", 1.7, false, r.ratio("buckets sync.Mutex", "buckets Elided"), r.spent("buckets sync.Mutex", "buckets Elided"), ""},
		goal{"Elided / sync.Mutex, one thread", 1.15, true, r.ratio("alone Elided", "alone sync.Mutex"), r.spent("alone Elided", "alone sync.Mutex"), ""},
		goal{"Elided / sync.Mutex, two threads, one counter", 1.1, true, r.ratio("counter Elided", "counter sync.Mutex"), r.spent("counter Elided", "counter sync.Mutex"), ""},
		goal{"RWMutex.RLock / BigReader, two readers", 8, false, r.ratio("readers RWMutex.RLock", "readers BigReader"), r.spent("readers RWMutex.RLock", "readers BigReader"), ""},
		goal{"R² of the model with one service time, as the paper's, delays of 500 to 32,000 cycles", 0.98, false, plain.R2, 0, ""},
		goal{"R² of the model with a transfer between cores, the same points", 0.98, false, fit.R2, 0, ""},
	)
}

// Markdown is the page.
func (r *Result) Markdown() (string, error) {
	plain, fit, rep, err := r.Fit()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Locks and the nucleus core\n")
	p("Written by `make bench-lock`. %s, time stamp counter at %.2f GHz, %d rounds; in each", r.CPU, r.PerSecond/1e9, r.Rounds)
	p("round the contenders of a row ran one after the other, on threads pinned to processors%s.", map[bool]string{
		true: ",\nwith real-time priority, and idle-looping threads kept other programs off these processors", false: ""}[r.FIFO])
	p("Figures are cycles of the time stamp counter per operation: median (minimum) of windows")
	p("of 10 to 40 ms. Ratios are medians of the ratios within a round. Processor time is that of")
	p("all working threads together, in the same cycles, the minimum; it varies little with other")
	p("programs on the machine. %s\n", r.Load)
	if !r.Transactions {
		p("**This processor has no working hardware transactions.** Not measured here are the control")
		p("`rtm`, and Elided's gain from running sections in parallel: Elided is its plain lock in all")
		p("figures below. Figures of a processor that")
		p("has them are in [lock-rtm.md](lock-rtm.md).\n")
	} else {
		p("**Hardware transactions commit here.** The figures of a processor without them are in")
		p("[lock.md](lock.md).\n")
	}
	r.writeGoals(p, plain, fit)
	r.writeOneWay(p)
	r.writePairs(p)
	r.writeLocks(p)
	r.writeModel(p, plain, fit, rep)
	return b.String(), nil
}

// printer adds a line to the page.
type printer func(format string, args ...any)

// writeGoals writes the goals and what was measured.
func (r *Result) writeGoals(p printer, plain, fit repairman.Fit) {
	p("## Goals\n")
	p("The last column has the same from the least processor times, which other programs on the")
	p("machine hardly change; that of two cores is what they would reach if each had a core to")
	p("itself. It does not show time for which threads sleep.\n")
	p("| | goal | measured | by processor time |\n| --- | ---: | ---: | ---: |")
	for _, g := range r.goals(plain, fit) {
		sign := "≥"
		if g.atMost {
			sign = "≤"
		}
		switch {
		case g.missing != "":
			p("| %s | %s %v | not measured: %s | |", g.text, sign, g.want, g.missing)
		default:
			met := "**missed**"
			if g.atMost && g.measured <= g.want || !g.atMost && g.measured >= g.want {
				met = "met"
			}
			spent := ""
			if g.spent > 0 {
				spent = figure(g.spent)
			}
			p("| %s | %s %v | %s, %s | %s |", g.text, sign, g.want, figure(g.measured), met, spent)
		}
	}
}

// writeOneWay writes the cost of one-way IPC.
func (r *Result) writeOneWay(p printer) {
	p("\n## One-way IPC on one core, 32 bytes\n")
	p("A client calls; a server on the same core replies and receives. Both switch without the")
	p("run queue, and each operation counts once. Elphinstone et al. (*An Evaluation of")
	p("Coarse-Grained Locking for Multicore Microkernels*, figure 3: big 3 %%, fine 20 %%, rtm 17 %%)")
	p("compare with a kernel without locks, in which two threads on one core send to each other,")
	p("and an operation is a whole system call: into the kernel, the message and the switch, and")
	p("out again. Here there is no kernel to enter, and there are no registers or address spaces to")
	p("switch: the bare figure is the nucleus core alone, of which a lock is a large part. In the")
	p("second column, a system call of Linux (getppid) before each operation stands in for entry and")
	p("exit, for all controls alike. The goals refer to that column.\n")
	p("| control | bare | processor time | / none | - none | with entry and exit | processor time | / none | - none |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range Controls {
		if why := r.Missing[c]; why != "" {
			p("| %s | – | | | | – | | | |", c)
			continue
		}
		p("| %s | %s | %.0f | %.2f | %.0f | %s | %.0f | %.2f | %.0f |", c, r.cell("bare "+c), r.Processor["bare "+c].Min(), r.ratio("bare "+c, "bare none"), r.over("bare ", c),
			r.cell("entry "+c), r.Processor["entry "+c].Min(), r.ratio("entry "+c, "entry none"), r.over("entry ", c))
	}
	p("\nThe cost of a locked instruction (XCHG on a cached line) depends on what precedes it. It")
	p("waits until the processor has finished earlier work, which takes longer than the")
	p("instruction itself right after a system call:\n")
	p("| before it | without | with | more |\n| --- | ---: | ---: | ---: |")
	for _, v := range []string{"nothing", "multiplications", "system call", "system call, multiplications"} {
		k := "after " + v
		p("| %s | %s | %s | %.0f |", strings.Replace(v, "multiplications", "ten multiplications in a chain", 1), r.cell(k), r.cell(k+", exchange"),
			r.Cells[k+", exchange"].Median()-r.Cells[k].Median())
	}
	if len(r.Cells["after transaction"]) > 0 {
		p("\nA transaction with nothing in it takes %s cycles, with the calls of the two", r.cell("after transaction"))
		p("instructions that begin and end it, which Go cannot inline. Control rtm costs at least that.")
	}
	p("\n![One-way IPC](%s-ipc.svg)\n", r.name())
}

// writePairs writes pairs on one core and two.
func (r *Result) writePairs(p printer) {
	p("## Independent pairs\n")
	p("A pair on each core; cycles for one operation of all cores together.\n")
	p("| control | one core, entry and exit | two cores | processor time | gain | one core, delay 2,000 | two cores | processor time | gain |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range Controls[1:] {
		if r.Missing[c] == "" {
			p("| %s | %s | %s | %.0f | %.2f | %s | %s | %.0f | %.2f |", c,
				r.cell("pairs 1 "+c), r.cell("pairs 2 "+c), r.Processor["pairs 2 "+c].Min(), r.ratio("pairs 1 "+c, "pairs 2 "+c),
				r.cell("delay 1 "+c), r.cell("delay 2 "+c), r.Processor["delay 2 "+c].Min(), r.ratio("delay 1 "+c, "delay 2 "+c))
		}
	}
}

// writeLocks writes the locks of the library.
func (r *Result) writeLocks(p printer) {
	p("\n## Locks of the library\n")
	p("A section adds 1 to a counter. Buckets: each thread has its own counters. FIFO locks")
	p("(CLH, Ticket) pass to the other thread at every release. With sync.Mutex and Elided the")
	p("running thread may take the lock again, for a bounded time.\n")
	p("| | sync.Mutex | processor time | Elided | processor time | CLH | processor time | Ticket | processor time |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	both := func(key string) string {
		return fmt.Sprintf("%s | %.0f", r.cell(key), r.Processor[key].Min())
	}
	for _, row := range [][2]string{{"alone", "one thread"}, {"counter", "two threads, one counter"}, {"buckets", "two threads, buckets"}} {
		at := row[0] + " "
		p("| %s | %s | %s | %s | %s |", row[1], both(at+"sync.Mutex"), both(at+"Elided"), both(at+"CLH"), both(at+"Ticket"))
	}
	p("\n| | RWMutex.RLock | processor time | BigReader | processor time |\n| --- | ---: | ---: | ---: | ---: |")
	p("| two readers, lock and unlock | %s | %s |", both("readers RWMutex.RLock"), both("readers BigReader"))
}

// writeModel writes the model of a single lock.
func (r *Result) writeModel(p printer, plain, fit repairman.Fit, rep *repairman.Report) {
	p("\n## The model\n")
	p("The control big, a pair on each core, an exponentially distributed delay before each")
	p("operation. With one service time, as in the paper, and one overhead per operation")
	p("outside of the lock, a least squares fit to all %d points gives service time %.0f cycles,", len(r.Points), plain.Service)
	p("think time delay %+.0f cycles, R² %.4f.", plain.Think, plain.R2)
	if plain.Think < 0 {
		p("An overhead below 0 (the limit is minus half of the shortest delay) shows what is wrong:")
		p("a core alone is faster than one service time allows.")
	}
	p("No other core takes the lock's cache lines from a core that is alone. The paper measures")
	p("that one core holds the lock for 164 cycles and several for 300 to 600, and fits up to 14")
	p("cores, so one core alone hardly matters there. Here, half of the points are of one core.")
	p("The second model has no overhead; it has a service time for a core that had the lock last,")
	p("and a transfer time that is added when another core had it (always after a core that")
	p("waited, half of the time when two find it free). It gives service time %.0f cycles,", fit.Service)
	p("transfer %.0f, R² %.4f. The remaining differences are below, model over measured. Most of", fit.Transfer, fit.R2)
	p("what R² explains here is the difference between the delays. There are two points for each")
	p("delay, with one core and with two; the curves beyond are predictions.\n")
	p("| delay | one core, million/s | model | two cores | model | one service time: one core, two | knee | carries at 90 %% |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, l := range rep.Loads {
		point := func(i int) string {
			x := l.Model.At(i + 1).Throughput
			return fmt.Sprintf("%.3f | %.3f (%+.1f %%)", l.Points[i].Throughput*r.PerSecond/1e6, x*r.PerSecond/1e6, 100*(x/l.Points[i].Throughput-1))
		}
		off := func(i int) float64 {
			return 100 * (plain.With(l.Points[i]).At(i+1).Throughput/l.Points[i].Throughput - 1)
		}
		p("| %.0f | %s | %s | %+.1f %%, %+.1f %% | %.1f | %d |", l.Points[0].Delay, point(0), point(1), off(0), off(1),
			l.Model.Knee(), l.Model.Carries(0.9, repairman.MaxCores))
	}
	p("\n![Model](%s-model.svg)\n", r.name())
	p("The points are in [%[1]s.csv](%[1]s.csv), for `hardtack model --ghz %.4[2]g --transfer docs/bench/%[1]s.csv`.", r.name(), r.PerSecond/1e9)
}

// figure is a number of three digits, or four where 1 is the best there is.
func figure(v float64) string {
	if v > 0.9 && v < 1 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// over is what a control takes more than none, in cycles: the median of the rounds.
func (r *Result) over(kind, control string) float64 {
	x, y := r.ByRound[kind+control], r.ByRound[kind+"none"]
	var more Cell
	for i := range min(len(x), len(y)) {
		more = append(more, x[i]-y[i])
	}
	return more.Median()
}

func (r *Result) cell(key string) string {
	c := r.Cells[key]
	if len(c) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f (%.0f)", c.Median(), c.Min())
}

// name is that of the page's files: there is a page for processors whose transactions
// commit, and one for those without any, and neither run writes over the other's.
func (r *Result) name() string {
	if r.Transactions {
		return "lock-rtm"
	}
	return "lock"
}

// Write writes page, plots and points into a directory.
func (r *Result) Write(dir string) error {
	page, err := r.Markdown()
	if err != nil {
		return err
	}
	_, _, rep, err := r.Fit()
	if err != nil {
		return err
	}
	return report.WritePage(dir, r.name()+".md", page, map[string]func(string) error{
		r.name() + "-model.svg": func(file string) error {
			return rep.SVG(file, "One-way IPC under a big lock: measured, and the model")
		},
		r.name() + "-ipc.svg": r.bars,
		r.name() + ".csv":     func(file string) error { return os.WriteFile(file, []byte(r.CSV()), 0o644) },
	})
}

func (r *Result) bars(name string) error {
	p := plot.New()
	p.Title.Text = "One-way IPC, one core"
	p.Y.Label.Text = "cycles"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	var names []string
	var bare, entry plotter.Values
	for _, c := range Controls {
		if r.Missing[c] == "" {
			names = append(names, c)
			bare = append(bare, r.Cells["bare "+c].Median())
			entry = append(entry, r.Cells["entry "+c].Median())
		}
	}
	width := vg.Points(24)
	for i, v := range []struct {
		values plotter.Values
		label  string
		colour color.RGBA
	}{{bare, "bare", color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}}, {entry, "with entry and exit", color.RGBA{R: 0xc0, G: 0x60, A: 0xff}}} {
		bars, err := plotter.NewBarChart(v.values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = v.colour, 0
		bars.Offset = width * vg.Length(2*i-1) / 2
		p.Add(bars)
		p.Legend.Add(v.label, bars)
	}
	p.NominalX(names...)
	return p.Save(6*vg.Inch, 4*vg.Inch, name)
}
