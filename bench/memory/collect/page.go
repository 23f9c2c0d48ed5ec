package collectbench

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A Row is a machine with an old kernel and this one, and with one of them without any
// collection.
type Row struct{ Old, New, Without *Result }

// A Point is what a heap of some size costs.
type Point struct {
	Percent string
	*Result
}

// Ratio is the size at which the heap is to be collected, over what lives.
func (p *Point) Ratio() (ratio float64) {
	fmt.Sscan(p.Percent, &ratio)
	return 1 + ratio/100
}

// Report is all that was measured.
type Report struct {
	QEMU   string
	Rows   []Row
	Points []Point // the headroom
	Full   *Result // the headroom's loop without any collection
	Files  int     // that are alive in Points
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percentiles are the worst of all kinds of call: each percentile of the kind where it is
// highest.
func percentiles(r *Result) (p99, p9999 int64) {
	for _, c := range r.Calls {
		if c.single() {
			p99, p9999 = max(p99, c.P99), max(p9999, c.P9999)
		}
	}
	return p99, p9999
}

// Markdown is docs/bench/collector.md.
func (r *Report) Markdown() string {
	b := new(strings.Builder)
	fmt.Fprintf(b, `# What the collector adds to system calls

Written by `+"`make bench-collector`"+`. %s, TCG, `+"`-icount shift=0,sleep=off`"+`: figures are
instructions, read by the program from the time-stamp counter before and after each call. With
two CPUs the emulator runs each in turn for up to some million instructions and the clock
counts both, so the table leaves out the longest calls.

The loop creates, writes, looks up, opens and removes a file, uses a pipe and a local TCP
connection, and forks every eighth time. "Files alive" are empty files in /tmp. The kernel collects in small pieces
([0170](../decisions/0170-marking-in-small-pieces.md)).

## Delays

*Longest* is the longest single call of any kind. *Added* is the largest excess
of a call over the longest call of its kind in the same loop without a collection. 99 %% and
99.99 %% are percentiles of the kind of call where they are highest. *Share* is the collector's
share of processor time, by Go's own account.

`, r.QEMU)
	old := len(r.Rows) > 0 && r.Rows[0].Old != nil
	b.WriteString("| memory | CPUs | files alive | kernel | longest | added | to | 99.99 % | 99 % | collections | share |\n")
	b.WriteString("| --- | ---: | ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n")
	for _, row := range r.Rows {
		for i, res := range []*Result{row.Old, row.New} {
			if res == nil {
				continue
			}
			kernel := "this"
			if i == 0 {
				kernel = "before"
			}
			fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %d | %.1f %% |\n", res.Memory, res.CPUs, thousands(int64(res.Files)), kernel,
				delays(res, row.Without), res.Collections(), res.Share)
		}
	}
	if old {
		b.WriteString("\n*Before* is the kernel with Go's own collector.\n")
	}
	r.kinds(b)
	r.headroom(b)
	return b.String()
}

// delays are the columns about the time of calls. With two CPUs only what is below 99 % of
// all calls means something.
func delays(r, without *Result) string {
	p99, p9999 := percentiles(r)
	if r.CPUs > 1 {
		return "| | | | " + thousands(p99)
	}
	kind, most := r.Added(without)
	return fmt.Sprintf("%s | %s | %s | %s | %s", thousands(r.Longest().Longest), thousands(most), kind, thousands(p9999), thousands(p99))
}

// kinds writes all kinds of call for the last row with one CPU.
func (r *Report) kinds(b *strings.Builder) {
	for i := len(r.Rows) - 1; i >= 0; i-- {
		row := r.Rows[i]
		if row.New.CPUs != 1 || row.New.Files == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## Each kind of call\n\n%s, one CPU, %s files alive.\n\n", row.New.Memory, thousands(int64(row.New.Files)))
		b.WriteString("| call | median | 99 % | 99.99 % | longest | longest, never collected |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
		for _, c := range row.New.Calls {
			if c.single() {
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", c.Name, thousands(c.Median), thousands(c.P99), thousands(c.P9999), thousands(c.Longest),
					thousands(row.Without.Call(c.Name).Longest))
			}
		}
		return
	}
}

func (r *Report) headroom(b *strings.Builder) {
	if len(r.Points) == 0 {
		return
	}
	fmt.Fprintf(b, `
## Headroom

The same loop on 512M with one CPU and %s files alive, by the ratio of
heap to live memory (the kernel parameter gcpercent). Throughput is relative to the loop without
a collection, which takes %s instructions and allocates %s bytes each time.

| heap over live | instructions | throughput | share | collections | longest call |
| ---: | ---: | ---: | ---: | ---: | ---: |
`, thousands(int64(r.Files)), thousands(int64(r.Full.Each())), thousands((r.Full.Heap["TotalAlloc"][1]-r.Full.Heap["TotalAlloc"][0])/int64(r.Full.Iterations)))
	for _, p := range r.Points {
		fmt.Fprintf(b, "| %.1f | %s | %.2f | %.1f %% | %d | %s |\n", p.Ratio(), thousands(int64(p.Each())), r.Full.Each()/p.Each(), p.Share, p.Collections(),
			thousands(p.Longest().Longest))
	}
	b.WriteString("\n![headroom](collector.svg)\n")
}

// SVG draws the headroom.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "heap size over live size", "percent"
	p.Y.Min, p.Y.Max = 0, 100
	var share, speed plotter.XYs
	for _, pt := range r.Points {
		share = append(share, plotter.XY{X: pt.Ratio(), Y: pt.Share})
		speed = append(speed, plotter.XY{X: pt.Ratio(), Y: 100 * r.Full.Each() / pt.Each()})
	}
	for _, l := range []struct {
		name string
		xys  plotter.XYs
		c    color.Color
	}{{"throughput", speed, color.RGBA{0x2f, 0x6f, 0x9f, 0xff}}, {"share of the collector", share, color.RGBA{0xc0, 0, 0, 0xff}}} {
		line, points, err := plotter.NewLinePoints(l.xys)
		if err != nil {
			return err
		}
		line.Color, points.Color = l.c, l.c
		p.Add(line, points)
		p.Legend.Add(l.name, line)
	}
	return p.Save(7*vg.Inch, 3.5*vg.Inch, name)
}
