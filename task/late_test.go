package task

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"
)

// After the end of a Run's context its workers compute for a millisecond at most, nearly
// always. Processor time is what counts: a worker that waits for a processor which
// another program has is late by the clock, and computes nothing. It counts from after
// the end: between, another program may have this thread's processor.
func TestCancelledWorkersStop(t *testing.T) {
	const workers, reps, limit = 2, 40, time.Millisecond
	rt := newRuntime(t, WithWorkers(workers))
	var all []time.Duration
	for range reps {
		ctx, cancel := context.WithCancel(context.Background())
		at := make(chan time.Duration, 1)
		time.AfterFunc(2*time.Millisecond, func() {
			cancel()
			at <- processorTime()
		})
		_, err := RunOn(rt, ctx, func(c Ctx) int { return fib(c, 60) })
		after := processorTime()
		all = append(all, max(after-<-at, 0)/workers)
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
	if median := all[reps/2]; median > limit || all[reps*9/10] > 2*limit {
		t.Errorf("workers compute %v after the end of the context, want %v at most; all: %v", median, limit, all)
	}
}

// processorTime is what all threads of the process have computed.
func processorTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
