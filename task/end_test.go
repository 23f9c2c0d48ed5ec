package task

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Ends of tasks other than the ordinary one.

var errBoom = errors.New("boom")

func boom(c Ctx, n int) int {
	if n == 0 {
		panic(errBoom)
	}
	x := Spawn(c, boom, n-1)
	fib(c, 8)
	return x.Sync(c)
}

func TestPanic(t *testing.T) {
	for _, n := range []int{1, 4} {
		rt := newRuntime(t, WithWorkers(n))
		for range 30 {
			func() {
				defer func() {
					p, ok := recover().(*Panic)
					if !ok || !errors.Is(p, errBoom) || !strings.Contains(string(p.Stack), "task.boom") {
						t.Fatalf("recovered %v", p)
					}
				}()
				RunOn(rt, context.Background(), func(c Ctx) int {
					Spawn(c, fib, 12)
					return boom(c, 6)
				})
			}()
		}
		// A parent that recovers goes on, with its other children.
		if v := on(t, rt, func(c Ctx) int {
			sum := 0
			for range 30 {
				a := Spawn(c, fib, 10)
				x := Spawn(c, boom, 4)
				func() {
					defer func() {
						err, _ := recover().(error)
						if !errors.Is(err, errBoom) {
							t.Errorf("recovered %v", err)
						}
					}()
					x.Sync(c)
				}()
				sum += Spawn(c, fib, 11).Sync(c)
				sum += a.Sync(c)
			}
			return sum
		}); v != 30*(89+55) {
			t.Errorf("after recovering: %d", v)
		}
		// Children nobody syncs.
		wantPanic(t, "implicit sync", errBoom, func() {
			RunOn(rt, context.Background(), func(c Ctx) int { Spawn(c, boom, 2); return 0 })
		})
		// In the fast form.
		wantPanic(t, "fast form", errBoom, func() {
			RunOn(rt, context.Background(), func(c Ctx) int {
				return Fast(c, func(f *Frame) int { return int(fastBoom(f, 12)) })
			})
		})
		wantPanic(t, "goexit", ErrGoexit, func() {
			RunOn(rt, context.Background(), func(c Ctx) int {
				return Spawn(c, func(c Ctx, _ int) int { runtime.Goexit(); return 0 }, 0).Sync(c)
			})
		})
		quiet(t, rt)
		if v := on(t, rt, func(c Ctx) int { return fib(c, 15) }); v != 610 {
			t.Errorf("after panics fib(15) = %d", v)
		}
	}
}

var boomID ID

func init() {
	boomID = Register(func(f *Frame, a, _ uint64) uint64 { return fastBoom(f, a) })
}

func fastBoom(f *Frame, n uint64) uint64 {
	if n == 0 {
		panic(errBoom)
	}
	f.Fork(boomID, n-1)
	fastFib(f.Next(), 10)
	if f.Mine() {
		return fastBoom(f, n-1)
	}
	return f.Join()
}

var chainID, boundedID ID

func init() {
	boundedID = Register(func(f *Frame, a, _ uint64) uint64 { return boundedChain(f, int(a)) })
	chainID = Register(func(f *Frame, a, _ uint64) uint64 { return fastChain(f, a) })
}

func fastChain(f *Frame, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	f.Fork(chainID, 0)
	sum := fastChain(f.Next(), n-1)
	if f.Mine() {
		return sum + fastChain(f, 0)
	}
	return sum + f.Join()
}

// boundedChain is fastChain, and goes on without forks where the stack ends.
func boundedChain(f *Frame, n int) uint64 {
	if f.Room() == 0 {
		return plainChain(n)
	}
	if n == 0 {
		return 1
	}
	f.Fork(boundedID, 0)
	sum := boundedChain(f.Next(), n-1)
	if f.Mine() {
		return sum + boundedChain(f, 0)
	}
	return sum + f.Join()
}

// plainChain is what fastChain gives.
func plainChain(n int) uint64 { return uint64(n) + 1 }

func TestDepth(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2), WithDepth(100))
	var many func(c Ctx, n int) int
	many = func(c Ctx, n int) int {
		if n == 0 {
			return 0
		}
		x := Spawn(c, fib, 1)
		return many(c, n-1) + x.Sync(c)
	}
	if v := on(t, rt, func(c Ctx) int { return many(c, 100) }); v != 100 {
		t.Errorf("100 deep: %d", v)
	}
	if v := on(t, rt, func(c Ctx) int { return many(c, 1000) }); v != 1000 {
		t.Errorf("1000 deep: %d", v)
	}
	wantPanic(t, "fast form", ErrDepth, func() {
		on(t, rt, func(c Ctx) int { return Fast(c, func(f *Frame) int { return int(fastChain(f, 105)) }) })
	})
	for _, deep := range []int{99, 100, 101, 5000} {
		got := on(t, rt, func(c Ctx) int { return Fast(c, func(f *Frame) int { return int(boundedChain(f, deep)) }) })
		if want := on(t, rt, func(c Ctx) int { return int(plainChain(deep)) }); got != want {
			t.Errorf("%d deep with Room: got %d, want %d", deep, got, want)
		}
	}
	// A parent that recovers may go on.
	on(t, rt, func(c Ctx) int {
		g := NewGroup[int](c, nil)
		func() {
			defer func() { recover() }()
			many(c, 1000)
		}()
		g.Sync(c)
		if v := many(c, 50); v != 50 {
			t.Errorf("after an overflow: %d", v)
		}
		return 0
	})
}

func TestCancel(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	var cleaned atomic.Bool
	_, err := RunOn(rt, ctx, func(c Ctx) int {
		defer cleaned.Store(true)
		time.AfterFunc(5*time.Millisecond, func() { cancel(gone) })
		for {
			fib(c, 10) // for ever, except for the cancellation
		}
	})
	if !errors.Is(err, gone) || !cleaned.Load() {
		t.Errorf("cancelled: %v; deferred function ran: %v", err, cleaned.Load())
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer stop()
	if _, err = RunOn(rt, ctx, func(c Ctx) int {
		return Fast(c, func(f *Frame) int {
			for {
				fastFib(f, 12)
			}
		})
	}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("fast form: %v", err)
	}
	if _, err = RunOn(rt, ctx, func(c Ctx) int { t.Error("began after the end"); return 0 }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended before: %v", err)
	}
	quiet(t, rt)
}

func TestInlets(t *testing.T) {
	for _, n := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(n))
		on(t, rt, func(c Ctx) int {
			best, calls := 0, 0
			g := NewGroup(c, func(v int) {
				calls++
				best = max(best, v)
			})
			for i := range 100 {
				SpawnIn(c, g, func(c Ctx, i int) int { return fib(c, i%15) }, i)
			}
			g.Sync(c)
			if calls != 100 || best != 377 {
				t.Errorf("%d calls, best %d", calls, best)
			}
			return 0
		})
	}
}

func TestAbort(t *testing.T) {
	for _, n := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(n))
		for range 20 {
			on(t, rt, func(c Ctx) int {
				var began, unwound, after atomic.Int32
				var g *Group[int]
				g = NewGroup(c, func(v int) {
					if v < 0 {
						return
					}
					if g.Aborted() {
						t.Error("an inlet after the abort")
					}
					g.Abort()
				})
				late := atomic.Bool{}
				for i := range 50 {
					SpawnIn(c, g, func(c Ctx, i int) int {
						if late.Load() {
							after.Add(1)
						}
						began.Add(1)
						defer unwound.Add(1)
						if i == 40 {
							return 1 // ends the others
						}
						for {
							fib(c, 8)
						}
					}, i)
				}
				// One worker runs the youngest first, which never ends by itself.
				if n == 1 {
					g.Abort()
				}
				SpawnIn(c, g, func(c Ctx, i int) int { return 1 }, 0)
				g.Sync(c)
				late.Store(true)
				if n == 1 && began.Load() != 0 {
					t.Errorf("%d tasks began after the abort", began.Load())
				}
				if began.Load() != unwound.Load() || after.Load() != 0 {
					t.Errorf("%d began, %d ended", began.Load(), unwound.Load())
				}
				// The parent goes on.
				if v := fib(c, 10); v != 55 {
					t.Errorf("after the abort: %d", v)
				}
				return 0
			})
		}
		quiet(t, rt)
	}
}
