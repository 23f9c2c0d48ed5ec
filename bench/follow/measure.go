package followbench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/counted"
	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
	"hardtack/overlay"
)

// Systems in the order of the tables.
var Systems = []osbench.OS{osbench.OnHardtack, osbench.OnLinux}

// Bench has what all runs need.
type Bench struct {
	os      osbench.Bench
	plugin  string
	guest   string // the program figures
	stock   string // bench/affinity/programs as unmodified Go builds it
	patched string // the same by "hardtack go"
}

// NewBench builds the programs and the plugin.
func NewBench(b osbench.Bench) (*Bench, error) {
	b.Machine = "microvm"
	in := func(name string) string { return filepath.Join(b.Dirs.Cache, name) }
	f := &Bench{b, in("count.so"), in("figures"), in("programs-go"), in("programs-hardtack")}
	tool := overlay.Toolchain{OS: "linux", Arch: "amd64"}
	for to, name := range map[*string]string{&tool.Version: "GOVERSION", &tool.Root: "GOROOT"} {
		text, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return nil, err
		}
		*to = strings.TrimSpace(string(text))
	}
	o, err := overlay.Prepare(tool, overlay.Options{Policy: "group"})
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"gcc", "-shared", "-fPIC", "-O2", "-Wall", "-o", f.plugin, "bench/cluster/plugin/count.c"},
		{"go", "build", "-o", f.guest, "./bench/follow/guest"},
		{"go", "build", "-ldflags=-checklinkname=0", "-o", f.stock, "./bench/affinity/programs"},
		{"go", "build", "-ldflags=-checklinkname=0", "-overlay=" + o.List, "-o", f.patched, "./bench/affinity/programs"},
	} {
		if err := report.Build(b.Dirs.Repo, []string{"CGO_ENABLED=0"}, args[0], args[1:]...); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// A machine is how commands are run.
type machine struct {
	cpus   int
	icount bool // one processor at a time, and a clock that counts instructions
	insns  bool // count single instructions by address
}

// run boots a system that runs commands, and returns its console, the lines of four
// words on it, and what the plugin wrote.
func (b *Bench) run(on osbench.OS, m machine, commands ...string) (console string, lines []osbench.Result, counts []byte, err error) {
	b.os.Log("%v, %d processors: %s", on, m.cpus, commands[len(commands)-1])
	if m.icount && m.cpus > 1 {
		commands = append([]string{"/bench/osbench online"}, commands...)
	}
	root, err := osbench.Programs(b.os.Dirs, strings.Join(commands, "\n")+"\n")
	if err != nil {
		return "", nil, nil, err
	}
	for name, file := range map[string]string{"figures": b.guest, "go": b.stock, "hardtack": b.patched} {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", nil, nil, err
		}
		root.Add("bench/"+name, 0o755, data)
	}
	out := filepath.Join(b.os.Dirs.Cache, fmt.Sprintf("counts%d", os.Getpid()))
	defer os.Remove(out)
	plugin := b.plugin + ",out=" + out
	if m.insns {
		plugin += ",insns=on"
	}
	running, err := osbench.Boot{OS: on, Root: root, CPUs: m.cpus, Memory: "1G", ICount: m.icount, Machine: b.os.Machine, Kernel: b.os.Kernel,
		Timeout: 20 * time.Minute, Args: []string{"-plugin", plugin}}.Start(b.os.Dirs, b.os.Linux)
	if err != nil {
		return "", nil, nil, err
	}
	lines, err = running.Wait()
	console = running.Output()
	if err == nil && (strings.Contains(console, "failed: ") || strings.Contains(console, ": status ")) {
		err = fmt.Errorf("a program failed\n%s", console)
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%v: %w", on, err)
	}
	counts, err = os.ReadFile(out)
	return console, lines, counts, err
}

// A Work is what the processors executed between two marks.
type Work struct {
	Most, Sum float64 // instructions of the one that executed most, and of all
}

// works reads the pairs of marks of a run, and wants so many.
func works(counts []byte, want int) (all []Work, err error) {
	var from []float64
	for line := range strings.Lines(string(counts)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "cpus" {
			continue
		}
		var now []float64
		for _, word := range f[2:] {
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			now = append(now, n)
		}
		switch {
		case f[1] == begin && from == nil:
			from = now
		case f[1] == end && len(from) == len(now):
			var w Work
			for i := range now {
				w.Most = max(w.Most, now[i]-from[i])
				w.Sum += now[i] - from[i]
			}
			all, from = append(all, w), nil
		default:
			return nil, fmt.Errorf("a mark at the wrong place: %q", line)
		}
	}
	if len(all) != want || from != nil {
		return nil, fmt.Errorf("%d pairs of marks, not %d", len(all), want)
	}
	return all, nil
}

// Marks of guest/mark_unsafe.go.
const begin, end = "16", "17"

// A Speed is a program on several processors: the least of its repetitions.
type Speed struct {
	Program string
	CPUs    int
	Work
}

// speeds are the programs of figures 5.3 to 5.5, and how often they are repeated.
var speeds = []struct {
	name, title, command string
	reps                 int
}{
	{"fib", "fib(32), Spawn and Sync", "ordinary fib 32", 3},
	{"fast", "fib(32), fast form", "fast fib 32", 3},
	{"sort", "merge sort of 4 million", "ordinary sort 4000000", 3},
}

// processors are the sizes of machines.
var processors = []int{1, 2, 4, 6, 8}

// Speeds measures them on one system.
func (b *Bench) Speeds(on osbench.OS) (all []Speed, err error) {
	for _, cpus := range processors {
		var commands []string
		marks := 0
		for _, s := range speeds {
			commands = append(commands, fmt.Sprintf("/bench/figures speed %s %d", s.command, s.reps))
			marks += s.reps
		}
		_, _, counts, err := b.run(on, machine{cpus: cpus}, commands...)
		if err != nil {
			return nil, err
		}
		w, err := works(counts, marks)
		if err != nil {
			return nil, err
		}
		for _, s := range speeds {
			least := slices.MinFunc(w[:s.reps], func(a, b Work) int { return int(a.Most - b.Most) })
			all, w = append(all, Speed{s.name, cpus, least}), w[s.reps:]
		}
	}
	return all, nil
}

// Parts of a run by what executed them: instructions.
type Parts map[string]float64

// add shares counts by address out. What is not of the program is the kernel's.
func (p Parts) add(program string, counts []byte, name func(file, fn string) string) error {
	table, err := counted.Functions(program)
	if err != nil {
		return err
	}
	err = counted.EachPC(counts, func(pc uint64, n float64) {
		file, _, fn := table.PCToLine(pc)
		switch {
		case pc>>63 != 0:
			p["the kernel"] += n
		case fn == nil:
			p["other code"] += n // the vDSO, and the code of the marks
		default:
			p[name(file, fn.Name)] += n
		}
	})
	if err != nil {
		return err
	}
	if len(p) == 0 {
		return fmt.Errorf("nothing was counted")
	}
	return nil
}

// overheadDepth is the depth of stress in figure 5.7: twice two to the power of it calls.
const overheadDepth = 16

// Overhead is figure 5.7: where stress spends its instructions, for a form of spawns.
func (b *Bench) Overhead(on osbench.OS, form string) (Parts, error) {
	_, _, counts, err := b.run(on, machine{cpus: 1, icount: true, insns: true}, fmt.Sprintf("/bench/figures parts %s stress %d", form, overheadDepth))
	if err != nil {
		return nil, err
	}
	p := Parts{}
	return p, p.add(b.guest, counts, func(file, fn string) string {
		switch dir, base := filepath.Base(filepath.Dir(file)), filepath.Base(file); {
		case strings.HasSuffix(dir, "task") && (base == "programs.go"):
			return "the application"
		case dir == "task" && slices.Contains([]string{"spawn.go", "sync.go", "frame.go", "frame_unsafe.go", "scope.go", "full.go", "word.go"}, base):
			return "spawning and syncing: writing the task, taking it back"
		case dir == "task":
			return "workers: seats, stealing, looking for cores"
		case strings.Contains(file, "internal/runtime/") || dir == "atomic":
			return "Go's atomic operations"
		}
		return "the rest of Go's run-time"
	})
}

// stageTrips is how many round trips figure 5.9 takes.
const stageTrips = 2000

// Stages is figure 5.9: where a message goes from a task to a task of another run-time,
// in instructions a message.
func (b *Bench) Stages(on osbench.OS) (Parts, error) {
	_, _, counts, err := b.run(on, machine{cpus: 1, icount: true, insns: true}, fmt.Sprintf("/bench/figures stages %d", stageTrips))
	if err != nil {
		return nil, err
	}
	p := Parts{}
	err = p.add(b.guest, counts, stage)
	for name := range p {
		p[name] /= 2 * stageTrips
	}
	return p, err
}

// stage is the stage of a message that a place in the sources belongs to.
func stage(file, fn string) string {
	dir, base := filepath.Base(filepath.Dir(file)), filepath.Base(file)
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(base, n) })
	}
	switch {
	case dir == "conn" && strings.Contains(fn, "Send"):
		return "task's stub for sending"
	case dir == "conn":
		return "task's stub for receiving: looking for a message, giving the core away"
	case dir == "task":
		return "workers: giving up a seat, taking one, looking for work"
	case dir == "ump" || dir == "ring":
		return "the ring: the message's way through memory"
	case strings.Contains(file, "/msg/"):
		return "msg: framing, waking the receiver"
	case dir == "runtime" && is("chan", "select", "sema", "lock", "time"), dir == "context", dir == "sync":
		return "Go: channels, locks, timers, contexts"
	case dir == "runtime", dir == "atomic", dir == "sys":
		return "Go's scheduler and the rest of its run-time"
	}
	return "the measurement itself, and other packages"
}

// A Latency is one way of a message, in instructions of all processors.
type Latency struct {
	Receiver    string
	CPUs        int
	Median, Min float64
}

// Latencies is figure 5.10.
func (b *Bench) Latencies(on osbench.OS) (all []Latency, err error) {
	for _, cpus := range []int{1, 2} {
		_, lines, _, err := b.run(on, machine{cpus: cpus, icount: true}, "/bench/figures messages 5 1000")
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if n, ok := strings.CutPrefix(l.Name, "message"); ok {
				i, err := strconv.Atoi(n)
				if err != nil {
					return nil, err
				}
				all = append(all, Latency{receivers[i], cpus, l.Median, l.Minimum})
			}
		}
	}
	if len(all) != 2*len(receivers) {
		return nil, fmt.Errorf("%d latencies", len(all))
	}
	return all, nil
}

// receivers are those of taskbench.Kinds.
var receivers = []string{"Go channel, two goroutines", "goroutine without run-time", "task of another run-time", "task of the same run-time"}

// A Removal is figure 5.11: one-way times in microseconds of the counted clock.
type Removal struct {
	At           int
	First        int       // the number of the first of Trips
	Trips        []float64 // around the removal
	Worst, Quiet float64   // the worst while the processor goes, and before
}

// Removal measures messages while the second processor is turned off.
func (b *Bench) Removal(on osbench.OS) (*Removal, error) {
	_, lines, _, err := b.run(on, machine{cpus: 2, icount: true}, "/bench/figures removal 5 1000")
	if err != nil {
		return nil, err
	}
	r := &Removal{}
	for _, l := range lines {
		switch l.Name {
		case "removal":
			r.At, r.Worst, r.Quiet = int(l.Iterations), l.Median, l.Minimum
		case "trip":
			if len(r.Trips) == 0 {
				r.First = int(l.Iterations)
			}
			r.Trips = append(r.Trips, l.Median)
		}
	}
	if len(r.Trips) == 0 || r.At == 0 {
		return nil, fmt.Errorf("no trips")
	}
	return r, nil
}

// A Point is a program of bench/affinity on the paper's four processors.
type Point struct {
	Policy string // go for unmodified Go
	N      int    // players, or workers
	Work
}

// Policies are the columns of the paper's figures 2 and 5.
var Policies = []string{"go", "process", "group"}

const (
	pointReps   = 1
	pointCPUs   = 4
	hotpotato   = "hotpotato -hops 50000 -players"
	regex       = "regex -mib 2 -file /tmp/text -workers"
	touchedHops = "hotpotato -hops 200000 -work 200"
)

// Points measures a program with a number of goroutines from one to another, all policies in turn.
func (b *Bench) Points(on osbench.OS, program string, from, to int) (all []Point, err error) {
	commands := []string{}
	if program == regex {
		commands = append(commands, "/bench/go "+regex+" 8") // it writes the text
	}
	for rep := range pointReps {
		for n := from; n <= to; n++ {
			for i := range Policies {
				p := Policies[(i+rep+n)%len(Policies)]
				all = append(all, Point{Policy: p, N: n})
				commands = append(commands, fmt.Sprintf("/bench/figures run %s %s %s %d", p, binary(p), program, n))
			}
		}
	}
	_, _, counts, err := b.run(on, machine{cpus: pointCPUs}, commands...)
	if err != nil {
		return nil, err
	}
	w, err := works(counts, len(all))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Work = w[i]
	}
	slices.SortFunc(all, func(a, b Point) int {
		if c := strings.Compare(a.Policy, b.Policy); c != 0 {
			return c
		}
		if a.N != b.N {
			return a.N - b.N
		}
		return int(a.Most - b.Most)
	})
	return slices.CompactFunc(all, func(a, b Point) bool { return a.Policy == b.Policy && a.N == b.N }), nil
}

func binary(policy string) string {
	if policy == "go" {
		return "/bench/go"
	}
	return "/bench/hardtack"
}

// rows are the rows of bench/affinity with fewer operations.
var rows = []struct{ title, command string }{
	{"many-to-one, 8 producers, capacity 128", "many -messages 800000"},
	{"hotpotato, 8 players, unbuffered", "hotpotato -hops 100000"},
	{"pipeline, 4 stages, capacity 64", "pipeline -items 120000"},
	{"pipeline, 1,000 turns a stage", "pipeline -items 20000 -spin 1000"},
	{"pool, 8 workers, 200 turns a job", "pool -jobs 100000"},
	{"pool, 8 workers, 10,000 turns a job", "pool -jobs 5000 -spin 10000"},
	{"fast regex, 8 workers", regex + " 8"},
	{"embarrassingly parallel", "parallel -units 250"},
	{"mixed: talk, and work at half load", "mixed -messages 800000 -units 80 -pause 2ms"},
	{"mixed: talk, and work for all cores", "mixed -messages 800000 -units 240"},
	{"semaphore, bursts of 300 goroutines, 8 tokens (Go's issue 57070)", "semaphore -jobs 150000"},
	{"P churn, two goroutines in turn (Go's issue 32113)", "churn -rounds 80000"},
}

// rowCPUs and rowReps are the processors and repetitions of Rows.
const rowCPUs, rowReps = 2, 3

// rowPolicies are its columns.
var rowPolicies = []string{"go", "off", "process", "group"}

// Rows measures the rows of bench/affinity: by row and policy all repetitions.
func (b *Bench) Rows(on osbench.OS) (all map[string]map[string][]Work, err error) {
	type run struct{ title, policy string }
	var runs []run
	commands := []string{"/bench/go " + regex + " 8"}
	for rep := range rowReps {
		for _, row := range rows {
			for i := range rowPolicies {
				p := rowPolicies[(i+rep)%len(rowPolicies)]
				runs = append(runs, run{row.title, p})
				commands = append(commands, fmt.Sprintf("/bench/figures run %s %s %s", p, binary(p), row.command))
			}
		}
	}
	_, _, counts, err := b.run(on, machine{cpus: rowCPUs}, commands...)
	if err != nil {
		return nil, err
	}
	w, err := works(counts, len(runs))
	if err != nil {
		return nil, err
	}
	all = map[string]map[string][]Work{}
	for i, r := range runs {
		if all[r.title] == nil {
			all[r.title] = map[string][]Work{}
		}
		all[r.title][r.policy] = append(all[r.title][r.policy], w[i])
	}
	return all, nil
}

// Touches is figures 1, 3 and 4: the log of hotpotato and of fast regex, by policy.
func (b *Bench) Touches(on osbench.OS) (logs map[string]string, err error) {
	logs = map[string]string{}
	for _, program := range []string{"hotpotato", "fast regex"} {
		for _, policy := range []string{"off", "process"} {
			commands := []string{fmt.Sprintf("/bench/figures log %s /bench/hardtack %s", policy, touchedHops)}
			if program != "hotpotato" {
				commands = []string{"/bench/go " + regex + " 8", fmt.Sprintf("/bench/figures log %s /bench/hardtack %s 8", policy, regex)}
			}
			console, _, _, err := b.run(on, machine{cpus: pointCPUs}, commands...)
			if err != nil {
				return nil, err
			}
			var log bytes.Buffer
			for line := range strings.Lines(console) {
				if rest, ok := strings.CutPrefix(line, "log "); ok {
					log.WriteString(rest)
				}
			}
			logs[program+", policy "+policy] = log.String()
		}
	}
	return logs, nil
}
