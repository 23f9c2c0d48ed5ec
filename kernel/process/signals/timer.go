package signals

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

// TimerDelay is how long a timer is let be that finds its last signal pending, or
// ignored: the longer, the more timers, signals and threads the user has. So a user's
// timers together take no more of the machine than a few, whatever their periods.
func TimerDelay(u *accounts.User) time.Duration {
	const delay, few = 10 * time.Millisecond, 32
	if u == nil {
		return delay // a process of a test
	}
	return delay * time.Duration(1+(u.Signals.Load()+u.Threads.Load())/few)
}

// Timer is the signal of a POSIX timer: there is one in a queue at most. Its place is
// charged to the user when the timer is made, so that a timer's signal always finds room.
type Timer struct {
	// Catch returns the timer's expirations that nobody counted, up to now, and lets it
	// go on. Set before the first signal is sent, immutable then. It takes the timer's
	// lock, under which a timer of CPU time takes the process's: it is called without that.
	Catch func() uint64

	// Counting is held while expirations go from the timer to the queue, so that who
	// takes the signal meanwhile gets them too. It comes before the timer's lock.
	Counting sync.Mutex

	mu      *sync.Mutex  // the process's; immutable
	overrun atomic.Int32 // what the signal that was taken last stood for beside its own

	entry  entry  // its user is immutable
	queued bool   // entry is in a queue; guarded by mu
	ended  bool   // the timer is gone; guarded by mu
	taking bool   // TakenTimer was, Settle was not yet; guarded by mu
	late   uint64 // expirations that came between the two; guarded by mu
}

// NewTimer makes a timer's signal in a process whose lock is mu and charges it to u;
// EAGAIN if u has as many as limit.
func NewTimer(mu *sync.Mutex, u *accounts.User, limit uint64) (*Timer, linux.Errno) {
	s := &Timer{mu: mu}
	s.entry.timer = s
	if u == nil {
		return s, 0 // a process of a test
	}
	if !u.ChargeSignal(limit) {
		return nil, linux.EAGAIN
	}
	s.entry.user = u
	return s, 0
}

// Delay is how long the signal's timer is let be.
func (s *Timer) Delay() time.Duration { return TimerDelay(s.entry.user) }

// Merge adds the expirations of info to those of a signal that is pending still or just
// being taken; false if there is none. Called with the process's lock held.
func (s *Timer) Merge(info *linux.Siginfo) bool {
	_, more := info.Timer()
	switch n := uint64(more) + 1; {
	case s.taking:
		s.late += n
	case s.queued:
		addOverrun(&s.entry.info, n)
	default:
		return false
	}
	return true
}

// Queued reports that the signal is in a queue; called with the process's lock held.
func (s *Timer) Queued() bool { return s.queued }

// Ended reports that the timer is gone; called with the process's lock held.
func (s *Timer) Ended() bool { return s.ended }

func addOverrun(info *linux.Siginfo, more uint64) {
	id, n := info.Timer()
	info.SetTimer(id, int32(min(uint64(n)+more, math.MaxInt32)), info.Value())
}

// Overrun is timer_getoverrun.
func (s *Timer) Overrun() int32 { return s.overrun.Load() }

// Reset forgets what was counted: the timer is set again.
func (s *Timer) Reset() {
	s.mu.Lock()
	if s.queued {
		id, _ := s.entry.info.Timer()
		s.entry.info.SetTimer(id, 0, s.entry.info.Value())
	}
	s.late = 0
	s.mu.Unlock()
	s.overrun.Store(0)
}

// Settle counts what expired while the signal was queued, for whoever has taken it. It is
// called without the process's lock.
func (s *Timer) Settle(info *linux.Siginfo) {
	s.Counting.Lock()
	n := s.Catch()
	s.mu.Lock()
	n += s.late
	s.late, s.taking = 0, false
	s.mu.Unlock()
	s.Counting.Unlock()
	addOverrun(info, n)
	_, over := info.Timer()
	s.overrun.Store(over)
}

// TakenTimer returns the timer whose signal was just taken out of one of two queues, for
// Settle; nil if it was no timer's. Called with the process's lock held.
func TakenTimer(info *linux.Siginfo, own, shared *Queue) *Timer {
	if info.Code != linux.SI_TIMER {
		return nil
	}
	s := cmp.Or(own.timer, shared.timer)
	own.timer, shared.timer = nil, nil
	if s != nil {
		s.taking = true
	}
	return s
}

// End is told that the timer is gone. A signal that is queued stays, and is
// charged until it is taken.
func (s *Timer) End() {
	s.mu.Lock()
	s.ended = true
	free := !s.queued
	s.mu.Unlock()
	if free && s.entry.user != nil {
		s.entry.user.ReleaseSignal()
	}
}

// taken is told that the signal has left its queue; called with the process's lock held.
func (s *Timer) taken() {
	s.queued = false
	if s.ended && s.entry.user != nil {
		s.entry.user.ReleaseSignal()
	}
}
