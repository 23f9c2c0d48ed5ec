// Command report measures channel-aware scheduling and writes
// docs/bench/affinity.md with its plots.
//
//	report [-rounds 3] [-regex-mib 535] [-only TEXT] [-part 1] [-exec "nice -n 5"] [-chans=false] [-counts=false] [-out DIR]
//
// It builds what it needs with the go of PATH, twice. -exec goes before each
// measured command. On a machine that others use, trust the minima and the
// processor time, and take more rounds. -only measures the rows whose title has the text and writes nothing.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	affinitybench "hardtack/bench/affinity"
	"hardtack/bench/internal/report"
	"hardtack/overlay"
	"hardtack/tool/timeline"
)

func main() { report.Main(run) }

func run() error {
	rounds := report.Rounds(3)
	mib := flag.Int("regex-mib", 535, "size of the log that is searched")
	only := flag.String("only", "", "measure only rows with this text")
	prefix := flag.String("exec", "", "put this before each measured command")
	chans := flag.Bool("chans", true, "compare the runtime's own channel benchmarks too")
	counts := flag.Bool("counts", true, "count their instructions too, in a virtual machine")
	part := flag.Int("part", 1, "do one in so many of the usual operations, for a try with -only")
	out := flag.String("out", "docs/bench", "directory of the page")
	flag.Parse()
	if err := errors.Join(report.AtLeastOne("rounds", *rounds), report.AtLeastOne("regex-mib", *mib)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-affinity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	goroot, err := goEnv("GOROOT")
	if err != nil {
		return err
	}
	version, err := goEnv("GOVERSION")
	if err != nil {
		return err
	}
	lists, err := overlays(goroot, version)
	if err != nil {
		return err
	}
	b := affinitybench.Bench{Sources: filepath.Join(goroot, "src"), RegexMiB: *mib, RegexFile: filepath.Join(dir, "log"), Plots: dir,
		Prefix: strings.Fields(*prefix), Rounds: *rounds, Layouts: min(*rounds, 4), Part: *part, Stock: map[string]string{}, Patched: map[string]string{}, Missing: map[string]string{},
		Log: report.Log}
	if err := build(&b, dir, lists, *only); err != nil {
		return err
	}
	if b.Missing["gopls"] == "" {
		if b.Workspace, err = workspace(dir); err != nil {
			return err
		}
	}

	r := affinitybench.Report{CPU: fmt.Sprintf("%d × %s", runtime.NumCPU(), report.CPU()), Missing: b.Missing, Prefix: b.Prefix, RegexMiB: *mib, Rounds: *rounds, Load: report.Load()}
	for i := 0; i < 5 && r.Cores < 1.88; i++ {
		if i > 0 {
			b.Log("two threads do %.2f times the work of one: the machine is busy; waiting", r.Cores)
			time.Sleep(3 * time.Second)
		}
		if r.Cores, err = b.Cores(); err != nil {
			return err
		}
	}
	for _, row := range affinitybench.Rows {
		var res affinitybench.Result
		if b.Missing[row.Peer] == "" && (*only == "" || strings.Contains(row.Title, *only)) {
			if res, err = b.Measure(row); err != nil && row.Peer != "" {
				b.Log("left out: %s: %v", row.Title, err)
				b.Missing[row.Title], res = "it ended with an error", nil
			} else if err != nil {
				return err
			}
		}
		r.Results = append(r.Results, res)
	}
	if *only != "" {
		fmt.Print(r.Table(), "\n", r.ProcessorTime())
		return nil
	}
	if r.Recovery, err = b.Measure(affinitybench.Row{Title: "recovery", Args: []string{"phases", "-talk", "1s"}, Metric: "recovery"}); err != nil {
		return err
	}
	if *chans {
		if r.Chans, err = chanBenchmarks(&b, dir); err != nil {
			return err
		}
	}
	if *counts {
		b.Log("counting instructions")
		if r.Counts, err = affinitybench.CountChans(b.Stock["runtime"], b.Patched["runtime"], "^BenchmarkChan", "10ms", 5); err != nil {
			return err
		}
		fmt.Print(r.Counts.Table())
	}
	fmt.Print(r.Table())
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for _, d := range []struct {
		name string
		args []string
	}{
		{"hotpotato", []string{"hotpotato", "-hops", "4000000", "-work", "1500"}},
		{"many", []string{"many", "-messages", "20000000"}},
		{"regex", nil}, // its row was logged
	} {
		var runs []*timeline.Run
		for _, policy := range []string{"off", "process", "group"} {
			log := filepath.Join(dir, d.name+"."+policy)
			if d.args != nil {
				if err := watch(&b, log, policy, d.args); err != nil {
					return err
				}
			}
			run, err := read(log, fmt.Sprintf("%s, policy %s", d.name, policy))
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		if err := timeline.SVG(filepath.Join(*out, "affinity-"+d.name+".svg"), runs...); err != nil {
			return err
		}
	}
	if err := r.SVG(filepath.Join(*out, "affinity.svg")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "affinity.md"), []byte(r.Markdown()), 0o644)
}

// overlays are the lists for go build -overlay by the policy that a program begins with.
func overlays(goroot, version string) (map[string]string, error) {
	lists := map[string]string{}
	for _, policy := range []string{"group", "off"} {
		o, err := overlay.Prepare(overlay.Toolchain{Version: version, Root: goroot, OS: "linux", Arch: "amd64"}, overlay.Options{Policy: policy})
		if err != nil {
			return nil, err
		}
		lists[policy] = o.List
	}
	return lists, nil
}

// watch runs a program with its log.
func watch(b *affinitybench.Bench, log, policy string, args []string) error {
	argv := append(append(append([]string(nil), b.Prefix...), b.Patched["programs"]), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+policy, "HARDTACK_AFFINITY_LOG="+log)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, text)
	}
	return nil
}

func read(log, name string) (*timeline.Run, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	run, err := timeline.Read(f)
	if err == nil {
		run.Name = name
	}
	return run, err
}

// chanBenchmarks gives benchstat's table of BenchmarkChan*, ten runs each.
func chanBenchmarks(b *affinitybench.Bench, dir string) (string, error) {
	files := map[string]*bytes.Buffer{"go": {}, "off": {}}
	for i := range 10 {
		for _, side := range [][]string{{"go", "off"}, {"off", "go"}}[i%2] {
			exe := b.Stock["runtime"]
			if side == "off" {
				exe = b.Patched["runtime"]
			}
			argv := append(append([]string(nil), b.Prefix...), exe, "-test.run", "NONE", "-test.bench", "^BenchmarkChan", "-test.benchtime", "30ms")
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY=off")
			out, err := cmd.CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
			}
			files[side].Write(out)
			time.Sleep(50 * time.Millisecond)
		}
	}
	var names []string
	for _, side := range []string{"go", "off"} {
		name := filepath.Join(dir, side)
		if err := os.WriteFile(name, files[side].Bytes(), 0o644); err != nil {
			return "", err
		}
		names = append(names, side+"="+name)
	}
	cmd := exec.Command("go", append([]string{"run", "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"}, names...)...)
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out)), err
}
