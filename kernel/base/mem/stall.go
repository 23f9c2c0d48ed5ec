package mem

import (
	"sync"
	"time"
)

// Stall measures for how long at least one goroutine is held up by something (the
// pressure of /proc/pressure). It is for what takes long anyway.
type Stall struct {
	mu    sync.Mutex
	n     int       // held up now; guarded by mu
	since time.Time // when the first of them was; guarded by mu
	total int64     // nanoseconds before; guarded by mu
}

// Begin is called before, and End after.
func (s *Stall) Begin() {
	s.mu.Lock()
	if s.n++; s.n == 1 {
		s.since = time.Now()
	}
	s.mu.Unlock()
}

// End ends what Begin began.
func (s *Stall) End() {
	s.mu.Lock()
	if s.n--; s.n == 0 {
		s.total += int64(time.Since(s.since))
	}
	s.mu.Unlock()
}

// Total returns the time in nanoseconds up to now, and how many are held up.
func (s *Stall) Total() (nanos int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nanos = s.total
	if s.n > 0 {
		nanos += int64(time.Since(s.since))
	}
	return nanos, s.n
}
