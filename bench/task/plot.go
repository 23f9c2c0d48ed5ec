package taskbench

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// SVG draws nanoseconds per call of fib, on a logarithmic scale.
func (r *Result) SVG(name string) error {
	p := plot.New()
	p.Title.Text = "fib, a spawn at every call"
	p.X.Label.Text = "ns a call (logarithmic)"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = 0.5, 4000
	var one, two plotter.XYs
	var titles []string
	for i := len(r.Contenders) - 1; i >= 0; i-- {
		c := r.Contenders[i]
		v := r.Min(Key{c.Name, "fib", 1})
		if v == 0 {
			continue
		}
		y := float64(len(titles))
		titles = append(titles, c.Title)
		one = append(one, plotter.XY{X: v, Y: y})
		if v := r.Min(Key{c.Name, "fib", 2}); v > 0 {
			two = append(two, plotter.XY{X: v, Y: y})
		}
	}
	if len(one) == 0 {
		return nil
	}
	add := func(points plotter.XYs, label string, col color.Color) error {
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle.Color = col
		s.GlyphStyle.Radius = vg.Points(4)
		p.Add(s)
		p.Legend.Add(label, s)
		return nil
	}
	p.Add(plotter.NewGrid())
	if err := add(one, "one worker", color.RGBA{R: 0xc0, A: 0xff}); err != nil {
		return err
	}
	if len(two) > 0 {
		if err := add(two, "two workers", color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}); err != nil {
			return err
		}
	}
	p.NominalY(titles...)
	return p.Save(8*vg.Inch, vg.Length(len(titles))*0.32*vg.Inch+vg.Inch, name)
}

// SVG draws the latency of each message around the removal of a core.
func (m *Removal) SVG(name string) error {
	p := plot.New()
	p.Title.Text = "Messages while a core is removed"
	p.X.Label.Text = "message"
	p.Y.Label.Text = "µs one way (logarithmic)"
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	from, to := max(0, m.At-200), min(len(m.Trips), m.At+200)
	var points plotter.XYs
	top, bottom := 0.0, 1e9
	for i := from; i < to; i++ {
		v := max(m.Trips[i], 0.01)
		top, bottom = max(top, v), min(bottom, v)
		points = append(points, plotter.XY{X: float64(i), Y: v})
	}
	if len(points) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.GlyphStyle.Radius = vg.Points(2)
	s.GlyphStyle.Color = color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}
	at, err := plotter.NewLine(plotter.XYs{{X: float64(m.At), Y: bottom}, {X: float64(m.At), Y: top}})
	if err != nil {
		return err
	}
	at.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(plotter.NewGrid(), s, at)
	p.Y.Min, p.Y.Max = bottom/2, top*2
	return p.Save(8*vg.Inch, 4*vg.Inch, name)
}
