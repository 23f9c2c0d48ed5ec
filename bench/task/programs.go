package taskbench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"hardtack/task"
)

func plainFib(n int) int {
	if n < 2 {
		return n
	}
	return plainFib(n-1) + plainFib(n-2)
}

//go:noinline
func plainStress(n int) {
	if n > 0 {
		plainStress(n - 1)
		plainStress(n - 1)
	}
}

// The fast form.

var fibID, stressID task.ID

func init() {
	fibID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { return uint64(fastFib(f, int(n))) })
	stressID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { fastStress(f, int(n)); return 0 })
}

func fastFib(f *task.Frame, n int) int {
	if n < 2 {
		return n
	}
	f.Fork(fibID, uint64(n-1))
	y := fastFib(f.Next(), n-2)
	if f.Mine() {
		return fastFib(f, n-1) + y
	}
	return int(f.Join()) + y
}

func fastStress(f *task.Frame, n int) {
	if n == 0 {
		return
	}
	f.Fork(stressID, uint64(n-1))
	fastStress(f.Next(), n-1)
	if f.Mine() {
		fastStress(f, n-1)
	} else {
		f.Join()
	}
}

// The fast form with the last call as a loop, which a C compiler makes of such
// recursions by itself and Go's does not.

var loopFibID, loopStressID task.ID

func init() {
	loopFibID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { return uint64(loopFib(f, int(n))) })
	loopStressID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { loopStress(f, int(n)); return 0 })
}

func loopFib(f *task.Frame, n int) int {
	sum := 0
	for n >= 2 {
		n--
		f.Fork(loopFibID, uint64(n))
		sum += loopFib(f.Next(), n-1)
		if !f.Mine() {
			return sum + int(f.Join())
		}
	}
	return sum + n
}

func loopStress(f *task.Frame, n int) {
	for n > 0 {
		n--
		f.Fork(loopStressID, uint64(n))
		loopStress(f.Next(), n)
		if !f.Mine() {
			f.Join()
			return
		}
	}
}

// The ordinary form: Spawn and Sync, and Join.

func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x := task.Spawn(c, fib, n-1)
	y := fib(c, n-2)
	return x.Sync(c) + y
}

func stress(c task.Ctx, n int) struct{} {
	if n > 0 {
		x := task.Spawn(c, stress, n-1)
		stress(c, n-1)
		x.Sync(c)
	}
	return struct{}{}
}

func joinFib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x, y := task.Join(c, joinFib, n-2, joinFib, n-1)
	return x + y
}

func joinStress(c task.Ctx, n int) struct{} {
	if n > 0 {
		task.Join(c, joinStress, n-1, joinStress, n-1)
	}
	return struct{}{}
}

// random fills x as the other languages' programs do.
func random(x []int32) {
	s := uint64(88172645463325252)
	for i := range x {
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		x[i] = int32(s)
	}
}

// One runs one of our own contenders in this process and gives the time of each
// repetition. It is what a child process of the report does.
func One(contender, program string, n, workers, reps int) (out []time.Duration, err error) {
	err = Each(contender, program, n, workers, reps, func(fn func()) {
		start := time.Now()
		fn()
		out = append(out, time.Since(start))
	})
	return out, err
}

// Each runs one of our own contenders so many times in this process. The part that is
// measured is run by around. Without workers there is one for each processor.
func Each(contender, program string, n, workers, reps int, around func(fn func())) error {
	var options []task.Option
	if workers > 0 {
		options = append(options, task.WithWorkers(workers))
	}
	rt, err := task.New(options...)
	if err != nil {
		return err
	}
	defer rt.Close()
	for range reps {
		var x []int32
		if program == "sort" {
			x = make([]int32, n)
			random(x)
		}
		ran := false
		measured := func(fn func()) { around(fn); ran = true }
		_, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int {
			switch contender + " " + program {
			case "go fib":
				measured(func() { runtime.KeepAlive(plainFib(n)) })
			case "go stress":
				measured(func() { plainStress(n) })
			case "go sort":
				measured(func() { slices.Sort(x) })
			case "fast fib":
				measured(func() { task.Fast(c, func(f *task.Frame) int { return fastFib(f, n) }) })
			case "fast stress":
				measured(func() { task.Fast(c, func(f *task.Frame) int { fastStress(f, n); return 0 }) })
			case "loop fib":
				measured(func() { task.Fast(c, func(f *task.Frame) int { return loopFib(f, n) }) })
			case "loop stress":
				measured(func() { task.Fast(c, func(f *task.Frame) int { loopStress(f, n); return 0 }) })
			case "join fib":
				measured(func() { joinFib(c, n) })
			case "join stress":
				measured(func() { joinStress(c, n) })
			case "ordinary fib":
				measured(func() { fib(c, n) })
			case "ordinary stress":
				measured(func() { stress(c, n) })
			case "ordinary sort":
				measured(func() { task.Sort(c, x) })
			}
			return 0
		})
		if err != nil {
			return err
		}
		if !ran {
			return fmt.Errorf("no contender %q with program %q", contender, program)
		}
		if !slices.IsSorted(x) {
			return fmt.Errorf("%s %s: not sorted", contender, program)
		}
	}
	return nil
}
