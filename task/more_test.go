package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestFor(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	for _, n := range []int{-1, 0, 1, 2, 7, 1000} {
		for _, grain := range []int{0, 1, 3, 5000} {
			seen := make([]atomic.Int32, max(n, 0))
			on(t, rt, func(c Ctx) int {
				For(c, n, grain, func(lo, hi int) {
					if grain > 0 && hi-lo > grain || lo >= hi {
						t.Errorf("part [%d, %d) with grain %d", lo, hi, grain)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				return 0
			})
			for i := range seen {
				if seen[i].Load() != 1 {
					t.Fatalf("n %d, grain %d: step %d was done %d times", n, grain, i, seen[i].Load())
				}
			}
		}
	}
}

func TestReduce(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	// Joining strings is associative and not commutative.
	for _, n := range []int{0, 1, 10, 500} {
		got := on(t, rt, func(c Ctx) string {
			return Reduce(c, n, 3, func(lo, hi int) string {
				b := []byte{}
				for i := lo; i < hi; i++ {
					b = append(b, byte('a'+i%26))
				}
				return string(b)
			}, func(l, r string) string { return l + r })
		})
		if len(got) != max(n, 0) {
			t.Fatalf("n %d: %q", n, got)
		}
		for i := range got {
			if got[i] != byte('a'+i%26) {
				t.Fatalf("n %d: %q", n, got)
			}
		}
	}
}

func TestInvoke(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	var a, b, d int
	on(t, rt, func(c Ctx) int {
		Invoke(c)
		Invoke(c, func(c Ctx) { a = fib(c, 10) }, func(c Ctx) { b = fib(c, 11) }, func(c Ctx) { d = fib(c, 12) })
		if a != 55 || b != 89 || d != 144 {
			t.Errorf("%d %d %d", a, b, d)
		}
		return 0
	})
}

func checkSort[E cmp.Ordered](t interface{ Fatalf(string, ...any) }, rt *Runtime, x []E) {
	want := slices.Clone(x)
	slices.Sort(want)
	RunOn(rt, context.Background(), func(c Ctx) int { Sort(c, x); return 0 })
	for i := range x {
		if cmp.Compare(x[i], want[i]) != 0 {
			t.Fatalf("element %d of %d is %v, want %v", i, len(x), x[i], want[i])
		}
	}
}

func TestSort(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	rapid.Check(t, func(r *rapid.T) {
		checkSort(r, rt, rapid.SliceOfN(rapid.IntRange(-20, 20), 0, 300).Draw(r, "ints"))
		checkSort(r, rt, rapid.SliceOfN(rapid.String(), 0, 40).Draw(r, "strings"))
	})
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{4095, 4096, 4097, 100_003, 400_000} {
		x := make([]int32, n)
		for i := range x {
			x[i] = int32(rng.Uint32())
		}
		checkSort(t, rt, x)
		checkSort(t, rt, x) // sorted already
		slices.Reverse(x)
		checkSort(t, rt, x)
		f := make([]float64, n)
		for i := range f {
			f[i] = float64(rng.IntN(100))
			if i%1000 == 7 {
				f[i] = math.NaN()
			}
		}
		checkSort(t, rt, f)
	}
}

// twoProcessors is for tests that end when somebody has stolen: where one goroutine
// runs at a time, who would steal finds nothing each time.
func twoProcessors(t *testing.T) {
	old := runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2))
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

// Sleeping workers are woken for a run that has something to share.
func TestOthersJoinIn(t *testing.T) {
	twoProcessors(t)
	rt := newRuntime(t, WithWorkers(3))
	for range 3 {
		before := rt.Stats().Steals
		on(t, rt, func(c Ctx) int {
			for rt.Stats().Steals == before { // it would never end with one worker
				fib(c, 12)
			}
			return 0
		})
		quiet(t, rt) // and again from sleep
	}
}

// A task that blocks in ordinary Go code does not keep the others from running,
// with one worker only and without Block.
func TestPlainBlocking(t *testing.T) {
	rt := newRuntime(t, WithWorkers(1))
	ch := make(chan int)
	got := make(chan int)
	go func() { got <- on(t, rt, func(c Ctx) int { return <-ch + fib(c, 10) }) }()
	for rt.Stats().Running == 0 {
		time.Sleep(time.Millisecond)
	}
	on(t, rt, func(c Ctx) int { ch <- 7; return 0 })
	if v := <-got; v != 7+55 {
		t.Errorf("got %d", v)
	}
	if rt.Stats().Retaken == 0 {
		t.Error("no seat was taken back")
	}
	// A Run within a task of the same runtime.
	if v := on(t, rt, func(c Ctx) int { return on(t, rt, func(c Ctx) int { return fib(c, 10) }) }); v != 55 {
		t.Errorf("nested run: %d", v)
	}
	other := newRuntime(t, WithWorkers(2))
	if v := on(t, rt, func(c Ctx) (v int) {
		Block(c, func() { v = on(t, other, func(c Ctx) int { return fib(c, 10) }) })
		return v
	}); v != 55 {
		t.Errorf("nested runtime: %d", v)
	}
	quiet(t, rt)
}

// Many tasks in Block at once need as many goroutines, not as many workers.
func TestManyBlocked(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2))
	const n = 200
	var in atomic.Int32
	release := make(chan struct{})
	on(t, rt, func(c Ctx) int {
		g := NewGroup[int](c, nil)
		for range n {
			SpawnIn(c, g, func(c Ctx, _ int) int {
				if in.Add(1) == n {
					close(release)
				}
				Block(c, func() { <-release })
				return 0
			}, 0)
		}
		g.Sync(c)
		return 0
	})
	quiet(t, rt)
}

// The workers go down to one while one of them runs a task that never yields.
func TestNeverYields(t *testing.T) {
	rt := newRuntime(t, WithWorkers(3))
	var stop atomic.Bool
	spinning := make(chan bool, 3)
	done := make(chan error)
	go func() {
		_, err := RunOn(rt, context.Background(), func(c Ctx) int {
			for range 3 {
				Spawn(c, func(Ctx, int) int {
					spinning <- true
					for !stop.Load() {
					}
					return 0
				}, 0)
			}
			return 0
		})
		done <- err
	}()
	<-spinning
	if err := rt.SetWorkers(1); err != nil {
		t.Fatal(err)
	}
	if n := rt.Workers(); n != 1 {
		t.Errorf("%d workers", n)
	}
	// Others get their turn although no task ends.
	if v := on(t, rt, func(c Ctx) int { return fib(c, 10) }); v != 55 {
		t.Errorf("got %d", v)
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
	quiet(t, rt)
}

// An added core is used soon. The time is only logged: it is the machine's.
func TestAddedCoreIsUsed(t *testing.T) {
	twoProcessors(t)
	rt := newRuntime(t, WithWorkers(1))
	var seats [2]atomic.Int64 // when each seat was first seen, since the start
	start := time.Now()
	var added atomic.Int64
	on(t, rt, func(c Ctx) int {
		for seats[1].Load() == 0 {
			For(c, 64, 1, func(lo, hi int) { _ = plainFib(12) })
			g := NewGroup[int](c, nil)
			for range 8 {
				SpawnIn(c, g, func(c Ctx, _ int) int {
					if s := c.Seat(); s != nil {
						seats[s.Index()].CompareAndSwap(0, int64(time.Since(start)))
					}
					return fib(c, 12)
				}, 0)
			}
			g.Sync(c)
			if added.Load() == 0 && seats[0].Load() != 0 {
				added.Store(int64(time.Since(start)))
				if err := rt.SetWorkers(2); err != nil {
					t.Error(err)
				}
			}
		}
		return 0
	})
	t.Logf("used %v after it was added", time.Duration(seats[1].Load()-added.Load()))
}

type lodger struct{ seat atomic.Pointer[Seat] }

func (l *lodger) Move(to *Seat) { l.seat.Store(to) }

// Tenants move with the cores, and are always on one that is there.
func TestTenants(t *testing.T) {
	rt := newRuntime(t, WithWorkers(4))
	lodgers := make([]*lodger, 10)
	for i := range lodgers {
		l := &lodger{}
		lodgers[i] = l
		on(t, rt, func(c Ctx) int { l.seat.Store(c.Seat().Attach(l)); return 0 })
	}
	for _, n := range []int{2, 5, 1, 3, 1} {
		if err := rt.SetWorkers(n); err != nil {
			t.Fatal(err)
		}
		for i, l := range lodgers {
			if s := l.seat.Load(); s.gone.Load() || !slices.Contains(s.tenants, Tenant(l)) {
				t.Errorf("%d workers: tenant %d is on seat %d, removed: %v", n, i, s.id, s.gone.Load())
			}
		}
	}
	if !rt.Detach(lodgers[3]) || rt.Detach(lodgers[3]) {
		t.Error("Detach")
	}
}

// An idle runtime uses no processor time.
func TestIdle(t *testing.T) {
	rt := newRuntime(t, WithWorkers(4))
	on(t, rt, func(c Ctx) int { return fib(c, 15) })
	quiet(t, rt)
	time.Sleep(3 * tick)
	rt.mu.Lock()
	watching := rt.watcher.on
	rt.mu.Unlock()
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	time.Sleep(100 * time.Millisecond)
	t.Logf("%v of processor time in 100 ms; watcher on: %v", used()-before, watching)
	wakes := rt.Stats().Wakes
	time.Sleep(50 * time.Millisecond)
	if n := rt.Stats().Wakes; n != wakes {
		t.Errorf("%d wake-ups while idle", n-wakes)
	}
	for range 1000 {
		rt.mu.Lock()
		watching = rt.watcher.on
		rt.mu.Unlock()
		if !watching {
			return
		}
		time.Sleep(tick)
	}
	t.Error("the watcher runs though nothing does")
}

func TestQuota(t *testing.T) {
	for s, want := range map[string]int{
		"max 100000\n": 0, "150000 100000\n": 2, "100000 100000": 1, "1000 100000": 1,
		"": 0, "x y": 0, "-5 100": 0, "5 0": 0, "5": 0,
	} {
		if got := parseQuota(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if m := look(); len(m.cpus) == 0 || m.cores() < 1 {
		t.Errorf("this machine: %+v", m)
	}
}

// A limit that is written while the process runs is seen without polling.
func TestQuotaIsWatched(t *testing.T) {
	f := filepath.Join(t.TempDir(), "cpu.max")
	write := func(s string) {
		if err := os.WriteFile(f, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("max 100000")
	in, err := watchFiles([]string{f}, []string{f + ".not"})
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	seen := make(chan int)
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := in.Read(buf); err != nil {
				close(seen)
				return
			}
			if n := readQuota([]string{f}); n > 0 {
				seen <- n
				return
			}
		}
	}()
	write("300000 100000")
	if n := <-seen; n != 3 {
		t.Errorf("%d cores", n)
	}
	if _, err := watchFiles([]string{f + ".not"}, nil); err == nil {
		t.Error("a file that is not there is watched")
	}
}

// A core's device event is heard. The superuser can have the kernel send one.
func TestDeviceEvents(t *testing.T) {
	for event, want := range map[string]bool{
		"online@/devices/system/cpu/cpu1\x00ACTION=online\x00":   true,
		"offline@/devices/system/cpu/cpu17\x00SUBSYSTEM=cpu\x00": true,
		"add@/devices/virtual/net/tap0\x00DEVPATH=/devices/x":    false,
		"libudev\x00@/devices/system/cpu/cpu1":                   false,
		"":                                                       false,
	} {
		if got := aboutCore([]byte(event)); got != want {
			t.Errorf("%q: %v", event, got)
		}
	}
	in, err := deviceEvents()
	if err != nil {
		t.Skip(err)
	}
	defer in.Close()
	heard := make(chan bool, 1)
	go heed(in, aboutCore, func() {
		select {
		case heard <- true:
		default:
		}
	})
	if err := os.WriteFile("/sys/devices/system/cpu/cpu0/uevent", []byte("change"), 0); err != nil {
		t.Skip(err)
	}
	select {
	case <-heard:
	case <-time.After(time.Second): // not the first network namespace: not told
		t.Skip("the kernel does not tell this process about devices")
	}
}

// What is reported reaches the runtimes that work.
func TestChangesReachRuntimes(t *testing.T) {
	rt := newRuntime(t)
	want := rt.Workers()
	on(t, rt, func(c Ctx) int {
		rt.mu.Lock()
		moves := rt.resize(want+1, rt.watcher.last.cpus) // as if there had been more
		rt.watcher.last = machine{}
		rt.mu.Unlock()
		moves.run()
		changes.tell()
		if n := rt.Workers(); n != want {
			t.Errorf("%d workers, want %d", n, want)
		}
		return 0
	})
	for changes.has(rt) { // until the watcher has seen that nothing runs
		time.Sleep(tick)
	}
}

// The runtime follows the process's affinity while it works.
func TestFollowsAffinity(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		t.Skip("one core only")
	}
	rt := newRuntime(t)
	// look asks for the main thread, which this test does not want to bind:
	// the machine is told instead.
	m := look()
	if rt.Workers() != min(m.cores(), MaxWorkers) {
		t.Errorf("%d workers on %+v", rt.Workers(), m)
	}
	rt.mu.Lock()
	moves := rt.resize(1, m.cpus[:1])
	rt.watcher.last = machine{cpus: m.cpus[:1]}
	rt.mu.Unlock()
	moves.run()
	// The watcher finds the rest again.
	on(t, rt, func(c Ctx) int {
		for rt.Workers() != min(m.cores(), MaxWorkers) {
			fib(c, 10)
		}
		return 0
	})
}

func TestTrace(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2))
	tr, err := rt.StartTrace(TraceOptions{Spawns: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.StartTrace(TraceOptions{}); err != ErrTracing {
		t.Errorf("second trace: %v", err)
	}
	on(t, rt, func(c Ctx) int {
		Block(c, func() { time.Sleep(time.Millisecond) })
		return fib(c, 10)
	})
	rt.SetWorkers(1)
	var out bytes.Buffer
	if err := tr.Stop(&out); err != nil {
		t.Fatal(err)
	}
	if err := tr.Stop(&out); err == nil {
		t.Error("second Stop")
	}
	var f struct {
		TraceEvents []struct {
			Name string
			Ph   string
			Ts   float64
			Tid  int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	open := map[int][]string{}
	last := map[int]float64{}
	for _, e := range f.TraceEvents {
		count[e.Name+" "+e.Ph]++
		switch e.Ph {
		case "M":
			continue
		case "B":
			open[e.Tid] = append(open[e.Tid], e.Name)
		case "E":
			s := open[e.Tid]
			if len(s) == 0 || s[len(s)-1] != e.Name {
				t.Fatalf("worker %d: %s ends within %v", e.Tid, e.Name, s)
			}
			open[e.Tid] = s[:len(s)-1]
		}
		if e.Ts < last[e.Tid] {
			t.Errorf("time goes back: %+v", e)
		}
		last[e.Tid] = e.Ts
	}
	if count["spawn i"] != 88 || count["blocked B"] != 1 || count["blocked E"] != 1 || count["run B"] != 1 || count["workers C"] != 2 {
		t.Errorf("events: %v", count)
	}
	on(t, rt, func(c Ctx) int {
		fib(c, 10)
		if c.a.w.flags.Load()&flagTrace != 0 {
			t.Error("spawns still report after the trace")
		}
		return 0
	})
}
