package mem

import "sync"

// hostSource serves frames of an arena to tests.
type hostSource struct {
	mu   sync.Mutex
	free []Frame // guarded by mu
}

func newHostSource(frames int) *hostSource {
	s := &hostSource{free: make([]Frame, 0, frames+magazineSize)}
	for f := frames; f > 0; f-- {
		s.free = append(s.free, Frame(f))
	}
	return s
}

// lock cannot block: a test's P is pinned while it runs, and so is whoever
// holds the lock, so the lock is held for a moment only.
func (s *hostSource) lock() {
	for !s.mu.TryLock() {
	}
}

func (s *hostSource) Refill(out []Frame) int {
	s.lock()
	defer s.mu.Unlock()
	n := min(len(out), len(s.free))
	copy(out, s.free[len(s.free)-n:])
	s.free = s.free[:len(s.free)-n]
	return n
}

func (s *hostSource) Return(in []Frame) {
	s.lock()
	defer s.mu.Unlock()
	s.free = append(s.free, in...)
}

func (s *hostSource) Free() int {
	s.lock()
	defer s.mu.Unlock()
	return len(s.free)
}
