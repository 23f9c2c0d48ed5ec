package ipc

// The two operations of a call between loose threads, when nothing is in the way:
// what seL4 calls its fast path. They do what Call and ReplyRecv do, with the same
// locks in the same order, but move the message from registers to registers and leave
// out all cases but one. If it is another case they report 0 and have changed nothing.

// Words are the registers R8 to R15 as they are saved: the six words of a short
// message, and in R10 the token.
type Words = [8]uint64

// Direct says where the registers of a thread are, which may be switched to then. nil:
// it may not, and whoever it waits for wakes it through the run queue. It is the
// thread's own while that does not wait.
func (n *Nucleus) Direct(i uint32, words *Words) { n.words[i%MaxThreads] = words }

// IsDirect tells whether a thread may be switched to.
func (n *Nucleus) IsDirect(i uint32) bool { return n.words[i%MaxThreads] != nil }

// CallDirect is Call with the deadline Forever from self, which is ready and in no
// queue, to a direct thread that waits to receive. The result is that thread, which is
// ready and in no queue now, and has the message's words and the token; its length and
// badge are the caller's to give.
func (n *Nucleus) CallDirect(core, self uint32, ep ID, words *Words) (next uint32) {
	in := n.control.enter(core)
	e := &n.endpoints[ep.index()%MaxEndpoints]
	e.lock.acquire()
	r := e.queue.head
	to := n.thread(r)
	if r != 0 && e.receivers && e.is(ep) {
		to.lock.acquire()
		if w := n.words[r%MaxThreads]; w != nil {
			n.pop(&e.queue, to)
			t := &n.threads[self%MaxThreads]
			t.call++
			to.receive(w, words, token(uint16(self), t.call))
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
func (n *Nucleus) ReplyDirect(core, self uint32, ep ID, words *Words) (next uint32) {
	tok := Token(words[tokenWord])
	c := tok.caller()
	if c >= MaxThreads {
		return 0
	}
	in := n.control.enter(core)
	e := &n.endpoints[ep.index()%MaxEndpoints]
	e.lock.acquire()
	if (e.queue.head == 0 || e.receivers) && e.is(ep) {
		to := n.thread(c)
		to.lock.acquire()
		if w := n.words[c%MaxThreads]; w != nil && to.awaits(uint16(self), tok) {
			to.receive(w, words, 0)
			e.receivers = true
			n.push(&e.queue, uint16(self))
			publish(&n.threads[self%MaxThreads].where, at(Receiving, uint16(ep.index())))
			next = uint32(c)
		}
		to.lock.release()
	}
	e.lock.release()
	n.control.leave(core, in)
	return next
}

// tokenWord is where a token is among Words.
const tokenWord = 2

// receive gives a blocked thread, in no queue, a short message and makes it ready.
func (t *Thread) receive(to, from *Words, tok Token) {
	to[0], to[1], to[tokenWord], to[4] = from[0], from[1], uint64(tok), from[4]
	to[5], to[6], to[7] = from[5], from[6], from[7]
	t.deadline = 0
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
