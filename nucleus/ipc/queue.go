package ipc

// A thread is in at most one queue: its core's run queue while it is ready and not
// current, or that of the object it is blocked on.

func (n *Nucleus) push(q *queue, i uint16) {
	t := n.thread(i)
	t.link.next, t.link.prev = 0, q.tail
	if q.tail != 0 {
		n.thread(q.tail).link.next = i
	} else {
		q.head = i
	}
	q.tail = i
}

func (n *Nucleus) remove(q *queue, i uint16) {
	t := n.thread(i)
	if t.link.prev != 0 {
		n.thread(t.link.prev).link.next = t.link.next
	} else {
		q.head = t.link.next
	}
	if t.link.next != 0 {
		n.thread(t.link.next).link.prev = t.link.prev
	} else {
		q.tail = t.link.prev
	}
	t.link.next, t.link.prev = 0, 0
}

// wake puts a thread that is ready into its core's run queue, and gives the cores
// that want an interrupt for that: its core if it idles, unless it is the core that
// wakes it, which looks itself.
func (n *Nucleus) wake(by uint32, i uint16) (ipi uint64) {
	t := n.thread(i)
	n.here(by, t)
	core := uint32(t.core)
	c := n.core(core)
	c.lock.acquire()
	n.push(&c.run, i)
	if c.idle && core != by {
		c.idle = false
		ipi = 1 << core
	}
	c.lock.release()
	return ipi
}

// schedule makes the first of the core's run queue its current thread.
func (n *Nucleus) schedule(core uint32) uint32 {
	c := n.core(core)
	c.lock.acquire()
	i := c.run.head
	if i != 0 {
		n.remove(&c.run, i)
	}
	c.idle = i == 0
	c.lock.release()
	c.current = uint32(i)
	return uint32(i)
}

// Yield puts the core's current thread behind the others that are ready. An idle
// core looks for something to run: what it does after an interrupt.
func (n *Nucleus) Yield(core uint32) Effects {
	in := n.control.enter(core)
	if i := uint16(n.core(core).current); i != 0 {
		n.wake(core, i)
	}
	fx := Effects{Run: n.schedule(core)}
	n.control.leave(core, in)
	return fx
}
