package nucleusbench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	osbench "hardtack/bench/os"
	"hardtack/tool/image"
)

// CPUs is how many processors the machine with Redis has, and Servers how many servers
// it has at most, each with two clients.
const (
	CPUs    = 4
	Servers = 4
)

// A Kernel is an image with one concurrency control.
type Kernel struct{ Name, Path string }

// Kernels builds an image for each control that starts here.
func Kernels(d osbench.Dirs) ([]Kernel, error) {
	var all []Kernel
	for _, control := range []string{"none", "big", "queue", "fine"} {
		k := Kernel{control, filepath.Join(d.Cache, "nucleus-"+control+".elf")}
		if err := image.Build(image.Options{Out: k.Path, Dir: d.Repo, Control: control}); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// Figures are samples of one row of one kernel.
type Figures map[string]map[string][]float64 // row → kernel → samples

func (f Figures) add(row, kernel string, v float64) {
	if f[row] == nil {
		f[row] = map[string][]float64{}
	}
	f[row][kernel] = append(f[row][kernel], v)
}

// Median of a row's samples; zero without.
func (f Figures) Median(row, kernel string) float64 { return osbench.Median(f[row][kernel]) }

// Min is the least sample; zero without.
func (f Figures) Min(row, kernel string) float64 {
	if s := f[row][kernel]; len(s) > 0 {
		return slices.Min(s)
	}
	return 0
}

// Max is the greatest sample; zero without.
func (f Figures) Max(row, kernel string) float64 {
	if s := f[row][kernel]; len(s) > 0 {
		return slices.Max(s)
	}
	return 0
}

// A Report is all that was measured.
type Report struct {
	Kernels []string
	Rows    []string // of Costs, in the nucleus's order
	Costs   Figures  // instructions per operation, one CPU
	Counted Figures  // "1" to Servers: instructions of the machine a request
	Timed   Figures  // the same rows: requests a second
	Rounds  int      // boots with Redis, counted ones at least
	Earlier bool     // Timed and Cores are an earlier run's
	Cores   float64
	QEMU    string
}

// Bench has the means to measure.
type Bench struct {
	Dirs    osbench.Dirs
	Kernels []Kernel
	Rounds  int
	NoTimes bool // count instructions only: they do not depend on what else the host does
	Log     func(format string, args ...any)
}

// root is the guest's files: the servers, swarm, and what init runs.
func (b *Bench) root(servers, ms, windows int) (osbench.Tree, error) {
	var commands strings.Builder
	for i := range servers {
		fmt.Fprintf(&commands, "& /usr/bin/redis-server /etc/redis.conf --port %d\n", 6379+i)
	}
	for i := range servers {
		fmt.Fprintf(&commands, "port %d\n", 6379+i)
	}
	fmt.Fprintf(&commands, "/bench/swarm %d %d %d\n", servers, ms, windows)
	root, err := osbench.Programs(b.Dirs, commands.String())
	if err != nil {
		return nil, err
	}
	redis, err := osbench.Servers(b.Dirs)
	if err != nil {
		return nil, err
	}
	root.Merge(redis)
	swarm := filepath.Join(b.Dirs.Cache, "swarm")
	gcc := exec.Command("gcc", "-static", "-O2", "-Wall", "-s", "-o", swarm, filepath.Join(b.Dirs.Repo, "bench", "nucleus", "guest", "swarm.c"))
	if out, err := gcc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, bytes.TrimSpace(out))
	}
	data, err := os.ReadFile(swarm)
	if err != nil {
		return nil, err
	}
	root.Add("bench/swarm", 0o755, data)
	return root, nil
}

// costLine is a line of /proc/hardtack/nucleus.
var costLine = regexp.MustCompile(`(?m)^(\S.*\S) +([0-9.]+) ns\r?$`)

// boot runs a machine to its end.
func (b *Bench) boot(k Kernel, root osbench.Tree, cpus int, icount bool) (results []osbench.Result, console string, err error) {
	m, err := osbench.Boot{OS: osbench.OnHardtack, Root: root, CPUs: cpus, Memory: "512M", ICount: icount,
		Machine: "microvm", Timeout: 10 * time.Minute, Kernel: k.Path}.Start(b.Dirs, osbench.LinuxKernel{})
	if err != nil {
		return nil, "", err
	}
	results, err = m.Wait()
	return results, m.Output(), err
}

// Measure takes all figures, the kernels in turn.
func (b *Bench) Measure() (*Report, error) {
	r := &Report{Costs: Figures{}, Counted: Figures{}, Timed: Figures{}, Rounds: b.Rounds}
	for _, k := range b.Kernels {
		r.Kernels = append(r.Kernels, k.Name)
	}
	idle, err := b.root(0, 1, 1)
	if err != nil {
		return nil, err
	}
	counted, err := b.root(Servers, 40, 3)
	if err != nil {
		return nil, err
	}
	timed, err := b.root(Servers, 500, 3)
	if err != nil {
		return nil, err
	}
	for _, k := range b.Kernels {
		b.Log("%s: operations", k.Name)
		_, console, err := b.boot(k, idle, 1, true)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		var rows []string
		for _, m := range costLine.FindAllStringSubmatch(console, -1) {
			ns, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return nil, err
			}
			rows = append(rows, m[1])
			r.Costs.add(m[1], k.Name, ns)
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s: the kernel does not say what its nucleus costs", k.Name)
		}
		r.Rows = rows
	}
	for round := range b.Rounds {
		for _, k := range b.Kernels {
			if k.Name == "none" { // one CPU only
				continue
			}
			b.Log("%s: Redis, round %d", k.Name, round+1)
			results, _, err := b.boot(k, counted, CPUs, true)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			b.Log("  counted: %v", results)
			for _, res := range results {
				if row, ok := strings.CutPrefix(res.Name, "redis"); ok {
					r.Counted.add(row, k.Name, res.Median)
				}
			}
			if b.NoTimes {
				continue
			}
			if results, _, err = b.boot(k, timed, CPUs, false); err != nil {
				return nil, fmt.Errorf("%s: %w", k.Name, err)
			}
			b.Log("  timed: %v", results)
			for _, res := range results {
				if row, ok := strings.CutPrefix(res.Name, "redis"); ok {
					r.Timed.add(row, k.Name, 1e9/res.Median)
				}
			}
		}
	}
	return r, nil
}
