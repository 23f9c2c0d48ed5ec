// Command report measures the task library beside other fork-join systems and
// prints the tables; with all programs measured it writes docs/bench/task.md and
// task.svg.
//
//	report [-programs fib,stress,sort,bigsort] [-rounds 5] [-reps 3] [-fib 35] [-stress 24] [-sort 20000000] [-dir build/bench/task]
//
// It needs gcc; rayon needs cargo, oneTBB needs g++ and libtbb-dev. What cannot
// be built is left out and said so.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	taskbench "hardtack/bench/task"
)

func main() { report.Main(run) }

func run() error {
	one := flag.String("one", "", "measure this contender of our own in this process; PROGRAM N WORKERS REPS follow")
	programs := flag.String("programs", "fib,stress,sort,bigsort", "which programs")
	rounds := flag.Int("rounds", 5, "rounds of all contenders")
	reps := flag.Int("reps", 3, "repetitions in each process")
	fib := flag.Int("fib", taskbench.Sizes["fib"], "fib of this; on a busy machine short runs have truer minima")
	stress := flag.Int("stress", taskbench.Sizes["stress"], "depth of stress")
	elements := flag.Int("sort", taskbench.Sizes["sort"], "elements to sort")
	dir := flag.String("dir", "", "where the other programs are built (default build/bench/task)")
	flag.Parse()
	if *one != "" {
		return child(*one, flag.Args())
	}
	if flag.NArg() > 0 || *rounds < 1 || *reps < 1 || *elements < 1 || *fib < 2 || *fib > 45 || *stress < 1 || *stress > 30 {
		return fmt.Errorf("bad arguments; see -h")
	}
	log, load := report.Log, report.Load()
	repo, err := report.Root()
	if err != nil {
		return err
	}
	if *dir == "" {
		*dir = filepath.Join(repo, "build/bench/task")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	taskbench.Sizes["fib"], taskbench.Sizes["stress"], taskbench.Sizes["sort"] = *fib, *stress, *elements
	list, err := taskbench.Build(repo, *dir, self, log)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Missing != "" {
			log("left out: %s: %s", c.Title, c.Missing)
		}
	}
	for i := 0; taskbench.BothCores() < 1.8 && i < 5; i++ {
		log("the machine is busy; waiting")
		time.Sleep(2 * time.Second)
	}
	want := strings.Split(*programs, ",")
	if free := freeMemory(); free < 12*taskbench.Sizes["bigsort"] { // two arrays of four bytes, and some air
		log("left out: bigsort: %d MB of memory are free", free>>20)
		want = slices.DeleteFunc(want, func(p string) bool { return p == "bigsort" })
	}
	for _, p := range want {
		if taskbench.Sizes[p] == 0 {
			return fmt.Errorf("-programs %q: want fib, stress, sort, bigsort", *programs)
		}
	}
	r, err := taskbench.Run(list, want, *rounds, *reps, log)
	if err != nil {
		return err
	}
	if r.Parts, err = taskbench.Breakdown(min(22, taskbench.Sizes["stress"]), 5**reps); err != nil {
		return err
	}
	if r.Trace, err = taskbench.TraceShares(taskbench.Sizes["stress"], filepath.Join(*dir, "trace.json")); err != nil {
		return err
	}
	if r.Cancelled, err = taskbench.CancelledRuns(20 * *rounds); err != nil {
		return err
	}
	if r.Added, err = taskbench.AddedCore(4 * *rounds); err != nil {
		return err
	}
	log("messages")
	if r.Latencies, err = taskbench.Messages(*rounds, 5000); err != nil {
		return err
	}
	if r.Removal, err = taskbench.RemoveCore(2000, *rounds); err != nil {
		return err
	}
	page := r.Markdown(fmt.Sprintf("%d processors, %s. %s", runtime.NumCPU(), runtime.Version(), load))
	fmt.Println(page)
	if len(want) < 3 {
		return nil
	}
	return report.WritePage(filepath.Join(repo, "docs/bench"), "task.md", page, map[string]func(string) error{
		"task.svg": r.SVG, "task-removal.svg": r.Removal.SVG})
}

// freeMemory is what the kernel says a new program could get, in bytes.
func freeMemory() int {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kb, _ := strconv.Atoi(f[1])
			return kb << 10
		}
	}
	return 0
}

func child(name string, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("-one %s: want PROGRAM N WORKERS REPS", name)
	}
	var num [3]int
	for i := range num {
		n, err := strconv.Atoi(args[i+1])
		if err != nil {
			return err
		}
		num[i] = n
	}
	times, err := taskbench.One(name, args[0], num[0], num[1], num[2])
	for _, t := range times {
		fmt.Println(t.Nanoseconds())
	}
	return err
}
