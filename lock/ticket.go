package lock

import (
	"sync/atomic"

	"hardtack/lock/core"
)

// Ticket is a lock of two counters: who comes first gets it first. All waiters
// look at one cache line, so that a release costs more the more there are; for more
// than a few, CLH is better. The zero value is unlocked.
//
// It is never for more runnable threads than cores: whose turn it is may not be
// running, and nobody can pass it. Use sync.Mutex or Elided there.
//
// State. next is the number that the next to come draws, serving the number that
// may enter; the lock is free when they are equal. serving is written only by the
// holder, so next - serving, modulo 2^32, is the holder and those who wait, and
// serving never passes next.
//
// Order. Drawing is a locked instruction; the load of serving that equals one's
// number sees the release store of the holder before. TryLock draws with a
// compare-and-swap from the value of serving that it read before: if next still
// has it, serving, which is between, has it too, and the lock was free at the
// exchange. (2^32 acquisitions within one TryLock would deceive it.)
//
// Reed, Kanodia, Synchronization with eventcounts and sequencers, 1979;
// Mellor-Crummey, Scott, Algorithms for scalable synchronization, 1991, 2.2, which
// has the wait in proportion to the number of those before.
type Ticket struct {
	Checker
	next    uint32
	serving uint32
}

// Lock waits until all that came before have unlocked.
func (l *Ticket) Lock() {
	l.before()
	t := atomic.AddUint32(&l.next, 1) - 1
	for i := uint32(0); ; i++ {
		s := atomic.LoadUint32(&l.serving)
		if s == t {
			break
		}
		if i < spins {
			core.Pause(min(t-s, 8))
		} else {
			relax(i)
		}
	}
	l.acquired()
}

// TryLock locks if nobody has the lock or waits for it, and tells whether it did.
func (l *Ticket) TryLock() bool {
	s := atomic.LoadUint32(&l.serving)
	if !atomic.CompareAndSwapUint32(&l.next, s, s+1) {
		return false
	}
	l.acquired()
	return true
}

// Unlock lets the next enter. It panics if nobody has the lock.
func (l *Ticket) Unlock() {
	l.released()
	s := l.serving // ours to write
	if atomic.LoadUint32(&l.next) == s {
		panic("lock: Unlock of a Ticket lock that is not locked")
	}
	StoreRelease32(&l.serving, s+1)
}
