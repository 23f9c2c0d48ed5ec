package wait

import "sync/atomic"

// A Crowd is the threads of one user, of which some wait for user mode. While several users
// wait, virtual time passes the faster for a thread the more threads its user has there, so
// that each user gets the same share of the processors. Otherwise a user with seventy threads
// has seventy turns for each one of the user with a single thread.
//
// Real-time threads do not count.
type Crowd struct {
	waiting    atomic.Int64 // changed with turnQueue.lock held
	next, prev *Crowd       // the others of which some wait; guarded by turnQueue.lock
}

// crowds is the users of whom some wait.
type crowds struct {
	first *Crowd // guarded by turnQueue.lock

	// fewest is how many threads the user with the fewest has waiting; 0 while no more than
	// one user waits.
	fewest atomic.Int64
}

// maxCompared is how many users are looked at for the one with the fewest threads: the last
// that came.
const maxCompared = 8

// Rate returns how fast virtual time passes for a thread that runs: 1 for the users with the
// fewest threads.
func (c *Crowd) Rate() int64 {
	if few := turnQueue.crowds.fewest.Load(); few != 0 && c != nil {
		return max((c.waiting.Load()+1)/few, 1)
	}
	return 1
}

// add counts n threads more that wait, 1 or -1. Called with turnQueue.lock held.
func (l *crowds) add(c *Crowd, n int64) {
	if c == nil {
		return
	}
	switch n = c.waiting.Add(n); {
	case n == 0:
		l.remove(c)
	case c.prev == nil && l.first != c:
		l.insert(c)
	}
	if l.first == nil || l.first.next == nil {
		l.fewest.Store(0)
		return
	}
	few := l.first.waiting.Load()
	for i, o := 1, l.first.next; o != nil && i < maxCompared; i, o = i+1, o.next {
		few = min(few, o.waiting.Load())
	}
	l.fewest.Store(few)
}

func (l *crowds) insert(c *Crowd) {
	if c.next = l.first; c.next != nil {
		c.next.prev = c
	}
	l.first = c
}

func (l *crowds) remove(c *Crowd) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev = nil, nil
}
