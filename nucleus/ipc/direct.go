package ipc

// The two operations of a call between loose threads, when nothing is in the way:
// what seL4 calls its fast path. They do what Call and ReplyRecv do, with the same
// locks in the same order, but take the message from registers and leave out all
// cases but one. If it is another case they report 0 and have changed nothing.

// Direct says whether a thread may be switched to; else whoever it waits for wakes it
// through the run queue. It is the thread's own while that does not wait.
func (n *Nucleus) Direct(i uint32, on bool) { n.threads[i%MaxThreads].direct = on }

// CallDirect is Call with the deadline Forever from self, which is ready and in no
// queue, to a direct thread that waits to receive. The result is that thread, which is
// ready and in no queue now.
func (n *Nucleus) CallDirect(core, self uint32, ep ID, badge uint64, info Info, words *[8]uint64) (next uint32) {
	in := n.control.enter(core)
	e := &n.endpoints[ep.index()%MaxEndpoints]
	t := &n.threads[self%MaxThreads]
	e.lock.acquire()
	r := e.queue.head
	to := n.thread(r)
	if r != 0 && e.receivers && e.exists && e.generation == ep.generation() {
		to.lock.acquire()
		if to.direct {
			n.pop(&e.queue, to)
			t.call++
			to.receive(words, Result{Info: info, Badge: badge, Token: token(uint16(self), t.call)})
			publish(&t.where, at(Replying, r))
			next = uint32(r)
		}
		to.lock.release()
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// ReplyDirect is ReplyRecv with the deadline Forever by self, which is ready and in no
// queue, to a direct caller that waits for this reply, when nobody waits to send. The
// result is the caller, which is ready and in no queue now.
func (n *Nucleus) ReplyDirect(core, self uint32, tok Token, info Info, ep ID, words *[8]uint64) (next uint32) {
	c := tok.caller()
	if c == 0 || c >= MaxThreads {
		return 0
	}
	in := n.control.enter(core)
	e := &n.endpoints[ep.index()%MaxEndpoints]
	t, to := &n.threads[self%MaxThreads], n.thread(c)
	e.lock.acquire()
	if (e.queue.head == 0 || e.receivers) && e.exists && e.generation == ep.generation() {
		to.lock.acquire()
		if to.direct && to.awaits(uint16(self), tok) {
			to.receive(words, Result{Info: info})
			e.receivers = true
			n.push(&e.queue, uint16(self))
			publish(&t.where, at(Receiving, uint16(ep.index())))
			next = uint32(c)
		}
		to.lock.release()
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// receive gives a blocked thread, in no queue, a short message from registers (R8 to
// R15 of the sender) and makes it ready.
func (t *Thread) receive(words *[8]uint64, r Result) {
	t.Short[0], t.Short[1], t.Short[2] = words[0], words[1], words[4]
	t.Short[3], t.Short[4], t.Short[5] = words[5], words[6], words[7]
	t.deadline, t.result = 0, r
	t.where = at(Ready, 0)
}

// pop takes out the first of a queue.
func (n *Nucleus) pop(q *queue, t *Thread) {
	q.head = t.link.next
	t.link.next = 0
	if q.head != 0 {
		n.thread(q.head).link.prev = 0
	} else {
		q.tail = 0
	}
}
