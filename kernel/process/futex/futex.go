// Package futex is Linux's futexes: a table of the threads that wait for a word of
// memory, locks that the kernel hands on (PI futexes), and what a thread that ends owes
// to those that wait for it.
//
// A waiter sits in the bucket that its word's key hashes to. The
// bucket's lock is held while the word is compared and the waiter enters, so a
// waker, who changed the word before it takes the lock, cannot miss it.
//
// Which bucket a waiter is in (bucket) changes only under that bucket's lock;
// nil means that it was woken.
//
// Lock order: buckets, two of them in the order of their addresses; then piMu, which is also
// taken with a process's lock held; then the address space's, or the queue of threads'.
package futex

//oops:stop a waiter that is gone would take others' wake-ups

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/mm/vm"
)

// Memory is what futexes need of an address space.
type Memory interface {
	LoadU32(a uio.Addr) (uint32, linux.Errno)
	CASU32(a uio.Addr, old, new uint32) (uint32, linux.Errno)
	FutexKey(a uio.Addr, private, write bool) (vm.Key, linux.Errno)
}

const buckets = 256

type bucket struct {
	mu          sync.Mutex
	first, last *waiter // guarded by mu
	_           [64 - 24]byte
}

var table [buckets]bucket

// Thread is what a thread has to do with futexes. It is the thread's own, besides what
// is said to be guarded.
type Thread struct {
	ctx *caller.Ctx // of the thread; immutable
	q   waiter
	pi  threadPI

	RobustList uint64 // set_robust_list
	ClearTID   uint64 // CLONE_CHILD_CLEARTID, set_tid_address
}

// Init says whose futexes these are, before the first use.
func (t *Thread) Init(c *caller.Ctx) { t.ctx = c }

// waiter is a thread's place among the waiters; each thread has one.
type waiter struct {
	next, prev *waiter                // guarded by the bucket's mu
	bucket     atomic.Pointer[bucket] // nil: in none
	key        vm.Key                 // guarded by the bucket's mu
	bitset     uint32                 // guarded by the bucket's mu
	thread     *Thread                // immutable while queued
	priority   int32                  // when it was queued; immutable while queued

	// For PI (pi.go).
	pi     *piState // what it waits for; guarded by the bucket's mu
	moves  bool     // it waits to be moved to target's lock; immutable while queued
	moved  bool     // it was; guarded by the bucket's mu
	target vm.Key   // immutable while queued
}

func bucketOf(k vm.Key) *bucket {
	h := (k.ID*0x9e3779b97f4a7c15 ^ k.Off>>2) * 0xff51afd7ed558ccd
	return &table[h>>56]
}

// add puts a waiter behind those of its priority (futex_queue).
func (b *bucket) add(w *waiter) {
	if w.priority = w.thread.pi.priority.Load(); w.priority > 0 {
		for o := b.first; o != nil; o = o.next {
			if o.priority < w.priority {
				b.addBefore(w, o)
				return
			}
		}
	}
	w.next, w.prev = nil, b.last
	if b.last != nil {
		b.last.next = w
	} else {
		b.first = w
	}
	b.last = w
	w.bucket.Store(b)
}

func (b *bucket) addBefore(w, o *waiter) {
	w.next, w.prev = o, o.prev
	if o.prev != nil {
		o.prev.next = w
	} else {
		b.first = w
	}
	o.prev = w
	w.bucket.Store(b)
}

func (b *bucket) remove(w *waiter) {
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
func (b *bucket) wake(w *waiter) {
	b.remove(w)
	c := w.thread.ctx
	w.bucket.Store(nil)
	c.Wake()
}

// leave takes the waiter out wherever it is; it reports false if it was woken
// already.
func (w *waiter) leave() bool {
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

// Wait is FUTEX_WAIT_BITSET: it blocks until a wake, if the word at a is val.
func (t *Thread) Wait(m Memory, a uio.Addr, private bool, val, bitset uint32, deadline int64) linux.Errno {
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
	s, w := &t.ctx.Sleeper, &t.q
	*w = waiter{key: key, bitset: bitset, thread: t}
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

// Wake is FUTEX_WAKE_BITSET: it wakes up to n waiters of a word whose bitsets meet.
func Wake(m Memory, a uio.Addr, private bool, n int, bitset uint32) (int, linux.Errno) {
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
func (b *bucket) wakeKey(key vm.Key, n int, bitset uint32) (done int, e linux.Errno) {
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
