package wait

import _ "unsafe" // for linkname

//go:linkname cputicks runtime.cputicks
func cputicks() int64

// Parked reports whether the sleeper's goroutine is blocked now.
func (s *Sleeper) Parked() bool { return s.state.Load() == stateParked }

// Idle returns how long, in ticks of the time-stamp counter, the sleeper's
// goroutine has been blocked in all, at the time now.
func (s *Sleeper) Idle(now int64) int64 {
	n := s.idle.Load()
	if since := s.since.Load(); since != 0 && now > since {
		n += now - since
	}
	return n
}
