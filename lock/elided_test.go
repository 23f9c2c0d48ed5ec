package lock

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/lock/core"
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
	clock   atomic.Uint64 // what cycles gives, and step more each time
	step    uint64
}

func (s *software) Begin(word *uint32) uint32 {
	s.begins.Add(1)
	if status := s.status(); status != core.Started {
		return status
	}
	s.one.Lock()
	if atomic.LoadUint32(word) != 0 {
		s.one.Unlock()
		return 0xff<<24 | 1
	}
	s.running.Store(true)
	return core.Started
}

func (s *software) End() {
	s.commits.Add(1)
	s.running.Store(false)
	s.one.Unlock()
}

func (s *software) Inside() bool { return s.running.Load() }

func (s *software) Take(word *uint32) bool {
	s.one.Lock()
	defer s.one.Unlock()
	s.takes.Add(1)
	return atomic.CompareAndSwapUint32(word, 0, 1)
}

func (s *software) Cycles() uint64 { return s.clock.Add(s.step) }

func withSoftware(t *testing.T, status func() uint32) *software {
	s := &software{status: status, step: 50}
	core.Model = s
	t.Cleanup(func() { core.Model = nil })
	return s
}

// elidesFrom has l elide as if waiters had lost that part of the time, in 1/256.
func elidesFrom(l *Elided, s *software, share uint32) {
	now := s.clock.Load()
	l.since, l.spent, l.share, l.began, l.eliding = now, 0, share, uint32(now>>20), 1
}

// How many sections are tried as transactions, and how many are plain, once waiting
// has made the lock elide.
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
		{"a page that is not there", 1, 0, [2]int64{1, 40}, [2]int64{rounds, rounds}},
		{"always a conflict", 1, core.StatusRetry, [2]int64{1, 40}, [2]int64{rounds, rounds}},
		{"conflicts dominate", 0.6, core.StatusRetry, [2]int64{1, rounds / 2}, [2]int64{rounds / 2, rounds}},
		{"conflicts now and then", 0.03, core.StatusRetry, [2]int64{rounds, rounds + rounds/8}, [2]int64{0, rounds / 100}},
		{"interrupts now and then", 0.01, 0, [2]int64{rounds * 9 / 10, rounds}, [2]int64{1, rounds / 20}},
	} {
		t.Run(v.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s := withSoftware(t, func() uint32 {
				if random.Float64() < v.aborts {
					return v.status
				}
				return core.Started
			})
			var l Elided
			s.clock.Add(1 << 30)
			elidesFrom(&l, s, 256)
			for range rounds {
				s.clock.Add(200) // a section
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

// A lock that nobody waits for has no transactions, and one with few waits neither.
func TestElisionNeedsWaiters(t *testing.T) {
	s := withSoftware(t, func() uint32 { return core.Started })
	var l Elided
	for range 1000 {
		pass(&l)
	}
	for range 100 {
		s.clock.Add(100_000)
		l.waitedFor(s.clock.Load(), 1000)
	}
	if s.begins.Load() != 0 || l.eliding != 0 {
		t.Errorf("%d transactions without waiters", s.begins.Load())
	}
	for range 2 * waitRound {
		s.clock.Add(1000)
		l.waitedFor(s.clock.Load(), 900)
		if l.eliding != 0 {
			break
		}
	}
	pass(&l)
	if s.commits.Load() != 1 {
		t.Error("no transactions although one waits all the time")
	}
}

// A lock whose transactions do not pay is plain ever longer; when they do it goes
// back to them, and when nobody waits any more it stays plain.
func TestElisionFollows(t *testing.T) {
	status := uint32(core.StatusRetry)
	s := withSoftware(t, func() uint32 { return status })
	var l Elided
	s.clock.Add(1 << 40)
	run := func(sections int, waiters bool) (tried int64) {
		before := s.begins.Load()
		for range sections {
			s.clock.Add(1000)
			pass(&l)
			if waiters && l.eliding == 0 {
				l.waitedFor(s.clock.Load(), 900)
			}
		}
		return s.begins.Load() - before
	}
	if n := run(1_000_000, true); n < 40 || n > 4000 {
		t.Errorf("%d tries in a million sections whose transactions all abort", n)
	}
	status = core.Started
	s.clock.Add(maxPause)
	if n := run(1000, true); n < 900 {
		t.Errorf("%d of 1000 sections are transactions when they commit", n)
	}
	// An interrupt now and then, but nobody would wait any more.
	for range 200 {
		s.clock.Add(1 << 20)
		if status = 0; !l.TryLock() {
			t.Fatal("TryLock")
		}
		l.Unlock()
		status = core.Started
		run(10, false)
	}
	if n := run(1000, false); n != 0 {
		t.Errorf("%d transactions though nobody waits any more", n)
	}
}

// Aborts cost more than waiting did: the lock is plain although its score is low.
func TestElisionCountsTime(t *testing.T) {
	s := withSoftware(t, func() uint32 { return core.Started })
	var l Elided
	s.clock.Add(1 << 40)
	elidesFrom(&l, s, 100)
	for i := range abortRound {
		if l.eliding == 0 {
			t.Fatalf("plain after %d aborts", i)
		}
		s.clock.Add(1000)
		l.score = 0
		l.aborted(s.clock.Load(), 300, true) // 30 % of the time, waiting took 39 %
	}
	if l.eliding != 0 {
		t.Error("elides at a loss")
	}
}

// Both kinds of sections, with aborts at random, exclude each other.
func TestElisionStress(t *testing.T) {
	statuses := []uint32{core.Started, core.Started, core.Started, core.StatusRetry, 0}
	withSoftware(t, func() uint32 { return statuses[rand.IntN(len(statuses))] })
	var l Elided
	l.eliding, l.share = 1, 1<<16
	var cores core.Elided
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
