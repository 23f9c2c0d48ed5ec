package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"hardtack/bench/internal/report"
)

// A number of clients at one server, in four pairs of languages: the thesis's
// figure 4.18, with a million pings for each number.
const (
	maxClients = 8
	allPings   = 1000000
)

// pair is a line of the figure: ns from ping to ping by the number of clients.
type pair struct {
	client, server string
	ns             [][]float64
	processor      [][]float64 // of all processes, from start to end
}

func cProgram(dir, name, source string) []string {
	return append([]string{"gcc", "-std=c11", "-O2", "-Imsg/c", "-Iidl/ping/c", "-o", filepath.Join(dir, name), source, "idl/ping/c/ping.c"}, mustGlob("msg/c/*.c")...)
}

func mustGlob(pattern string) []string {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		panic("no " + pattern) // it runs in the root of the module
	}
	return names
}

// clientPairs measures all pairs once each round.
func clientPairs(r runner, rounds int) ([]pair, error) {
	most := maxClients
	if r.part > 1 {
		most = 2
	}
	var all []pair
	for _, s := range []string{"Go", "C"} {
		for _, c := range []string{"Go", "C"} {
			all = append(all, pair{client: c, server: s, ns: make([][]float64, most), processor: make([][]float64, most)})
		}
	}
	for range rounds {
		for k := range most {
			for i := range all {
				p := &all[i]
				server, client := filepath.Join(r.dir, "crowd")+" -role serve -dir", "go"
				if p.server == "C" {
					server = filepath.Join(r.dir, "server")
				}
				if p.client == "C" {
					client = filepath.Join(r.dir, "client")
				}
				ns, spent, err := r.run("clients", "-server", server, "-client", client, "-k", fmt.Sprint(k+1), "-n", fmt.Sprint(allPings/max(r.part, 1)))
				if err != nil {
					return nil, err
				}
				var v float64
				if _, err := fmt.Sscan(ns, &v); err != nil {
					return nil, fmt.Errorf("clients: %q", ns)
				}
				p.ns[k] = append(p.ns[k], v)
				p.processor[k] = append(p.processor[k], float64(spent.Nanoseconds())/float64(allPings/max(r.part, 1)))
			}
		}
	}
	return all, nil
}

func clientTable(all []pair) string {
	var b strings.Builder
	b.WriteString("| clients |")
	for _, p := range all {
		fmt.Fprintf(&b, " %s to %s | processor time |", p.client, p.server)
	}
	b.WriteString("\n| ---: |" + strings.Repeat(" ---: | ---: |", len(all)) + "\n")
	for k := range all[0].ns {
		fmt.Fprintf(&b, "| %d |", k+1)
		for _, p := range all {
			fmt.Fprintf(&b, " %s ns | %.0f ns |", report.Cell(p.ns[k]), report.Least(p.processor[k]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func drawClients(all []pair, name string) error {
	p := plot.New()
	p.Title.Text = "Clients that ping one server"
	p.X.Label.Text = "clients"
	p.Y.Label.Text = "ns from ping to ping, of all together"
	p.Y.Min = 0
	p.X.Tick.Marker = plot.ConstantTicks(nil)
	var ticks []plot.Tick
	for k := range maxClients {
		ticks = append(ticks, plot.Tick{Value: float64(k + 1), Label: fmt.Sprint(k + 1)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	var lines []any
	for _, q := range all {
		var points plotter.XYs
		for k, v := range q.ns {
			points = append(points, plotter.XY{X: float64(k + 1), Y: slices.Min(v)})
		}
		lines = append(lines, q.client+" to "+q.server, points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p.Save(8*vg.Inch, 4*vg.Inch, name)
}

// crowds measures ten thousand idle connections to one server of either language.
func crowds(r runner) (string, error) {
	var b strings.Builder
	b.WriteString("| server | connections | memory each | processor time in 2 s idle | to open all | to use each again |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range [][2]string{{"Go", "go"}, {"C", filepath.Join(r.dir, "server")}} {
		out, err := r.output("crowd", "-n", fmt.Sprint(max(10000/max(r.part, 1), 20)), "-server", s[1])
		if err != nil {
			return "", err
		}
		var n, open, again int
		var bytes, cpu float64
		if _, err := fmt.Sscan(out, &n, &bytes, &cpu, &open, &again); err != nil {
			return "", fmt.Errorf("crowd: %q", out)
		}
		fmt.Fprintf(&b, "| %s | %d | %.1f KiB | %.1f ms | %.1f s | %.1f s |\n", s[0], n, bytes/1024, cpu, float64(open)/1000, float64(again)/1000)
	}
	return b.String(), nil
}

// stages measures where the time of a round trip goes: figure 4.19.
func stages(r runner, rounds int) (string, error) {
	var order []string
	got := make(map[string][]float64)
	for range rounds {
		out, err := r.output("stages", "-n", fmt.Sprint(max(200000/max(r.part, 1), 100)), "0", "1")
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(out) {
			ns, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			var v float64
			if _, err := fmt.Sscan(ns, &v); err != nil {
				return "", fmt.Errorf("stages: %q", line)
			}
			if got[name] == nil {
				order = append(order, name)
			}
			got[name] = append(got[name], v)
		}
	}
	var b strings.Builder
	b.WriteString("| stage | median | least |\n| --- | ---: | ---: |\n")
	for _, name := range order {
		fmt.Fprintf(&b, "| %s | %.0f ns | %.0f ns |\n", name, max(0, report.Median(got[name])), max(0, report.Least(got[name])))
	}
	return b.String(), nil
}
