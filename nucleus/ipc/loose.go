package ipc

// A kernel that schedules its threads itself, on any core, uses the nucleus for what
// it decides inside one operation. Its threads are loose: each is on the core that
// carries out its operation, and one that is woken becomes ready on the core that
// wakes it. Between operations no thread is current, and those that are ready are in
// no queue: the kernel has them. Of their deadlines file limit.go tells.

// SetLoose makes the threads loose. It comes before all else but Init.
func (n *Nucleus) SetLoose() { n.loose = true }

// here tells whether a thread, locked or just unblocked, is of the core, to which a
// loose one comes.
func (n *Nucleus) here(core uint32, t *Thread) bool {
	if n.loose {
		t.core = uint16(core)
	}
	return uint32(t.core) == core
}

// Enter makes a loose thread, ready and in no queue, current on a core that has no
// current thread.
func (n *Nucleus) Enter(core, i uint32) {
	t := &n.threads[i%MaxThreads]
	t.core = uint16(core)
	n.core(core).current = i
}

// Leave ends Enter: the kernel has the core's current thread, if there is one.
func (n *Nucleus) Leave(core uint32) { n.core(core).current = 0 }

// Take takes the first thread out of a core's run queue; 0: it is empty.
func (n *Nucleus) Take(by, core uint32) uint32 {
	in := n.control.enter(by)
	c := n.core(core)
	c.lock.acquire()
	i := c.run.head
	if i != 0 {
		n.remove(&c.run, i)
	}
	c.lock.release()
	n.control.leave(by, in)
	return uint32(i)
}

// Put puts the core's current thread, if there is one, into its run queue, and tells
// whether anybody is in it.
func (n *Nucleus) Put(core uint32) bool {
	c := n.core(core)
	if c.current == 0 && c.run.head == 0 {
		return false // what others put there meanwhile they look after
	}
	in := n.control.enter(core)
	if i := c.current; i != 0 {
		n.wake(core, uint16(i))
		c.current = 0
	}
	n.control.leave(core, in)
	return true
}

// Waiting tells whether somebody is in the core's run queue. Only the core puts loose
// threads there.
func (n *Nucleus) Waiting(core uint32) bool { return n.core(core).run.head != 0 }

// Blocked tells whether a thread is blocked at this moment.
func (n *Nucleus) Blocked(i uint32) bool {
	return states[load(&n.threads[i%MaxThreads].where).state()%State(len(states))].blocked
}

// Senders tells whether somebody waits to send to an endpoint at this moment.
func (n *Nucleus) Senders(id ID) bool {
	e := &n.endpoints[id.index()%MaxEndpoints]
	return e.is(id) && e.queue.head != 0 && !e.receivers
}

// Bits gives the bits that are set in a notification at this moment.
func (n *Nucleus) Bits(id ID) uint64 {
	o := &n.notifications[id.index()%MaxNotifications]
	if !o.is(id) {
		return 0
	}
	return o.bits
}

// Index is where an ID's object is in its table.
func (id ID) Index() uint32 { return id.index() }
