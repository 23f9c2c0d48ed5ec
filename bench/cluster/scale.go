package clusterbench

import (
	"bufio"
	"bytes"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A mark is one line of the plugin's.
type mark struct{ cpu, number, own, halted, all int64 }

// readMarks returns those with some numbers.
func readMarks(counts []byte, numbers ...int64) (list []mark, err error) {
	for s := bufio.NewScanner(bytes.NewReader(counts)); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "mark ") {
			continue
		}
		var m mark
		if _, err := fmt.Sscanf(s.Text(), "mark %d %d %d %d %d", &m.cpu, &m.number, &m.own, &m.halted, &m.all); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Text(), err)
		}
		if slices.Contains(numbers, m.number) {
			list = append(list, m)
		}
	}
	return list, nil
}

// A Moved is what moves took, in instructions of all processors: from the request to the first
// instruction of a program on the processor that has come, to the end of the request; and for
// 32 MiB of memory.
type Moved struct{ First, Done, Memory []int64 }

// Moves measures moves.
func (b *Bench) Moves() (m Moved, err error) {
	machine := []string{"--cluster", "cpus=2,memory=256M", "--cluster", "cpus=1,memory=128M,init=/takes"}
	_, counts, err := b.run(machine, "moves")
	if err != nil {
		return m, err
	}
	marks, err := readMarks(counts, 5, 6, 9, 10, 11)
	if err != nil {
		return m, err
	}
	began := mark{}
	for _, x := range marks {
		switch x.number {
		case 5, 10:
			began = x
		case 6:
			m.First = append(m.First, x.all-began.all)
		case 9:
			m.Done = append(m.Done, x.all-began.all)
		case 11:
			m.Memory = append(m.Memory, x.all-began.all)
		}
	}
	if len(m.First) == 0 || len(m.Done) != len(m.First) || len(m.Memory) == 0 {
		return m, fmt.Errorf("%d moves, %d arrivals, %d of memory", len(m.Done), len(m.First), len(m.Memory))
	}
	return m, nil
}

// A Scale is what a job of the kernel takes on a machine of several processors.
type Scale struct {
	Name     string
	CPUs     int // in all
	Clusters int
	Job      int64 // instructions, the mean of all processors
}

// jobsOfEach is JOBS in guest/jobs.c.
const jobsOfEach = 150

// Scale measures jobs on some clusters with so many processors each.
func (b *Bench) Scale(clusters, cpus int) (s Scale, err error) {
	s = Scale{Name: fmt.Sprintf("%d of %d", clusters, cpus), CPUs: clusters * cpus, Clusters: clusters}
	machine := []string{"--cpus", fmt.Sprint(cpus), "--memory", "768M"}
	if clusters > 1 {
		machine = nil
		for i := range clusters {
			c := fmt.Sprintf("cpus=%d,memory=128M", cpus)
			if i > 0 {
				c += ",init=/jobs"
			}
			machine = append(machine, "--cluster", c)
		}
	}
	_, counts, err := b.run(machine, "jobs", fmt.Sprint(clusters-1))
	if err != nil {
		return s, err
	}
	marks, err := readMarks(counts, 7, 8)
	if err != nil {
		return s, err
	}
	began, sum, n := map[int64]mark{}, int64(0), 0
	for _, m := range marks {
		if m.number == 7 {
			began[m.cpu] = m
			continue
		}
		a, ok := began[m.cpu]
		if !ok {
			return s, fmt.Errorf("jobs end that did not begin, or elsewhere")
		}
		sum += m.own - a.own
		n++
	}
	if n != s.CPUs {
		return s, fmt.Errorf("%d of %d processors have done their jobs", n, s.CPUs)
	}
	s.Job = sum / int64(n*jobsOfEach)
	return s, nil
}

// shapes are the machines whose jobs are compared.
var shapes = []struct{ clusters, cpus int }{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 2}}

// Scales measures all of them.
func (b *Bench) Scales() (list []Scale, err error) {
	for _, s := range shapes {
		one, err := b.Scale(s.clusters, s.cpus)
		if err != nil {
			return nil, fmt.Errorf("%d clusters of %d: %w", s.clusters, s.cpus, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// scaling writes what moves and jobs take.
func (r *Report) scaling(b *strings.Builder) {
	least, most := slices.Min[[]int64], slices.Max[[]int64]
	fmt.Fprintf(b, `
## Moves

Instructions of all processors, from the request in cluster 0, while no other program runs. The
program in the other cluster waits for the event that tells of a processor, and goes there. Each INIT
is followed by a wait of 200,000 instructions, which is in the figures.

| | measured | goal |
| --- | ---: | ---: |
| a processor, to the first instruction of a program there; %d times | %s to %s | 1,000,000 |
| the same, to the end of the request | %s to %s | |
| 32 MiB of memory, to the end of the request | %s to %s | |
`, len(r.Moved.First), thousands(least(r.Moved.First)), thousands(most(r.Moved.First)), thousands(least(r.Moved.Done)), thousands(most(r.Moved.Done)),
		thousands(least(r.Moved.Memory)), thousands(most(r.Moved.Memory)))
	b.WriteString(`
## One kernel or several

A job is a file opened, read and closed, 16 pages mapped, touched and unmapped, 4 KiB through a
pipe, a child that exits. Each processor does the same ones at the same time. Instructions a job, by its
own processor, with what it polls for locks; the kernel's control is *big*. Perfect scaling is what a job
takes on one processor.

| clusters | processors of each | instructions a job | perfect scaling × |
| ---: | ---: | ---: | ---: |
`)
	for _, s := range r.Scales {
		fmt.Fprintf(b, "| %d | %d | %s | %.2f |\n", s.Clusters, s.CPUs/s.Clusters, thousands(s.Job), float64(r.Scales[0].Job)/float64(s.Job))
	}
	b.WriteString("\n![instructions a job, by processors](cluster-scale.svg)\n")
}

// ScaleSVG draws what a job takes by the number of processors.
func (r *Report) ScaleSVG(name string) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "processors in all", "instructions a job"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	for _, l := range []struct {
		name string
		in   func(s Scale) bool
		c    color.Color
	}{
		{"one kernel", func(s Scale) bool { return s.Clusters == 1 }, color.RGBA{0xc0, 0, 0, 0xff}},
		{"clusters of one processor", func(s Scale) bool { return s.Clusters == s.CPUs }, color.RGBA{0x2f, 0x6f, 0x9f, 0xff}},
		{"clusters of two", func(s Scale) bool { return s.CPUs == 2*s.Clusters }, color.RGBA{0x2f, 0x8f, 0x4f, 0xff}},
	} {
		var xys plotter.XYs
		for _, s := range r.Scales {
			if l.in(s) {
				xys = append(xys, plotter.XY{X: float64(s.CPUs), Y: float64(s.Job)})
			}
		}
		line, points, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		line.Color, points.Color = l.c, l.c
		p.Add(line, points)
		p.Legend.Add(l.name, line)
	}
	return p.Save(7*vg.Inch, 3.5*vg.Inch, name)
}
