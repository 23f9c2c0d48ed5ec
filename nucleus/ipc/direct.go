package ipc

import "sync/atomic"

// The two operations of a call between loose threads, when nothing is in the way:
// what seL4 calls its fast path. They do what Call and ReplyRecv do, with the same
// locks in the same order, but move the message from registers to registers and leave
// out all cases but two: the server waits, or is busy and has the next call waiting when
// it replies. If it is another case they report 0 and have changed nothing.

// What the operations report beside the index of a thread.
const (
	// Queued, and the endpoint's index: the caller waits in the endpoint's queue.
	Queued = 1 << 16
	// GoesOn, and the index of the caller that got the reply: it is ready and in no queue
	// now, and the server goes on with the next call, in its registers.
	GoesOn = 1 << 17
)

// Registers are a thread's, RAX RBX RCX RDX RSI RDI RBP R8 to R15, as a system call
// saves them. What they are for is in abi/ipc.
type Registers = [15]uint64

// Places in Registers.
const (
	infoReg, badgeReg, sentReg, tokenReg = 0, 3, 4, 9
	r8, r9, r12, r13, r14, r15           = 7, 8, 11, 12, 13, 14
)

// Direct says where the registers of a thread are, which may be switched to then. nil:
// it may not, and whoever it waits for wakes it through the run queue. It is the
// thread's own while that does not wait.
func (n *Nucleus) Direct(i uint32, regs *Registers) { n.regs[i%MaxThreads] = regs }

// IsDirect tells whether a thread may be switched to.
func (n *Nucleus) IsDirect(i uint32) bool { return n.regs[i%MaxThreads] != nil }

// EndpointAt is the endpoint that an ID names, or did, for the operations below.
func (n *Nucleus) EndpointAt(id ID) *Endpoint { return &n.endpoints[id.index()%MaxEndpoints] }

// CallDirect is Call with the deadline Forever from self, which is ready and in no
// queue. If a direct thread waits to receive, the result is that thread, which is
// ready and in no queue now, and has all in its registers. If none does and nobody is in
// the core's run queue, it is Queued.
func (n *Nucleus) CallDirect(core, self uint32, e *Endpoint, ep ID, badge uint64, regs *Registers) (next uint32) {
	in := n.control.enter(core)
	e.lock.acquire()
	r := e.queue.head
	to := n.thread(r)
	if r != 0 && e.receivers && e.is(ep) {
		to.lock.acquire()
		if there := n.regs[r%MaxThreads]; there != nil {
			n.pop(&e.queue, to)
			t := &n.threads[self%MaxThreads]
			t.call++
			to.receive(there, regs, badge, token(uint16(self), t.call))
			t.check(Replying)
			publish(&t.where, at(Replying, r))
			next = uint32(r)
		}
		to.lock.release()
	} else if (r == 0 || !e.receivers) && e.is(ep) && !n.Waiting(core) {
		return n.queueCall(core, in, uint16(self), e, ep, badge, regs)
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// queueCall has self wait to send, the part of Call where nobody receives, and ends the
// operation: with nothing to do after it, CallDirect keeps nothing over the call.
//
//go:noinline
func (n *Nucleus) queueCall(core uint32, in bool, self uint16, e *Endpoint, ep ID, badge uint64, regs *Registers) uint32 {
	t := n.thread(self)
	t.call++
	t.info, t.badge, t.calls = Info(uint32(regs[sentReg])), badge, true
	t.Short[0], t.Short[1], t.Short[2] = regs[r8], regs[r9], regs[r12]
	t.Short[3], t.Short[4], t.Short[5] = regs[r13], regs[r14], regs[r15]
	e.receivers = false
	n.push(&e.queue, self)
	t.move(at(Sending, uint16(ep.index()))) // last: from here on others may act on it
	e.lock.release()
	n.control.leave(core, in)
	return Queued | ep.index()
}

// ReplyDirect is ReplyRecv with the deadline Forever by self, which is ready and in no
// queue, to a direct caller that waits for this reply. If nobody waits to send, the
// result is the caller, as of CallDirect. If a short call waits, it is GoesOn.
func (n *Nucleus) ReplyDirect(core, self uint32, e *Endpoint, ep ID, regs *Registers) (next uint32) {
	tok := Token(regs[tokenReg])
	c := tok.caller()
	if c >= MaxThreads {
		return 0
	}
	in := n.control.enter(core)
	e.lock.acquire()
	if e.is(ep) {
		to := n.thread(c)
		to.lock.acquire()
		if there := n.regs[c%MaxThreads]; there != nil && to.awaits(uint16(self), tok) {
			if s := e.queue.head; s == 0 || e.receivers {
				to.receive(there, regs, 0, 0)
				e.receivers = true
				n.push(&e.queue, uint16(self))
				t := &n.threads[self%MaxThreads]
				t.check(Receiving)
				publish(&t.where, at(Receiving, uint16(ep.index())))
				next = uint32(c)
			} else if from := n.thread(s); from.calls && uint32(from.info) <= ShortBytes {
				return n.replyAndTake(core, in, uint16(self), c, e, regs)
			}
		}
		to.lock.release()
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// replyAndTake is ReplyDirect where a short call waits, and ends the operation as queueCall does.
//
//go:noinline
func (n *Nucleus) replyAndTake(core uint32, in bool, self, c uint16, e *Endpoint, regs *Registers) uint32 {
	to, sender := n.thread(c), e.queue.head
	to.receive(n.regs[c%MaxThreads], regs, 0, 0)
	n.pop(&e.queue, n.thread(sender))
	n.takeCall(self, sender, regs)
	to.lock.release()
	e.lock.release()
	n.control.leave(core, in)
	return GoesOn | uint32(c)
}

// takeCall gives self the call of a sender, which is in no queue any more.
func (n *Nucleus) takeCall(self, sender uint16, regs *Registers) {
	from := n.thread(sender)
	regs[infoReg], regs[badgeReg], regs[tokenReg] = uint64(from.info), from.badge, uint64(token(sender, from.call))
	regs[r8], regs[r9], regs[r12] = from.Short[0], from.Short[1], from.Short[2]
	regs[r13], regs[r14], regs[r15] = from.Short[3], from.Short[4], from.Short[5]
	if t := n.thread(self); t.deadline != 0 {
		atomic.StoreUint64(&t.deadline, 0)
	}
	from.move(at(Replying, self)) // its deadline stays
}

// Requeue puts a direct thread that an operation above has made ready into the core's
// run queue, with its result where the others there have theirs.
func (n *Nucleus) Requeue(core, i uint32) {
	t, regs := n.Thread(i), n.regs[i%MaxThreads]
	t.result = Result{Info: Info(regs[infoReg]), Badge: regs[badgeReg], Token: Token(regs[tokenReg])}
	t.Short[0], t.Short[1], t.Short[2] = regs[r8], regs[r9], regs[r12]
	t.Short[3], t.Short[4], t.Short[5] = regs[r13], regs[r14], regs[r15]
	in := n.control.enter(core)
	n.wake(core, uint16(i))
	n.control.leave(core, in)
}

// receive gives a blocked thread, in no queue, a short message and makes it ready.
func (t *Thread) receive(to, from *Registers, badge uint64, tok Token) {
	to[infoReg], to[badgeReg], to[tokenReg] = uint64(uint32(from[sentReg])), badge, uint64(tok)
	to[r8], to[r9], to[r12] = from[r8], from[r9], from[r12]
	to[r13], to[r14], to[r15] = from[r13], from[r14], from[r15]
	t.deadline = 0
	t.check(Ready)
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
