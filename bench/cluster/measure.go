package clusterbench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hardtack/bench/internal/counted"
	osbench "hardtack/bench/os"
)

// Bench has what all runs need.
type Bench struct {
	dirs   osbench.Dirs
	root   string // the archive with the programs
	plugin string
	image  string // the kernel; "" for the one of the last build
}

// programs are the names of guest/cluster.c.
var programs = []string{"serve", "churn", "quiet", "spins", "both", "calls", "live", "lives", "fail", "fails", "bells", "bell"}

// NewBench compiles the programs and the plugin.
func NewBench(d osbench.Dirs) (*Bench, error) {
	src := filepath.Join(d.Repo, "bench", "cluster")
	b := &Bench{dirs: d, root: filepath.Join(d.Cache, "cluster.cpio"), plugin: filepath.Join(d.Cache, "count.so")}
	jobs := filepath.Join(d.Cache, "jobs")
	guest, talk := filepath.Join(d.Cache, "cluster"), filepath.Join(d.Cache, "talk")
	for _, args := range [][]string{
		{"gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", b.plugin, filepath.Join(src, "plugin", "count.c")},
		{"gcc", "-static", "-O2", "-Wall", "-s", "-o", guest, filepath.Join(src, "guest", "cluster.c")},
		{"gcc", "-static", "-O2", "-Wall", "-s", "-o", jobs, filepath.Join(src, "guest", "jobs.c")},
		{"go", "build", "-o", talk, "./bench/cluster/guest/talk"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = d.Repo, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", args[0], err, bytes.TrimSpace(out))
		}
	}
	t := osbench.Tree{}
	for file, names := range map[string][]string{guest: programs, talk: {"talk", "serve-far"}, jobs: {"takes", "moves", "jobs", "beside", "computes"}} {
		program, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			t.Add(name, 0o755, program)
		}
	}
	for _, dir := range []string{"tmp", "tmp/names", "proc", "dev"} {
		t.Add(dir, os.ModeDir|0o755, nil)
	}
	return b, os.WriteFile(b.root, t.CPIO(), 0o644)
}

// two are two clusters; the program is process 1 of the second.
func two(program string) []string {
	return []string{"--cluster", "cpus=1,memory=256M", "--cluster", "cpus=1,memory=128M,init=/" + program}
}

// one is a kernel with the same processors and memory.
var one = []string{"--cpus", "2", "--memory", "384M"}

// run boots a machine that runs a command, and returns its console and what the plugin wrote.
func (b *Bench) run(machine []string, command ...string) (console string, counts []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	out := filepath.Join(b.dirs.Cache, "counts")
	defer os.Remove(out)
	tool := cmp.Or(b.dirs.Tool, filepath.Join(b.dirs.Repo, "bin", "hardtack"))
	args := append([]string{"run", "--kernel", b.kernel(), "--icount", "--accel", "tcg"}, machine...)
	for _, a := range []string{"-cpu", "max,erms=off,fsrm=off", "-plugin", b.plugin + ",out=" + out} {
		args = append(args, "--qemu-arg", a)
	}
	args = append(args, b.root, "--", "/"+command[0])
	cmd := exec.CommandContext(ctx, tool, append(args, command[1:]...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // QEMU is below it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	text, err := cmd.CombinedOutput()
	console = strings.ReplaceAll(string(text), "\r", "")
	if err == nil && strings.Contains(console, "failed ") {
		err = fmt.Errorf("a program failed")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%v: %w\n%s", command, err, console)
	}
	counts, err = os.ReadFile(out)
	return console, counts, err
}

func (b *Bench) kernel() string {
	return cmp.Or(b.image, filepath.Join(b.dirs.Repo, "bin", "kernel.elf"))
}

// A Request is when it began, by all processors' instructions, and what it took its own
// one: its instructions, and those of the others while it was halted.
type Request struct{ Begin, Took int64 }

// Requests are those of one run, in order.
type Requests []Request

// readRequests finds the marks of requests.
func readRequests(counts []byte) (all Requests, err error) {
	type mark struct{ cpu, number, own, halted, all int64 }
	var begin *mark
	for s := bufio.NewScanner(bytes.NewReader(counts)); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "mark ") {
			continue
		}
		var m mark
		if _, err := fmt.Sscanf(s.Text(), "mark %d %d %d %d %d", &m.cpu, &m.number, &m.own, &m.halted, &m.all); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Text(), err)
		}
		switch {
		case m.number == 1:
			begin = &m
		case m.number == 2 && (begin == nil || begin.cpu != m.cpu):
			return nil, fmt.Errorf("a request ends that did not begin, or elsewhere")
		case m.number == 2:
			all = append(all, Request{begin.all, m.own - begin.own + m.halted - begin.halted})
			begin = nil
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no requests")
	}
	return all, nil
}

// Percentile is what so many of ten thousand requests took at most; 10000 is the longest.
func (r Requests) Percentile(n int) int64 {
	took := make([]int64, len(r))
	for i, x := range r {
		took[i] = x.Took
	}
	slices.Sort(took)
	return took[min(len(took)*n/10000, len(took)-1)]
}

// Mean is the average.
func (r Requests) Mean() int64 {
	sum := int64(0)
	for _, x := range r {
		sum += x.Took
	}
	return sum / int64(len(r))
}

// A Churn is a run of the server.
type Churn struct {
	Requests
	Rounds, Collections, Bytes int64 // of the churning program; 0 if there was none
}

// Serve runs the server on a machine beside a program.
func (b *Bench) Serve(machine []string, command ...string) (*Churn, error) {
	console, counts, err := b.run(machine, command...)
	if err != nil {
		return nil, err
	}
	c := &Churn{}
	if _, rest, ok := strings.Cut(console, "churned "); ok {
		if _, err := fmt.Sscan(rest, &c.Rounds, &c.Collections, &c.Bytes); err != nil {
			return nil, err
		}
	}
	c.Requests, err = readRequests(counts)
	return c, err
}

// Calls are those between two monitors.
type Calls struct {
	Awake, Asleep  int64 // nanoseconds of the machine's clock
	Ring, Wake     int64 // a doorbell: to ring, and until the other kernel's bottom half looks
	Back           int64 // until the other has rung back, and both slept between
	Memory, Unused int64 // of the other cluster, in bytes
	Parts          []Part
	Instructions   int64 // of all calls, in both kernels
}

// A Part is what a part of the kernel executed.
type Part struct {
	Name         string
	Instructions int64
}

// monitorCalls are those that a read of /proc/hardtack/monitors makes; it rings ten times, too.
const monitorCalls = 111

// Calls measures calls to a sleeping monitor.
func (b *Bench) Calls() (c Calls, err error) {
	console, counts, err := b.run(two("live"), "calls")
	if err != nil {
		return c, err
	}
	var cpus, heap, collections, processes, index int64
	_, rest, _ := strings.Cut(console, "monitor ")
	if _, err := fmt.Sscanf(rest, "%d cpus %d memory %d free %d heap %d collections %d processes %d awake %d ns asleep %d ns ring %d ns wake %d ns back %d ns",
		&index, &cpus, &c.Memory, &c.Unused, &heap, &collections, &processes, &c.Awake, &c.Asleep, &c.Ring, &c.Wake, &c.Back); err != nil {
		return c, fmt.Errorf("%q: %w", rest, err)
	}
	return c, c.divide(b.kernel(), counts)
}

// divide shares the counts by address out among the parts of the kernel.
func (c *Calls) divide(kernel string, counts []byte) error {
	table, err := counted.Functions(kernel)
	if err != nil {
		return err
	}
	parts := map[string]int64{}
	err = counted.EachPC(counts, func(pc uint64, n float64) {
		file, _, fn := table.PCToLine(pc)
		name := "programs"
		if fn != nil {
			name = part(file)
		}
		parts[name] += int64(n)
		c.Instructions += int64(n)
	})
	if err != nil {
		return err
	}
	for name, n := range parts {
		c.Parts = append(c.Parts, Part{name, n})
	}
	slices.SortFunc(c.Parts, func(a, b Part) int { return cmp.Compare(b.Instructions, a.Instructions) })
	return nil
}

// part is the part of the kernel that a source file belongs to.
func part(file string) string {
	dir, base := filepath.Base(filepath.Dir(file)), filepath.Base(file)
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(base, n) })
	}
	switch {
	case dir == "runtime" && is("time.go"):
		return "timers of Go's runtime"
	case dir == "runtime" && is("malloc", "mheap", "mcache", "mcentral", "mbitmap", "msize", "memclr", "mgc", "slice", "stack", "fastlog"):
		return "memory of Go's runtime"
	case dir == "runtime" && is("chan", "select", "sema"):
		return "channels, select and semaphores"
	case dir == "runtime" || dir == "atomic" || dir == "sys":
		return "Go's scheduler and the rest of its runtime"
	case dir == "context":
		return "contexts"
	case dir == "nucleus" || dir == "amd64" || dir == "lock":
		return "the nucleus: interrupts, threads, clock"
	case dir == "monitor" || dir == "msg" || dir == "ring":
		return "monitors and message rings"
	}
	return "other packages"
}

// numbers are those behind each of a word on a console, in order.
func numbers(console, word string) (all []int64, err error) {
	for line := range strings.Lines(console) {
		if _, rest, ok := strings.Cut(line, word+" "); ok {
			var n int64
			if _, err := fmt.Sscan(rest, &n); err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			all = append(all, n)
		}
	}
	return all, nil
}

// gaps are the times from each of the first to the first of the second that is later.
func gaps(from, to []int64) (all []int64) {
	for _, a := range from {
		if i := slices.IndexFunc(to, func(b int64) bool { return b > a }); i >= 0 {
			all = append(all, to[i]-a)
		}
	}
	return all
}

// Restarts measures from the request to the cluster's first program.
func (b *Bench) Restarts() ([]int64, error) {
	console, _, err := b.run(two("live"), "lives")
	if err != nil {
		return nil, err
	}
	return between(console, "asked", "lives")
}

func between(console, first, second string) ([]int64, error) {
	from, err := numbers(console, first)
	if err != nil {
		return nil, err
	}
	to, err := numbers(console, second)
	if err != nil {
		return nil, err
	}
	all := gaps(from, to)
	if len(all) == 0 {
		return nil, fmt.Errorf("no times from %q to %q\n%s", first, second, console)
	}
	return all, nil
}

// Panics are those of one cluster beside a server in the other.
type Panics struct {
	Lost, Sent int64   // requests of the server
	First      []int64 // from each panic to the first answer of the next life, in nanoseconds
}

// Panics has a cluster panic again and again.
func (b *Bench) Panics() (p Panics, err error) {
	console, _, err := b.run(two("fail,restart=always"), "fails")
	if err != nil {
		return p, err
	}
	if _, rest, ok := strings.Cut(console, "lost "); !ok {
		return p, fmt.Errorf("the server did not end\n%s", console)
	} else if _, err := fmt.Sscan(rest, &p.Lost, &p.Sent); err != nil {
		return p, err
	}
	p.First, err = between(console, "panics", "first")
	return p, err
}

// Talk measures a message and its answer between processes: the median, in instructions.
func (b *Bench) Talk(machine []string, command ...string) (int64, error) {
	console, _, err := b.run(machine, command...)
	if err != nil {
		return 0, err
	}
	var least, median int64
	_, rest, _ := strings.Cut(console, "talk ")
	_, err = fmt.Sscan(rest, &least, &median)
	return median, err
}

// Single is what it takes to send a message and to receive one, when neither waits: medians,
// in instructions.
type Single struct{ Send, Receive int64 }

// Polls measures messages within a kernel and between two, while both ends poll.
func (b *Bench) Polls() (near, far Single, err error) {
	console, _, err := b.run([]string{"--cluster", "cpus=2,memory=256M", "--cluster", "cpus=1,memory=128M,init=/serve-far"}, "talk", "polls")
	if err != nil {
		return near, far, err
	}
	for name, s := range map[string]*Single{"near ": &near, "far ": &far} {
		_, rest, _ := strings.Cut(console, name)
		if _, err := fmt.Sscan(rest, &s.Send, &s.Receive); err != nil {
			return near, far, fmt.Errorf("%s: %w\n%s", name, err, console)
		}
	}
	return near, far, nil
}

// Bell is a ring between processes of two clusters, medians in instructions: the write that rings, and
// from the interrupt to the program that waits for it, whose kernel was halted.
type Bell struct{ Ring, Wake int64 }

// Bells measures rings.
func (b *Bench) Bells() (bell Bell, err error) {
	_, counts, err := b.run(two("bell"), "bells")
	if err != nil {
		return bell, err
	}
	return readBells(counts)
}

// readBells finds the marks of rings.
func readBells(counts []byte) (bell Bell, err error) {
	var begin int64
	var ring, wake []int64
	for line := range strings.Lines(string(counts)) {
		var cpu, number, own, halted, all, woken int64
		if _, err := fmt.Sscanf(line, "mark %d %d %d %d %d %d", &cpu, &number, &own, &halted, &all, &woken); err != nil {
			continue
		}
		switch number {
		case 5:
			begin = own
		case 6:
			ring = append(ring, own-begin)
		case 7:
			wake = append(wake, woken)
		}
	}
	if len(ring) == 0 || len(wake) == 0 {
		return bell, fmt.Errorf("no rings")
	}
	slices.Sort(ring)
	slices.Sort(wake)
	return Bell{ring[len(ring)/2], wake[len(wake)/2]}, nil
}

// Measure makes all runs, but for those that a file has the results of, which are the same
// program's: with one, the runs can be made in pieces.
func (b *Bench) Measure(log func(format string, args ...any), file string) (r *Report, err error) {
	r = &Report{}
	if had, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(had, r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if r.QEMU, err = osbench.QEMUVersion(); err != nil {
		return nil, err
	}
	info, err := os.Stat(b.root)
	if err != nil {
		return nil, err
	}
	r.Archive = info.Size()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"calls between monitors", func() (err error) { r.Calls, err = b.Calls(); return err }},
		{"rings", func() (err error) { r.Bell, err = b.Bells(); return err }},
		{"restarts", func() (err error) { r.Restarts, err = b.Restarts(); return err }},
		{"panics", func() (err error) { r.Panics, err = b.Panics(); return err }},
		{"messages in one kernel", func() (err error) { r.TalkNear, err = b.Talk(one, "talk", "near"); return err }},
		{"calls of a service", func() (err error) { r.Service, err = b.Talk(one, "talk", "service"); return err }},
		{"messages between two", func() (err error) { r.TalkFar, err = b.Talk(two("serve-far"), "talk"); return err }},
		{"the same after pauses", func() (err error) { r.TalkPaused, err = b.Talk(two("serve-far"), "talk", "paused"); return err }},
		{"the same in frames", func() (err error) { r.TalkFrames, err = b.Talk(two("serve-far"), "talk", "frames"); return err }},
		{"messages while both poll", func() (err error) { r.Near, r.Far, err = b.Polls(); return err }},
		{"moves", func() (err error) { r.Moved, err = b.Moves(); return err }},
		{"Redis", func() (err error) { r.Redis, err = b.Redis(); return err }},
		{"jobs", func() (err error) { r.Scales, err = b.Scales(); return err }},
		{"jobs beside computing", func() (err error) { r.Beside, err = b.Besides(); return err }},
		{"two clusters, idle", func() (err error) { r.Apart, err = b.Serve(two("serve"), "quiet"); return err }},
		{"two clusters, computing", func() (err error) { r.ApartComputes, err = b.Serve(two("serve"), "spins"); return err }},
		{"two clusters, churn", func() (err error) { r.ApartBusy, err = b.Serve(two("serve"), "churn"); return err }},
		{"one kernel, idle", func() (err error) { r.One, err = b.Serve(one, "both", "quiet"); return err }},
		{"one kernel, churn", func() (err error) { r.OneBusy, err = b.Serve(one, "both"); return err }},
	} {
		if slices.Contains(r.Steps, step.name) {
			continue
		}
		log("%s", step.name)
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		r.Steps = append(r.Steps, step.name)
		if file != "" {
			if err := keep(r, file); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// keep writes a report to a file.
func keep(r *Report, file string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}
