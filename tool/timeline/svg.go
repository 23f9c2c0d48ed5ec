package timeline

import (
	"fmt"
	"image/color"
	"os"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	blue   = color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}
	orange = color.RGBA{R: 0xc0, G: 0x60, A: 0xff}
	shade  = color.RGBA{R: 0xd8, G: 0xe8, B: 0xd8, A: 0xff}
)

// SVG draws runs below each other with one scale of time: touches a second,
// those from another core, and a shade while goroutines or the process are
// kept on fewer cores.
func SVG(name string, runs ...*Run) (err error) {
	var plots []*plot.Plot
	end := time.Duration(0)
	for _, r := range runs {
		if n := len(r.Samples); n > 0 {
			end = max(end, r.Samples[n-1].At)
		}
	}
	for _, r := range runs {
		p, err := r.plot(end)
		if err != nil {
			return err
		}
		plots = append(plots, p)
	}
	if len(plots) == 0 {
		return fmt.Errorf("nothing to draw")
	}
	height := vg.Length(len(plots)) * 2.6 * vg.Inch
	c := vgsvg.New(8*vg.Inch, height)
	dc := draw.New(c)
	for i, p := range plots {
		h := height / vg.Length(len(plots))
		p.Draw(draw.Crop(dc, 0, 0, h*vg.Length(len(plots)-1-i), -h*vg.Length(i)))
	}
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

func (r *Run) plot(end time.Duration) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = r.Name
	p.X.Label.Text = "s"
	p.Y.Label.Text = "millions a second"
	p.X.Min, p.X.Max = 0, end.Seconds()
	p.Legend.Top = true
	rates := r.Rates(200)
	var touches, cross plotter.XYs
	top := 0.0
	for _, v := range rates {
		touches = append(touches, plotter.XY{X: v.At.Seconds(), Y: v.Touches / 1e6})
		cross = append(cross, plotter.XY{X: v.At.Seconds(), Y: v.Cross / 1e6})
		top = max(top, v.Touches/1e6)
	}
	if len(touches) == 0 {
		return p, nil
	}
	for i := 0; i+1 < len(r.Samples); i++ {
		if s := r.Samples[i]; s.Pinned || s.Together > 0 {
			j := i
			for j+1 < len(r.Samples) && (r.Samples[j].Pinned || r.Samples[j].Together > 0) {
				j++
			}
			a, b := s.At.Seconds(), r.Samples[j].At.Seconds()
			box, err := plotter.NewPolygon(plotter.XYs{{X: a, Y: 0}, {X: b, Y: 0}, {X: b, Y: top}, {X: a, Y: top}})
			if err != nil {
				return nil, err
			}
			box.Color, box.LineStyle.Width = shade, 0
			p.Add(box)
			i = j
		}
	}
	for _, l := range []struct {
		name string
		xy   plotter.XYs
		c    color.Color
	}{{"touches", touches, blue}, {"from another core", cross, orange}} {
		line, err := plotter.NewLine(l.xy)
		if err != nil {
			return nil, err
		}
		line.Color = l.c
		p.Add(line)
		p.Legend.Add(l.name, line)
	}
	p.Y.Min, p.Y.Max = 0, top*1.05
	return p, nil
}
