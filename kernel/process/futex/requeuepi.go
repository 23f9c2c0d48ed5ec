package futex

//oops:stop a lock half handed on has waiters and no owner

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
)

// WaitRequeuePI is FUTEX_WAIT_REQUEUE_PI: it waits at a until it is moved to the
// lock at a2, and for that.
func (t *Thread) WaitRequeuePI(m Memory, a, a2 uio.Addr, private bool, val uint32, deadline int64) linux.Errno {
	if a == a2 {
		return linux.EINVAL
	}
	key2, e := m.FutexKey(a2, private, true)
	if e != 0 {
		return e
	}
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return e
	}
	b := bucketOf(key)
	b.mu.Lock()
	v, e := m.LoadU32(a)
	if e == 0 && v != val {
		e = linux.EAGAIN
	}
	if e == 0 && key == key2 {
		e = linux.EINVAL
	}
	if e != 0 {
		b.mu.Unlock()
		return e
	}
	w := &t.q
	*w = waiter{key: key, bitset: linux.FUTEX_BITSET_MATCH_ANY, thread: t, moves: true, target: key2}
	b.add(w)
	b.mu.Unlock()
	e, locking := t.awaitPI(m, a2, deadline)
	if e == linux.ERESTARTNOINTR && locking {
		return linux.EAGAIN // the word at a has changed: a restart is no use
	}
	return e
}

// RequeuePI is FUTEX_CMP_REQUEUE_PI: it gives the lock at a2 to the first waiter
// of a if it is free, and moves up to n others there. It returns how many were
// served.
func (t *Thread) RequeuePI(m Memory, find Finder, a, a2 uio.Addr, private bool, n int, val uint32) (int, linux.Errno) {
	if a == a2 {
		return 0, linux.EINVAL
	}
	for {
		key, e := m.FutexKey(a, private, false)
		if e != 0 {
			return 0, e
		}
		key2, e := m.FutexKey(a2, private, true)
		if e != 0 {
			return 0, e
		}
		if key == key2 {
			return 0, linux.EINVAL
		}
		b, b2 := bucketOf(key), bucketOf(key2)
		lockBoth(b, b2)
		done, again, e := b.requeuePI(m, find, a, a2, key, key2, n, val)
		unlockBoth(b, b2)
		if !again {
			return done, e
		}
		if t.ctx.Interrupted() {
			return 0, linux.ERESTARTNOINTR
		}
	}
}

// requeuePI is the part of Thread.RequeuePI that both buckets' locks are held for.
func (b *bucket) requeuePI(m Memory, find Finder, a, a2 uio.Addr, key, key2 vm.Key, n int, val uint32) (done int, again bool, e linux.Errno) {
	v, e := m.LoadU32(a)
	if e != 0 {
		return 0, false, e
	}
	if v != val {
		return 0, false, linux.EAGAIN
	}
	top := b.top(key)
	if top == nil {
		return 0, false, 0
	}
	if !top.moves || top.pi != nil || top.target != key2 {
		return 0, false, linux.EINVAL
	}
	b2 := bucketOf(key2)
	taken, p, e := b2.acquire(m, find, a2, key2, top.thread, n > 0)
	if e != 0 {
		return 0, e == linux.EAGAIN, e
	}
	if taken {
		b.remove(top)
		done = 1
		top.thread.own() // it cannot have ended: it is not awake yet
		p = &piState{owner: top.thread, refs: 1}
	}
	for w := b.first; w != nil && done-1 < n; {
		next := w.next
		if w.key == key {
			if !w.moves || w.pi != nil || w.target != key2 {
				e = linux.EINVAL
				break
			}
			if e = p.await(w.thread); e != 0 {
				break
			}
			p.refs++
			b.remove(w)
			w.key, w.pi, w.moved = key2, p, true
			b2.add(w)
			done++
		}
		w = next
	}
	if p.owner == nil {
		b2.callHeir(p)
	}
	p.put()
	if taken {
		top.bucket.Store(nil)
		top.thread.ctx.Wake()
	}
	if e != 0 {
		done = 0
	}
	return done, false, e
}
