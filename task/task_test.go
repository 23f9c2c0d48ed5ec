package task

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newRuntime(t testing.TB, options ...Option) *Runtime {
	t.Helper()
	rt, err := New(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func on[R any](t testing.TB, rt *Runtime, fn func(Ctx) R) R {
	t.Helper()
	r, err := RunOn(rt, context.Background(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var fibID ID

func init() {
	fibID = Register(func(f *Frame, a, _ uint64) uint64 { return uint64(fastFib(f, int(a))) })
}

func fastFib(f *Frame, n int) int {
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

func fib(c Ctx, n int) int {
	if n < 2 {
		return n
	}
	x := Spawn(c, fib, n-1)
	y := fib(c, n-2)
	return x.Sync(c) + y
}

func TestFib(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		for _, o := range [][]Option{nil, {WithHelpAny()}, {WithPinned()}} {
			rt := newRuntime(t, append(o, WithWorkers(n))...)
			if got := on(t, rt, func(c Ctx) int { return fib(c, 22) }); got != 17711 {
				t.Errorf("%d workers: fib(22) = %d", n, got)
			}
			if got := on(t, rt, func(c Ctx) int {
				return Fast(c, func(f *Frame) int { return fastFib(f, 25) })
			}); got != 75025 {
				t.Errorf("%d workers, fast form: fib(25) = %d", n, got)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	rt := newRuntime(t, WithWorkers(1))
	if rt.checks {
		t.Skip("each task has a Ctx of its own")
	}
	on(t, rt, func(c Ctx) int {
		fib(c, 15)
		if n := testing.AllocsPerRun(10, func() { fib(c, 15) }); n != 0 {
			t.Errorf("ordinary form: %v allocations for 986 spawns", n)
		}
		if n := testing.AllocsPerRun(10, func() {
			Fast(c, func(f *Frame) int { return fastFib(f, 15) })
		}); n != 0 {
			t.Errorf("fast form: %v allocations for 986 spawns", n)
		}
		return 0
	})
}

// A tree says what a task does: spawn its children, sync some of them in some
// order, leave the others to the end.
type tree struct {
	Value    int
	Children []tree
	Sync     []int // indices of children, each once at most
	Direct   bool  // the last child is called, not spawned
	Block    bool
	Yield    bool
	Fast     int // fib of this in the fast form, before the syncs
	Group    bool
	Join     bool // the last two are joined
	Try      bool // instead of Sync
}

func genTree(depth int) *rapid.Generator[tree] {
	return rapid.Custom(func(t *rapid.T) tree {
		n := tree{
			Value:  rapid.IntRange(-9, 9).Draw(t, "value"),
			Direct: rapid.Bool().Draw(t, "direct"),
			Block:  rapid.IntRange(0, 15).Draw(t, "block") == 0,
			Yield:  rapid.IntRange(0, 3).Draw(t, "yield") == 0,
			Group:  rapid.IntRange(0, 7).Draw(t, "group") == 0,
			Join:   rapid.IntRange(0, 2).Draw(t, "join") == 0,
			Try:    rapid.IntRange(0, 3).Draw(t, "try") == 0,
			Fast:   rapid.SampledFrom([]int{0, 0, 0, 5, 12}).Draw(t, "fast"),
		}
		if depth > 0 {
			n.Children = rapid.SliceOfN(genTree(depth-1), 0, 4).Draw(t, "children")
		}
		order := rapid.Permutation(indices(len(n.Children))).Draw(t, "order")
		n.Sync = order[:rapid.IntRange(0, len(order)).Draw(t, "synced")]
		return n
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// value is the oracle: what the tree adds up to when all its nodes run once.
func (n *tree) value() (sum, nodes int) {
	sum, nodes = n.Value, 1
	for i := range n.Children {
		s, k := n.Children[i].value()
		sum, nodes = sum+s, nodes+k
	}
	return sum, nodes
}

type walk struct {
	sum, nodes atomic.Int64
	bad        atomic.Bool
}

type step struct {
	w *walk
	n *tree
}

// run gives the node's own value plus those of the children that it synced.
func (s step) run(c Ctx) int {
	n := s.n
	s.w.nodes.Add(1)
	s.w.sum.Add(int64(n.Value))
	if n.Yield {
		runtime.Gosched()
	}
	if n.Block {
		Block(c, func() { time.Sleep(100 * time.Microsecond) })
	}
	if n.Group {
		count := 0 // guarded by being the inlet's
		g := NewGroup(c, func(int) { count++ })
		for i := range n.Children {
			SpawnIn(c, g, runStep, step{s.w, &n.Children[i]})
		}
		g.Sync(c)
		if count != len(n.Children) {
			s.w.bad.Store(true)
		}
		return n.Value
	}
	var kids []Child[step, int]
	for i := range n.Children {
		kid := step{s.w, &n.Children[i]}
		if n.Join && i == len(n.Children)-2 {
			last := step{s.w, &n.Children[i+1]}
			if v, u := Join(c, runStep, kid, runStep, last); v != kid.n.Value || u != last.n.Value {
				s.w.bad.Store(true)
			}
			kids = append(kids, Child[step, int]{}, Child[step, int]{})
			break
		}
		if n.Direct && i == len(n.Children)-1 {
			kid.run(c)
			kids = append(kids, Child[step, int]{})
		} else {
			kids = append(kids, Spawn(c, runStep, kid))
		}
	}
	if n.Fast > 0 && Fast(c, func(f *Frame) int { return fastFib(f, n.Fast) }) != plainFib(n.Fast) {
		s.w.bad.Store(true)
	}
	for _, i := range n.Sync {
		v, want := 0, n.Children[i].Value
		switch {
		case kids[i].s == nil:
			continue
		case n.Try:
			v, _ = kids[i].Try(c)
		default:
			v = kids[i].Sync(c)
		}
		if v != want {
			s.w.bad.Store(true)
		}
	}
	return n.Value
}

func runStep(c Ctx, s step) int { return s.run(c) }

func plainFib(n int) int {
	if n < 2 {
		return n
	}
	return plainFib(n-1) + plainFib(n-2)
}

func TestSpawnTrees(t *testing.T) {
	runtimes := []*Runtime{
		newRuntime(t, WithWorkers(1)), newRuntime(t, WithWorkers(2)),
		newRuntime(t, WithWorkers(5)), newRuntime(t, WithWorkers(3), WithHelpAny()),
	}
	rapid.Check(t, func(r *rapid.T) {
		n := genTree(4).Draw(r, "tree")
		rt := runtimes[rapid.IntRange(0, len(runtimes)-1).Draw(r, "runtime")]
		var w walk
		if _, err := RunOn(rt, context.Background(), func(c Ctx) int { return step{&w, &n}.run(c) }); err != nil {
			r.Fatal(err)
		}
		sum, nodes := n.value()
		if int(w.sum.Load()) != sum || int(w.nodes.Load()) != nodes || w.bad.Load() {
			r.Fatalf("%d nodes with sum %d, want %d with %d; results fine: %v", w.nodes.Load(), w.sum.Load(), nodes, sum, !w.bad.Load())
		}
	})
	for _, rt := range runtimes {
		quiet(t, rt)
	}
}

// quiet checks that nothing is left of what ran.
func quiet(t *testing.T, rt *Runtime) {
	t.Helper()
	for range 2000 {
		s := rt.Stats()
		if s.Running == 0 && s.Waiting == 0 && s.Orphans == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if s := rt.Stats(); s.Running+s.Waiting+s.Orphans != 0 {
		t.Errorf("not quiet: %+v", s)
	}
	for _, w := range *rt.workers.Load() {
		if w != nil && w.hasShared() {
			t.Errorf("worker %d has tasks left", w.id)
		}
	}
}

// storm changes the number of workers that often, and on until a worker has been
// taken over by another seat, which chance must bring about; and counts.
func storm(rt *Runtime, changes int) <-chan int {
	out := make(chan int)
	go func() {
		n := 0
		seed := uint64(88172645463325252)
		for ; n < changes || n < 50*changes && rt.Stats().Moves == 0; n++ {
			seed ^= seed << 13
			seed ^= seed >> 7
			seed ^= seed << 17
			if err := rt.SetWorkers(int(seed%6) + 1); err != nil {
				panic(err)
			}
			time.Sleep(time.Duration(seed%500) * time.Microsecond)
		}
		out <- n
	}()
	return out
}

// Cores are added and taken away while trees of tasks run that exchange messages
// over channels: no task and no message may be lost or doubled.
func TestCoreStorm(t *testing.T) {
	changes := 1000
	if testing.Short() {
		changes = 200
	}
	rt := newRuntime(t, WithWorkers(3))
	done := storm(rt, changes)
	var n int
	rounds := 0
	for n == 0 {
		select {
		case n = <-done:
		default:
		}
		rounds++
		var sent, got atomic.Int64
		leaves := on(t, rt, func(c Ctx) int {
			ch := make(chan int, 4)
			const messages = 100
			r := Spawn(c, func(c Ctx, _ int) int {
				sum := 0
				for range messages {
					v, _ := Receive(c, ch)
					sum += v
					got.Add(1)
					fib(c, 5)
				}
				return sum
			}, 0)
			s := Spawn(c, func(c Ctx, _ int) int {
				for i := range messages {
					Send(c, ch, i)
					sent.Add(1)
					fib(c, 5)
				}
				return 0
			}, 0)
			leaves := countLeaves(c, 10)
			s.Sync(c)
			if sum := r.Sync(c); sum != messages*(messages-1)/2 {
				t.Errorf("round %d: the messages add up to %d", rounds, sum)
			}
			return leaves
		})
		if leaves != 1024 || sent.Load() != got.Load() {
			t.Fatalf("round %d: %d leaves, %d messages sent, %d received", rounds, leaves, sent.Load(), got.Load())
		}
	}
	quiet(t, rt)
	s := rt.Stats()
	t.Logf("%d changes, %d rounds: %+v", n, rounds, s)
	if s.Moves == 0 {
		t.Error("no worker was taken over by another seat")
	}
}

func countLeaves(c Ctx, depth int) int {
	if depth == 0 {
		return 1
	}
	x := Spawn(c, countLeaves, depth-1)
	y := countLeaves(c, depth-1)
	return x.Sync(c) + y
}

// A parent may hold a lock across a sync that its children do not want: what
// runs in a join is the child's own work, never another task that wants it.
func TestLockAcrossSync(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	var mu sync.Mutex
	var held atomic.Int32
	on(t, rt, func(c Ctx) int {
		For(c, 64, 1, func(lo, hi int) {})
		g := NewGroup[int](c, nil)
		for i := range 64 {
			SpawnIn(c, g, func(c Ctx, i int) int {
				mu.Lock()
				defer mu.Unlock()
				if held.Add(1) != 1 {
					t.Error("two tasks hold the lock")
				}
				x := countLeaves(c, 6)
				held.Add(-1)
				return x
			}, i)
		}
		g.Sync(c)
		return 0
	})
}

func TestSyncOrder(t *testing.T) {
	for _, n := range []int{1, 4} {
		rt := newRuntime(t, WithWorkers(n))
		on(t, rt, func(c Ctx) int {
			for range 200 {
				a, b, d := Spawn(c, fib, 3), Spawn(c, fib, 10), Spawn(c, fib, 7)
				if v := a.Sync(c); v != 2 {
					t.Errorf("first %d", v)
				}
				e := Spawn(c, fib, 12)
				if v := d.Sync(c); v != 13 {
					t.Errorf("third %d", v)
				}
				if v := b.Sync(c); v != 55 {
					t.Errorf("second %d", v)
				}
				if v := e.Sync(c); v != 144 {
					t.Errorf("fourth %d", v)
				}
			}
			return 0
		})
	}
}

// Frames that were left in the middle do not add up.
func TestHoles(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2), WithDepth(100))
	on(t, rt, func(c Ctx) int {
		for range 2000 {
			a, b := Spawn(c, fib, 3), Spawn(c, fib, 4)
			if v := a.Sync(c) + b.Sync(c); v != 5 {
				t.Errorf("got %d", v)
			}
		}
		return 0
	})
}

// A group knows its children although elder siblings end in between.
func TestGroupAmongSiblings(t *testing.T) {
	for _, n := range []int{1, 3} {
		rt := newRuntime(t, WithWorkers(n))
		on(t, rt, func(c Ctx) int {
			for range 50 {
				sum := 0
				x, y := Spawn(c, fib, 5), Spawn(c, fib, 6)
				g := NewGroup(c, func(v int) { sum += v })
				if v := y.Sync(c); v != 8 {
					t.Errorf("got %d", v)
				}
				if v := x.Sync(c); v != 5 {
					t.Errorf("got %d", v)
				}
				for range 3 {
					SpawnIn(c, g, fib, 7)
				}
				g.Sync(c)
				if sum != 39 {
					t.Errorf("sum %d", sum)
				}
			}
			return 0
		})
	}
}

// Different types at the same depth.
func TestTypes(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2))
	on(t, rt, func(c Ctx) int {
		for i := range 50 {
			s := Spawn(c, func(_ Ctx, n int) string { return strings.Repeat("x", n) }, i)
			l := Spawn(c, func(_ Ctx, s []int) int { return len(s) }, make([]int, i))
			if len(s.Sync(c)) != i || l.Sync(c) != i {
				t.Error("wrong result")
			}
			l = Spawn(c, func(_ Ctx, s []int) int { return cap(s) }, make([]int, i))
			s = Spawn(c, func(_ Ctx, n int) string { return fmt.Sprint(n) }, i)
			if l.Sync(c) != i || s.Sync(c) != fmt.Sprint(i) {
				t.Error("wrong result")
			}
		}
		return 0
	})
}

func wantPanic(t *testing.T, what string, want error, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		err, _ := r.(error)
		if want != nil && !errors.Is(err, want) {
			t.Errorf("%s: panic %v, want %v", what, r, want)
		}
		if r == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}

func TestMisuse(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2))
	var old Ctx
	on(t, rt, func(c Ctx) int {
		x := Spawn(c, fib, 5)
		x.Sync(c)
		wantPanic(t, "second sync", ErrSynced, func() { x.Sync(c) })
		y := Spawn(c, fib, 5)
		wantPanic(t, "second sync after another spawn", ErrSynced, func() { x.Sync(c) })
		y.Sync(c)
		wantPanic(t, "zero child", ErrNoChild, func() { (Child[int, int]{}).Sync(c) })
		g := NewGroup[int](c, nil)
		z := Spawn(c, fib, 5)
		g.Sync(c)
		wantPanic(t, "sync after Group.Sync", ErrSynced, func() { z.Sync(c) })
		mine := Spawn(c, fib, 5)
		SpawnIn(c, g, func(in Ctx, _ int) int {
			wantPanic(t, "foreign sync", ErrForeign, func() { mine.Sync(in) })
			wantPanic(t, "foreign group", ErrForeign, func() { g.Sync(in) })
			return 0
		}, 0)
		g.Sync(c)
		old = c
		return 0
	})
	quiet(t, rt)
	wantPanic(t, "spawn after return", ErrForeign, func() { Spawn(old, fib, 5) })
	wantPanic(t, "block after return", ErrForeign, func() { Block(old, func() {}) })
	wantPanic(t, "fast after return", ErrForeign, func() { Fast(old, func(*Frame) int { return 0 }) })

	for _, n := range []int{0, -1, 1_000_000} {
		if err := rt.SetWorkers(n); err == nil {
			t.Errorf("SetWorkers(%d) was taken", n)
		}
		if _, err := New(WithWorkers(n)); err == nil {
			t.Errorf("WithWorkers(%d) was taken", n)
		}
	}
	if _, err := New(WithDepth(0)); err == nil {
		t.Error("WithDepth(0) was taken")
	}
}

func TestClose(t *testing.T) {
	rt, _ := New(WithWorkers(2))
	began := make(chan Ctx)
	ended := make(chan int)
	go func() {
		v, _ := RunOn(rt, context.Background(), func(c Ctx) int {
			began <- c
			time.Sleep(10 * time.Millisecond)
			return fib(c, 15)
		})
		ended <- v
	}()
	<-began
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if v := <-ended; v != 610 {
		t.Errorf("the run under way gave %d", v)
	}
	if _, err := RunOn(rt, context.Background(), func(Ctx) int { return 0 }); !errors.Is(err, ErrClosed) {
		t.Errorf("a run after Close: %v", err)
	}
	if err := rt.SetWorkers(2); !errors.Is(err, ErrClosed) {
		t.Errorf("SetWorkers after Close: %v", err)
	}
	if err := rt.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}
