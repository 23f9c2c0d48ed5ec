package ipc

import "sync/atomic"

// deliver copies a message and moves its descriptors. Both threads are current on this
// core, or blocked and guarded by a lock that is held.
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
	n.thread(i).move(at(s, object))
}

// unblock makes a thread ready that is in no queue and was blocked under a lock that is
// held. Others may look at deadline and where meanwhile, to see whether to come for it.
func unblock(t *Thread, r Result) {
	if t.deadline != 0 {
		atomic.StoreUint64(&t.deadline, 0)
	}
	t.result = r
	t.move(at(Ready, 0))
}
