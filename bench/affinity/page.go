package affinitybench

import (
	"fmt"
	"image/color"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"hardtack/bench/internal/report"
)

// Report is all that was measured.
type Report struct {
	CPU      string
	Cores    float64
	Prefix   []string
	RegexMiB int
	Rounds   int
	Load     string            // of the machine, before the run
	Results  []Result          // as Rows; nil where a row was left out
	Recovery Result            // seconds until the work runs at full speed after a talk
	Chans    string            // benchstat's table of the runtime's own benchmarks
	Counts   Counts            // their instructions
	Missing  map[string]string // programs that could not be had, and why
}

// Table is the comparison in Markdown.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("| program | unit |")
	for _, build := range Builds {
		fmt.Fprintf(&b, " %s |", build.Name)
	}
	b.WriteString(" Go / process | Go / node | Go / group | of minima | goal |\n| --- | --- |")
	b.WriteString(strings.Repeat(" ---: |", len(Builds)+5) + "\n")
	var doubts strings.Builder
	for i, row := range Rows {
		res := r.Results[i]
		if res == nil {
			continue
		}
		title := row.Title
		if why := res.Doubt(); why != "" {
			title += doubtMark
			fmt.Fprintf(&doubts, "- %s: %s.\n", row.Title, why)
		}
		fmt.Fprintf(&b, "| %s | %s |", title, unitOf(row))
		for _, build := range Builds {
			fmt.Fprintf(&b, " %s |", report.Cell(res[build.Name]))
		}
		process, _ := res.Ratio("process")
		node, _ := res.Ratio("node")
		group, minima := res.Ratio("group")
		goal := ""
		if row.Goal > 0 {
			goal = fmt.Sprintf("≥ %.2f", row.Goal)
		}
		fmt.Fprintf(&b, " %.2f | %.2f | **%.2f** | %.2f | %s |\n", process, node, group, minima, goal)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(&b, "\nNot measured: %s (%s).\n", name, r.Missing[name])
	}
	if doubts.Len() > 0 {
		fmt.Fprintf(&b, "\nThe ratios of rows with%s are not the policies' alone:\n\n%s", doubtMark, doubts.String())
	}
	return b.String()
}

// ProcessorTime is the table of what the programs computed, all threads together: the
// medians of Go and of group, and the ratios of medians and of minima.
func (r *Report) ProcessorTime() string {
	var b strings.Builder
	b.WriteString("| program | Go, s | off, s | process, s | node, s | group, s | Go / group | of minima | time: of minima |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i, row := range Rows {
		res := r.Results[i]
		if res == nil {
			continue
		}
		cpu := Result{"Go": res["Go"+processorTime], "group": res["group"+processorTime]}
		median, minima := cpu.Ratio("group")
		_, time := res.Ratio("group")
		fmt.Fprintf(&b, "| %s |", row.Title)
		for _, build := range Builds {
			fmt.Fprintf(&b, " %s |", report.Cell(res[build.Name+processorTime]))
		}
		fmt.Fprintf(&b, " %.2f | %.2f | %.2f |\n", median, minima, time)
	}
	return b.String()
}

// doubtMark stands behind the titles of rows with a Doubt.
const doubtMark = " †"

func unitOf(r Row) string {
	switch r.Metric {
	case "message", "hop", "item", "job", "put", "op":
		return "ns per " + r.Metric
	}
	return "s"
}

// Markdown is the page.
func (r *Report) Markdown() string {
	var b strings.Builder
	prefix := ""
	if len(r.Prefix) > 0 {
		prefix = fmt.Sprintf(" Each run was started with `%s`, to keep other programs off\nthe cores.", strings.Join(r.Prefix, " "))
	}
	fmt.Fprintf(&b, `# Channel-aware scheduling

Written by `+"`make bench-affinity`"+`. The same sources, built by unmodified Go and by
`+"`hardtack go`"+`; %s, default GOMAXPROCS. Two spinning threads did %.2f times the work of
one. Figures are medians (minima) of %d rounds; less is better. In each round, all columns ran
one after the other, in changing order. A ratio is the median of the rounds' ratios; the
column beside it has the ratio of the minima. %s%s

The order of a program's functions alone changes its speed by some percent. So each round has
another order, for all columns (-randlayout of Go's linker).

%s
*off* is Hardtack's build with counting only. *process* is the policy of the paper on
channel-aware scheduling in the Go runtime: a vote every 500 ms binds the process to one
core. *node* does the same with the cores of one last-level cache. On a machine with one such
cache it changes nothing, so its column shows the noise. *group* keeps goroutines that meet on
contended channels on one P. fast regex searched %d MiB, %s.

![ratios](affinity.svg)

## Processor time

Processor time of all threads of a program, including its preparation: median (minimum), and
Go divided by group, of the rounds and of the minima; beside it the ratio of the minima of
time. Host load changes processor time and minima less than medians of time. Costs without a
gain show here first.

%s
`, r.CPU, r.Cores, r.Rounds, r.Load, prefix, r.Table(), r.RegexMiB, times((r.Rounds+2)/3), r.ProcessorTime())
	b.WriteString(r.mixture())
	r.writeRecovery(&b)
	b.WriteString(`## Over time

Touches of channels per second, and those that came from another core than the touch before.
Each of the latter moves at least one cache line: they stand in for the paper's HITM events,
which this machine does not count. The drawing is shaded while something was kept on fewer
cores. These are the paper's figures 1, 3 and 4.

![hotpotato](affinity-hotpotato.svg)

![many-to-one](affinity-many.svg)

![fast regex](affinity-regex.svg)
`)
	r.writeChannels(&b)
	return b.String()
}

// writeRecovery adds how soon work runs at full speed after a talk, if it was measured.
func (r *Report) writeRecovery(b *strings.Builder) {
	if r.Recovery == nil {
		return
	}
	b.WriteString("## After the talk\n\nTime from the end of a talk until the work after it runs at full speed (the first of three\nconsecutive steps within 1.1 times the usual step):\n\n| | median | least | all rounds |\n| --- | ---: | ---: | --- |\n")
	for _, build := range Builds {
		v := r.Recovery[build.Name]
		var all []string
		for _, x := range v {
			all = append(all, fmt.Sprintf("%.0f", x*1000))
		}
		fmt.Fprintf(b, "| %s | %.0f ms | %.0f ms | %s |\n", build.Name, report.Median(v)*1000, report.Least(v)*1000, strings.Join(all, ", "))
	}
	b.WriteString("\n")
}

// writeChannels adds what counting costs, if it was measured.
func (r *Report) writeChannels(b *strings.Builder) {
	if r.Chans != "" {
		b.WriteString("\n## What counting costs\n\nThe runtime's own channel benchmarks, unmodified and with the policy off, ten runs each,\ninterleaved, by benchstat:\n\n```\n" + strings.TrimRight(r.Chans, "\n") + "\n```\n")
	}
	if r.Counts != nil {
		fmt.Fprintf(b, `
The same, counted in instructions. The benchmarks run in a virtual machine with one CPU
whose clock advances by one nanosecond per instruction, so their ns/op are instructions,
including the kernel's. Medians and minima of %d runs each. The spread is the difference
between the most and the least of unmodified Go: the scheduler's random numbers decide what
wakes up when, and padding that aligns jumps counts as instructions too. Here, ChanSem has a
channel of capacity 1, for which each message is a lap.

%s`, len(r.Counts.any()), r.Counts.Table())
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// mixture says what could be gained in the rows with a bound.
func (r *Report) mixture() string {
	var b strings.Builder
	for i, row := range Rows {
		res := r.Results[i]
		if !row.Bound || res == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(`## What can be gained in a mixture

The columns are the talk of the mixed rows alone on one core, where it is fastest; the
processor time of the work; and the work alone with its pauses. No schedule takes less time
than the maximum of the first, the third, and the sum of the first two divided by the number
of cores. Go divided by that is the most that any policy can gain on this machine. Where the
work keeps all cores busy, the gain should be nothing, because unmodified Go too runs the
talkers on one core at a time. In rows with †, it did not.

| row | talk, s | work, s | work alone, s | lower bound, s | Go / bound | Go / process | Go / group |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`)
		}
		process, _ := res.Ratio("process")
		group, _ := res.Ratio("group")
		most, _ := res.Ratio("bound")
		title := row.Title
		if res.Doubt() != "" {
			title += doubtMark
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", title,
			report.Median(res["talk"]), report.Median(res["cpu"]), report.Median(res["alone"]), report.Median(res["bound"]), most, process, group)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// SVG draws Go / group and Go / process for each row.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.Title.Text = "How many times faster than unmodified Go"
	p.X.Label.Text = "times (1 is unmodified Go)"
	p.X.Min = 0
	var group, process plotter.Values
	var titles []string
	for i := len(Rows) - 1; i >= 0; i-- {
		if r.Results[i] == nil {
			continue
		}
		g, _ := r.Results[i].Ratio("group")
		q, _ := r.Results[i].Ratio("process")
		group, process = append(group, g), append(process, q)
		titles = append(titles, Rows[i].Title)
	}
	if len(titles) == 0 {
		return nil
	}
	width := vg.Points(8)
	for i, set := range []struct {
		name string
		v    plotter.Values
		c    color.Color
	}{{"group", group, color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}}, {"process", process, color.RGBA{R: 0xc0, G: 0xa0, B: 0x60, A: 0xff}}} {
		bars, err := plotter.NewBarChart(set.v, width)
		if err != nil {
			return err
		}
		bars.Horizontal, bars.Color, bars.LineStyle.Width = true, set.c, 0
		bars.Offset = width/2 - vg.Length(i)*width
		p.Add(bars)
		p.Legend.Add(set.name, bars)
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(titles)) - 0.5}})
	if err != nil {
		return err
	}
	line.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(line)
	p.NominalY(titles...)
	return p.Save(8*vg.Inch, vg.Length(len(titles))*0.34*vg.Inch+vg.Inch, name)
}
