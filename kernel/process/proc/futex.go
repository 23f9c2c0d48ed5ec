package proc

//oops:stop a waiter that is gone would take others' wake-ups

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/mm/vm"
)

// Futexes. A waiter sits in the bucket that its word's key hashes to. The
// bucket's lock is held while the word is compared and the waiter enters, so a
// waker, who changed the word before it takes the lock, cannot miss it.
//
// Which bucket a waiter is in (bucket) changes only under that bucket's lock;
// nil means that it was woken. Two buckets are locked in the order of their
// numbers. Bucket locks come before the address space's.

// futexMemory is what futexes need of an address space.
type futexMemory interface {
	LoadU32(a uio.Addr) (uint32, linux.Errno)
	CASU32(a uio.Addr, old, new uint32) (uint32, linux.Errno)
	FutexKey(a uio.Addr, private, write bool) (vm.Key, linux.Errno)
}

const futexBuckets = 256

type futexBucket struct {
	mu          sync.Mutex
	first, last *futexWaiter // guarded by mu
	_           [64 - 24]byte
}

var futexes [futexBuckets]futexBucket

// futexWaiter is a thread's place among the waiters; each thread has one.
type futexWaiter struct {
	next, prev *futexWaiter                // guarded by the bucket's mu
	bucket     atomic.Pointer[futexBucket] // nil: in none
	key        vm.Key                      // guarded by the bucket's mu
	bitset     uint32                      // guarded by the bucket's mu
	sleeper    *wait.Sleeper               // immutable while queued

	// For PI (futexpi.go).
	thread *Thread  // immutable while queued
	pi     *piState // what it waits for; guarded by the bucket's mu
	moves  bool     // it waits to be moved to target's lock; immutable while queued
	moved  bool     // it was; guarded by the bucket's mu
	target vm.Key   // immutable while queued
}

func bucketOf(k vm.Key) *futexBucket {
	h := (k.ID*0x9e3779b97f4a7c15 ^ k.Off>>2) * 0xff51afd7ed558ccd
	return &futexes[h>>56]
}

func (b *futexBucket) add(w *futexWaiter) {
	w.next, w.prev = nil, b.last
	if b.last != nil {
		b.last.next = w
	} else {
		b.first = w
	}
	b.last = w
	w.bucket.Store(b)
}

func (b *futexBucket) remove(w *futexWaiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		b.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		b.last = w.prev
	}
	w.next, w.prev = nil, nil
}

// wake takes a waiter out and wakes it.
func (b *futexBucket) wake(w *futexWaiter) {
	b.remove(w)
	s := w.sleeper
	w.bucket.Store(nil)
	s.Wake()
}

// leave takes the waiter out wherever it is; it reports false if it was woken
// already.
func (w *futexWaiter) leave() bool {
	for {
		b := w.bucket.Load()
		if b == nil {
			return false
		}
		b.mu.Lock()
		if w.bucket.Load() == b {
			b.remove(w)
			b.forget(w)
			w.bucket.Store(nil)
			b.mu.Unlock()
			return true
		}
		b.mu.Unlock()
	}
}

// futexWait blocks s until a wake, if the word at a is val.
func futexWait(m futexMemory, s *wait.Sleeper, w *futexWaiter, a uio.Addr, private bool, val, bitset uint32, deadline int64) linux.Errno {
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
	if e != 0 {
		b.mu.Unlock()
		return e
	}
	*w = futexWaiter{key: key, bitset: bitset, sleeper: s}
	b.add(w)
	s.Arm()
	b.mu.Unlock()
	for {
		r := s.Sleep(deadline)
		if w.bucket.Load() == nil {
			return 0
		}
		if r != wait.Woken {
			if !w.leave() {
				return 0
			}
			if r == wait.TimedOut {
				return linux.ETIMEDOUT
			}
			return linux.ERESTARTSYS
		}
		s.Arm()
		if w.bucket.Load() == nil {
			return 0
		}
	}
}

// futexWake wakes up to n waiters of a word whose bitsets meet.
func futexWake(m futexMemory, a uio.Addr, private bool, n int, bitset uint32) (int, linux.Errno) {
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return 0, e
	}
	b := bucketOf(key)
	b.mu.Lock()
	done, e := b.wakeKey(key, n, bitset)
	b.mu.Unlock()
	return done, e
}

// wakeKey wakes up to n waiters of a key; EINVAL at one that is for PI. Called
// with mu held.
func (b *futexBucket) wakeKey(key vm.Key, n int, bitset uint32) (done int, e linux.Errno) {
	for w := b.first; w != nil && done < n; {
		next := w.next
		if w.key == key {
			if w.pi != nil || w.moves {
				return done, linux.EINVAL
			}
			if w.bitset&bitset != 0 {
				b.wake(w)
				done++
			}
		}
		w = next
	}
	return done, 0
}

// lockBoth locks the buckets of two keys, in order.
func lockBoth(x, y *futexBucket) {
	if y.before(x) {
		x, y = y, x
	}
	x.mu.Lock()
	if x != y {
		y.mu.Lock()
	}
}

func unlockBoth(x, y *futexBucket) {
	x.mu.Unlock()
	if x != y {
		y.mu.Unlock()
	}
}

// futexRequeue wakes up to nWake waiters of a and moves up to nMove others to
// a2. With compare, the word at a must be val. It returns how many were woken
// and moved.
func futexRequeue(m futexMemory, a, a2 uio.Addr, private bool, nWake, nMove int, compare bool, val uint32) (woken, moved int, e linux.Errno) {
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return 0, 0, e
	}
	key2, e := m.FutexKey(a2, private, false)
	if e != 0 {
		return 0, 0, e
	}
	b, b2 := bucketOf(key), bucketOf(key2)
	lockBoth(b, b2)
	defer unlockBoth(b, b2)
	if compare {
		v, e := m.LoadU32(a)
		if e != 0 {
			return 0, 0, e
		}
		if v != val {
			return 0, 0, linux.EAGAIN
		}
	}
	woken, e = b.wakeKey(key, nWake, linux.FUTEX_BITSET_MATCH_ANY)
	if e != 0 || key == key2 {
		return woken, 0, e
	}
	for w := b.first; w != nil && moved < nMove; {
		next := w.next
		if w.key == key {
			if w.pi != nil || w.moves {
				return woken, moved, linux.EINVAL
			}
			b.remove(w)
			w.key = key2
			b2.add(w)
			moved++
		}
		w = next
	}
	return woken, moved, 0
}

// futexWakeOp changes the word at a2 as op says, wakes up to n waiters of a,
// and up to n2 of a2 if its old value compares as op says.
func futexWakeOp(m futexMemory, a, a2 uio.Addr, private bool, n, n2 int, op uint32) (int, linux.Errno) {
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return 0, e
	}
	key2, e := m.FutexKey(a2, private, true)
	if e != 0 {
		return 0, e
	}
	b, b2 := bucketOf(key), bucketOf(key2)
	lockBoth(b, b2)
	defer unlockBoth(b, b2)
	old, e := atomicOp(m, a2, op)
	if e != 0 {
		return 0, e
	}
	matches, e := compareOp(op, old)
	if e != 0 {
		return 0, e
	}
	done, e := b.wakeKey(key, n, linux.FUTEX_BITSET_MATCH_ANY)
	if e != 0 || !matches {
		return done, e
	}
	done2, e := b2.wakeKey(key2, n2, linux.FUTEX_BITSET_MATCH_ANY)
	return done + done2, e
}

// atomicOp carries out the change that FUTEX_OP encodes and returns the old value.
func atomicOp(m futexMemory, a uio.Addr, op uint32) (uint32, linux.Errno) {
	arg := uint32(int32(op<<8) >> 20)
	if op>>31 != 0 { // FUTEX_OP_OPARG_SHIFT
		arg = 1 << (arg & 31)
	}
	for {
		old, e := m.LoadU32(a)
		if e != 0 {
			return 0, e
		}
		var v uint32
		switch op >> 28 & 7 {
		case 0:
			v = arg
		case 1:
			v = old + arg
		case 2:
			v = old | arg
		case 3:
			v = old &^ arg
		case 4:
			v = old ^ arg
		default:
			return 0, linux.ENOSYS
		}
		got, e := m.CASU32(a, old, v)
		if e != 0 {
			return 0, e
		}
		if got == old {
			return old, 0
		}
	}
}

func compareOp(op, old uint32) (bool, linux.Errno) {
	arg, v := int32(op<<20)>>20, int32(old)
	switch op >> 24 & 15 {
	case 0:
		return v == arg, 0
	case 1:
		return v != arg, 0
	case 2:
		return v < arg, 0
	case 3:
		return v <= arg, 0
	case 4:
		return v > arg, 0
	case 5:
		return v >= arg, 0
	}
	return false, linux.ENOSYS
}

// FutexWait is FUTEX_WAIT_BITSET on the thread's own memory.
func (t *Thread) FutexWait(a uio.Addr, private bool, val, bitset uint32, deadline int64) linux.Errno {
	e := futexWait(t.Space, &t.Sleeper, &t.futexq, a, private, val, bitset, deadline)
	if e == linux.ERESTARTSYS && deadline != wait.NoDeadline {
		return t.SetRestart(func(t *Thread) (uint64, linux.Errno) {
			return 0, t.FutexWait(a, private, val, bitset, deadline)
		})
	}
	return e
}

// FutexWake is FUTEX_WAKE_BITSET.
func (t *Thread) FutexWake(a uio.Addr, private bool, n int, bitset uint32) (int, linux.Errno) {
	return futexWake(t.Space, a, private, n, bitset)
}

// FutexRequeue is FUTEX_REQUEUE, and FUTEX_CMP_REQUEUE with compare.
func (t *Thread) FutexRequeue(a, a2 uio.Addr, private bool, nWake, nMove int, compare bool, val uint32) (woken, moved int, e linux.Errno) {
	return futexRequeue(t.Space, a, a2, private, nWake, nMove, compare, val)
}

// FutexWakeOp is FUTEX_WAKE_OP.
func (t *Thread) FutexWakeOp(a, a2 uio.Addr, private bool, n, n2 int, op uint32) (int, linux.Errno) {
	return futexWakeOp(t.Space, a, a2, private, n, n2, op)
}

// FutexWord is one of the words that futex_waitv waits for.
type FutexWord struct {
	Addr    uio.Addr
	Private bool
	Val     uint32
}

// futexWaitV blocks s until one of several words is woken, and returns which.
func futexWaitV(m futexMemory, s *wait.Sleeper, words []FutexWord, deadline int64) (int, linux.Errno) {
	ws := make([]futexWaiter, len(words)) //maxlive:len 128 because futex_waitv takes at most as many
	// leave ends the wait of the first n and returns one that was woken, or -1.
	leave := func(n int) int {
		woken := -1
		for i := range ws[:n] {
			if !ws[i].leave() && woken < 0 {
				woken = i
			}
		}
		return woken
	}
	s.Arm()
	for i, x := range words {
		key, e := m.FutexKey(x.Addr, x.Private, false)
		if e == 0 {
			b := bucketOf(key)
			b.mu.Lock()
			var v uint32
			if v, e = m.LoadU32(x.Addr); e == 0 && v != x.Val {
				e = linux.EAGAIN
			}
			if e == 0 {
				ws[i].key, ws[i].bitset, ws[i].sleeper = key, linux.FUTEX_BITSET_MATCH_ANY, s
				b.add(&ws[i])
			}
			b.mu.Unlock()
		}
		if e != 0 {
			if woken := leave(i); woken >= 0 {
				return woken, 0 // somebody was woken before: that must not be lost
			}
			return 0, e
		}
	}
	for {
		r := s.Sleep(deadline)
		s.Arm()
		for i := range ws {
			if ws[i].bucket.Load() == nil {
				leave(len(ws))
				return i, 0
			}
		}
		if r == wait.Woken {
			continue
		}
		if woken := leave(len(ws)); woken >= 0 {
			return woken, 0
		}
		if r == wait.TimedOut {
			return 0, linux.ETIMEDOUT
		}
		return 0, linux.ERESTARTSYS
	}
}

// FutexWaitV is futex_waitv. The deadline is absolute: a restart needs no more
// than the same arguments.
func (t *Thread) FutexWaitV(words []FutexWord, deadline int64) (int, linux.Errno) {
	return futexWaitV(t.Space, &t.Sleeper, words, deadline)
}
