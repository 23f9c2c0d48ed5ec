package mem

import (
	"sync"
	"sync/atomic"
	"time"
)

// shareOfTime is the part of all time that a share gives away at most: one in so many.
const shareOfTime = 20

// share bounds the time that some work takes: after each piece comes a pause, so that
// the work has a twentieth of all time.
type share struct {
	now  func() time.Duration
	mu   sync.Mutex    // held while run's work is done; before heap.squeezing
	done atomic.Uint64 // pieces of run's work
	next atomic.Int64  // nanoseconds: when the pause ends
}

// spent reports whether the share is used up at this time.
func (s *share) spent() bool { return int64(s.now()) < s.next.Load() }

// charge does a piece of work and lengthens the pause by what it took.
func (s *share) charge(work func()) {
	begin := s.now()
	work()
	took := s.now() - begin
	for {
		old := s.next.Load()
		next := max(old, int64(begin)) + shareOfTime*int64(took)
		if s.next.CompareAndSwap(old, next) {
			return
		}
	}
}

// run does work that charges itself, unless the share is used up. It reports whether
// the work was done since the call began, by whomever.
func (s *share) run(work func()) bool {
	before := s.done.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done.Load() != before {
		return true
	}
	if s.spent() {
		return false
	}
	work()
	s.done.Add(1)
	return true
}
