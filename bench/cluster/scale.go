package clusterbench

import (
	"bufio"
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	osbench "hardtack/bench/os"
	"hardtack/tool/repairman"
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
	_, counts, err := b.run(shared(clusters, cpus, "jobs"), "jobs", fmt.Sprint(clusters-1))
	if err != nil {
		return s, err
	}
	s.Job, err = perJob(counts, s.CPUs, jobsOfEach)
	return s, err
}

// Beside measures jobs on one processor while those of so many other clusters only compute.
func (b *Bench) Beside(others int) (s Scale, err error) {
	s = Scale{Name: fmt.Sprintf("beside %d", others), CPUs: 1, Clusters: 1 + others}
	_, counts, err := b.run(shared(1+others, 1, "computes"), "beside", fmt.Sprint(others))
	if err != nil {
		return s, err
	}
	s.Job, err = perJob(counts, s.CPUs, jobsOfEach)
	return s, err
}

// shared is a machine of some clusters, with a process 1 for those beside the first.
func shared(clusters, cpus int, program string) []string {
	machine := []string{"--cpus", fmt.Sprint(cpus), "--memory", "768M"}
	if clusters > 1 {
		machine = nil
		for i := range clusters {
			c := fmt.Sprintf("cpus=%d,memory=128M", cpus)
			if i > 0 {
				c += ",init=/" + program
			}
			machine = append(machine, "--cluster", c)
		}
	}
	return machine
}

// perJob is what each of so many jobs of each processor took, between marks 7 and 8.
func perJob(counts []byte, cpus, jobs int) (int64, error) {
	marks, err := readMarks(counts, 7, 8)
	if err != nil {
		return 0, err
	}
	began, sum, n := map[int64]mark{}, int64(0), 0
	for _, m := range marks {
		if m.number == 7 {
			began[m.cpu] = m
			continue
		}
		a, ok := began[m.cpu]
		if !ok {
			return 0, fmt.Errorf("jobs end that did not begin, or elsewhere")
		}
		sum += m.own - a.own
		n++
	}
	if n != cpus {
		return 0, fmt.Errorf("%d of %d processors have done their jobs", n, cpus)
	}
	return sum / int64(n*jobs), nil
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

// Besides measures jobs beside clusters that compute.
func (b *Bench) Besides() (list []Scale, err error) {
	for _, others := range []int{1, 3, 7} {
		s, err := b.Beside(others)
		if err != nil {
			return nil, fmt.Errorf("beside %d: %w", others, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// A Redis is what a request to a Redis takes, in instructions, with four of them on four
// processors, each with its client beside it.
type Redis struct{ Linux, One, Clusters int64 }

// redisRequests is REQUESTS in guest/jobs.c, and redisCPUs how many there are of each.
const (
	redisRequests = 3000
	redisCPUs     = 4
)

// Redis measures requests on Linux, on one kernel and on four.
func (b *Bench) Redis() (r Redis, err error) {
	servers, err := osbench.Servers(b.dirs)
	if err != nil {
		return r, err
	}
	program, err := os.ReadFile(filepath.Join(b.dirs.Cache, "jobs"))
	if err != nil {
		return r, err
	}
	servers.Add("redis", 0o755, program)
	servers.Add("bench/init", 0o755, program)
	for _, dir := range []string{"tmp", "proc", "dev", "sys"} {
		servers.Add(dir, os.ModeDir|0o755, nil)
	}
	c := *b
	c.root = filepath.Join(b.dirs.Cache, "redis.cpio")
	if err := os.WriteFile(c.root, servers.CPIO(), 0o644); err != nil {
		return r, err
	}
	clusters := []string{"--cluster", "cpus=1,memory=160M"}
	for range redisCPUs - 1 {
		clusters = append(clusters, "--cluster", "cpus=1,memory=160M,init=/redis")
	}
	for _, m := range []struct {
		flags  []string
		others int
		n      *int64
	}{{[]string{"--cpus", "4", "--memory", "640M"}, 0, &r.One}, {clusters, redisCPUs - 1, &r.Clusters}} {
		_, counts, err := c.run(m.flags, "redis", fmt.Sprint(m.others))
		if err != nil {
			return r, err
		}
		if *m.n, err = perJob(counts, redisCPUs, redisRequests); err != nil {
			return r, err
		}
	}
	r.Linux, err = c.redisLinux(servers)
	return r, err
}

// redisLinux measures them on Linux.
func (b *Bench) redisLinux(root osbench.Tree) (int64, error) {
	linux, err := osbench.Linux(b.dirs)
	if err != nil {
		return 0, err
	}
	out := filepath.Join(b.dirs.Cache, "counts")
	defer os.Remove(out)
	boot := osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: redisCPUs, Memory: "640M", ICount: true, Machine: "microvm",
		Args: []string{"-plugin", b.plugin + ",out=" + out}, Timeout: 20 * time.Minute}
	m, err := boot.Start(b.dirs, linux)
	if err != nil {
		return 0, err
	}
	if _, err := m.Wait(); err != nil {
		return 0, err
	}
	counts, err := os.ReadFile(out)
	if err != nil {
		return 0, err
	}
	return perJob(counts, redisCPUs, redisRequests)
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
	for _, s := range r.Beside {
		fmt.Fprintf(b, "| 1, and %d that only compute in user mode | 1 | %s | %.2f |\n", s.Clusters-1, thousands(s.Job), float64(r.Scales[0].Job)/float64(s.Job))
	}
	b.WriteString(r.model())
	b.WriteString(r.both())
	b.WriteString("\n![instructions a job, by processors](cluster-scale.svg)\n")
	fmt.Fprintf(b, `
Four Redis on four processors, each with a client beside it that sends one SET after the other; instructions
a request, on all processors:

| | instructions | Linux's requests/s ×, by instructions | goal |
| --- | ---: | ---: | ---: |
| Linux | %s | 1 | |
| one kernel | %s | %.2f | |
| four clusters | %s | %.2f | 1.2 |
`, thousands(r.Redis.Linux), thousands(r.Redis.One), float64(r.Redis.Linux)/float64(r.Redis.One), thousands(r.Redis.Clusters), float64(r.Redis.Linux)/float64(r.Redis.Clusters))
}

// model says what the machine repairman model (hardtack model) makes of one kernel's figures.
func (r *Report) model() string {
	var points []repairman.Point
	for _, s := range r.Scales {
		if s.Clusters == 1 {
			points = append(points, repairman.Point{Cores: s.CPUs, Throughput: float64(s.CPUs) / float64(s.Job)})
		}
	}
	fit, err := repairman.Least(points)
	if err != nil {
		return ""
	}
	one, most := fit.At(1).Throughput, 1/fit.Service
	return fmt.Sprintf(`
If one lock were all that keeps one kernel from perfect scaling, a job would hold it for %s instructions and
compute %s beside it (`+"`hardtack model`"+`, R² %.4f). It then predicts for one kernel of 16 processors %.1f times one
processor's work, for 32 %.1f, and never more than %.1f. Clusters have a lock each.
The emulator runs its processors in turn, so waiting is counted by how often a processor polls in its turn. The
clock of the machine goes on in the turns of all processors, so that the kernel's timers come more often in a
job where there are more. How much that is, the last rows say: clusters that compute in user mode have nothing
that a job beside them could wait for.
`, thousands(int64(fit.Service)), thousands(int64(fit.Think)), fit.R2, fit.At(16).Throughput/one, fit.At(32).Throughput/one, most/one)
}

// both says what four clusters of two would take if a kernel of two and the clock were all that
// costs: then the clusters cost each other nothing.
func (r *Report) both() string {
	one := float64(r.Scales[0].Job)
	share := func(list []Scale, cpus, clusters int) float64 {
		i := slices.IndexFunc(list, func(s Scale) bool { return s.CPUs == cpus && s.Clusters == clusters })
		if i < 0 {
			return 0
		}
		return one / float64(list[i].Job)
	}
	lock, clock, together := share(r.Scales, 2, 1), share(r.Beside, 1, 8), share(r.Scales, 8, 4)
	if lock*clock*together == 0 {
		return ""
	}
	return fmt.Sprintf("Four clusters of two have both, a kernel's lock (%.2f) and the clock of eight processors (%.2f): %.2f in all, and %.2f measured.\n",
		lock, clock, lock*clock, together)
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
