package lock

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// tryLocker is what every lock for goroutines is.
type tryLocker interface {
	sync.Locker
	TryLock() bool
}

func lockers() map[string]func() tryLocker {
	return map[string]func() tryLocker{
		"CLH":       func() tryLocker { return new(CLH) },
		"Ticket":    func() tryLocker { return new(Ticket) },
		"BigReader": func() tryLocker { return new(BigReader) },
		"Elided":    func() tryLocker { return new(Elided) },
		"Reader and BigReader": func() tryLocker {
			return new(BigReader).NewReader()
		},
	}
}

// Goroutines, more than cores, that count in critical sections: some lock, some
// try. Under the race detector the counter itself is the check.
func TestExclusion(t *testing.T) {
	const goroutines, rounds = 4, 1200
	for name, make := range lockers() {
		if strings.HasPrefix(name, "Reader") {
			continue // belongs to one goroutine
		}
		t.Run(name, func(t *testing.T) {
			l := make()
			count, tried := 0, int64(0)
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for i := range rounds {
						if (g+i)%3 == 0 {
							if !l.TryLock() {
								continue
							}
							atomic.AddInt64(&tried, 1)
						} else {
							l.Lock()
							atomic.AddInt64(&tried, 1)
						}
						count++
						if i%100 == 0 {
							runtime.Gosched() // others meet a holder that does not run
						}
						l.Unlock()
					}
				})
			}
			wg.Wait()
			if int64(count) != tried || tried < goroutines*rounds/2 {
				t.Errorf("counted %d of %d sections", count, tried)
			}
		})
	}
}

func TestTryLockAndMisuse(t *testing.T) {
	for name, make := range lockers() {
		t.Run(name, func(t *testing.T) {
			l := make()
			for range 3 {
				if !l.TryLock() {
					t.Fatal("TryLock of a free lock fails")
				}
				if !strings.HasPrefix(name, "Reader") && l.TryLock() {
					t.Fatal("TryLock of a held lock succeeds")
				}
				l.Unlock()
				pass(l)
			}
			mustPanic(t, l.Unlock)
			if !l.TryLock() {
				t.Fatal("a refused Unlock has locked the lock")
			}
			l.Unlock()
		})
	}
	l := new(BigReader)
	r := l.NewReader()
	r.Lock()
	if l.TryLock() {
		t.Error("a writer beside a reader")
	}
	mustPanic(t, r.Lock)
	mustPanic(t, r.Close)
	r.Unlock()
	l.Lock()
	if r.TryLock() {
		t.Error("a reader beside a writer")
	}
	l.Unlock()
	r.Close()
	pass(l)
}

// pass locks and unlocks.
func pass(l sync.Locker) {
	l.Lock()
	defer l.Unlock()
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// Readers come and go while writers change two words; readers see both or neither.
func TestBigReaderStress(t *testing.T) {
	l := new(BigReader)
	var x, y, reads int
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		wg.Go(func() {
			n := 0
			for !stop.Load() {
				r := l.NewReader()
				for range 50 {
					r.Lock()
					if x != y {
						t.Error("half of a change")
					}
					if n%64 == 0 {
						runtime.Gosched() // to another core, perhaps
					}
					r.Unlock()
					n++
				}
				r.Close()
			}
			l.Lock()
			reads += n
			l.Unlock()
		})
	}
	for range 300 {
		l.Lock()
		x++
		runtime.Gosched()
		y++
		l.Unlock()
	}
	stop.Store(true)
	wg.Wait()
	if x != 300 || reads == 0 || len(l.readers) != 0 {
		t.Errorf("%d changes, %d reads, %d readers left", x, reads, len(l.readers))
	}
}

// Readers that leave the barrier to writers, and those that do not.
func TestBigReaderSymmetric(t *testing.T) {
	registerBarrier()
	t.Logf("membarrier works: %v", asymmetric)
	if !asymmetric {
		t.Skip("TestBigReaderStress has tested it")
	}
	asymmetric = false
	defer func() { asymmetric = true }()
	TestBigReaderStress(t)
}

// Whoever has come first has the lock first.
func TestFirstComeFirstServed(t *testing.T) {
	clh, ticket := new(CLH), new(Ticket)
	waiting := map[tryLocker]func() int{
		clh:    clh.Waiting,
		ticket: func() int { return int(atomic.LoadUint32(&ticket.next) - atomic.LoadUint32(&ticket.serving) - 1) },
	}
	for l, count := range waiting {
		var order []int
		var wg sync.WaitGroup
		l.Lock()
		for i := range 5 {
			wg.Go(func() {
				l.Lock()
				order = append(order, i)
				l.Unlock()
			})
			for count() != i+1 {
				time.Sleep(10 * time.Microsecond)
			}
		}
		l.Unlock()
		wg.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("%T: order %v", l, order)
			}
		}
	}
}

// A goroutine that waits is not passed for ever by two that hardly let go.
func TestElidedHunger(t *testing.T) {
	l := new(Elided)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				l.Lock()
				Pause(20)
				l.Unlock()
			}
		})
	}
	for range 20 {
		time.Sleep(time.Millisecond)
		pass(l) // hangs if nothing bounds it
	}
	stop.Store(true)
	wg.Wait()
	if atomic.LoadUint32(&l.hungry) != 0 {
		t.Error("hungry, but nobody waits")
	}
}

// A writer waits for no core that was said not to come.
func TestSetCores(t *testing.T) {
	for _, c := range []struct{ n, visited uint32 }{{0, MaxCores}, {1, 1}, {4, 4}, {MaxCores, MaxCores}, {MaxCores + 1, MaxCores}} {
		var l CoreReaders
		l.SetCores(c.n)
		if c.visited < MaxCores {
			l.RAcquire(c.visited) // for ever
		}
		l.Acquire(0)
		l.Release(0)
		// The last one that may come is waited for.
		l.RAcquire(c.visited - 1)
		done := make(chan bool)
		go func() { l.Acquire(0); close(done) }()
		select {
		case <-done:
			t.Errorf("%d cores: a writer beside reader %d", c.n, c.visited-1)
		case <-time.After(time.Millisecond):
			l.RRelease(c.visited - 1)
			<-done
		}
	}
}

// Locks for numbered cores, each core a goroutine.
func TestCores(t *testing.T) {
	const cores, rounds = 4, 2000
	Yield = runtime.Gosched
	defer func() { Yield = nil }()
	run := func(name string, section func(core uint32, i int)) {
		var wg sync.WaitGroup
		for core := range uint32(cores) {
			wg.Go(func() {
				for i := range rounds {
					section(core, i)
					if i%8 == 0 {
						runtime.Gosched() // or few sections meet on few processors
					}
				}
			})
		}
		wg.Wait()
	}
	var q CoreQueue
	count, failed := 0, int64(0)
	run("CoreQueue", func(core uint32, i int) {
		if i%2 == 0 {
			q.Acquire(core)
		} else if !q.TryAcquire(core) {
			atomic.AddInt64(&failed, 1)
			return
		}
		count++
		q.Release(core)
	})
	if want := cores*rounds - int(failed); count != want {
		t.Errorf("CoreQueue: %d of %d", count, want)
	}

	var rw CoreReaders
	rw.SetCores(cores)
	x, y := 0, 0
	run("CoreReaders", func(core uint32, i int) {
		if i%16 == 0 {
			rw.Acquire(core)
			x++
			y++
			rw.Release(core)
			return
		}
		rw.RAcquire(core)
		if x != y {
			t.Error("half of a change")
		}
		rw.RRelease(core)
	})
	if want := cores * ((rounds + 15) / 16); x != want {
		t.Errorf("CoreReaders: %d of %d", x, want)
	}

	var virtual Ticket
	count, failed = 0, 0
	run("Ticket, seized", func(core uint32, i int) {
		if i%2 == 0 {
			virtual.AwaitSeize()
		} else if !virtual.Seize() {
			atomic.AddInt64(&failed, 1)
			return
		}
		count++
		virtual.Release()
	})
	if want := cores*rounds - int(failed); count != want {
		t.Errorf("Ticket: %d of %d", count, want)
	}

	var seized CoreQueue
	count, failed = 0, 0
	run("Seize", func(core uint32, i int) {
		if i%2 == 0 {
			seized.AwaitSeize()
		} else if !seized.Seize() {
			atomic.AddInt64(&failed, 1)
			return
		}
		count++
		seized.Release(core)
	})
	if want := cores*rounds - int(failed); count != want {
		t.Errorf("Seize: %d of %d", count, want)
	}

	var ticket Ticket
	count = 0
	run("Ticket", func(uint32, int) {
		ticket.Spin()
		count++
		ticket.Release()
	})
	if count != cores*rounds {
		t.Errorf("Ticket: %d of %d", count, cores*rounds)
	}

	var e CoreElided
	count = 0
	run("CoreElided", func(core uint32, i int) {
		txn := e.Acquire(core)
		count++
		e.Release(core, txn)
	})
	if count != cores*rounds {
		t.Errorf("CoreElided: %d of %d", count, cores*rounds)
	}
}

// The turns of a CoreQueue's nodes run over.
func TestCoreQueueTurns(t *testing.T) {
	var q CoreQueue
	q.cores[0].next = (1<<24 - 3) << 8 // turn -2 of node 1
	for i := range 10 {
		if q.Acquire(0); q.TryAcquire(1) {
			t.Fatalf("turn %d: the lock was given twice", i)
		}
		q.Release(0)
		if !q.TryAcquire(1) {
			t.Fatalf("turn %d: the lock is not free", i)
		}
		q.Release(1)
	}
}

// The instructions themselves, in a process of their own: processors without RTM do
// not know XBEGIN, those where it is switched off abort every transaction at once.
func TestInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 only")
	}
	if os.Getenv("LOCK_TEST_XBEGIN") != "" {
		word := uint32(0)
		commits := 0
		for range 1000 {
			if xbegin(&word) == started {
				xend()
				commits++
			}
		}
		held := uint32(1)
		if status := xbegin(&held); status == started {
			t.Fatal("a transaction began though the word was held")
		} else if commits > 0 && !wasHeld(status) {
			t.Logf("status %#x with the word held", status) // another reason came first
		}
		t.Logf("%d of 1000 transactions committed", commits)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInstructions$", "-test.v")
	cmd.Env = append(os.Environ(), "LOCK_TEST_XBEGIN=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (strings.Contains(string(out), "SIGILL") ||
		errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGILL) {
		t.Skip("this processor does not know XBEGIN")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "committed") || strings.Contains(line, "status") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
