package core

import "sync/atomic"

// A Ticket is a lock of two counters, first come, first served; see lock.Ticket. Its
// zero value is unlocked. Whoever waits does nothing but PAUSE.
type Ticket struct {
	next    uint32
	serving uint32
}

// Spin waits until all that came before have released the lock.
func (l *Ticket) Spin() {
	if t := atomic.AddUint32(&l.next, 1) - 1; atomic.LoadUint32(&l.serving) != t {
		l.spin(t)
	}
}

func (l *Ticket) spin(t uint32) {
	for i := uint32(0); ; i++ {
		s := atomic.LoadUint32(&l.serving)
		if s == t {
			return
		}
		Pause(min(t-s-1, 8))
		pause(i)
	}
}

// Seize takes the lock if nobody has it or waits for it, and tells whether it did.
// Release ends it, too.
func (l *Ticket) Seize() bool {
	s := atomic.LoadUint32(&l.serving)
	return atomic.CompareAndSwapUint32(&l.next, s, s+1)
}

// AwaitSeize waits until the lock is free and nobody else was quicker: for virtual
// cores, which a hypervisor may stop in a queue (see Queue). If all take it so,
// nobody has a ticket for later.
func (l *Ticket) AwaitSeize() {
	for i := uint32(0); !l.Seize(); i++ {
		pause(i)
	}
}

// Release lets the next enter.
//
//go:noinline
func (l *Ticket) Release() { endRelease32(&l.serving, l.serving+1) }
