package membench

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// goal is how many times its median the well-behaved program's worst round may take.
const goal = 10

// SVG draws, for each table, the worst rounds in multiples of the median, in order: how many of the
// kinds of offenders stay below which factor. It writes the file of the name.
func (r *Report) SVG(name string) error {
	p := plot.New()
	p.Title.Text = "Worst round of the well-behaved program / its median"
	p.X.Label.Text = "runs, percent"
	p.Y.Label.Text = "worst / median"
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	colors := []color.RGBA{{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}, {R: 0x2f, G: 0x9f, B: 0x5f, A: 0xff}, {R: 0xdf, G: 0x8f, B: 0x2f, A: 0xff},
		{R: 0x7f, G: 0x4f, B: 0x9f, A: 0xff}, {R: 0x5f, G: 0x5f, B: 0x5f, A: 0xff}, {R: 0xaf, G: 0xaf, B: 0xaf, A: 0xff}}
	for i := range r.Tables {
		t := &r.Tables[i]
		points := t.factors()
		if len(points) < 2 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color = colors[i%len(colors)]
		line.Width = vg.Points(1.5)
		if i >= len(colors) {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
		p.Legend.Add(t.title(), line)
	}
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: goal}, {X: 100, Y: goal}})
	if err != nil {
		return err
	}
	line.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(line)
	p.Legend.Add("the goal", line)
	return p.Save(9*vg.Inch, 6*vg.Inch, name)
}

// factors are the worst rounds in multiples of the median, from the smallest on, over
// percents of the runs.
func (t *Table) factors() plotter.XYs {
	var all []float64
	for _, r := range t.Runs {
		if r.Median > 0 && r.Worst > 0 {
			all = append(all, float64(r.Worst)/float64(r.Median))
		}
	}
	slices.Sort(all)
	points := make(plotter.XYs, len(all))
	for i, y := range all {
		points[i] = plotter.XY{X: 100 * float64(i+1) / float64(len(all)), Y: y}
	}
	return points
}
