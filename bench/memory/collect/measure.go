package collectbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	osbench "hardtack/bench/os"
)

// A Case is a machine and what happens on it.
type Case struct {
	Memory     string // as QEMU takes it
	CPUs       int
	Files      int    // that stay
	Percent    string // by how much the heap may grow beyond what lives, "off" not to collect; "": as the kernel has it
	Iterations int    // of the loop
}

// A Call is what a kind of system call took, in instructions.
type Call struct {
	Name                        string
	Count                       int
	Median, P99, P9999, Longest int64
}

// A Result is what one run of the loop told.
type Result struct {
	Case
	Calls []Call
	Ticks int64               // of the whole loop
	Share float64             // of the processors' time that Go says its collector took, percent
	Heap  map[string][2]int64 // lines of /proc/hardtack/heap, before and after the loop
}

// Collections is how many there were during the loop.
func (r *Result) Collections() int64 { return r.Heap["NumGC"][1] - r.Heap["NumGC"][0] }

// Each is what an iteration took, in instructions.
func (r *Result) Each() float64 { return float64(r.Ticks) / float64(r.Iterations) }

// Call finds a kind of call; the result has none if the loop did not count it.
func (r *Result) Call(name string) Call {
	for _, c := range r.Calls {
		if c.Name == name {
			return c
		}
	}
	return Call{Name: name}
}

// single tells whether a kind is one system call and not the time around.
func (c *Call) single() bool { return c.Name != "iteration" && c.Name != "user" }

// Longest is the longest system call, of any kind.
func (r *Result) Longest() (longest Call) {
	for _, c := range r.Calls {
		if c.single() && c.Longest > longest.Longest {
			longest = c
		}
	}
	return longest
}

// Added is by how much more a system call took at most than the longest of its kind where
// nothing was collected, and which kind that was.
func (r *Result) Added(without *Result) (kind string, most int64) {
	for _, c := range r.Calls {
		if more := c.Longest - without.Call(c.Name).Longest; c.single() && more > most {
			kind, most = c.Name, more
		}
	}
	return kind, most
}

// Bench has what all runs need.
type Bench struct {
	Dirs osbench.Dirs
	root string // the archive with the program
}

// NewBench compiles the program.
func NewBench(d osbench.Dirs) (*Bench, error) {
	exe := filepath.Join(d.Cache, "collect")
	cmd := exec.Command("gcc", "-static", "-O2", "-Wall", "-s", "-o", exe, filepath.Join(d.Repo, "bench", "memory", "collect", "guest", "collect.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, bytes.TrimSpace(out))
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		return nil, err
	}
	t := osbench.Tree{}
	t.Add("collect", 0o755, program)
	for _, dir := range []string{"tmp", "proc", "dev"} {
		t.Add(dir, os.ModeDir|0o755, nil)
	}
	b := &Bench{Dirs: d, root: filepath.Join(d.Cache, "collect.cpio")}
	return b, os.WriteFile(b.root, t.CPIO(), 0o644)
}

// Run boots a kernel and has it run the loop.
func (b *Bench) Run(kernel string, c Case) (*Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	args := []string{"run", "--kernel", kernel, "--icount", "--accel", "tcg", "--cpus", strconv.Itoa(c.CPUs), "--memory", c.Memory,
		"--qemu-arg", "-cpu", "--qemu-arg", "max,erms=off,fsrm=off"}
	if c.Percent != "" {
		args = append(args, "--append", "gcpercent="+c.Percent)
	}
	cmd := exec.CommandContext(ctx, b.tool(), append(args, b.root, "--", "/collect", strconv.Itoa(c.Files), strconv.Itoa(c.Iterations))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // QEMU is below it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%+v: %w\n%s", c, err, out)
	}
	r, err := parse(string(out))
	if err != nil {
		return nil, fmt.Errorf("%+v: %w\n%s", c, err, out)
	}
	r.Case = c
	return r, nil
}

// tool is the command hardtack.
func (b *Bench) tool() string {
	if b.Dirs.Tool != "" {
		return b.Dirs.Tool
	}
	return filepath.Join(b.Dirs.Repo, "bin", "hardtack")
}

// parse reads what the program printed.
func parse(text string) (*Result, error) {
	r := &Result{Heap: map[string][2]int64{}}
	for line := range strings.Lines(text) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch kind {
		case "call":
			var c Call
			_, err = fmt.Sscan(rest, &c.Name, &c.Count, &c.Median, &c.P99, &c.P9999, &c.Longest)
			r.Calls = append(r.Calls, c)
		case "heap":
			var name string
			var v [2]int64
			_, err = fmt.Sscan(rest, &name, &v[0], &v[1])
			r.Heap[name] = v
		case "loop":
			_, err = fmt.Sscan(rest, &r.Iterations, &r.Ticks, &r.Share)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	if r.Ticks == 0 || len(r.Calls) == 0 {
		return nil, fmt.Errorf("the loop did not end")
	}
	return r, nil
}
