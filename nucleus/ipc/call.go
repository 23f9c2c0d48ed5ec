package ipc

import "hardtack/abi/linux"

// running is what the core runs after an operation that blocks nobody.
func (n *Nucleus) running(core uint32) uint32 {
	if i := n.core(core).current; i != 0 {
		return i
	}
	return n.schedule(core)
}

// fail ends an operation in its first phase.
func (n *Nucleus) fail(core uint32, self uint16, e Errno) Effects {
	if self != 0 {
		n.thread(self).result = Result{Err: e}
	}
	return Effects{Run: n.running(core)}
}

// Send gives the message in the current thread to the one that has waited longest
// to receive from the endpoint, or waits for one until the deadline. The badge goes
// with it.
func (n *Nucleus) Send(core uint32, ep ID, badge uint64, info Info, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.send(core, ep, badge, info, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) send(core uint32, ep ID, badge uint64, info Info, deadline uint64) Effects {
	self := uint16(n.core(core).current)
	e, index, err := n.endpoint(ep)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0:
		return n.fail(core, self, err)
	case !info.ok():
		return n.fail(core, self, linux.EMSGSIZE)
	}
	t := n.thread(self)
	e.lock.acquire()
	if r := e.queue.head; r != 0 && e.receivers {
		to := n.thread(r)
		n.remove(&e.queue, r)
		deliver(t, to, info)
		unblock(to, Result{Info: info, Badge: badge})
		e.lock.release()
		t.result = Result{}
		return Effects{Run: uint32(self), IPI: n.wake(core, r)}
	}
	if deadline == Now {
		e.lock.release()
		return n.fail(core, self, linux.EAGAIN)
	}
	t.info, t.badge, t.calls = info, badge, false
	e.receivers = false
	n.push(&e.queue, self)
	n.block(core, self, Sending, index, deadline)
	e.lock.release()
	return Effects{Run: n.schedule(core)}
}

// Call is Send, and waits for the reply, all until the deadline. If the receiver
// is a thread of this core it runs at once, without a way through the run queue.
func (n *Nucleus) Call(core uint32, ep ID, badge uint64, info Info, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.call(core, ep, badge, info, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) call(core uint32, ep ID, badge uint64, info Info, deadline uint64) Effects {
	self := uint16(n.core(core).current)
	e, index, err := n.endpoint(ep)
	t := n.thread(self)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0:
		return n.fail(core, self, err)
	case !info.ok():
		return n.fail(core, self, linux.EMSGSIZE)
	case t.Came != 0:
		return n.fail(core, self, linux.EBUSY)
	}
	e.lock.acquire()
	if r := e.queue.head; r != 0 && e.receivers {
		to := n.thread(r)
		n.remove(&e.queue, r)
		deliver(t, to, info)
		t.call++
		unblock(to, Result{Info: info, Badge: badge, Token: token(self, t.call)})
		n.block(core, self, Replying, r, deadline)
		here := n.here(core, to)
		e.lock.release()
		if here {
			return n.switchTo(core, r)
		}
		ipi := n.wake(core, r)
		return Effects{Run: n.schedule(core), IPI: ipi}
	}
	if deadline == Now {
		e.lock.release()
		return n.fail(core, self, linux.EAGAIN)
	}
	t.call++
	t.info, t.badge, t.calls = info, badge, true
	e.receivers = false
	n.push(&e.queue, self)
	n.block(core, self, Sending, index, deadline)
	e.lock.release()
	return Effects{Run: n.schedule(core)}
}

func token(caller uint16, call uint64) Token { return Token(uint64(caller) | call<<16) }

func (t Token) caller() uint16 { return uint16(t) }

func (n *Nucleus) switchTo(core uint32, i uint16) Effects {
	n.core(core).current = uint32(i)
	return Effects{Run: uint32(i)}
}

// Recv takes the message of the one that has waited longest to send to the
// endpoint, or waits for one until the deadline.
func (n *Nucleus) Recv(core uint32, ep ID, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.recv(core, ep, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) recv(core uint32, ep ID, deadline uint64) Effects {
	self := uint16(n.core(core).current)
	e, index, err := n.endpoint(ep)
	t := n.thread(self)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0:
		return n.fail(core, self, err)
	case t.Came != 0:
		return n.fail(core, self, linux.EBUSY)
	}
	e.lock.acquire()
	if s := e.queue.head; s != 0 && !e.receivers {
		woken := n.receiveFrom(e, s, self)
		e.lock.release()
		fx := Effects{Run: uint32(self)}
		if woken {
			fx.IPI = n.wake(core, s)
		}
		return fx
	}
	if deadline == Now {
		e.lock.release()
		return n.fail(core, self, linux.EAGAIN)
	}
	e.receivers = true
	n.push(&e.queue, self)
	n.block(core, self, Receiving, index, deadline)
	e.lock.release()
	return Effects{Run: n.schedule(core)}
}

// receiveFrom takes the first sender out of the queue of the endpoint, which is locked,
// and its message into self, which is current. It tells whether the sender is ready;
// if not, it waits for the reply, and others may end that at once.
func (n *Nucleus) receiveFrom(e *Endpoint, sender, self uint16) (ready bool) {
	from, to := n.thread(sender), n.thread(self)
	n.remove(&e.queue, sender)
	deliver(from, to, from.info)
	to.result = Result{Info: from.info, Badge: from.badge}
	if from.calls {
		to.result.Token = token(sender, from.call)
		from.move(at(Replying, self)) // its deadline stays
		return false
	}
	unblock(from, Result{})
	return true
}

// Reply gives the message in the current thread to the caller whose call the token
// is for. If it waits no longer the result is EPIPE, and descriptors stay here.
func (n *Nucleus) Reply(core uint32, tok Token, info Info) Effects {
	in := n.control.enter(core)
	fx := n.reply(core, tok, info)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) reply(core uint32, tok Token, info Info) Effects {
	self := uint16(n.core(core).current)
	c := tok.caller()
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case c == 0 || c >= MaxThreads:
		return n.fail(core, self, linux.EINVAL)
	case !info.ok():
		return n.fail(core, self, linux.EMSGSIZE)
	}
	t, to := n.thread(self), n.thread(c)
	to.lock.acquire()
	if !to.awaits(self, tok) {
		to.lock.release()
		return n.fail(core, self, linux.EPIPE)
	}
	deliver(t, to, info)
	unblock(to, Result{Info: info})
	to.lock.release()
	t.result = Result{}
	return Effects{Run: uint32(self), IPI: n.wake(core, c)}
}

func (t *Thread) awaits(server uint16, tok Token) bool {
	return load(&t.where) == at(Replying, server) && t.call&(1<<48-1) == uint64(tok)>>16
}

// ReplyRecv is Reply and Recv as one operation: what a server does all the time.
// If it has to wait and the caller is a thread of this core, the caller runs at
// once. A reply to a caller that waits no longer is dropped, its descriptors stay
// here, and the result is that of Recv. The token may be 0: no reply.
func (n *Nucleus) ReplyRecv(core uint32, tok Token, info Info, ep ID, deadline uint64) Effects {
	in := n.control.enter(core)
	fx := n.replyRecv(core, tok, info, ep, deadline)
	n.control.leave(core, in)
	return fx
}

func (n *Nucleus) replyRecv(core uint32, tok Token, info Info, ep ID, deadline uint64) Effects {
	self := uint16(n.core(core).current)
	c := tok.caller()
	e, index, err := n.endpoint(ep)
	t := n.thread(self)
	switch {
	case self == 0:
		return n.fail(core, 0, 0)
	case err != 0:
		return n.fail(core, self, err)
	case c >= MaxThreads || c == 0 && tok != 0 || c == self:
		return n.fail(core, self, linux.EINVAL)
	case !info.ok():
		return n.fail(core, self, linux.EMSGSIZE)
	case t.Came != 0:
		return n.fail(core, self, linux.EBUSY)
	}
	e.lock.acquire()
	s := e.queue.head
	if e.receivers {
		s = 0
	}
	if s == 0 && deadline == Now {
		e.lock.release()
		return n.fail(core, self, linux.EAGAIN)
	}
	to := n.thread(c)
	replied, here := false, false
	if c != 0 {
		to.lock.acquire()
		if replied = to.awaits(self, tok); replied {
			deliver(t, to, info)
			unblock(to, Result{Info: info})
			here = n.here(core, to)
		}
		to.lock.release()
	}
	woken := false
	if s != 0 {
		woken = n.receiveFrom(e, s, self)
	} else {
		e.receivers = true
		n.push(&e.queue, self)
		n.block(core, self, Receiving, index, deadline)
	}
	e.lock.release()
	if s == 0 && here {
		return n.switchTo(core, c)
	}
	fx := Effects{Run: uint32(self)}
	if replied {
		fx.IPI = n.wake(core, c)
	}
	if woken {
		fx.IPI |= n.wake(core, s)
	}
	if s == 0 {
		fx.Run = n.schedule(core)
	}
	return fx
}
