// Package reserve lets calls start only while there is memory for them to end.
//
// While memory is plentiful nobody asks it anything. Once it is short, a thread that enters
// the kernel reserves what its call can need at most (Bound). Where that is not there it
// waits in order of arrival, holding nothing, and a goroutine makes memory free: caches,
// garbage, and at last the process that holds most (Relief).
//
// docs/decisions/0165-reservations.md says why this is enough.
//
// Lock order: Queue.mu, then the scheduler's.
package reserve

import (
	"sync"
	"sync/atomic"

	"hardtack/kernel/base/wait"
)

// A Claim is one thread's place in a queue, and then what it was granted. The zero Claim
// asks for nothing.
type Claim struct {
	next, prev *Claim        // guarded by the queue's mu
	bytes      int64         // guarded by the queue's mu; 0: neither waiting nor granted
	lap        uint32        // in which it was granted; guarded by the queue's mu
	waiter     *wait.Sleeper // guarded by the queue's mu
	granted    atomic.Bool
}

// Granted reports whether the thread may go on.
func (c *Claim) Granted() bool { return c.granted.Load() }

// A Queue promises a kind of memory to threads in order of arrival.
type Queue struct {
	free func() int64 // bytes that may be promised in all; immutable

	mu         sync.Mutex
	head, tail *Claim // guarded by mu
	promised   int64  // bytes of this lap's grants; guarded by mu
	lap        uint32 // guarded by mu

	waiting atomic.Int32 // changed under mu
}

// NewQueue returns a queue for memory of which so much is free.
func NewQueue(free func() int64) *Queue { return &Queue{free: free} }

// Waiting returns how many threads wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Enter asks for so many bytes. It reports whether they are granted at once; else s is
// woken when they are.
func (q *Queue) Enter(c *Claim, bytes int64, s *wait.Sleeper) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.bytes, c.waiter = bytes, s
	if q.head == nil && q.promised+bytes <= q.free() {
		q.grant(c)
		return true
	}
	c.granted.Store(false)
	if c.prev = q.tail; c.prev != nil {
		c.prev.next = c
	} else {
		q.head = c
	}
	q.tail = c
	q.waiting.Add(1)
	return false
}

// grant gives a claim what it asks for. The caller holds mu.
func (q *Queue) grant(c *Claim) {
	q.promised += c.bytes
	c.lap = q.lap
	c.granted.Store(true)
}

// Leave gives a place or a grant up.
func (q *Queue) Leave(c *Claim) {
	q.mu.Lock()
	switch {
	case c.bytes == 0:
	case c.granted.Load():
		if c.lap == q.lap {
			q.promised -= c.bytes
		}
	default:
		q.remove(c)
	}
	c.bytes = 0
	q.mu.Unlock()
	if q.waiting.Load() != 0 {
		q.Serve()
	}
}

// remove takes a claim out of the list. The caller holds mu.
func (q *Queue) remove(c *Claim) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.tail = c.prev
	}
	c.next, c.prev = nil, nil
	q.waiting.Add(-1)
}

// Serve grants what the first ones ask for, as far as memory goes. Whoever asks for more
// than there is holds up those behind it: otherwise it could wait for ever.
func (q *Queue) Serve() {
	q.mu.Lock()
	for c := q.head; c != nil && q.promised+c.bytes <= q.free(); c = q.head {
		q.remove(c)
		q.grant(c)
		c.waiter.Wake()
	}
	q.mu.Unlock()
}

// Plenty says that memory is not short any more. What was promised so far does not count
// from here on: the part of the reserve that is never promised covers it.
func (q *Queue) Plenty() {
	q.mu.Lock()
	if q.head == nil {
		q.promised = 0
		q.lap++
	}
	q.mu.Unlock()
}
