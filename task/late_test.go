package task

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"
)

// After the end of a Run's context its workers compute for a millisecond at most, on
// average and nearly always. Processor time is what counts: a worker that waits for a
// processor which another program has is late by the clock, and computes nothing.
func TestCancelledWorkersStop(t *testing.T) {
	const workers, reps, limit = 2, 40, time.Millisecond
	rt := newRuntime(t, WithWorkers(workers))
	var all []time.Duration
	for range reps {
		ctx, cancel := context.WithCancel(context.Background())
		var before time.Duration
		time.AfterFunc(2*time.Millisecond, func() {
			before = processorTime()
			cancel()
		})
		_, err := RunOn(rt, ctx, func(c Ctx) int { return fib(c, 60) })
		all = append(all, (processorTime()-before)/workers)
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	sum := time.Duration(0)
	for _, d := range all {
		sum += d
	}
	t.Logf("a worker computes %v after the end, mean %v, most %v", all[reps/2], sum/reps, all[reps-1])
	if underRace {
		return // it makes the tasks, and the clock, ten times slower
	}
	if mean := sum / reps; mean > limit || all[reps*9/10] > 2*limit {
		t.Errorf("workers compute %v after the end of the context, want %v at most; all: %v", mean, limit, all)
	}
}

// processorTime is what all threads of the process have computed.
func processorTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
