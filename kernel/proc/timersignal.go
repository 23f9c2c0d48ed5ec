package proc

import (
	"math"

	"hardtack/abi/linux"
)

// TimerSignal is the signal of a POSIX timer: there is one in a queue at most. Its
// place is charged to the user when the timer is made, so that a timer's signal
// always finds room.
type TimerSignal struct {
	entry  queued // its user is immutable
	queued bool   // entry is in a queue; guarded by Process.mu
	ended  bool   // the timer is gone; guarded by Process.mu
}

// NewTimerSignal charges a signal to the process's user; EAGAIN if that one has as
// many as RLIMIT_SIGPENDING allows.
func (p *Process) NewTimerSignal() (*TimerSignal, linux.Errno) {
	p.mu.Lock()
	u := p.sig.user
	p.mu.Unlock()
	if u == nil {
		return &TimerSignal{}, 0 // a process of a test
	}
	if !u.ChargeSignal(p.limits[linux.RLIMIT_SIGPENDING].cur.Load()) {
		return nil, linux.EAGAIN
	}
	s := &TimerSignal{}
	s.entry.user, s.entry.timer = u, s
	return s, 0
}

// Send queues the signal for a thread or (nil) the process. If it is queued still,
// the timer's expirations go to its overrun count, and Send returns the sum.
func (s *TimerSignal) Send(p *Process, to *Thread, info *linux.Siginfo) (overrun int32, pending bool) {
	var after notice
	p.mu.Lock()
	if s.queued {
		id, more := info.Timer()
		_, n := s.entry.info.Timer()
		sum := int32(min(int64(n)+int64(more)+1, math.MaxInt32))
		s.entry.info.SetTimer(id, sum, s.entry.info.Value())
		p.mu.Unlock()
		return sum, true
	}
	if !s.ended {
		p.queueLocked(to, info, s, &after)
	}
	p.mu.Unlock()
	after.deliver()
	return 0, false
}

// End is told that the timer is gone. A signal that is queued stays, and is
// charged until it is taken.
func (s *TimerSignal) End(p *Process) {
	p.mu.Lock()
	s.ended = true
	free := !s.queued
	p.mu.Unlock()
	if free && s.entry.user != nil {
		s.entry.user.ReleaseSignal()
	}
}

// taken is told that the signal has left its queue; called with Process.mu held.
func (s *TimerSignal) taken() {
	s.queued = false
	if s.ended && s.entry.user != nil {
		s.entry.user.ReleaseSignal()
	}
}
