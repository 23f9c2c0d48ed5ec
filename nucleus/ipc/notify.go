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
	if w := n.set(o, bits); w != 0 {
		fx.IPI = n.wake(core, w)
	}
	fx.Run = n.running(core)
	return fx, 0
}

// set sets bits. The result is the thread that got them, which is ready and in no
// queue, or 0.
func (n *Nucleus) set(o *notification, bits uint64) (woken uint16) {
	o.lock.acquire()
	o.bits |= bits
	if woken = o.queue.head; woken != 0 {
		n.remove(&o.queue, woken)
		unblock(n.thread(woken), Result{Badge: o.bits})
		o.bits = 0
	}
	o.lock.release()
	return woken
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
	blocks, err := n.await(core, self, o, index, deadline)
	switch {
	case err != 0:
		return n.fail(core, self, err)
	case blocks:
		return Effects{Run: n.schedule(core)}
	}
	return Effects{Run: uint32(self)}
}

// await takes the bits that are set for the core's current thread, or has it wait.
func (n *Nucleus) await(core uint32, self uint16, o *notification, index uint16, deadline uint64) (blocks bool, e Errno) {
	o.lock.acquire()
	switch {
	case o.bits != 0:
		n.thread(self).result = Result{Badge: o.bits}
		o.bits = 0
	case deadline == Now:
		e = linux.EAGAIN
	default:
		blocks = true
		n.push(&o.queue, self)
		n.block(core, self, Waiting, index, deadline)
	}
	o.lock.release()
	return blocks, e
}

// SignalWait is Signal of one notification, and Wait for another. If the current
// thread has to wait and a thread of this core got the bits, that one runs at once. If
// it is not to wait, the bits are set all the same.
func (n *Nucleus) SignalWait(core uint32, to ID, bits uint64, note ID, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.signalWait(core, to, bits, note, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) signalWait(core uint32, to ID, bits uint64, note ID, deadline uint64) (fx Effects) {
	self := uint16(n.core(core).current)
	peer, _, err := n.notification(to)
	o, index, err2 := n.notification(note)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0 || err2 != 0:
		return n.fail(core, self, linux.EBADF)
	case bits == 0:
		return n.fail(core, self, linux.EINVAL)
	}
	woken := n.set(peer, bits)
	blocks, err := n.await(core, self, o, index, deadline)
	if woken != 0 {
		if blocks && n.here(core, n.thread(woken)) {
			return n.switchTo(core, woken)
		}
		fx.IPI = n.wake(core, woken)
	}
	switch {
	case err != 0:
		n.thread(self).result = Result{Err: err}
	case blocks:
		fx.Run = n.schedule(core)
		return fx
	}
	fx.Run = uint32(self)
	return fx
}
