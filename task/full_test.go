package task

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

// A stack that is full: children run at once.

func TestSpawnWhenFull(t *testing.T) {
	for _, workers := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(workers))
		const n = DefaultDepth + 5000
		on(t, rt, func(c Ctx) int {
			all := make([]Child[int, int], n)
			for i := range all {
				all[i] = Spawn(c, func(_ Ctx, i int) int { return 2 * i }, i)
			}
			for k := range all { // neither in order nor the reverse
				i := k * 7919 % n
				if v := all[i].Sync(c); v != 2*i {
					t.Fatalf("%d workers: child %d gave %d", workers, i, v)
				}
			}
			wantPanic(t, "a second Sync", ErrSynced, func() { all[n-1].Sync(c) })
			return 0
		})
	}
}

// A deep recursion goes on where the stack ends, with groups and loops in it.
func TestDeeperThanStack(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := newRuntime(t, WithWorkers(workers), WithDepth(50))
		var deep func(c Ctx, n int) int
		deep = func(c Ctx, n int) int {
			if n == 0 {
				sum := 0
				g := NewGroup(c, func(v int) { sum += v })
				for range 300 {
					SpawnIn(c, g, fib, 5)
				}
				g.Sync(c)
				parts := Reduce(c, 1000, 1, func(lo, hi int) int { return hi - lo }, func(l, r int) int { return l + r })
				return sum + parts
			}
			x := Spawn(c, deep, n-1)
			y := Spawn(c, fib, 3)
			return y.Sync(c) + x.Sync(c)
		}
		for range 20 {
			if v := on(t, rt, func(c Ctx) int { return deep(c, 400) }); v != 400*2+300*5+1000 {
				t.Fatalf("%d workers: got %d", workers, v)
			}
		}
	}
}

// The panic of a child that ran at once comes out where that of any other does.
func TestPanicWhenFull(t *testing.T) {
	for _, workers := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(workers), WithDepth(16))
		fill := func(c Ctx) {
			for range 20 {
				Spawn(c, fib, 5)
			}
		}
		on(t, rt, func(c Ctx) int {
			fill(c)
			all := make([]Child[int, int], 50)
			for i := range all {
				all[i] = Spawn(c, boom, i%3)
			}
			for _, i := range []int{7, 0, 49, 8} {
				if _, p := all[i].Try(c); p == nil || !errors.Is(p, errBoom) {
					t.Errorf("%d workers: Try of child %d gave %v", workers, i, p)
				}
			}
			wantPanic(t, "Sync", errBoom, func() { all[20].Sync(c) })
			for i := range all {
				if i != 7 && i != 0 && i != 49 && i != 8 && i != 20 {
					all[i].Try(c)
				}
			}
			return 0
		})
		wantPanic(t, "nobody asked", errBoom, func() {
			on(t, rt, func(c Ctx) int {
				fill(c)
				Spawn(c, boom, 1)
				Spawn(c, fib, 3)
				return 0
			})
		})
		wantPanic(t, "a group's", errBoom, func() {
			on(t, rt, func(c Ctx) int {
				g := NewGroup[int](c, nil)
				for i := range 100 {
					if i == 60 {
						SpawnIn(c, g, boom, 0)
					}
					SpawnIn(c, g, fib, 4)
				}
				g.Sync(c)
				return 0
			})
		})
	}
}

// Ten million tasks of a group take no more memory than the stack holds, and all
// workers have their part.
func TestManyInGroup(t *testing.T) {
	n := 10_000_000
	if testing.Short() || underRace {
		n = 300_000
	}
	rt := newRuntime(t, WithWorkers(2))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	count, elsewhere := 0, atomic.Int64{}
	_, err := RunOn(rt, context.Background(), func(c Ctx) int {
		g := NewGroup(c, func(n int) { count += n })
		for range n {
			SpawnIn(c, g, func(d Ctx, self *Worker) int {
				if d.Worker() != self {
					elsewhere.Add(1)
				}
				return 1
			}, c.Worker())
		}
		g.Sync(c)
		return 0
	})
	runtime.ReadMemStats(&after)
	if err != nil || count != n {
		t.Fatalf("%d tasks of %d: %v", count, n, err)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("the process grew by %d MB", grown>>20)
	}
	t.Logf("%d of %d ran on another worker, the process grew by %d kB", elsewhere.Load(), n, (after.Sys-before.Sys)>>10)
}

// An inlet's lock is no trap for a parent that spawns while it holds it.
func TestSpawnInDoWhenFull(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2), WithDepth(16))
	on(t, rt, func(c Ctx) int {
		sum := 0
		g := NewGroup(c, func(v int) { sum += v })
		g.Do(func() {
			for range 200 {
				SpawnIn(c, g, fib, 2)
			}
		})
		g.Sync(c)
		if sum != 200 {
			t.Errorf("the inlet has %d of 200", sum)
		}
		return 0
	})
}

// A long child that was stolen does not keep the parent from spawning more.
func TestManyBesideOneThatWaits(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2), WithDepth(64))
	on(t, rt, func(c Ctx) int {
		begun, end := make(chan struct{}), make(chan struct{})
		g := NewGroup[int](c, nil)
		SpawnIn(c, g, func(c Ctx, _ int) int {
			close(begun)
			Block(c, func() { <-end })
			return 0
		}, 0)
		Block(c, func() { <-begun })
		for range 10_000 {
			SpawnIn(c, g, fib, 2)
		}
		close(end)
		g.Sync(c)
		return 0
	})
}
