package osbench

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// SVG draws the ratios of the instruction table: shorter than Linux's line is
// better. Rows without both figures are left out.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.Title.Text = "Guest instructions, Hardtack / Linux"
	p.X.Label.Text = "ratio (1 is Linux)"
	p.X.Min = 0
	var values plotter.Values
	var titles []string
	for i := len(Rows) - 1; i >= 0; i-- {
		f := r.Instructions[Rows[i].Name]
		if f[OnHardtack].Median == 0 || f[OnLinux].Median == 0 {
			continue
		}
		values = append(values, f[OnHardtack].Median/f[OnLinux].Median)
		titles = append(titles, Rows[i].Title)
	}
	if len(values) == 0 {
		return nil
	}
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return err
	}
	bars.Horizontal = true
	bars.Color = color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}
	bars.LineStyle.Width = 0
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(values)) - 0.5}})
	if err != nil {
		return err
	}
	line.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(bars, line)
	p.NominalY(titles...)
	return p.Save(8*vg.Inch, vg.Length(len(values))*0.32*vg.Inch+vg.Inch, name)
}
