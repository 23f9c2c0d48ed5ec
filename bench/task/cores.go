package taskbench

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/internal/report"
	"hardtack/task"
)

// An Added tells how soon an added core runs its first task, in microseconds.
type Added struct {
	How         string
	Min, Median float64
}

// AddedCore measures that in a busy run, reps times each: for SetWorkers, and for
// a change of the process's affinity, which the runtime finds out by itself.
func AddedCore(reps int) ([]Added, error) {
	out := []Added{{How: "SetWorkers"}}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &all); err == nil && all.Count() > 1 {
		out = append(out, Added{How: "the process's affinity"})
	}
	for i := range out {
		var got []float64
		for range reps {
			us, err := addedOnce(i == 1, all)
			if err != nil {
				return nil, err
			}
			got = append(got, us)
		}
		out[i].Min, out[i].Median = report.Least(got), report.Median(got)
	}
	return out, nil
}

func addedOnce(affinity bool, all unix.CPUSet) (us float64, err error) {
	options := []task.Option{task.WithWorkers(1)}
	if affinity {
		var one unix.CPUSet
		for c := 0; one.Count() == 0; c++ {
			if all.IsSet(c) {
				one.Set(c)
			}
		}
		// Only the main thread's mask: it is what counts as the process's.
		if err := unix.SchedSetaffinity(os.Getpid(), &one); err != nil {
			return 0, err
		}
		defer unix.SchedSetaffinity(os.Getpid(), &all)
		options = nil
	}
	rt, err := task.New(options...)
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var added, used atomic.Int64 // since start; used by a task on another worker
	start := time.Now()
	_, err = task.RunOn(rt, ctx, func(c task.Ctx) int {
		first := c.Worker()
		for used.Load() == 0 {
			task.For(c, 64, 1, func(int, int) { _ = plainFib(10) })
			task.Spawn(c, func(c task.Ctx, _ int) int {
				if c.Worker() != first && added.Load() != 0 {
					used.CompareAndSwap(0, int64(time.Since(start)))
				}
				return plainFib(10)
			}, 0)
			fib(c, 14)
			if added.Load() == 0 {
				added.Store(int64(time.Since(start)))
				if affinity {
					err = unix.SchedSetaffinity(os.Getpid(), &all)
				} else {
					err = rt.SetWorkers(2)
				}
				if err != nil {
					return 0
				}
			}
		}
		return 0
	})
	if err == nil && used.Load() == 0 {
		err = errors.New("the added core was not used")
	}
	return float64(used.Load()-added.Load()) / 1000, err
}
