// Package affinitybench runs the programs of bench/affinity/programs and two
// that others wrote (bench/peers/affinity) as unmodified Go builds them and as
// "hardtack go" does, with each policy, one after the other and round by round,
// and compares the figures of one round with each other.
package affinitybench

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

// A Build is one way to run a program: which binary, and with which policy.
type Build struct {
	Name   string
	Stock  bool   // built by unmodified Go
	Policy string // for the others
}

// Builds in the order of the table. The first is what the others are held against.
var Builds = []Build{
	{"Go", true, ""}, {"off", false, "off"}, {"process", false, "process"}, {"node", false, "node"}, {"group", false, "group"},
}

// A Row is one program with its arguments and the figure that counts. Less is better.
type Row struct {
	Title  string
	Args   []string // of programs
	Metric string   // the name of the figure
	Goal   float64  // what Go / group should reach, 0 for none
	Peer   string   // instead of programs: the name of another; see peers
	Third  bool     // it takes long: measured in every third round
	Plot   string   // its run over time goes into the plot of this name
	Bound  bool     // mixed: the program bound, with the same flags, says what is possible
}

// Rows of the table. Sizes are such that most runs take about a second.
var Rows = []Row{
	{Title: "many-to-one, 8 producers, capacity 128", Args: []string{"many", "-messages", "8000000"}, Metric: "message", Goal: 1.5},
	{Title: "hotpotato, 8 players, unbuffered", Args: []string{"hotpotato", "-hops", "3000000"}, Metric: "hop", Goal: 1},
	{Title: "pipeline, 4 stages, capacity 64", Args: []string{"pipeline", "-items", "2500000"}, Metric: "item"},
	{Title: "pipeline, 1,000 turns a stage", Args: []string{"pipeline", "-items", "200000", "-spin", "1000"}, Metric: "item"},
	{Title: "pool, 8 workers, 200 turns a job", Args: []string{"pool", "-jobs", "1500000"}, Metric: "job"},
	{Title: "pool, 8 workers, 10,000 turns a job", Args: []string{"pool", "-jobs", "70000", "-spin", "10000"}, Metric: "job"},
	{Title: "fast regex, 8 workers", Args: []string{"regex"}, Metric: "search", Third: true, Plot: "regex"},
	{Title: "embarrassingly parallel", Args: []string{"parallel", "-units", "4500"}, Metric: "parallel", Goal: 0.99},
	{Title: "mixed: talk, and work at half load", Args: []string{"mixed", "-messages", "10000000", "-units", "1000", "-pause", "2ms"}, Metric: "all", Goal: 1.3, Bound: true},
	{Title: "mixed: talk, and work for all cores", Args: []string{"mixed", "-messages", "10000000", "-units", "3000"}, Metric: "all", Bound: true},
	{Title: "semaphore, bursts of 300 goroutines, 8 tokens (Go's issue 57070)", Args: []string{"semaphore", "-jobs", "1500000"}, Metric: "job"},
	{Title: "P churn, two goroutines in turn (Go's issue 32113)", Args: []string{"churn", "-rounds", "1200000"}, Metric: "round"},
	{Title: "scc over Go's own sources", Peer: "scc", Metric: "count"},
	{Title: "nsqd, topic to channel (its own benchmark)", Peer: "nsqd", Metric: "put"},
	{Title: "nats-server, publish and subscribe", Peer: "nats", Args: benchmark("Benchmark_____PubSubTwoConns", 4000000), Metric: "op", Goal: 0.98},
	{Title: "nats-server, eight queue subscribers", Peer: "nats", Args: benchmark("Benchmark___PubEightQueueSub", 3000000), Metric: "op", Goal: 0.98},
	{Title: "etcd's watchable store, put", Peer: "etcd", Args: benchmark("BenchmarkWatchableStorePut", 40000), Metric: "op", Goal: 0.98},
	{Title: "etcd's store, put", Peer: "etcd", Args: benchmark("BenchmarkStorePut", 40000), Metric: "op", Goal: 0.98},
	{Title: "nats-server, request and reply of 1 KiB", Peer: "natscore", Args: benchmark("BenchmarkCoreRequestReply/msgSz=1024b", 15000), Metric: "op", Goal: 0.98},
	{Title: "Prometheus, remote write of 10,000 series", Peer: "prometheus", Args: benchmark("BenchmarkSampleSend/prometheus.WriteRequest", 150), Metric: "op", Goal: 0.98},
	{Title: "Hugo, a site of 161 pages", Peer: "hugo", Args: benchmark("BenchmarkBaseline", 5), Metric: "op", Goal: 0.98},
	{Title: "gopls, loading a workspace", Peer: "gopls", Args: benchmark("BenchmarkInitialWorkspaceLoad/starlark", 3), Metric: "op", Goal: 0.98},
}

// benchmark is the arguments for one of a program's own benchmarks.
func benchmark(name string, n int) []string {
	return []string{"-test.run", "NONE", "-test.bench", "^" + strings.ReplaceAll(name, "/", "$/^") + "$", "-test.benchtime", fmt.Sprintf("%dx", n)}
}

// Bench says how to run.
type Bench struct {
	Stock, Patched map[string]string // binaries by name: programs, scc, nsqd
	Missing        map[string]string // programs that could not be had, and why
	Sources        string            // what scc counts
	Workspace      string            // what gopls loads
	RegexMiB       int
	RegexFile      string
	Plots          string   // directory of the logs of rows with a plot: NAME.POLICY
	Prefix         []string // put before each command, as in nice -n 5
	Rounds         int
	Layouts        int // how often each program was linked, with its functions in another order: see Layout; 0 for once
	Part           int // of the usual operations one in so many; 0 for all
	Log            func(format string, args ...any)
	round          int
}

// counts are the arguments that say how many operations a program does.
var counts = []string{"-messages", "-hops", "-items", "-jobs", "-rounds", "-units", "-test.benchtime"}

// fewer gives arguments for a part of the operations.
func (b *Bench) fewer(args []string) []string {
	args = slices.Clone(args)
	for i := 1; i < len(args) && b.Part > 1; i++ {
		if slices.Contains(counts, args[i-1]) {
			number, times := strings.CutSuffix(args[i], "x")
			n, _ := strconv.Atoi(number)
			args[i] = strconv.Itoa(max(n/b.Part, 1))
			if times {
				args[i] += "x"
			}
		}
	}
	return args
}

// Run is one start of one program; it gives the figures that it prints.
func (b *Bench) Run(r Row, build Build) (map[string]float64, error) {
	exe := "programs"
	args := r.Args
	switch r.Peer {
	case "scc":
		exe, args = "scc", []string{"--no-cocomo", "--format", "csv", b.Sources}
	case "nsqd":
		exe, args = "nsqd", benchmark("BenchmarkTopicToChannelPut", 100000)
	case "gopls":
		exe, args = "gopls", append(slices.Clone(args), "-starlark_dir="+b.Workspace) // any module will do
	case "":
	default:
		exe = r.Peer
	}
	args = b.fewer(args)
	if len(args) > 0 && args[0] == "regex" {
		args = append(args, "-mib", strconv.Itoa(b.RegexMiB), "-file", b.RegexFile)
	}
	bin := b.Patched[exe]
	if build.Stock {
		bin = b.Stock[exe]
	}
	bin = Layout(bin, b.round%max(b.Layouts, 1))
	argv := append(append(append([]string(nil), b.Prefix...), bin), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+build.Policy)
	if r.Plot != "" {
		log := filepath.Join(b.Plots, r.Plot+"."+build.Policy)
		os.Remove(log) // it would be appended to
		cmd.Env = append(cmd.Env, "HARDTACK_AFFINITY_LOG="+log)
	}
	if build.Stock {
		cmd.Env = os.Environ()
	}
	start := time.Now()
	out, spent, err := report.Output(cmd)
	took := time.Since(start)
	// gopls's own benchmark may fail in what it does after all is measured.
	if err != nil && !(r.Peer != "" && strings.Contains("\n"+out, "\nPASS\n")) {
		return nil, err
	}
	var f map[string]float64
	err = nil
	switch r.Peer {
	case "":
		f, err = figures(out)
	case "scc":
		f = map[string]float64{"count": took.Seconds()}
	default:
		f, err = goBenchmark(out, r.Metric)
	}
	if err == nil {
		f[processorTime] = spent.Seconds()
	}
	return f, err
}

// Layout is the name of one of the files of a program that was linked several times. The
// order of its functions alone makes a program some percent faster or slower, so each
// round takes another: else a row would compare two orders.
func Layout(exe string, n int) string {
	if n == 0 {
		return exe
	}
	return fmt.Sprintf("%s.%d", exe, n)
}

// processorTime is the name of a figure that each program has: the seconds that all
// its threads computed. Other programs on the machine change it less than the time.
const processorTime = "processor time"

// figures reads NAME VALUE UNIT lines.
func figures(out string) (map[string]float64, error) {
	f := map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		w := strings.Fields(line)
		if len(w) != 3 {
			return nil, fmt.Errorf("%q is no figure", line)
		}
		v, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			return nil, err
		}
		f[w[0]] = v
	}
	return f, nil
}

// goBenchmark reads ns/op of the one benchmark that ran.
func goBenchmark(out string, metric string) (map[string]float64, error) {
	for _, line := range strings.Split(out, "\n") {
		w := strings.Fields(line)
		for i := 2; i < len(w); i++ {
			if w[i] == "ns/op" {
				v, err := strconv.ParseFloat(w[i-1], 64)
				return map[string]float64{metric: v}, err
			}
		}
	}
	return nil, fmt.Errorf("no benchmark in %q", out)
}

// Result of a row: by the build's name the figures of all rounds, in order.
type Result map[string][]float64

// again is Run, some times if need be: others' benchmarks fail now and then by themselves
// (that of gopls on a busy machine in every second run, as it closes its editor).
func (b *Bench) again(r Row, build Build) (f map[string]float64, err error) {
	for range 5 {
		if f, err = b.Run(r, build); err == nil || r.Peer == "" {
			break
		}
		b.Log("%s, %s: once more after %v", r.Title, build.Name, err)
	}
	return f, err
}

// Measure runs all builds of a row, round by round, each round in another order.
func (b *Bench) Measure(r Row) (Result, error) {
	res := Result{}
	for round := range b.Rounds {
		if r.Third && round%3 != 0 {
			continue
		}
		b.round = round
		if r.Bound {
			f, err := b.Run(Row{Args: append([]string{"bound"}, r.Args[1:]...)}, Builds[0])
			if err != nil {
				return nil, err
			}
			for _, name := range []string{"talk", "cpu", "alone", "bound"} {
				res[name] = append(res[name], f[name])
			}
		}
		for i := range Builds {
			build := Builds[(i+round)%len(Builds)]
			f, err := b.again(r, build)
			if err != nil {
				return nil, err
			}
			v, ok := f[r.Metric]
			if !ok {
				return nil, fmt.Errorf("%s gave no %q", r.Title, r.Metric)
			}
			b.Log("%s, round %d, %s: %g", r.Title, round+1, build.Name, v)
			res[build.Name] = append(res[build.Name], v)
			res[build.Name+processorTime] = append(res[build.Name+processorTime], f[processorTime])
			time.Sleep(30 * time.Millisecond)
		}
	}
	return res, nil
}

// Ratio is how many times faster the named build is than Go: the median of the
// ratios of each round, and the ratio of the minima.
func (r Result) Ratio(name string) (median, minima float64) {
	var q []float64
	for i, v := range r[name] {
		if v > 0 && i < len(r["Go"]) {
			q = append(q, r["Go"][i]/v)
		}
	}
	if least := report.Least(r[name]); least > 0 {
		minima = report.Least(r["Go"]) / least
	}
	return report.Median(q), minima
}

// doubtful is how far apart two figures may lie that should be the same, before a row
// says so.
const doubtful = 1.25

// Doubt says why unmodified Go's figure is not one to hold others against: its rounds
// lie apart, or it is not where "off" is, which does the same but for counting. It is
// empty where there is no reason to.
func (r Result) Doubt() string {
	base, least, off := report.Median(r["Go"]), report.Least(r["Go"]), report.Median(r["off"])
	var why []string
	if base > doubtful*least {
		why = append(why, fmt.Sprintf("the median of unmodified Go is %.2f times its own best round", base/least))
	}
	if off > 0 && (base > doubtful*off || off > doubtful*base) {
		why = append(why, fmt.Sprintf("unmodified Go took %.2f times as long as *off*, which does the same but for counting", base/off))
	}
	return strings.Join(why, ", and ")
}

// Cores measures how many cores two busy threads get, started as the programs
// are: 2 when both are there.
func (b *Bench) Cores() (float64, error) {
	f, err := b.Run(Row{Args: []string{"cores"}}, Builds[0])
	return f["cores"], err
}
