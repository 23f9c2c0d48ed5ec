package proc

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

// timerDelay is how long a timer is let be that finds its last signal pending, or
// ignored: the longer, the more timers, signals and threads the user has. So a user's
// timers together take no more of the machine than a few, whatever their periods.
func timerDelay(u *accounts.User) time.Duration {
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
	// Catch returns the timer's expirations that nobody counted, up to now, and lets it
	// go on. Set before the first Send, immutable then. It takes the timer's lock, under
	// which a timer of CPU time takes Process.mu: it is called without that.
	Catch func() uint64

	// Counting is held while expirations go from the timer to the queue, so that who
	// takes the signal meanwhile gets them too. It comes before the timer's lock.
	Counting sync.Mutex

	overrun atomic.Int32 // what the signal that was taken last stood for beside its own

	entry  queued // its user is immutable
	queued bool   // entry is in a queue; guarded by Process.mu
	ended  bool   // the timer is gone; guarded by Process.mu
	taking bool   // takenTimer was, settle was not yet; guarded by Process.mu
	late   uint64 // expirations that Send was given between the two; guarded by Process.mu
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
// the timer's expirations go to its overrun count. It reports whether the signal was
// queued: it is not if it is pending still, or just being taken, or ignored. Called with
// Counting held.
func (s *TimerSignal) Send(p *Process, to *Thread, info *linux.Siginfo) (sent bool) {
	var after notice
	p.mu.Lock()
	if _, more := info.Timer(); s.taking || s.queued {
		if n := uint64(more) + 1; s.taking {
			s.late += n
		} else {
			addOverrun(&s.entry.info, n)
		}
		p.mu.Unlock()
		return false
	}
	if !s.ended {
		p.queueLocked(to, info, s, &after)
	}
	sent = s.queued
	p.mu.Unlock()
	after.deliver()
	return sent
}

func addOverrun(info *linux.Siginfo, more uint64) {
	id, n := info.Timer()
	info.SetTimer(id, int32(min(uint64(n)+more, math.MaxInt32)), info.Value())
}

// Overrun is timer_getoverrun.
func (s *TimerSignal) Overrun() int32 { return s.overrun.Load() }

// Reset forgets what was counted: the timer is set again.
func (s *TimerSignal) Reset(p *Process) {
	p.mu.Lock()
	if s.queued {
		id, _ := s.entry.info.Timer()
		s.entry.info.SetTimer(id, 0, s.entry.info.Value())
	}
	s.late = 0
	p.mu.Unlock()
	s.overrun.Store(0)
}

// settle counts what expired while the signal was queued, for whoever has taken it. It is
// called without Process.mu.
func (s *TimerSignal) settle(p *Process, info *linux.Siginfo) {
	s.Counting.Lock()
	n := s.Catch()
	p.mu.Lock()
	n += s.late
	s.late, s.taking = 0, false
	p.mu.Unlock()
	s.Counting.Unlock()
	addOverrun(info, n)
	_, over := info.Timer()
	s.overrun.Store(over)
}

// takenTimer returns the timer whose signal was just taken, for settle; nil if it was
// another's. Called with Process.mu held.
func (t *Thread) takenTimer(info *linux.Siginfo) *TimerSignal {
	if info.Code != linux.SI_TIMER {
		return nil
	}
	own, shared := &t.sig.pending.timer, &t.Proc.sig.pending.timer
	s := cmp.Or(*own, *shared)
	*own, *shared = nil, nil
	if s != nil {
		s.taking = true
	}
	return s
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
