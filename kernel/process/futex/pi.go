package futex

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
// waiters still have the word mapped for sure. The first waiter is the one of the highest
// real-time priority, of equal ones the one that came first. Who owns the lock inherits that
// priority (lend.go).
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

	waiters   *Thread  // that await, by lending.next; guarded by piMu
	nextOwned *piState // of the same owner; guarded by piMu
}

var piMu sync.Mutex

// threadPI is what a thread has to do with PI futexes.
type threadPI struct {
	waits *piState     // guarded by piMu
	owned atomic.Int32 // states that name it their owner
	gone  atomic.Bool  // it ends: it can become the owner of no more
	lending
}

// longestChain is how many threads may wait for each other.
const longestChain = 1024

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
	case tid != uint32(p.owner.ctx.TID):
		return linux.EINVAL
	}
	return 0
}

// await makes t one that waits for p: EDEADLK if p's owner waits, through others
// perhaps, for t. Called with the bucket's mu held.
func (p *piState) await(t *Thread) linux.Errno {
	piMu.Lock()
	defer piMu.Unlock()
	for at, n := p, 0; at != nil && at.owner != nil; n++ {
		if at.owner == t || n == longestChain {
			return linux.EDEADLK
		}
		at = at.owner.pi.waits
	}
	p.enlist(t)
	return 0
}

// top returns the first waiter of a key.
func (b *bucket) top(key vm.Key) *waiter {
	for w := b.first; w != nil; w = w.next {
		if w.key == key {
			return w
		}
	}
	return nil
}

// topPI returns the first of those that wait for p, by their priorities.
func (b *bucket) topPI(p *piState) (top *waiter) {
	for w := b.first; w != nil; w = w.next {
		if w.pi == p && (top == nil || w.thread.pi.priority.Load() > top.thread.pi.priority.Load()) {
			top = w
		}
	}
	return top
}

// acquire takes the lock at a for t if it is free. Otherwise it returns, with a
// reference, the state to wait for. With waiters, a lock that it takes is marked
// as having some. EAGAIN: the word has changed meanwhile. Called with mu held.
func (b *bucket) acquire(m Memory, find Finder, a uio.Addr, key vm.Key, t *Thread, waiters bool) (taken bool, p *piState, e linux.Errno) {
	v, e := m.LoadU32(a)
	if e != 0 {
		return false, nil, e
	}
	if v&linux.FUTEX_TID_MASK == uint32(t.ctx.TID) {
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
		n = v&linux.FUTEX_OWNER_DIED | uint32(t.ctx.TID)
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
	owner := find(int32(v & linux.FUTEX_TID_MASK))
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
func (b *bucket) grant(w *waiter) {
	t, p := w.thread, w.pi
	b.remove(w)
	w.pi = nil
	t.pi.owned.Add(1)
	piMu.Lock()
	if p.owner != nil {
		p.owner.pi.owned.Add(-1)
	}
	p.delist(t)
	p.setOwner(t)
	piMu.Unlock()
	p.put()
	w.bucket.Store(nil)
	t.ctx.Wake()
}

// forget drops what a waiter that leaves has to do with PI; called with mu held
// when it is out of the list.
func (b *bucket) forget(w *waiter) {
	p := w.pi
	if p == nil {
		return
	}
	w.pi = nil
	piMu.Lock()
	p.delist(w.thread)
	piMu.Unlock()
	if p.owner == nil {
		b.callHeir(p)
	}
	p.put()
}

// callHeir wakes the thread that is to take a lock whose owner ended.
func (b *bucket) callHeir(p *piState) {
	if w := b.topPI(p); w != nil {
		w.thread.ctx.Wake()
	}
}

// inherit lets a waiter that is the first take the lock at a if the owner ended;
// done reports that its wait is over.
func (t *Thread) inherit(m Memory, a uio.Addr, w *waiter) (done bool, e linux.Errno) {
	b := w.bucket.Load()
	if b == nil {
		return true, 0 // it was granted
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.bucket.Load() != b || w.pi == nil || w.pi.owner != nil {
		return w.bucket.Load() == nil, 0
	}
	if b.topPI(w.pi) != w {
		b.callHeir(w.pi) // priorities may have changed since t was called
		return false, 0
	}
	for {
		v, e := m.LoadU32(a)
		var got uint32
		if e == 0 {
			got, e = m.CASU32(a, v, linux.FUTEX_OWNER_DIED|linux.FUTEX_WAITERS|uint32(t.ctx.TID))
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

// A Finder finds the thread with a number, or nil.
type Finder func(tid int32) *Thread

// LockPI is FUTEX_LOCK_PI2.
func (t *Thread) LockPI(m Memory, find Finder, a uio.Addr, private bool, deadline int64) linux.Errno {
	return t.lockPI(m, find, a, private, deadline, false)
}

// TryLockPI is FUTEX_TRYLOCK_PI.
func (t *Thread) TryLockPI(m Memory, find Finder, a uio.Addr, private bool) linux.Errno {
	return t.lockPI(m, find, a, private, wait.NoDeadline, true)
}

func (t *Thread) lockPI(m Memory, find Finder, a uio.Addr, private bool, deadline int64, try bool) linux.Errno {
	for {
		key, e := m.FutexKey(a, private, true)
		if e != 0 {
			return e
		}
		b := bucketOf(key)
		b.mu.Lock()
		taken, p, e := b.acquire(m, find, a, key, t, false)
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
			w := &t.q
			*w = waiter{key: key, bitset: linux.FUTEX_BITSET_MATCH_ANY, thread: t, pi: p}
			b.add(w)
		}
		b.mu.Unlock()
		switch {
		case e == linux.EBUSY:
			return linux.EAGAIN
		case e == linux.EAGAIN && t.ctx.Interrupted():
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
func (t *Thread) awaitPI(m Memory, a uio.Addr, deadline int64) (e linux.Errno, locking bool) {
	w := &t.q
	for {
		t.ctx.Arm()
		if done, e := t.inherit(m, a, w); done {
			return e, true
		}
		switch t.ctx.Sleep(deadline) {
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

// loadAnywhere reads a word that need not be aligned: FUTEX_UNLOCK_PI looks whose the lock
// is before it looks at the address.
func loadAnywhere(m Memory, a uio.Addr) (uint32, linux.Errno) {
	low, e := m.LoadU32(a &^ 3)
	if e != 0 || a&3 == 0 {
		return low, e
	}
	high, e := m.LoadU32(a&^3 + 4)
	return uint32((uint64(high)<<32 | uint64(low)) >> (a & 3 * 8)), e
}

// UnlockPI is FUTEX_UNLOCK_PI.
func (t *Thread) UnlockPI(m Memory, a uio.Addr, private bool) linux.Errno {
	for {
		v, e := loadAnywhere(m, a)
		if e != 0 {
			return e
		}
		if v&linux.FUTEX_TID_MASK != uint32(t.ctx.TID) {
			return linux.EPERM
		}
		key, e := m.FutexKey(a, private, true) // EINVAL at an odd address
		if e != 0 {
			return e
		}
		b := bucketOf(key)
		b.mu.Lock()
		again, e := b.handOn(m, a, key, v, t)
		b.mu.Unlock()
		if !again || t.ctx.Interrupted() {
			if again {
				e = linux.ERESTARTNOINTR
			}
			return e
		}
	}
}

// handOn gives the lock at a, whose word was v, to the first waiter, or frees it.
// again: a waiter has just marked the word. Called with mu held.
func (b *bucket) handOn(m Memory, a uio.Addr, key vm.Key, v uint32, t *Thread) (again bool, e linux.Errno) {
	n := uint32(0)
	w := b.top(key)
	if w != nil {
		if w.pi == nil || w.pi.owner != t {
			return false, linux.EINVAL
		}
		w = b.topPI(w.pi)
		n = linux.FUTEX_WAITERS | uint32(w.thread.ctx.TID)
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
	for i := range table {
		b := &table[i]
		b.mu.Lock()
		for w := b.first; w != nil; w = w.next {
			if p := w.pi; p != nil && p.owner == t {
				piMu.Lock()
				p.setOwner(nil)
				piMu.Unlock()
				t.pi.owned.Add(-1)
				b.callHeir(p)
			}
		}
		b.mu.Unlock()
	}
}
