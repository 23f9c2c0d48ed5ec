package ipc

import (
	"sync/atomic"

	"hardtack/abi/linux"
)

// Cancel ends whatever the thread waits for, with ERESTARTSYS: the operation can be
// done again as if it had not begun. The wait for a reply, which cannot, ends with
// EINTR. If the thread is not blocked the answer is EAGAIN.
func (n *Nucleus) Cancel(core uint32, id ID) (Effects, Errno) {
	in := n.control.enter(core)
	_, i, err := n.threadOf(id)
	var fx Effects
	if err == 0 {
		err = linux.EAGAIN
		if ok, ipi := n.interrupt(core, i, 0, Forever); ok {
			err, fx.IPI = 0, ipi
		}
	}
	fx.Run = n.running(core)
	n.control.leave(core, in)
	return fx, err
}

// interrupt ends what a thread waits for, if it is blocked and its deadline is not
// after now (Forever: whatever its deadline), and tells whether it did. It does so with
// an error; 0: that of a cancelled wait.
//
// The object's lock comes before the thread's, but only the thread says which
// object: it is asked first, and again under both locks. Another turn means that
// the thread has gone on in between. (Either lock keeps the thread as it is: that of
// the object while it is in the queue, its own while it waits for a reply.)
func (n *Nucleus) interrupt(by uint32, i uint16, e Errno, now uint64) (did bool, ipi uint64) {
	t := n.thread(i)
	for {
		t.lock.acquire()
		where := load(&t.where)
		t.lock.release()
		o := n.waitsAt(where)
		state := &states[where.state()%State(len(states))]
		if !state.blocked {
			return false, 0
		}
		if o != nil {
			o.lock.acquire()
		}
		t.lock.acquire()
		same := load(&t.where) == where
		if did = same && t.due(now); did {
			if o != nil {
				n.remove(&o.queue, i)
			}
			if e == 0 {
				e = state.cancelled
			}
			unblock(t, Result{Err: e})
		}
		t.lock.release()
		if o != nil {
			o.lock.release()
		}
		if !same {
			continue
		}
		if did {
			ipi = n.wake(by, i)
		}
		return did, ipi
	}
}

func (t *Thread) due(now uint64) bool { return now == Forever || t.deadline != 0 && t.deadline <= now }

// setTimer gives a thread of the core, locked, a deadline. A thread stays in the
// list when it is woken early: Tick, or its next deadline, finds it there.
func (n *Nucleus) setTimer(core uint32, i uint16, deadline uint64) {
	c, t := n.core(core), n.thread(i)
	t.deadline = deadline
	c.earliest = min(c.earliest, deadline)
	if t.hasTimer {
		return
	}
	t.hasTimer = true
	t.timed.next, t.timed.prev = c.timers, 0
	if c.timers != 0 {
		n.thread(c.timers).timed.prev = i
	}
	c.timers = i
}

func (n *Nucleus) removeTimer(core uint32, i uint16) {
	c, t := n.core(core), n.thread(i)
	if t.timed.prev != 0 {
		n.thread(t.timed.prev).timed.next = t.timed.next
	} else {
		c.timers = t.timed.next
	}
	if t.timed.next != 0 {
		n.thread(t.timed.next).timed.prev = t.timed.prev
	}
	t.hasTimer, t.timed.next, t.timed.prev = false, 0, 0
}

// Tick ends what threads of the core wait for until now or before, with ETIMEDOUT.
func (n *Nucleus) Tick(core uint32, now uint64) Effects {
	in := n.control.enter(core)
	var fx Effects
	c := n.core(core)
	if now >= c.earliest {
		c.earliest = Forever
		for i := c.timers; i != 0; {
			t := n.thread(i)
			next := t.timed.next
			if did, ipi := n.interrupt(core, i, linux.ETIMEDOUT, now); did {
				fx.IPI |= ipi
			}
			// Whoever wakes the thread meanwhile makes it 0; its next one this core gives it.
			deadline := atomic.LoadUint64(&t.deadline)
			if deadline == 0 {
				n.removeTimer(core, i)
			} else {
				c.earliest = min(c.earliest, deadline)
			}
			i = next
		}
	}
	fx.Run = n.running(core)
	n.control.leave(core, in)
	return fx
}

// NextDeadline is a time before which Tick has nothing to do; Forever if there is
// no deadline.
func (n *Nucleus) NextDeadline(core uint32) uint64 { return n.core(core).earliest }
