package taskbench

import (
	"runtime"
	"sync"
	"time"

	"hardtack/bench/internal/report"
)

// A Key names one figure: who ran what with how many workers.
type Key struct {
	Contender, Program string
	Workers            int
}

// A Result has all figures of one run.
type Result struct {
	Contenders []*Contender
	Figures    map[Key][]float64
	Processor  map[Key][]float64 // processor time, one figure a process
	Both       float64           // what two threads did, as a multiple of one
	Trace      *Shares           // where two workers' time went
	Parts      []Part            // what a call of stress is made of
	Latencies  []Latency
	Removal    *Removal
	Added      []Added
	Cancelled  []Cancelled
}

// Min is the least figure, Median the one in the middle; 0 if there is none.
func (r *Result) Min(k Key) float64    { return report.Least(r.Figures[k]) }
func (r *Result) Median(k Key) float64 { return report.Median(r.Figures[k]) }

// Run measures everything in rounds, in each of which all contenders have their
// turn with each program.
func Run(list []*Contender, programs []string, rounds, reps int, log func(string, ...any)) (*Result, error) {
	r := &Result{Contenders: list, Figures: map[Key][]float64{}, Processor: map[Key][]float64{}, Both: BothCores()}
	for round := range rounds {
		for _, program := range programs {
			n := reps
			if sorts(program) {
				if round >= max(2, rounds/2) || program == "bigsort" && round > 0 {
					continue
				}
				n = 1
			}
			for workers := 1; workers <= 2; workers++ {
				for _, c := range list {
					if c.Missing != "" || !c.Runs(program) || workers == 2 && !c.two {
						continue
					}
					f, spent, err := c.Measure(program, workers, n)
					if err != nil {
						return nil, err
					}
					k := Key{c.Name, program, workers}
					r.Figures[k] = append(r.Figures[k], f...)
					r.Processor[k] = append(r.Processor[k], spent)
				}
			}
			log("round %d of %d: %s", round+1, rounds, program)
		}
	}
	return r, nil
}

// BothCores tells how much more two spinning threads do than one: 2 when the
// machine has both cores for us.
func BothCores() float64 {
	work := func(d time.Duration) (n float64) {
		for end := time.Now().Add(d); time.Now().Before(end); n++ {
			runtime.KeepAlive(plainFib(12))
		}
		return n
	}
	const d = 100 * time.Millisecond
	one := work(d)
	var two [2]float64
	var wg sync.WaitGroup
	for i := range two {
		wg.Go(func() { two[i] = work(d) })
	}
	wg.Wait()
	return (two[0] + two[1]) / one
}
