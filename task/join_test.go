package task

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

func joinFib(c Ctx, n int) int {
	if n < 2 {
		return n
	}
	x, y := Join(c, joinFib, n-2, joinFib, n-1)
	return x + y
}

func TestJoin(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		rt := newRuntime(t, WithWorkers(n))
		if got := on(t, rt, func(c Ctx) int { return joinFib(c, 20) }); got != 6765 {
			t.Errorf("%d workers: %d", n, got)
		}
		// Functions of different types, children that nobody syncs, elder
		// siblings that are synced within.
		on(t, rt, func(c Ctx) int {
			var left atomic.Int32
			for i := range 100 {
				elder := Spawn(c, fib, 9)
				s, k := Join(c, func(c Ctx, n int) string {
					Spawn(c, func(Ctx, int) int { left.Add(1); return 0 }, 0)
					if elder.Sync(c) != 34 {
						t.Error("elder")
					}
					return strings.Repeat("x", n)
				}, i%7, func(c Ctx, s []int) int {
					Spawn(c, func(Ctx, int) int { left.Add(1); return 0 }, 0)
					fib(c, 8)
					return len(s)
				}, make([]int, i))
				if len(s) != i%7 || k != i {
					t.Errorf("%d: %q, %d", i, s, k)
				}
				if int(left.Load()) != 2*i+2 {
					t.Errorf("%d children before the %dth end", left.Load(), i)
				}
			}
			if n := testing.AllocsPerRun(10, func() { joinFib(c, 12) }); n != 0 && rt.Workers() == 1 && !rt.checks {
				t.Errorf("%v allocations", n)
			}
			return 0
		})
		wantPanic(t, "now", errBoom, func() {
			on(t, rt, func(c Ctx) int { x, y := Join(c, boom, 3, fib, 12); return x + y })
		})
		wantPanic(t, "later", errBoom, func() {
			on(t, rt, func(c Ctx) int { x, y := Join(c, fib, 12, boom, 3); return x + y })
		})
		wantPanic(t, "nil", ErrNoFunc, func() {
			on(t, rt, func(c Ctx) int { Join[int, int, int, int](c, fib, 3, nil, 0); return 0 })
		})
		wantPanic(t, "nil", ErrNoFunc, func() {
			on(t, rt, func(c Ctx) int { Spawn[int, int](c, nil, 0); return 0 })
		})
		// A parent that recovers goes on, and later has run by its end.
		var ran atomic.Int32
		on(t, rt, func(c Ctx) int {
			func() {
				defer func() { recover() }()
				Join(c, boom, 2, func(c Ctx, n int) int { ran.Add(1); return n }, 0)
			}()
			if v := joinFib(c, 10); v != 55 {
				t.Errorf("after a panic: %d", v)
			}
			return 0
		})
		if ran.Load() != 1 {
			t.Errorf("later ran %d times", ran.Load())
		}
		quiet(t, rt)
	}
}

// The same function value means the same types: functions of different types,
// closures and instances of one generic function take turns in one frame.
func TestSlots(t *testing.T) {
	rt := newRuntime(t, WithWorkers(1))
	on(t, rt, func(c Ctx) int {
		type small struct{ a, b byte }
		type big [40]int
		for i := range 20 {
			if v := Spawn(c, same[small], small{1, byte(i)}).Sync(c); v != (small{1, byte(i)}) {
				t.Error(v)
			}
			if v := Spawn(c, same[big], big{39: i}).Sync(c); v[39] != i {
				t.Error(v)
			}
			if v := Spawn(c, same[*int], &i).Sync(c); *v != i {
				t.Error(v)
			}
			if v := Spawn(c, func(c Ctx, n int) int { return n + i }, 5).Sync(c); v != 5+i {
				t.Error(v)
			}
			if i%5 == 4 {
				runtime.GC()
			}
			if i == 10 {
				c.a.w.forget()
			}
		}
		return 0
	})
}

func same[T any](_ Ctx, v T) T { return v }

// Try gives the same for a child that the parent runs itself, one that ran out
// of order and one that was stolen.
func TestTry(t *testing.T) {
	for _, n := range []int{1, 4} {
		rt := newRuntime(t, WithWorkers(n))
		check := func(how string, p *Panic) {
			t.Helper()
			if p == nil || !errors.Is(p, errBoom) || !strings.Contains(string(p.Stack), "task.boom") {
				t.Errorf("%s: %v", how, p)
				return
			}
			// With workers enough its own children may be stolen in turn.
			if !strings.Contains(string(p.Stack)+string(p.Parents), "task.TestTry") || n == 1 && p.Parents != nil {
				t.Errorf("%s: the parent's stack is missing:\n%s", how, p.Error())
			}
		}
		on(t, rt, func(c Ctx) int {
			for range 20 {
				x := Spawn(c, boom, 4)
				_, p := x.Try(c)
				check("inline", p)
				wantPanic(t, "Try after Try", ErrSynced, func() { x.Try(c) })

				x = Spawn(c, boom, 0)
				y := Spawn(c, fib, 10)
				_, p = x.Try(c)
				check("out of order", p)
				if v, p := y.Try(c); v != 55 || p != nil {
					t.Errorf("%d, %v", v, p)
				}
			}
			return 0
		})
		if n > 1 {
			on(t, rt, func(c Ctx) int {
				begun := make(chan bool)
				x := Spawn(c, func(c Ctx, n int) int { begun <- true; return boom(c, n) }, 2)
				Block(c, func() { <-begun })
				_, p := x.Try(c)
				check("stolen", p)
				if p.Parents == nil {
					t.Error("the stack of the parent of a stolen task is missing")
				}
				return 0
			})
		}
		ctx, cancel := context.WithCancel(context.Background())
		_, err := RunOn(rt, ctx, func(c Ctx) int {
			_, p := Spawn(c, func(c Ctx, _ int) int {
				cancel()
				for {
					fib(c, 5)
				}
			}, 0).Try(c)
			t.Errorf("Try returned from an aborted task: %v", p)
			return 0
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		quiet(t, rt)
	}
}

// What only a runtime with checks is sure to find.
func TestChecks(t *testing.T) {
	t.Setenv(ChecksEnv, "yes")
	for _, n := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(n))
		if !rt.checks {
			t.Fatal("the environment variable has no effect")
		}
		if v := on(t, rt, func(c Ctx) int { return fib(c, 10) + joinFib(c, 10) }); v != 110 {
			t.Errorf("%d", v)
		}
		on(t, rt, func(c Ctx) int {
			// A child that its parent runs, and that uses the parent's Ctx.
			Spawn(c, func(in Ctx, _ int) int {
				wantPanic(t, "the parent's Ctx", ErrForeign, func() { Spawn(c, fib, 3) })
				return fib(in, 3)
			}, 0).Sync(c)
			// A finished task's, when another one runs at the same depth.
			var old Ctx
			Spawn(c, func(in Ctx, _ int) int { old = in; return 0 }, 0).Sync(c)
			Spawn(c, func(in Ctx, _ int) int {
				wantPanic(t, "a finished task's Ctx", ErrForeign, func() { Spawn(old, fib, 3) })
				return 0
			}, 0).Sync(c)
			// On another goroutine.
			done := make(chan bool)
			x := Spawn(c, fib, 4)
			go func() {
				wantPanic(t, "spawn on another goroutine", ErrForeign, func() { Spawn(c, fib, 3) })
				wantPanic(t, "sync on another goroutine", ErrForeign, func() { x.Sync(c) })
				wantPanic(t, "join on another goroutine", ErrForeign, func() { Join(c, fib, 1, fib, 1) })
				close(done)
			}()
			<-done
			// A stale Child, whose place another one has taken.
			y := Spawn(c, fib, 5)
			if y.Sync(c) != 5 || x.Sync(c) != 3 {
				t.Error("wrong results")
			}
			z := Spawn(c, fib, 6)
			wantPanic(t, "second sync", ErrSynced, func() { x.Sync(c) })
			if z.Sync(c) != 8 {
				t.Error("wrong result")
			}
			// Panics of all children are of one type.
			func() {
				defer func() {
					if p, ok := recover().(*Panic); !ok || !errors.Is(p, errBoom) {
						t.Errorf("recovered %v", p)
					}
				}()
				Spawn(c, boom, 2).Sync(c)
			}()
			if n > 1 { // stolen
				begun := make(chan bool)
				x := Spawn(c, func(Ctx, int) int {
					begun <- true
					wantPanic(t, "the parent's Ctx, stolen", ErrForeign, func() { Spawn(c, fib, 3) })
					return 0
				}, 0)
				Block(c, func() { <-begun })
				x.Sync(c)
			}
			return 0
		})
		quiet(t, rt)
	}
}
