package proc

//oops:stop a lock half handed on has waiters and no owner

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/mm/vm"
)

// PI futexes. The word holds the owner's thread id; FUTEX_WAITERS says that the
// kernel must hand the lock on, FUTEX_OWNER_DIED that an owner ended with it. An
// unlock hands the lock to the first waiter, which finds itself the owner when it
// wakes. If the owner ends, the first waiter takes the lock, since only the
// waiters still have the word mapped for sure. Waiters queue first come, first
// served; no priority is inherited.
//
// While threads wait for a word, they share a piState, which names the owner.
// What a thread owns is not listed: piOwned counts it, and a thread that ends
// with a count looks through all buckets. The count is raised before piGone is
// looked at, and piGone is set before the count is, so one of the two sees the
// other.
//
// piMu comes after the buckets' locks and guards what a search for deadlocks
// follows: each piState's owner, and what each thread waits for.

type piState struct {
	owner *Thread // nil: it ended; changed with the bucket's mu and piMu, read with either
	refs  int     // waiters, and calls at work; guarded by the bucket's mu
}

var piMu sync.Mutex

// threadPI is what a thread has to do with PI futexes.
type threadPI struct {
	waits *piState     // guarded by piMu
	owned atomic.Int32 // states that name it their owner
	gone  atomic.Bool  // it ends: it can become the owner of no more
}

// own counts a state that is about to name t its owner; false: t has ended.
func (t *Thread) own() bool {
	t.pi.owned.Add(1)
	if t.pi.gone.Load() {
		t.pi.owned.Add(-1)
		return false
	}
	return true
}

// put drops a reference; called with the bucket's mu held.
func (p *piState) put() {
	if p.refs--; p.refs == 0 && p.owner != nil {
		p.owner.pi.owned.Add(-1)
	}
}

// fits checks that a word agrees with the state of those who wait for it: EINVAL
// if the program has meddled with it. Called with the bucket's mu held.
func (p *piState) fits(v uint32) linux.Errno {
	tid, died := v&linux.FUTEX_TID_MASK, v&linux.FUTEX_OWNER_DIED != 0
	switch {
	case p == nil:
		return linux.EINVAL // they wait with FUTEX_WAIT
	case p.owner == nil && (!died || tid != 0):
		return linux.EINVAL
	case p.owner == nil, died && tid == 0:
		return 0
	case tid != uint32(p.owner.TID):
		return linux.EINVAL
	}
	return 0
}

// await makes t one that waits for p: EDEADLK if p's owner waits, through others
// perhaps, for t. Called with the bucket's mu held.
func (p *piState) await(t *Thread) linux.Errno {
	const longest = 1024
	piMu.Lock()
	defer piMu.Unlock()
	for at, n := p, 0; at != nil && at.owner != nil; n++ {
		if at.owner == t || n == longest {
			return linux.EDEADLK
		}
		at = at.owner.pi.waits
	}
	t.pi.waits = p
	return 0
}

// top returns the first waiter of a key.
func (b *futexBucket) top(key vm.Key) *futexWaiter {
	for w := b.first; w != nil; w = w.next {
		if w.key == key {
			return w
		}
	}
	return nil
}

// topPI returns the first of those that wait for p.
func (b *futexBucket) topPI(p *piState) *futexWaiter {
	for w := b.first; w != nil; w = w.next {
		if w.pi == p {
			return w
		}
	}
	return nil
}

// acquire takes the lock at a for t if it is free. Otherwise it returns, with a
// reference, the state to wait for. With waiters, a lock that it takes is marked
// as having some. EAGAIN: the word has changed meanwhile. Called with mu held.
func (b *futexBucket) acquire(m futexMemory, a uio.Addr, key vm.Key, t *Thread, waiters bool) (taken bool, p *piState, e linux.Errno) {
	v, e := m.LoadU32(a)
	if e != 0 {
		return false, nil, e
	}
	if v&linux.FUTEX_TID_MASK == uint32(t.TID) {
		return false, nil, linux.EDEADLK
	}
	if w := b.top(key); w != nil {
		if e := w.pi.fits(v); e != 0 {
			return false, nil, e
		}
		w.pi.refs++
		return false, w.pi, 0
	}
	n := v | linux.FUTEX_WAITERS
	if taken = v&linux.FUTEX_TID_MASK == 0; taken {
		n = v&linux.FUTEX_OWNER_DIED | uint32(t.TID)
		if waiters {
			n |= linux.FUTEX_WAITERS
		}
	}
	got, e := m.CASU32(a, v, n)
	if e == 0 && got != v {
		e = linux.EAGAIN
	}
	if e != 0 || taken {
		return e == 0, nil, e
	}
	owner := ByTID(int32(v & linux.FUTEX_TID_MASK))
	if owner == nil || !owner.own() {
		// It ended and left the word behind, or has just given the lock up.
		if got, e = m.LoadU32(a); e == 0 {
			if e = linux.ESRCH; got != n {
				e = linux.EAGAIN
			}
		}
		return false, nil, e
	}
	return false, &piState{owner: owner, refs: 1}, 0
}

// grant makes a waiter the owner of what it waits for and takes it out; called
// with mu held.
func (b *futexBucket) grant(w *futexWaiter) {
	t, p := w.thread, w.pi
	b.remove(w)
	w.pi = nil
	t.pi.owned.Add(1)
	piMu.Lock()
	if p.owner != nil {
		p.owner.pi.owned.Add(-1)
	}
	p.owner, t.pi.waits = t, nil
	piMu.Unlock()
	p.put()
	w.bucket.Store(nil)
	t.Wake()
}

// forget drops what a waiter that leaves has to do with PI; called with mu held
// when it is out of the list.
func (b *futexBucket) forget(w *futexWaiter) {
	p := w.pi
	if p == nil {
		return
	}
	w.pi = nil
	piMu.Lock()
	w.thread.pi.waits = nil
	piMu.Unlock()
	if p.owner == nil {
		b.callHeir(p)
	}
	p.put()
}

// callHeir wakes the thread that is to take a lock whose owner ended.
func (b *futexBucket) callHeir(p *piState) {
	if w := b.topPI(p); w != nil {
		w.sleeper.Wake()
	}
}

// inherit lets a waiter that is the first take the lock at a if the owner ended;
// done reports that its wait is over.
func (t *Thread) inherit(m futexMemory, a uio.Addr, w *futexWaiter) (done bool, e linux.Errno) {
	b := w.bucket.Load()
	if b == nil {
		return true, 0 // it was granted
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.bucket.Load() != b || w.pi == nil || w.pi.owner != nil || b.topPI(w.pi) != w {
		return w.bucket.Load() == nil, 0
	}
	for {
		v, e := m.LoadU32(a)
		var got uint32
		if e == 0 {
			got, e = m.CASU32(a, v, linux.FUTEX_OWNER_DIED|linux.FUTEX_WAITERS|uint32(t.TID))
		}
		if e != 0 {
			b.remove(w)
			b.forget(w)
			w.bucket.Store(nil)
			return true, e
		}
		if got == v {
			b.grant(w)
			return true, 0
		}
	}
}

// lockPI is FUTEX_LOCK_PI, with try FUTEX_TRYLOCK_PI.
func (t *Thread) lockPI(m futexMemory, a uio.Addr, private bool, deadline int64, try bool) linux.Errno {
	for {
		key, e := m.FutexKey(a, private, true)
		if e != 0 {
			return e
		}
		b := bucketOf(key)
		b.mu.Lock()
		taken, p, e := b.acquire(m, a, key, t, false)
		if p != nil {
			if try {
				e = linux.EBUSY
			} else {
				e = p.await(t)
			}
			if e != 0 {
				p.put()
			}
		}
		if e == 0 && !taken {
			w := &t.futexq
			*w = futexWaiter{key: key, bitset: linux.FUTEX_BITSET_MATCH_ANY, sleeper: &t.Sleeper, thread: t, pi: p}
			b.add(w)
		}
		b.mu.Unlock()
		switch {
		case e == linux.EBUSY:
			return linux.EAGAIN
		case e == linux.EAGAIN && t.Interrupted():
			return linux.ERESTARTNOINTR
		case e == linux.EAGAIN:
		case e != 0 || taken:
			return e
		default:
			e, _ = t.awaitPI(m, a, deadline)
			return e
		}
	}
}

// awaitPI waits in the queue for the lock at a. It reports whether the wait, if
// it failed, was one for the lock already, or for a requeue still.
func (t *Thread) awaitPI(m futexMemory, a uio.Addr, deadline int64) (e linux.Errno, locking bool) {
	w := &t.futexq
	for {
		t.Arm()
		if done, e := t.inherit(m, a, w); done {
			return e, true
		}
		switch t.Sleep(deadline) {
		case wait.Woken:
			continue
		case wait.TimedOut:
			e = linux.ETIMEDOUT
		default:
			e = linux.ERESTARTNOINTR
		}
		if !w.leave() {
			return 0, true // it was granted
		}
		return e, w.moved
	}
}

// unlockPI is FUTEX_UNLOCK_PI.
func (t *Thread) unlockPI(m futexMemory, a uio.Addr, private bool) linux.Errno {
	for {
		v, e := m.LoadU32(a)
		if e != 0 {
			return e
		}
		if v&linux.FUTEX_TID_MASK != uint32(t.TID) {
			return linux.EPERM
		}
		key, e := m.FutexKey(a, private, true)
		if e != 0 {
			return e
		}
		b := bucketOf(key)
		b.mu.Lock()
		again, e := b.handOn(m, a, key, v, t)
		b.mu.Unlock()
		if !again || t.Interrupted() {
			if again {
				e = linux.ERESTARTNOINTR
			}
			return e
		}
	}
}

// handOn gives the lock at a, whose word was v, to the first waiter, or frees it.
// again: a waiter has just marked the word. Called with mu held.
func (b *futexBucket) handOn(m futexMemory, a uio.Addr, key vm.Key, v uint32, t *Thread) (again bool, e linux.Errno) {
	n := uint32(0)
	w := b.top(key)
	if w != nil {
		if w.pi == nil || w.pi.owner != t {
			return false, linux.EINVAL
		}
		n = linux.FUTEX_WAITERS | uint32(w.thread.TID)
	}
	got, e := m.CASU32(a, v, n)
	switch {
	case e != 0:
		return false, e
	case got == v && w != nil:
		b.grant(w)
		return false, 0
	case got == v:
		return false, 0
	case w == nil:
		return false, linux.EAGAIN // the program may look
	case got&linux.FUTEX_TID_MASK == v:
		return true, 0
	}
	return false, linux.EINVAL
}

// leavePI ends what the thread owns: the first waiters inherit it.
func (t *Thread) leavePI() {
	t.pi.gone.Store(true)
	if t.pi.owned.Load() == 0 {
		return
	}
	for i := range futexes {
		b := &futexes[i]
		b.mu.Lock()
		for w := b.first; w != nil; w = w.next {
			if p := w.pi; p != nil && p.owner == t {
				piMu.Lock()
				p.owner = nil
				piMu.Unlock()
				t.pi.owned.Add(-1)
				w.sleeper.Wake()
			}
		}
		b.mu.Unlock()
	}
}

// waitRequeuePI is FUTEX_WAIT_REQUEUE_PI: it waits at a until it is moved to the
// lock at a2, and for that.
func (t *Thread) waitRequeuePI(m futexMemory, a, a2 uio.Addr, private bool, val uint32, deadline int64) linux.Errno {
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
	w := &t.futexq
	*w = futexWaiter{key: key, bitset: linux.FUTEX_BITSET_MATCH_ANY, sleeper: &t.Sleeper, thread: t, moves: true, target: key2}
	b.add(w)
	b.mu.Unlock()
	e, locking := t.awaitPI(m, a2, deadline)
	if e == linux.ERESTARTNOINTR && locking {
		return linux.EAGAIN // the word at a has changed: a restart is no use
	}
	return e
}

// requeuePI is FUTEX_CMP_REQUEUE_PI: it gives the lock at a2 to the first waiter
// of a if it is free, and moves up to n others there. It returns how many were
// served.
func (t *Thread) requeuePI(m futexMemory, a, a2 uio.Addr, private bool, n int, val uint32) (int, linux.Errno) {
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
		done, again, e := b.requeuePI(m, a, a2, key, key2, n, val)
		unlockBoth(b, b2)
		if !again {
			return done, e
		}
		if t.Interrupted() {
			return 0, linux.ERESTARTNOINTR
		}
	}
}

// requeuePI is the part of Thread.requeuePI that both buckets' locks are held for.
func (b *futexBucket) requeuePI(m futexMemory, a, a2 uio.Addr, key, key2 vm.Key, n int, val uint32) (done int, again bool, e linux.Errno) {
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
	taken, p, e := b2.acquire(m, a2, key2, top.thread, n > 0)
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
		top.sleeper.Wake()
	}
	if e != 0 {
		done = 0
	}
	return done, false, e
}

// FutexLockPI is FUTEX_LOCK_PI2.
func (t *Thread) FutexLockPI(a uio.Addr, private bool, deadline int64) linux.Errno {
	return t.lockPI(t.Space, a, private, deadline, false)
}

// FutexTryLockPI is FUTEX_TRYLOCK_PI.
func (t *Thread) FutexTryLockPI(a uio.Addr, private bool) linux.Errno {
	return t.lockPI(t.Space, a, private, wait.NoDeadline, true)
}

// FutexUnlockPI is FUTEX_UNLOCK_PI.
func (t *Thread) FutexUnlockPI(a uio.Addr, private bool) linux.Errno {
	return t.unlockPI(t.Space, a, private)
}

// FutexWaitRequeuePI is FUTEX_WAIT_REQUEUE_PI.
func (t *Thread) FutexWaitRequeuePI(a, a2 uio.Addr, private bool, val uint32, deadline int64) linux.Errno {
	return t.waitRequeuePI(t.Space, a, a2, private, val, deadline)
}

// FutexRequeuePI is FUTEX_CMP_REQUEUE_PI.
func (t *Thread) FutexRequeuePI(a, a2 uio.Addr, private bool, n int, val uint32) (int, linux.Errno) {
	return t.requeuePI(t.Space, a, a2, private, n, val)
}
