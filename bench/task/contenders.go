package taskbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
)

// A Contender is one system that runs the programs.
type Contender struct {
	Name, Title string
	command     []string       // the process; the program, N, workers and repetitions follow
	sizes       map[string]int // its N where it is too slow for the usual one
	two         bool           // it runs with two workers too
	Missing     string         // why it cannot be run here
}

// The usual N of each program.
var Sizes = map[string]int{"fib": 35, "stress": 24, "sort": 20_000_000, "bigsort": 100_000_000}

// The N of systems that are slower by ten times, and by a hundred.
var (
	slow   = map[string]int{"fib": 24, "stress": 16}
	slower = map[string]int{"fib": 20, "stress": 13}
)

func (c *Contender) size(program string) int {
	if n, ok := c.sizes[program]; ok {
		return min(n, Sizes[program])
	}
	return Sizes[program]
}

// Calls is the number of calls that program makes for n, or of elements.
func Calls(program string, n int) float64 {
	switch program {
	case "fib":
		a, b := 1.0, 1.0 // calls of fib(0), fib(1)
		for i := 2; i <= n; i++ {
			a, b = b, a+b+1
		}
		return b
	case "stress":
		return float64(uint64(2)<<n) - 1
	default: // sort, bigsort
		return float64(n)
	}
}

// Build makes the programs of the other languages in dir; repo is the project's
// root and self the program that answers to -one. With names, only these contenders
// take part.
func Build(repo, dir, self string, log func(string, ...any), only ...string) ([]*Contender, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	out := func(name string) string { return filepath.Join(dir, name) }
	list := []*Contender{
		{Name: "go", Title: "Go, sequential", command: []string{self, "-one", "go"}},
		{Name: "calls", Title: "C, sequential", command: []string{out("direct"), "calls"}},
		{Name: "fast", Title: "task, fast form", command: []string{self, "-one", "fast"}, two: true},
		{Name: "loop", Title: "task, fast form, last call a loop", command: []string{self, "-one", "loop"}, two: true},
		{Name: "ordinary", Title: "task, Spawn and Sync", command: []string{self, "-one", "ordinary"}, two: true},
		{Name: "join", Title: "task, Join", command: []string{self, "-one", "join"}, two: true},
		{Name: "lace", Title: "direct task stack in C, as Lace", command: []string{out("lace")}, two: true},
		{Name: "direct", Title: "direct task stack in C, the least", command: []string{out("direct")}, two: true},
		{Name: "rayon", Title: "rayon (Rust)", command: []string{out("rayon/release/peer")}, two: true},
		{Name: "tbb", Title: "oneTBB (C++)", command: []string{out("tbb")}, sizes: slow, two: true},
		{Name: "omp", Title: "OpenMP (gcc)", command: []string{out("omp")}, sizes: slow, two: true},
		{Name: "waitgroup", Title: "goroutine and WaitGroup", command: []string{out("gopools"), "waitgroup"}, sizes: slower, two: true},
		{Name: "conc", Title: "sourcegraph/conc", command: []string{out("gopools"), "conc"}, sizes: slower, two: true},
		{Name: "ants", Title: "panjf2000/ants", command: []string{out("gopools"), "ants"}, sizes: slower, two: true},
		{Name: "pond", Title: "alitto/pond", command: []string{out("gopools"), "pond"}, sizes: slower, two: true},
	}
	if len(only) > 0 {
		list = slices.DeleteFunc(list, func(c *Contender) bool { return !slices.Contains(only, c.Name) })
	}
	ref := filepath.Join(repo, "bench/task/ref")
	peers := filepath.Join(repo, "bench/peers")
	build := func(in string, env []string, names string, command ...string) {
		wanted := func(c *Contender) bool { return slices.Contains(strings.Fields(names), c.Name) }
		if !slices.ContainsFunc(list, wanted) {
			return
		}
		log("building %s", names)
		path := command[0]
		if found, err := exec.LookPath(path); err == nil {
			path = found
		} else if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, ".cargo/bin", command[0])
		}
		cmd := exec.Command(path, command[1:]...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), env...)
		if text, err := cmd.CombinedOutput(); err != nil {
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			for _, c := range list {
				if wanted(c) {
					c.Missing = fmt.Sprintf("%s: %v %s", command[0], err, lines[len(lines)-1])
				}
			}
		}
	}
	build(ref, nil, "direct calls", "gcc", "-O3", "-pthread", "-o", out("direct"), "direct.c")
	build(ref, nil, "lace", "gcc", "-O3", "-DLACE", "-pthread", "-o", out("lace"), "direct.c")
	build(ref, nil, "omp", "gcc", "-O3", "-fopenmp", "-o", out("omp"), "omp.c")
	build(filepath.Join(peers, "tbb"), nil, "tbb", "g++", "-O3", "-o", out("tbb"), "main.cpp", "-ltbb")
	build(filepath.Join(peers, "rayon"), []string{"CARGO_TARGET_DIR=" + out("rayon")}, "rayon", "cargo", "build", "--release", "--locked")
	build(filepath.Join(peers, "gopools"), []string{"GOFLAGS=-buildvcs=false"}, "waitgroup conc ants pond", "go", "build", "-o", out("gopools"), ".")
	return list, nil
}

// Runs tells whether c has the program.
func (c *Contender) Runs(program string) bool {
	switch {
	case !sorts(program):
		return true
	case c.Name == "tbb":
		return program == "sort"
	}
	return c.Name == "ordinary" || c.Name == "rayon"
}

func sorts(program string) bool { return strings.HasSuffix(program, "sort") }

// Measure runs the program reps times in a new process and gives nanoseconds
// for each call (for sort: in all), and the same of the process's processor time, all
// threads and repetitions, its start and what it prepares included.
func (c *Contender) Measure(program string, workers, reps int) (times []float64, processor float64, err error) {
	n := c.size(program)
	args := append(append([]string(nil), c.command[1:]...), strings.TrimPrefix(program, "big"), strconv.Itoa(n), strconv.Itoa(workers), strconv.Itoa(reps))
	cmd := exec.Command(c.command[0], args...)
	cmd.Stderr = os.Stderr
	timer := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	text, spent, err := report.Output(cmd)
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: %w", c.Name, program, err)
	}
	calls := 1.0
	if !sorts(program) {
		calls = Calls(program, n)
	}
	for _, f := range strings.Fields(text) {
		ns, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, 0, fmt.Errorf("%s %s: %w", c.Name, program, err)
		}
		times = append(times, ns/calls)
	}
	return times, float64(spent.Nanoseconds()) / (calls * float64(reps)), nil
}
