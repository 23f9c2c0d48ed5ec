// Package wait lets kernel code block, and announce that something became ready.
//
// A Sleeper is one thread's ability to block; a Queue belongs to an object (pipe, socket,
// terminal …) and holds an Entry for every listener: a blocked thread, an epoll instance.
// Nothing here allocates.
//
// The pattern of a blocking operation, where c is the calling thread:
//
//	q.Add(&c.Entry, c, wait.In)
//	defer q.Remove(&c.Entry)
//	for {
//		c.Arm()
//		if done := try(); done { return … }
//		if r := c.Sleep(deadline); r != wait.Woken { return errno of r }
//	}
//
// Arm comes before the check of the condition, so a wakeup between the check and Sleep is
// never lost.
//
// The condition takes precedence over signals and timeouts. So Sleep reports these only
// on entry: a caller woken by one of them checks its condition once more, and gets the
// reason when it sleeps again.
//
// Lock order: the object's own lock, then Queue.mu, then whatever the
// listeners take (an epoll instance's ready list, another Queue). A listener
// runs under Queue.mu: it must not block, nor add to or remove from that queue.
package wait

import (
	"hardtack/kernel/base/hook"
	"sync"
	"sync/atomic"
)

// Events is a set of readiness events; the bits are those of poll(2) and epoll(7).
type Events uint32

// Readiness events (include/uapi/linux/eventpoll.h).
const (
	In     Events = 0x001
	Pri    Events = 0x002
	Out    Events = 0x004
	Err    Events = 0x008
	Hup    Events = 0x010
	Nval   Events = 0x020
	RdNorm Events = 0x040
	RdBand Events = 0x080
	WrNorm Events = 0x100
	WrBand Events = 0x200
	Msg    Events = 0x400
	RdHup  Events = 0x2000

	// All passes every event to a listener.
	All Events = 0xffffffff
)

// Listener hears of events on the queues that it has entries in.
type Listener interface {
	// NotifyEvent is called under the queue's lock with the events that happened, and
	// reports whether it took an exclusive wakeup.
	NotifyEvent(e *Entry, ev Events) bool
}

// Entry is one listener's place in one queue. The zero Entry is in no queue.
type Entry struct {
	next, prev *Entry   // guarded by the queue's mu
	queue      *Queue   // guarded by the queue's mu; nil when in none
	listener   Listener // immutable while queued
	mask       Events   // immutable while queued
	exclusive  bool     // immutable while queued
}

// Queue is the list of listeners of one object. The zero Queue is empty.
type Queue struct {
	n          atomic.Int32 // entries; read without mu to skip idle queues
	mu         sync.Mutex
	head, tail *Entry // guarded by mu
}

// Add appends a listener that wants to hear of events in mask (Err and Hup are always told).
func (q *Queue) Add(e *Entry, l Listener, mask Events) { q.add(e, l, mask, false) }

// AddExclusive is Add for a listener of which Notify wakes only the first that
// takes the event (accept, EPOLLEXCLUSIVE, futex waiters).
func (q *Queue) AddExclusive(e *Entry, l Listener, mask Events) { q.add(e, l, mask, true) }

func (q *Queue) add(e *Entry, l Listener, mask Events, exclusive bool) {
	q.mu.Lock()
	if e.queue != nil {
		q.mu.Unlock()
		panic("wait: entry is already in a queue")
	}
	e.queue, e.listener, e.mask, e.exclusive = q, l, mask|Err|Hup, exclusive
	e.prev, e.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = e
	} else {
		q.head = e
	}
	q.tail = e
	q.n.Add(1)
	q.mu.Unlock()
}

// Remove takes an entry out; removing one that is in no queue does nothing.
func (q *Queue) Remove(e *Entry) {
	q.mu.Lock()
	if e.queue == q {
		if e.prev != nil {
			e.prev.next = e.next
		} else {
			q.head = e.next
		}
		if e.next != nil {
			e.next.prev = e.prev
		} else {
			q.tail = e.prev
		}
		e.next, e.prev, e.queue = nil, nil, nil
		q.n.Add(-1)
	}
	q.mu.Unlock()
}

// Leave takes the entry out of its queue, if any. Only the owner of the entry may call
// it.
func (e *Entry) Leave() {
	if q := e.queue; q != nil {
		q.Remove(e)
	}
}

// Empty reports whether nobody listens.
func (q *Queue) Empty() bool { return q.n.Load() == 0 }

// Notify tells every listener that wants one of ev, and at most one exclusive one.
// The caller has made the change visible (under its lock or atomically) before.
func (q *Queue) Notify(ev Events) {
	if q.n.Load() == 0 {
		return
	}
	q.mu.Lock()
	taken := false
	for e := q.head; e != nil; {
		next := e.next
		if e.mask&ev != 0 && !(e.exclusive && taken) {
			if e.listener.NotifyEvent(e, ev) && e.exclusive {
				taken = true
			}
		}
		e = next
	}
	q.mu.Unlock()
}

// Result says why Sleep returned.
type Result int

// Results of Sleep.
const (
	Woken       Result = iota // somebody called Wake, or it was spurious: look again
	Interrupted               // a signal was pending when Sleep was called
	TimedOut                  // the deadline had passed when Sleep was called
)

// NoDeadline makes Sleep wait without a time limit.
const NoDeadline int64 = 0

// State word of a Sleeper. Only the owner moves it to armed and parked, anyone moves it
// to woken; whoever finds it parked while doing so must make the goroutine runnable, and
// nobody else may.
const (
	stateWoken  uint32 = iota // running, or about to; the zero value
	stateArmed                // owner is looking at its condition
	stateParked               // owner's goroutine is parked
)

// Tell, if set, is called before the scheduler is told of goroutines that are ready: it
// gives up a processor that is held back for something else.
var Tell hook.Of[func()]

// Sleeper blocks one thread. The methods Arm and Sleep are the owner's alone;
// Wake and Interrupt are anybody's.
type Sleeper struct {
	state       atomic.Uint32
	interrupted atomic.Bool
	g           goroutine // set by the owner before state becomes parked
	timer       timer     // the owner's; made at the first timed sleep, then left set

	// Urgency is the real-time priority of the thread, 0 if it has none.
	Urgency atomic.Int32
	// Woken says that a thread with an urgency was woken after it had slept.
	Woken atomic.Bool
	// Home is set for a thread that may not run on all processors: its place among those
	// that wait for one.
	Home atomic.Pointer[Turn]

	idle, since atomic.Int64 // see Idle; written by the owner
	readied     int64        // when it was woken, in ticks; 0: it was not parked
	delayed     int64        // see Delayed; written by the owner, read by others for an estimate
}

// Arm begins a wait: a Wake from now on ends the next Sleep.
func (s *Sleeper) Arm() { s.state.Store(stateArmed) }

// Wake ends the present or the next Sleep of an armed sleeper.
func (s *Sleeper) Wake() {
	if s.state.Swap(stateWoken) == stateParked {
		s.readied = cputicks()
		u := s.Urgency.Load()
		if u != 0 {
			s.Woken.Store(true)
		}
		if t := s.Home.Load(); t != nil && s.g.readyAt(t) {
			return
		}
		s.g.ready()
		if u != 0 {
			hurry(u)
		}
	}
}

// Retire ends a sleeper's timer, which else keeps it alive until it fires; the
// owner calls it when it will not sleep any more.
func (s *Sleeper) Retire() { s.timer.stop() }

// SetInterrupted says whether a signal is pending that the thread should see.
// Setting it ends a Sleep.
func (s *Sleeper) SetInterrupted(on bool) {
	s.interrupted.Store(on)
	if on {
		s.Wake()
	}
}

// Interrupted reports whether a signal is pending for the thread.
func (s *Sleeper) Interrupted() bool { return s.interrupted.Load() }

// NotifyEvent makes a Sleeper a Listener: any event wakes it.
func (s *Sleeper) NotifyEvent(*Entry, Events) bool {
	s.Wake()
	return true
}

// Sleep blocks until Wake, a signal, or the deadline (monotonic nanoseconds as
// Now counts them; NoDeadline for none). Arm must have been called before the
// condition was looked at. Whatever ends the block, the result is Woken; if the
// deadline has passed or a signal is pending already, Sleep does not block and
// says so, the deadline first.
func (s *Sleeper) Sleep(deadline int64) Result {
	if deadline != NoDeadline {
		if Now() >= deadline {
			return TimedOut
		}
		if s.interrupted.Load() {
			return Interrupted
		}
		s.timer.set(s, deadline)
	} else if s.interrupted.Load() {
		return Interrupted
	}
	s.park()
	return Woken
}

// SleepUninterruptible is Sleep that signals do not end early. (SetInterrupted
// still causes a spurious Woken: callers look at their condition again anyway.)
func (s *Sleeper) SleepUninterruptible(deadline int64) Result {
	if deadline == NoDeadline {
		s.park()
		return Woken
	}
	if Now() >= deadline {
		return TimedOut
	}
	s.timer.set(s, deadline)
	s.park()
	if Now() >= deadline {
		return TimedOut
	}
	return Woken
}
