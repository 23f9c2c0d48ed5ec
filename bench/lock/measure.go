package lockbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	"hardtack/tool/repairman"
)

// Controls are the concurrency controls of the nucleus, none first.
var Controls = []string{"none", "big", "fine", "rtm"}

// Delays of the model's ping-pong, in cycles: the paper's.
var Delays = []int{500, 1000, 2000, 4000, 8000, 16000, 32000}

// Bench says how to measure.
type Bench struct {
	Dir    string // for programs
	FIFO   bool   // real-time priority
	Rounds int
	Window time.Duration // of each figure but the model's; 0 for what the page is written from
	Log    func(format string, args ...any)

	exe map[string]string
}

// Cell is the cycles of one operation, a figure for each window of all rounds.
type Cell []float64

// Median and Min of the windows.
func (c Cell) Median() float64 { return report.Median(c) }
func (c Cell) Min() float64    { return report.Least(c) }

// Result is all that was measured. Keys are names that the page knows.
type Result struct {
	CPU          string
	FIFO         bool
	Load         string // of the machine, before the run
	Rounds       int
	PerSecond    float64 // cycles
	Transactions bool
	Missing      map[string]string // controls that do not run here, and why
	Cells        map[string]Cell
	ByRound      map[string]Cell   // the median of each round
	Processor    map[string]Cell   // processor time of an operation, all threads, in cycles
	Points       []repairman.Point // operations a cycle, of the control big
}

type output struct {
	Control      string
	Transactions bool
	PerSecond    float64
	Windows      map[string][]float64
	Processor    map[string][]float64 // ns
}

// Run builds the programs and measures, round by round, the contenders of each row
// one after the other.
func (b *Bench) Run() (*Result, error) {
	r := &Result{Load: report.Load(), FIFO: b.FIFO, Rounds: b.Rounds, CPU: report.CPU(), Missing: map[string]string{}, Cells: map[string]Cell{}, ByRound: map[string]Cell{}, Processor: map[string]Cell{}}
	for _, c := range Controls {
		if err := b.build(c); err != nil {
			return nil, err
		}
		if _, err := b.drive(c, "ipc", "-windows", "1"); err != nil {
			if c != "rtm" {
				return nil, err
			}
			r.Missing[c] = strings.TrimPrefix(err.Error(), "drive: ")
		}
	}
	points := map[[2]int]Cell{}
	for round := range b.Rounds {
		b.Log("round %d of %d", round+1, b.Rounds)
		add := func(key, control string, args ...string) error {
			if r.Missing[control] != "" {
				return nil
			}
			out, err := b.drive(control, args...)
			if err != nil {
				return err
			}
			r.PerSecond, r.Transactions = out.PerSecond, out.Transactions
			for name, windows := range out.Windows {
				k := key
				if name != "ipc" {
					k += " " + name
				}
				var c Cell
				for _, w := range windows {
					c = append(c, 1/w)
				}
				r.Cells[k] = append(r.Cells[k], c...)
				r.ByRound[k] = append(r.ByRound[k], c.Median())
				for _, ns := range out.Processor[name] {
					r.Processor[k] = append(r.Processor[k], ns*out.PerSecond/1e9)
				}
			}
			return nil
		}
		for _, c := range Controls {
			if err := add("bare "+c, c, "ipc", "-windows", "6"); err != nil {
				return nil, err
			}
		}
		for _, c := range Controls {
			if err := add("entry "+c, c, "ipc", "-windows", "6", "-entry"); err != nil {
				return nil, err
			}
		}
		for _, c := range Controls[1:] {
			for _, n := range []string{"1", "2"} {
				if err := errors.Join(
					add("pairs "+n+" "+c, c, "ipc", "-windows", "6", "-entry", "-cores", n),
					add("delay "+n+" "+c, c, "ipc", "-windows", "6", "-delay", "2000", "-cores", n),
				); err != nil {
					return nil, err
				}
			}
		}
		for _, v := range [][3]string{{"alone", "counter", "1"}, {"counter", "counter", "2"}, {"buckets", "buckets", "2"},
			{"readers", "readers", "2"}, {"after", "exchange", "1"}} {
			if err := add(v[0], "none", "locks", "-what", v[1], "-cores", v[2], "-windows", "5", "-window", "10ms"); err != nil {
				return nil, err
			}
		}
		for _, d := range Delays {
			for n := 1; n <= 2; n++ {
				out, err := b.drive("big", "ipc", "-windows", "4", "-window", "40ms", "-delay", strconv.Itoa(d), "-cores", strconv.Itoa(n))
				if err != nil {
					return nil, err
				}
				points[[2]int{d, n}] = append(points[[2]int{d, n}], out.Windows["ipc"]...)
			}
		}
	}
	for _, d := range Delays {
		for n := 1; n <= 2; n++ {
			r.Points = append(r.Points, repairman.Point{Cores: n, Delay: float64(d), Throughput: points[[2]int{d, n}].Median()})
		}
	}
	return r, nil
}

func (b *Bench) build(control string) error {
	if b.exe == nil {
		b.exe = map[string]string{}
	}
	b.exe[control] = filepath.Join(b.Dir, "drive-"+control)
	cmd := exec.Command("go", "build", "-tags", "nucleus_"+control, "-o", b.exe[control], "hardtack/bench/lock/drive")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, text)
	}
	return nil
}

func (b *Bench) drive(control string, args ...string) (*output, error) {
	if b.FIFO {
		args = append(args, "-fifo")
	}
	if b.Window != 0 { // the last one counts
		args = append(args, "-window", b.Window.String(), "-windows", "2")
	}
	cmd := exec.Command(b.exe[control], args...)
	text, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, errors.New(strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, err
	}
	out := new(output)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, err
	}
	return out, nil
}
