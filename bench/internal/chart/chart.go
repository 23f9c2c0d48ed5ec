// Package chart draws the plot that the pages of docs/bench share: how many times
// as much as the reference each row takes.
package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Ratios are rows with a ratio each, in the order of the table.
type Ratios struct {
	Title  string // of the plot
	Unit   string // below the axis
	titles []string
	values plotter.Values
}

// Add adds a row.
func (r *Ratios) Add(title string, ratio float64) {
	r.titles = append(r.titles, title)
	r.values = append(r.values, ratio)
}

// Save draws a bar for each row, the first at the top, and a line at 1, and writes
// the file of the name, SVG by its ending. Without rows it writes nothing.
func (r *Ratios) Save(name string) error {
	n := len(r.values)
	if n == 0 {
		return nil
	}
	// The axis of names grows upwards.
	titles, values := make([]string, n), make(plotter.Values, n)
	for i := range n {
		titles[n-1-i], values[n-1-i] = r.titles[i], r.values[i]
	}
	p := plot.New()
	p.Title.Text = r.Title
	p.X.Label.Text = r.Unit
	p.X.Min = 0
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return err
	}
	bars.Horizontal = true
	bars.Color = color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}
	bars.LineStyle.Width = 0
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(n) - 0.5}})
	if err != nil {
		return err
	}
	line.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(bars, line)
	p.NominalY(titles...)
	return p.Save(9*vg.Inch, vg.Length(n)*0.32*vg.Inch+vg.Inch, name)
}
