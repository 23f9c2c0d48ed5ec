package lock

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/lock/core"
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
				core.Pause(20)
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
