package followbench

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	osbench "hardtack/bench/os"
	"hardtack/tool/timeline"
)

// Pictures draw what there is, by the names of their files.
func (r *Report) Pictures() map[string]func(file string) error {
	all := map[string]func(string) error{}
	if len(r.Speeds) > 0 {
		all["follow-speed.svg"] = r.speedSVG
	}
	if len(r.Removals) > 0 {
		all["follow-removal.svg"] = r.removalSVG
	}
	if len(r.Players) > 0 {
		all["follow-players.svg"] = func(file string) error { return pointsSVG(file, "Hotpotato", "players", r.Players) }
	}
	if len(r.Regex) > 0 {
		all["follow-regex.svg"] = func(file string) error { return pointsSVG(file, "Fast regex", "workers", r.Regex) }
	}
	for on, logs := range r.Touches {
		all[touchesFile(on)] = func(file string) error { return touchesSVG(file, logs) }
	}
	return all
}

var colours = []color.RGBA{{0x2f, 0x6f, 0x9f, 0xff}, {0xc0, 0, 0, 0xff}, {0x3f, 0x8f, 0x3f, 0xff}}

// curve adds a line, of which Linux's are dashed.
func curve(p *plot.Plot, name string, on osbench.OS, c color.Color, points plotter.XYs) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.5)
	if on == osbench.OnLinux {
		l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

func (r *Report) speedSVG(file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "Speed-up, by the critical path", "processors", "times"
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	top := float64(slices.Max(processors))
	if err := curve(p, "linear", osbench.OnHardtack, color.Gray{0xa0}, plotter.XYs{{X: 1, Y: 1}, {X: top, Y: top}}); err != nil {
		return err
	}
	for i, s := range speeds {
		for _, on := range both(r.Speeds) {
			var points plotter.XYs
			for _, cpus := range processors {
				points = append(points, plotter.XY{X: float64(cpus), Y: r.speed(on, s.name, 1).Most / r.speed(on, s.name, cpus).Most})
			}
			if err := curve(p, fmt.Sprintf("%s, %v", s.title, on), on, colours[i], points); err != nil {
				return err
			}
		}
	}
	p.Y.Min = 0
	return p.Save(7*vg.Inch, 4.5*vg.Inch, file)
}

func (r *Report) removalSVG(file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "Messages while a processor is turned off", "message, from the removal on", "µs one way (logarithmic)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, on := range both(r.Removals) {
		m := r.Removals[on]
		var points plotter.XYs
		for j, us := range m.Trips {
			points = append(points, plotter.XY{X: float64(m.First + j - m.At), Y: max(us, 0.01)})
		}
		if err := curve(p, on.String(), on, colours[i], points); err != nil {
			return err
		}
	}
	return p.Save(7*vg.Inch, 4*vg.Inch, file)
}

func pointsSVG(file, title, what string, points map[osbench.OS][]Point) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, what, "millions of instructions, critical path"
	p.Add(plotter.NewGrid())
	for i, policy := range Policies {
		for _, on := range both(points) {
			var xys plotter.XYs
			for _, x := range points[on] {
				if x.Policy == policy {
					xys = append(xys, plotter.XY{X: float64(x.N), Y: x.Most / 1e6})
				}
			}
			if err := curve(p, strings.Trim(policyTitle(policy), "*")+", "+on.String(), on, colours[i], xys); err != nil {
				return err
			}
		}
	}
	p.Y.Min = 0
	return p.Save(7*vg.Inch, 4*vg.Inch, file)
}

func touchesSVG(file string, logs map[string]string) error {
	var runs []*timeline.Run
	for _, program := range []string{"hotpotato", "fast regex"} {
		for _, policy := range []string{"off", "process"} {
			name := program + ", policy " + policy
			run, err := timeline.Read(strings.NewReader(logs[name]))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			run.Name = name
			runs = append(runs, run)
		}
	}
	return timeline.SVG(file, runs...)
}
