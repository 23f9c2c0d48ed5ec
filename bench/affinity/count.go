package affinitybench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

// Counts are guest instructions per operation of a benchmark, by its name: one
// figure a run and side, "go" and "off".
type Counts map[string]map[string][]float64

// CountChans runs benchmarks of two test binaries in a virtual machine whose
// clock advances by one nanosecond an instruction (QEMU's icount, Debian's
// Linux, one CPU). What a benchmark prints as ns/op is then its instructions,
// the kernel's share included, and repeats to some tenths of a percent
// whatever else the host does. It counts the path without contention: with one
// CPU nobody else holds a channel's lock.
func CountChans(stock, patched, pattern, benchtime string, runs int) (Counts, error) {
	dirs, err := osbench.FindDirs()
	if err != nil {
		return nil, err
	}
	linux, err := osbench.Linux(dirs)
	if err != nil {
		return nil, err
	}
	var commands strings.Builder
	for i := range runs {
		for _, side := range [][]string{{"go", "off"}, {"off", "go"}}[i%2] {
			fmt.Fprintf(&commands, "/bench/%s -test.run NONE -test.bench %s -test.benchtime %s\n", side, pattern, benchtime)
		}
	}
	root, err := osbench.Programs(dirs, commands.String())
	if err != nil {
		return nil, err
	}
	for side, exe := range map[string]string{"go": stock, "off": patched} {
		data, err := os.ReadFile(exe)
		if err != nil {
			return nil, err
		}
		root.Add("bench/"+side, 0o755, data)
	}
	m, err := osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: 1, Memory: "1G", ICount: true,
		Machine: "microvm", Timeout: 20 * time.Minute}.Start(dirs, linux)
	if err != nil {
		return nil, err
	}
	if _, err := m.Wait(); err != nil {
		return nil, err
	}
	return readCounts(m.Output(), runs)
}

// readCounts reads what the binaries printed, in the order of CountChans.
func readCounts(console string, runs int) (Counts, error) {
	c, done := Counts{}, 0
	for _, line := range strings.Split(console, "\n") {
		if strings.TrimSpace(line) == "PASS" {
			done++
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "ns/op" || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		v, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if c[name] == nil {
			c[name] = map[string][]float64{}
		}
		// Odd runs have the two sides the other way round.
		side := "go"
		if (done%2 == 1) != (done/2%2 == 1) {
			side = "off"
		}
		c[name][side] = append(c[name][side], v)
	}
	if done != 2*runs || len(c) == 0 {
		return nil, fmt.Errorf("%d of %d runs in the guest ended well; its console:\n%s", done, 2*runs, console)
	}
	return c, nil
}

// Overhead is how many more instructions "off" takes than "go", as a part of
// the latter: of the medians, and of the least.
func (c Counts) Overhead(name string) (medians, least float64) {
	g, off := c[name]["go"], c[name]["off"]
	return report.Median(off)/report.Median(g) - 1, report.Least(off)/report.Least(g) - 1
}

// any is the figures of one benchmark.
func (c Counts) any() []float64 {
	for _, sides := range c {
		return sides["go"]
	}
	return nil
}

// Table is the comparison in Markdown. Its last line is the geometric mean.
func (c Counts) Table() string {
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| benchmark | Go | off | more | more, of the least | spread |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	medians, least := 0.0, 0.0
	for _, name := range names {
		m, l := c.Overhead(name)
		medians += math.Log1p(m) / float64(len(names))
		least += math.Log1p(l) / float64(len(names))
		g := c[name]["go"]
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %+.2f %% | %+.2f %% | %.2f %% |\n", name, report.Median(g), report.Median(c[name]["off"]),
			100*m, 100*l, 100*(slices.Max(g)/report.Least(g)-1))
	}
	fmt.Fprintf(&b, "| geometric mean | | | %+.2f %% | %+.2f %% | |\n", 100*math.Expm1(medians), 100*math.Expm1(least))
	return b.String()
}
