package proc

import (
	"math"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// timerDelay is how long a timer is let be that finds its last signal pending, or
// ignored: the longer, the more timers, signals and threads the user has. So a user's
// timers together take no more of the machine than a few, whatever their periods.
func timerDelay(u *kern.User) time.Duration {
	const delay, few = 10 * time.Millisecond, 32
	if u == nil {
		return delay // a process of a test
	}
	return delay * time.Duration(1+(u.Signals.Load()+u.Threads.Load())/few)
}

// Delay is how long the signal's timer is let be.
func (s *TimerSignal) Delay() time.Duration { return timerDelay(s.entry.user) }

// TimerSignal is the signal of a POSIX timer: there is one in a queue at most. Its
// place is charged to the user when the timer is made, so that a timer's signal
// always finds room.
type TimerSignal struct {
	// Timer counts the expirations, unless its time is a process's: that is not to be
	// had with Process.mu held, and whoever calls Send counts. Set before the first Send.
	Timer interface {
		Take() uint64
		TakeOnly() uint64
	}

	entry  queued // its user is immutable
	queued bool   // entry is in a queue; guarded by Process.mu
	ended  bool   // the timer is gone; guarded by Process.mu

	overrun atomic.Int32 // of the signal that was taken last; written under Process.mu
}

// Overrun returns how many expirations the signal that was taken last stood for beside
// its own (timer_getoverrun).
func (s *TimerSignal) Overrun() int32 { return s.overrun.Load() }

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

// Send queues the signal of n expirations for a thread or (nil) the process; if Timer is
// set that one says how many. If the signal is queued still, they go to its overrun count.
// It returns how many there were, and whether the signal was queued: it is not if it is
// pending still, by another timer, or ignored.
func (s *TimerSignal) Send(p *Process, to *Thread, info *linux.Siginfo, n uint64) (count uint64, sent bool) {
	var after notice
	p.mu.Lock()
	if s.Timer != nil {
		n = s.Timer.TakeOnly()
	}
	switch {
	case n == 0: // whoever took the signal has counted
	case s.queued:
		addOverrun(&s.entry.info, n)
	case !s.ended:
		addOverrun(info, n-1)
		p.queueLocked(to, info, s, &after)
		sent = s.queued
	}
	p.mu.Unlock()
	after.deliver()
	return n, sent
}

func addOverrun(info *linux.Siginfo, more uint64) {
	id, n := info.Timer()
	info.SetTimer(id, int32(min(uint64(n)+more, math.MaxInt32)), info.Value())
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

// recount brings the count up to the time at which the signal is taken; called with
// Process.mu held.
func (s *TimerSignal) recount(info *linux.Siginfo) {
	if s.Timer != nil && !s.ended {
		addOverrun(info, s.Timer.Take())
	}
	_, n := info.Timer()
	s.overrun.Store(n)
}

// taken is told that the signal has left its queue; called with Process.mu held.
func (s *TimerSignal) taken() {
	s.queued = false
	if s.ended && s.entry.user != nil {
		s.entry.user.ReleaseSignal()
	}
}
