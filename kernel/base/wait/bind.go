package wait

import "sync/atomic"

// bound is how many threads may not run on all processors. Only they are waited for.
var bound atomic.Int32

// Bind says whether the thread whose place it is may not run on all processors.
func (s *Sleeper) Bind(t *Turn, yes bool) {
	switch old := s.Home.Load(); {
	case yes && old == nil:
		s.Home.Store(t)
		bound.Add(1)
	case !yes && old != nil:
		s.Home.Store(nil)
		bound.Add(-1)
	}
}
