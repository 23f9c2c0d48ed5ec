package repairman

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Load is one load of a report: a model, and what was measured of it, if anything
// was.
type Load struct {
	Name   string
	Model  Model
	Points []Point
}

// Report is what the command shows.
type Report struct {
	Loads      []Load
	Unit       string  // of times
	PerSecond  float64 // units of time in a second
	Cores      int     // curves go up to this many
	Efficiency float64
}

// Text writes for each load the knee and how many cores the lock carries, and a
// table of the steady states.
func (r *Report) Text(w io.Writer) error {
	for _, l := range r.Loads {
		m := l.Model
		if l.Name != "" {
			fmt.Fprintf(w, "%s: ", l.Name)
		}
		fmt.Fprintf(w, "service time %.4g %s, think time %.4g %s", m.Service, r.Unit, m.Think, r.Unit)
		if m.Transfer > 0 {
			fmt.Fprintf(w, ", %.4g %s more from another core", m.Transfer, r.Unit)
		}
		fmt.Fprintln(w)
		if v := R2(l.Points, func(Point) Model { return m }); len(l.Points) > 0 && !math.IsNaN(v) {
			fmt.Fprintf(w, "R² %.4f over %d measurements\n", v, len(l.Points))
		}
		n := m.Carries(r.Efficiency, MaxCores)
		more := ""
		if n == MaxCores {
			more = " or more"
		}
		fmt.Fprintf(w, "knee at %.1f cores; at %.0f %% of each core's own speed the lock carries %d%s\n",
			m.Knee(), r.Efficiency*100, n, more)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "cores\tmeasured/s\tmodel/s\tof n × one\tat the lock\tlock busy\twait %s\t\n", r.Unit)
		measured := medians(l.Points)
		one := m.At(1).Throughput
		for _, s := range m.Curve(r.Cores) {
			what := "-"
			if v, ok := measured[s.Cores]; ok {
				what = fmt.Sprintf("%.4g", v*r.PerSecond)
			}
			fmt.Fprintf(t, "%d\t%s\t%.4g\t%.2f\t%.2f\t%.0f %%\t%.4g\t\n", s.Cores, what, s.Throughput*r.PerSecond,
				s.Throughput/one/float64(s.Cores), s.Queue, s.Busy*100, s.Wait)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

func medians(points []Point) map[int]float64 {
	out := map[int]float64{}
	for _, s := range Series(points) {
		by := map[int][]float64{}
		for _, p := range s {
			by[p.Cores] = append(by[p.Cores], p.Throughput)
		}
		for n, v := range by {
			out[n] = median(v)
		}
	}
	return out
}

var colours = []color.RGBA{
	{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}, {R: 0xc0, G: 0x60, A: 0xff}, {R: 0x3f, G: 0x8f, B: 0x4f, A: 0xff},
	{R: 0x8f, G: 0x3f, B: 0x8f, A: 0xff}, {R: 0x80, G: 0x60, B: 0x30, A: 0xff}, {R: 0x40, G: 0x40, B: 0x40, A: 0xff},
	{R: 0xc0, A: 0xff}, {G: 0x90, B: 0x90, A: 0xff},
}

// Plot draws throughput over cores: points as measured, curves by the models, as
// the paper's figure 4.
func (r *Report) Plot(title string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "cores"
	p.Y.Label.Text = "millions of operations a second"
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, l := range r.Loads {
		c := colours[i%len(colours)]
		var curve, points plotter.XYs
		for _, s := range l.Model.Curve(r.Cores) {
			curve = append(curve, plotter.XY{X: float64(s.Cores), Y: s.Throughput * r.PerSecond / 1e6})
		}
		for _, m := range l.Points {
			points = append(points, plotter.XY{X: float64(m.Cores), Y: m.Throughput * r.PerSecond / 1e6})
		}
		line, err := plotter.NewLine(curve)
		if err != nil {
			return nil, err
		}
		line.Color = c
		p.Add(line)
		thumbs := []plot.Thumbnailer{line}
		if len(points) > 0 {
			s, err := plotter.NewScatter(points)
			if err != nil {
				return nil, err
			}
			s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
			p.Add(s)
			thumbs = append(thumbs, s)
		}
		if l.Name != "" {
			p.Legend.Add(l.Name, thumbs...)
		}
	}
	p.X.Max = float64(r.Cores) + 0.5
	return p, nil
}

// SVG draws the plot into a file.
func (r *Report) SVG(name, title string) (err error) {
	p, err := r.Plot(title)
	if err != nil {
		return err
	}
	c := vgsvg.New(8*vg.Inch, 5*vg.Inch)
	p.Draw(draw.New(c))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
