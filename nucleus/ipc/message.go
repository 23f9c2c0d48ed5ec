package ipc

// deliver copies a message and moves its descriptors. Both threads are locked, or
// current on this core.
func deliver(from, to *Thread, info Info) {
	words := (info.Bytes() + 7) / 8
	if words <= ShortWords {
		for i := range words {
			to.Short[i] = from.Short[i]
		}
	} else {
		for i := range min(words, LongWords) {
			to.Long[i] = from.Long[i]
		}
	}
	if d := info.Descriptors(); d > 0 {
		for i := range min(d, MaxDescriptors) {
			to.In[i], from.Out[i] = from.Out[i], 0
		}
		to.Came = uint32(d)
	}
}

// block makes the core's current thread, which is in the queue already if it is to be
// in one, wait for an object or for a reply. It comes last: from here on others may
// wake the thread. A loose thread has its deadline already, by Limit.
func (n *Nucleus) block(core uint32, i uint16, s State, object uint16, deadline uint64) {
	if deadline != Forever && !n.loose {
		n.setTimer(core, i, deadline)
	}
	publish(&n.thread(i).where, at(s, object))
}

// unblock makes a thread, locked and in no queue, ready.
func unblock(t *Thread, r Result) {
	t.deadline, t.result = 0, r
	t.where = at(Ready, 0)
}

// lockTwo locks threads in order. 0 is nobody.
func (n *Nucleus) lockTwo(a, b uint16) {
	if a > b {
		a, b = b, a
	}
	if a != 0 && a != b {
		n.thread(a).lock.acquire()
	}
	if b != 0 {
		n.thread(b).lock.acquire()
	}
}

func (n *Nucleus) unlockTwo(a, b uint16) {
	if a != 0 {
		n.thread(a).lock.release()
	}
	if b != 0 && b != a {
		n.thread(b).lock.release()
	}
}
