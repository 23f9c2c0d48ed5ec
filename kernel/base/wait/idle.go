package wait

// Parked reports whether the sleeper's goroutine is blocked now.
func (s *Sleeper) Parked() bool { return s.state.Load() == stateParked }

// Delayed returns for how long, in ticks, the goroutine has waited for a P in all after it was
// woken; 0 where goroutines have no clocks.
func (s *Sleeper) Delayed() int64 { return s.delayed }

// Idle returns how long, in ticks of the time-stamp counter, the sleeper has been
// blocked in all, at the time now. With clocks of goroutines (MyClock), which tell
// that too, it is 0.
func (s *Sleeper) Idle(now int64) int64 {
	n := s.idle.Load()
	if since := s.since.Load(); since != 0 && now > since {
		n += now - since
	}
	return n
}
