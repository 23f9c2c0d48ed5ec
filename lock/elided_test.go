package lock

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// software stands in for the processor's transactions: it runs one at a time, and
// no plain holder takes a lock's word while one runs, so that none has ever to be
// undone; the aborts that a test wants come at the begin. It tests all but the
// hardware: what is done with statuses, the cap on tries, the way to the plain lock
// and back. That transactions which overlap are right is left to the model in
// protocol_test.go and to processors that have them.
type software struct {
	one     sync.Mutex
	running atomic.Bool
	status  func() uint32 // of the next begin: started, or that of an abort
	begins  atomic.Int64
	commits atomic.Int64
	takes   atomic.Int64
}

func (s *software) begin(word *uint32) uint32 {
	s.begins.Add(1)
	if status := s.status(); status != started {
		return status
	}
	s.one.Lock()
	if atomic.LoadUint32(word) != 0 {
		s.one.Unlock()
		return statusHeld
	}
	s.running.Store(true)
	return started
}

func (s *software) end() {
	s.commits.Add(1)
	s.running.Store(false)
	s.one.Unlock()
}

func (s *software) inside() bool { return s.running.Load() }

func (s *software) take(word *uint32) bool {
	s.one.Lock()
	defer s.one.Unlock()
	s.takes.Add(1)
	return atomic.CompareAndSwapUint32(word, 0, 1)
}

func withSoftware(t *testing.T, status func() uint32) *software {
	s := &software{status: status}
	old := hardware
	hardware = s
	t.Cleanup(func() { hardware = old })
	return s
}

func TestElisionCounts(t *testing.T) {
	const rounds = 4000
	for _, v := range []struct {
		name   string
		aborts float64 // part of the begins that abort
		status uint32
		begins [2]int64 // at least, at most
		plain  [2]int64
	}{
		{"no aborts", 0, 0, [2]int64{rounds, rounds}, [2]int64{0, 0}},
		{"a page that is not there", 1, 0, [2]int64{1, 200}, [2]int64{rounds, rounds}},
		{"always a conflict", 1, statusRetry, [2]int64{1, 200}, [2]int64{rounds, rounds}},
		{"conflicts dominate", 0.6, statusRetry, [2]int64{1, rounds / 2}, [2]int64{rounds / 2, rounds}},
		{"conflicts now and then", 0.05, statusRetry, [2]int64{rounds, rounds + rounds/8}, [2]int64{0, rounds / 100}},
		{"interrupts now and then", 0.02, 0, [2]int64{rounds * 9 / 10, rounds}, [2]int64{1, rounds / 20}},
	} {
		t.Run(v.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s := withSoftware(t, func() uint32 {
				if random.Float64() < v.aborts {
					return v.status
				}
				return started
			})
			var l Elided
			for range rounds {
				pass(&l)
			}
			mustPanic(t, l.Unlock)
			begins, plain := s.begins.Load(), s.takes.Load()
			if begins < v.begins[0] || begins > v.begins[1] || plain < v.plain[0] || plain > v.plain[1] {
				t.Errorf("%d begins, %d plain sections; want %v and %v", begins, plain, v.begins, v.plain)
			}
			if s.commits.Load()+plain != rounds {
				t.Errorf("%d commits and %d plain sections of %d", s.commits.Load(), plain, rounds)
			}
		})
	}
}

// After a bad time a lock goes back to transactions.
func TestElisionRecovers(t *testing.T) {
	bad := true
	s := withSoftware(t, func() uint32 {
		if bad {
			return statusRetry
		}
		return started
	})
	var l Elided
	for range 50_000 {
		pass(&l)
	}
	if n := s.begins.Load(); n > 500 {
		t.Errorf("%d tries of 50,000 sections whose transactions all abort", n)
	}
	bad = false
	for range 2 * maxPenalty {
		pass(&l)
	}
	before := s.commits.Load()
	for range 1000 {
		pass(&l)
	}
	if n := s.commits.Load() - before; n != 1000 || l.penalty != 0 {
		t.Errorf("%d of 1000 sections are transactions again, penalty %d", n, l.penalty)
	}
}

// Both kinds of sections, with aborts at random, exclude one another.
func TestElisionStress(t *testing.T) {
	statuses := []uint32{started, started, started, statusRetry, 0}
	withSoftware(t, func() uint32 { return statuses[rand.IntN(len(statuses))] })
	var l Elided
	var cores CoreElided
	count, sections, coreCount := 0, int64(0), 0
	var wg sync.WaitGroup
	for g := range uint32(4) {
		wg.Go(func() {
			for i := range 1500 {
				if i%4 != 0 || l.TryLock() {
					if i%4 != 0 {
						l.Lock()
					}
					count++
					l.Unlock()
					atomic.AddInt64(&sections, 1)
				}
			}
			for range 500 {
				txn := cores.Acquire(g)
				coreCount++
				cores.Release(g, txn)
			}
		})
	}
	wg.Wait()
	if int64(count) != sections || coreCount != 2000 {
		t.Errorf("counted %d of %d, cores %d of 2000", count, sections, coreCount)
	}
}
