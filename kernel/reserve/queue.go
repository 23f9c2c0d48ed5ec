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
	next, prev *Claim        // in a line of those that wait, or of grants; guarded by the queue's mu
	bytes      int64         // guarded by the queue's mu; 0: neither waiting nor granted
	lap        uint32        // in which it was granted; guarded by the queue's mu
	owner      uint32        // the user; guarded by the queue's mu
	much       bool          // it waits among those who hold much; guarded by the queue's mu
	waiter     *wait.Sleeper // guarded by the queue's mu
	granted    atomic.Bool
}

// Granted reports whether the thread may go on.
func (c *Claim) Granted() bool { return c.granted.Load() }

// Supply is what a queue promises.
type Supply struct {
	// Free returns how many bytes may be promised in all. Users who hold much must leave
	// some to the others.
	Free func(much bool) int64
	// Most returns how many bytes a claim gets at once, whatever it asks for: a claim that
	// no free memory could meet would hold up all others for ever.
	Most func() int64
	// Much tells whether a user holds much of all memory.
	Much func(owner uint32) bool
}

// A Queue promises a kind of memory to threads in order of arrival, to those of users who
// hold little before the others.
type Queue struct {
	Supply // immutable

	mu       sync.Mutex
	lines    [2]list // who waits, in order: users who hold little, and much; guarded by mu
	grants   list    // of this lap; guarded by mu
	promised int64   // bytes of them; guarded by mu
	lap      uint32  // guarded by mu

	waiting atomic.Int32 // changed under mu
}

// line is where a claim waits. The caller holds mu.
func (q *Queue) line(much bool) *list {
	if much {
		return &q.lines[1]
	}
	return &q.lines[0]
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

// NewQueue returns a queue.
func NewQueue(s Supply) *Queue { return &Queue{Supply: s} }

// Waiting returns how many threads wait.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// Enter asks for so many bytes for a user. It reports whether they are granted at once; else
// s is woken when they are.
func (q *Queue) Enter(c *Claim, bytes int64, owner uint32, s *wait.Sleeper) bool {
	bytes = min(bytes, q.Most())
	much := q.Much(owner)
	q.mu.Lock()
	defer q.mu.Unlock()
	c.bytes, c.owner, c.much, c.waiter = bytes, owner, much, s
	if q.lines[0].head == nil && (!much || q.lines[1].head == nil) && q.fits(c) {
		q.grant(c)
		return true
	}
	c.granted.Store(false)
	q.line(much).add(c)
	q.waiting.Add(1)
	return false
}

// fits reports whether what a claim asks for may be promised now. The caller holds mu.
func (q *Queue) fits(c *Claim) bool {
	free := q.Free(c.much)
	if q.promised+c.bytes <= free {
		return true
	}
	q.lapse()
	return q.promised+c.bytes <= free
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
	q.line(c.much).remove(c)
	q.waiting.Add(-1)
}

// Serve grants what the first ones ask for, as far as memory goes. Whoever asks for more
// than there is holds up those behind it: otherwise it could wait for ever.
func (q *Queue) Serve() {
	q.mu.Lock()
	for i := range q.lines {
		l := &q.lines[i]
		for c := l.head; c != nil && q.fits(c); c = l.head {
			q.unqueue(c)
			q.grant(c)
			c.waiter.Wake()
		}
		if l.head != nil {
			break
		}
	}
	q.mu.Unlock()
}

// Sort is called when it is known anew who holds much: those who wait change lines.
func (q *Queue) Sort() {
	q.mu.Lock()
	defer q.mu.Unlock()
	var move list
	for i := range q.lines {
		for c := q.lines[i].head; c != nil; {
			next := c.next
			if q.Much(c.owner) != c.much {
				q.lines[i].remove(c)
				move.add(c)
			}
			c = next
		}
	}
	for c := move.head; c != nil; {
		next := c.next
		c.next, c.prev = nil, nil
		c.much = !c.much
		q.line(c.much).add(c)
		c = next
	}
}

// Plenty says that memory is not short any more. What was promised so far does not count
// from here on: the part of the reserve that is never promised covers it.
func (q *Queue) Plenty() {
	q.mu.Lock()
	if q.waiting.Load() == 0 && q.grants.head != nil {
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
