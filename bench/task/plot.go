package taskbench

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// SVG draws nanoseconds a call of fib, on a logarithmic scale.
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
