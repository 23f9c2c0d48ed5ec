package ktime

import (
	"sync"
	"time"

	"hardtack/kernel/base/clocks"
)

// Clock is what a timer runs on.
type Clock struct {
	// Now reads the clock; nil for Realtime and Monotonic.
	Now func() int64
	// ID is the clock's number.
	ID int32
}

// Timer is a one-shot or periodic timer on a clock. Expirations are counted
// from the clock when somebody asks, so a period shorter than the machine can
// follow costs nothing; the call-back comes at the first one after Set or Take.
type Timer struct {
	clock Clock  // immutable
	fire  func() // called for an expiration; immutable
	// reset is called when CLOCK_REALTIME was set under an absolute timer; may
	// be nil; immutable.
	reset func()

	mu       sync.Mutex
	next     int64       // when it expires next, on its clock; 0 = disarmed; guarded by mu
	interval int64       // guarded by mu
	count    uint64      // expirations not yet taken; guarded by mu
	absolute bool        // next was given as a time of a settable clock; guarded by mu
	gen      uint64      // an alarm of an older generation is void; guarded by mu
	ended    bool        // it is never armed again; guarded by mu
	alarm    *time.Timer // made when first armed; guarded by mu
}

// Init makes t a disarmed timer. fire is called in a goroutine of its own.
func (t *Timer) Init(c Clock, fire, reset func()) { t.clock, t.fire, t.reset = c, fire, reset }

// ClockID returns the number of the timer's clock.
func (t *Timer) ClockID() int32 { return t.clock.ID }

// now reads the clock that next is a time of: for a time given relative to
// CLOCK_REALTIME that is a clock that nobody sets. Called with mu held.
func (t *Timer) now() int64 {
	switch {
	case t.clock.Now != nil:
		return t.clock.Now()
	case t.absolute:
		now, _ := Wall(t.clock.ID)
		return now
	}
	return clocks.Monotonic()
}

// Setting is a timer's time until (or of) the next expiration and period.
type Setting struct{ Value, Interval int64 }

// Set arms the timer, or disarms it with Value 0, and returns what it was set
// to. With absolute, Value is a time of the clock. A timer that has ended stays so.
func (t *Timer) Set(s Setting, absolute bool) Setting {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return Setting{}
	}
	old := t.left(t.now())
	t.next, t.interval, t.count = 0, s.Interval, 0
	t.absolute = absolute && s.Value != 0 && settable(t.clock.ID)
	now := t.now()
	if s.Value != 0 {
		if t.next = s.Value; !absolute {
			if t.next = now + s.Value; t.next < 0 {
				t.next = 1<<63 - 1
			}
		}
	}
	if t.absolute {
		addReal(t)
	} else {
		removeReal(t)
	}
	t.rearm(now)
	return old
}

// Get returns the time until the next expiration and the period.
func (t *Timer) Get() Setting {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left(t.now())
}

// left is Get at a time; called with mu held.
func (t *Timer) left(now int64) Setting {
	t.advance(now)
	s := Setting{Interval: t.interval}
	if t.next != 0 {
		s.Value = max(t.next-now, 1)
	}
	return s
}

// advance counts the expirations up to now; called with mu held.
func (t *Timer) advance(now int64) {
	if t.next == 0 || now < t.next {
		return
	}
	if t.interval <= 0 {
		t.count++
		t.next = 0
		return
	}
	n := uint64(now-t.next)/uint64(t.interval) + 1
	t.count += n
	if t.next += int64(n) * t.interval; t.next < 0 {
		t.next = 1<<63 - 1
	}
}

// Expired returns how many expirations nobody has taken.
func (t *Timer) Expired() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(t.now())
	return t.count
}

// SetCount makes the expirations that Take returns next n.
func (t *Timer) SetCount(n uint64) {
	t.mu.Lock()
	t.advance(t.now())
	t.count = n
	t.mu.Unlock()
}

// Take returns the expirations since the last Take and waits for the next.
func (t *Timer) Take() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	n := t.takeLocked(now)
	if n > 0 {
		t.rearm(now)
	}
	return n
}

func (t *Timer) takeLocked(now int64) uint64 {
	t.advance(now)
	n := t.count
	t.count = 0
	return n
}

// TakeOnly returns the expirations since the last Take. The next call-back comes after
// Resume: call-backs that each take long do not pile up.
func (t *Timer) TakeOnly() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takeLocked(t.now())
}

// Catch returns the expirations since the last Take, and waits for the next without
// the delay that Resume may have been given.
func (t *Timer) Catch() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	n := t.takeLocked(now)
	t.rearm(now)
	return n
}

// Resume waits for the next expiration, for at least d. No expiration is lost, they
// are counted from the clock.
func (t *Timer) Resume(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setAlarm(max(t.delay(t.now()), d))
}

// Stop ends the timer for good: who found it before may still set it. A call-back may
// still be under way.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.next, t.count = 0, 0
	removeReal(t)
	t.rearm(0)
}

// minDelay keeps a short period from taking the machine.
const minDelay = 50 * time.Microsecond

// rearm sets the alarm for the next expiration; called with mu held.
func (t *Timer) rearm(now int64) { t.setAlarm(t.delay(now)) }

// delay is how long the alarm may wait; called with mu held.
func (t *Timer) delay(now int64) time.Duration {
	d := time.Duration(max(t.next-now, 0))
	switch {
	case t.clock.Now != nil:
		// A CPU-time clock runs as fast as its process has CPUs: look again
		// when it can have got there, but let an idle process be.
		return max(d/cpuSpeed, time.Millisecond)
	case t.absolute:
		if d = time.Duration(clocks.Until(int64(d))); t.interval > 0 {
			d = max(d, minDelay)
		}
		return d
	case t.interval > 0:
		return max(d, minDelay)
	}
	return d
}

// setAlarm replaces the alarm; called with mu held.
func (t *Timer) setAlarm(d time.Duration) {
	t.gen++
	if t.alarm != nil {
		t.alarm.Stop()
	}
	if t.next != 0 {
		gen := t.gen
		t.alarm = time.AfterFunc(d, func() { t.ring(gen) })
	}
}

// cpuSpeed is how much faster than time a CPU-time clock is assumed to run.
const cpuSpeed = 2

// ring is the alarm.
func (t *Timer) ring(gen uint64) {
	t.mu.Lock()
	if gen != t.gen {
		t.mu.Unlock()
		return
	}
	now := t.now()
	t.advance(now)
	if t.count == 0 {
		t.rearm(now) // early
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.fire()
}

// clockSet is told that CLOCK_REALTIME jumped, or runs faster or slower now.
func (t *Timer) clockSet(jumped bool) {
	t.mu.Lock()
	if t.absolute && t.next != 0 {
		t.rearm(t.now())
	}
	t.mu.Unlock()
	if jumped && t.reset != nil {
		t.reset()
	}
}

// Absolute timers on CLOCK_REALTIME are registered, for SetRealtime.
var (
	realMu sync.Mutex
	reals  = map[*Timer]struct{}{} // guarded by realMu
)

func addReal(t *Timer) {
	realMu.Lock()
	reals[t] = struct{}{}
	realMu.Unlock()
}

func removeReal(t *Timer) {
	if !settable(t.clock.ID) {
		return
	}
	realMu.Lock()
	delete(reals, t)
	realMu.Unlock()
}

func realTimers() []*Timer {
	realMu.Lock()
	defer realMu.Unlock()
	out := make([]*Timer, 0, len(reals))
	for t := range reals {
		out = append(out, t)
	}
	return out
}
