package ipc

import (
	"sync/atomic"

	"hardtack/abi/linux"
)

// Time limits of loose threads. A core's list of deadlines is not for threads that
// belong to no core. So a thread only writes down its deadline, before it waits, and
// compares it with one word of all, earliest: if its own is not earlier nobody need be
// told. Whoever is told calls Expire then, which looks at all threads. Mostly limits
// are as long as the last one was, each a little later than earliest, and Expire runs
// once in the time of a limit.
//
//	a thread   deadline = d; then look at earliest; wait
//	Expire     earliest = Forever; then look at all deadlines; lower earliest
//
// Each writes before it looks, with an instruction that is a fence. So either Expire
// sees the deadline, or the thread sees Forever and tells again. No blocked thread has a
// deadline before earliest but while Expire or a thread is about to lower it, and a
// time that somebody was told of and that has gone by is told once more.
//
// A deadline is 0 unless the thread waits or is about to: who ends the wait clears it.

// Limit says until when the operation waits that a loose thread, ready and in no queue,
// does next: not Now, and not Forever. It reports whether somebody is to be told of
// Earliest.
func (n *Nucleus) Limit(i uint32, deadline uint64) (tell bool) {
	atomic.StoreUint64(&n.threads[i%MaxThreads].deadline, deadline) // also a fence
	return deadline < n.Earliest() && n.lower(deadline)
}

// Unlimit ends Limit when the operation did not wait.
func (n *Nucleus) Unlimit(i uint32) { atomic.StoreUint64(&n.threads[i%MaxThreads].deadline, 0) }

// Earliest is a time before which Expire has nothing to do; Forever: there is no
// deadline.
func (n *Nucleus) Earliest() uint64 { return atomic.LoadUint64(&n.earliest) }

// lower makes earliest a deadline if that is before, and reports whether it was.
func (n *Nucleus) lower(deadline uint64) bool {
	for {
		old := n.Earliest()
		if old <= deadline {
			return false
		}
		if atomic.CompareAndSwapUint64(&n.earliest, old, deadline) {
			return true
		}
	}
}

// expirePart is how many threads Expire looks at in one call.
const expirePart = 64

// Expire ends what loose threads wait for until now or before, with ETIMEDOUT. It is
// called with 0 first, then with what it returned until that is 0; then somebody is to
// be told of Earliest. A thread that is about to wait keeps its deadline, and may be
// the reason that Earliest is not after now.
func (n *Nucleus) Expire(core, first uint32, now uint64) (next uint32) {
	if first == 0 {
		atomic.StoreUint64(&n.earliest, Forever) // also a fence
	}
	least := uint64(Forever)
	in := n.control.enter(core)
	for next = first; next < min(first+expirePart, n.used); next++ {
		i := next
		t := &n.threads[i%MaxThreads]
		d := t.limit()
		if d != 0 && d <= now {
			n.interrupt(core, uint16(i), linux.ETIMEDOUT, now)
			d = t.limit()
		}
		if d != 0 {
			least = min(least, d)
		}
	}
	if next >= n.used {
		next = 0 // a thread made later looks at earliest later
	}
	n.control.leave(core, in)
	n.lower(least)
	return next
}

func (t *Thread) limit() uint64 {
	t.lock.acquire()
	d := atomic.LoadUint64(&t.deadline) // the thread itself writes it without the lock
	t.lock.release()
	return d
}
