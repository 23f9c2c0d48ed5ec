package ipc

import "hardtack/abi/linux"

// Signal sets bits of a notification, and gives all that are set to the thread that
// has waited longest, if one waits. It is for interrupts too: the core may be idle.
func (n *Nucleus) Signal(core uint32, note ID, bits uint64) (Effects, Errno) {
	in := n.control.enter(core)
	fx, err := n.signal(core, note, bits)
	n.control.leave(core, in)
	return fx, err
}

func (n *Nucleus) signal(core uint32, note ID, bits uint64) (Effects, Errno) {
	o, _, err := n.notification(note)
	if err == 0 && bits == 0 {
		err = linux.EINVAL
	}
	if err != 0 {
		return Effects{Run: n.running(core)}, err
	}
	var fx Effects
	o.lock.acquire()
	o.bits |= bits
	w := o.queue.head
	if w != 0 {
		n.remove(&o.queue, w)
		unblock(n.thread(w), Result{Badge: o.bits})
		o.bits = 0
	}
	o.lock.release()
	if w != 0 {
		fx.IPI = n.wake(core, w)
	}
	fx.Run = n.running(core)
	return fx, 0
}

// Wait takes the bits that are set, in the Result's Badge, or waits until some are.
func (n *Nucleus) Wait(core uint32, note ID, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.wait(core, note, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) wait(core uint32, note ID, deadline uint64) Effects {
	self := uint16(n.core(core).current)
	o, index, err := n.notification(note)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0:
		return n.fail(core, self, err)
	}
	t := n.thread(self)
	o.lock.acquire()
	if o.bits != 0 {
		t.result = Result{Badge: o.bits}
		o.bits = 0
		o.lock.release()
		return Effects{Run: uint32(self)}
	}
	if deadline == Now {
		o.lock.release()
		return n.fail(core, self, linux.EAGAIN)
	}
	n.push(&o.queue, self)
	n.block(core, self, Waiting, index, deadline)
	o.lock.release()
	return Effects{Run: n.schedule(core)}
}
