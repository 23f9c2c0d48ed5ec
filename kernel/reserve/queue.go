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
	next, prev *Claim        // in the list of those that wait, or of grants; guarded by the queue's mu
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
	most func() int64 // that a claim gets at once, whatever it asks for; immutable

	mu       sync.Mutex
	line     list   // who waits, in order; guarded by mu
	grants   list   // of this lap; guarded by mu
	promised int64  // bytes of them; guarded by mu
	lap      uint32 // guarded by mu

	waiting atomic.Int32 // changed under mu
}

// list is a list of claims.
type list struct{ head, tail *Claim }

func (l *list) add(c *Claim) {
	if c.prev = l.tail; c.prev != nil {
		c.prev.next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *list) remove(c *Claim) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.tail = c.prev
	}
	c.next, c.prev = nil, nil
}

// NewQueue returns a queue for memory of which so much is free. Nobody reserves more than
// most at once: a claim that no free memory could meet would hold up all others for ever.
func NewQueue(free, most func() int64) *Queue { return &Queue{free: free, most: most} }

// Waiting returns how many threads wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Enter asks for so many bytes. It reports whether they are granted at once; else s is
// woken when they are.
func (q *Queue) Enter(c *Claim, bytes int64, s *wait.Sleeper) bool {
	bytes = min(bytes, q.most())
	q.mu.Lock()
	defer q.mu.Unlock()
	c.bytes, c.waiter = bytes, s
	if q.line.head == nil && q.fits(bytes) {
		q.grant(c)
		return true
	}
	c.granted.Store(false)
	q.line.add(c)
	q.waiting.Add(1)
	return false
}

// fits reports whether so many bytes may be promised now. The caller holds mu.
func (q *Queue) fits(bytes int64) bool {
	free := q.free()
	if q.promised+bytes <= free {
		return true
	}
	q.lapse()
	return q.promised+bytes <= free
}

// lapse voids the promises to threads that were granted theirs and block in their call now: for
// another's lock, a message, a signal that continues them. They may do so for hours. The caller holds mu.
func (q *Queue) lapse() {
	for c := q.grants.head; c != nil; {
		next := c.next
		if c.waiter.Parked() {
			q.drop(c)
		}
		c = next
	}
}

// grant gives a claim what it asks for. The caller holds mu.
func (q *Queue) grant(c *Claim) {
	q.promised += c.bytes
	c.lap = q.lap
	q.grants.add(c)
	c.granted.Store(true)
}

// drop ends a grant of this lap. The caller holds mu.
func (q *Queue) drop(c *Claim) {
	q.promised -= c.bytes
	c.bytes = 0
	q.grants.remove(c)
}

// Leave gives a place or a grant up.
func (q *Queue) Leave(c *Claim) {
	q.mu.Lock()
	switch {
	case c.bytes == 0:
	case !c.granted.Load():
		q.unqueue(c)
	case c.lap == q.lap:
		q.drop(c)
	}
	c.bytes = 0
	q.mu.Unlock()
	if q.waiting.Load() != 0 {
		q.Serve()
	}
}

// unqueue takes a claim out of the line. The caller holds mu.
func (q *Queue) unqueue(c *Claim) {
	q.line.remove(c)
	q.waiting.Add(-1)
}

// Serve grants what the first ones ask for, as far as memory goes. Whoever asks for more
// than there is holds up those behind it: otherwise it could wait for ever.
func (q *Queue) Serve() {
	q.mu.Lock()
	for c := q.line.head; c != nil && q.fits(c.bytes); c = q.line.head {
		q.unqueue(c)
		q.grant(c)
		c.waiter.Wake()
	}
	q.mu.Unlock()
}

// Plenty says that memory is not short any more. What was promised so far does not count
// from here on: the part of the reserve that is never promised covers it.
func (q *Queue) Plenty() {
	q.mu.Lock()
	if q.line.head == nil && q.grants.head != nil {
		q.promised = 0
		q.lap++
		for c := q.grants.head; c != nil; {
			next := c.next
			c.next, c.prev = nil, nil
			c = next
		}
		q.grants = list{}
	}
	q.mu.Unlock()
}
