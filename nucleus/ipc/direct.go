package ipc

// The two operations of a call between loose threads, when nothing is in the way:
// what seL4 calls its fast path. They do what Call and ReplyRecv do, with the same
// locks in the same order, but move the message from registers to registers and leave
// out all cases but one. If it is another case they report 0 and have changed nothing.

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
// queue, to a direct thread that waits to receive. The result is that thread, which is
// ready and in no queue now, and has all in its registers.
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
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// ReplyDirect is ReplyRecv with the deadline Forever by self, which is ready and in no
// queue, to a direct caller that waits for this reply, when nobody waits to send. The
// result is the caller, as of CallDirect.
func (n *Nucleus) ReplyDirect(core, self uint32, e *Endpoint, ep ID, regs *Registers) (next uint32) {
	tok := Token(regs[tokenReg])
	c := tok.caller()
	if c >= MaxThreads {
		return 0
	}
	in := n.control.enter(core)
	e.lock.acquire()
	if (e.queue.head == 0 || e.receivers) && e.is(ep) {
		to := n.thread(c)
		to.lock.acquire()
		if there := n.regs[c%MaxThreads]; there != nil && to.awaits(uint16(self), tok) {
			to.receive(there, regs, 0, 0)
			e.receivers = true
			n.push(&e.queue, uint16(self))
			t := &n.threads[self%MaxThreads]
			t.check(Receiving)
			publish(&t.where, at(Receiving, uint16(ep.index())))
			next = uint32(c)
		}
		to.lock.release()
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
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
