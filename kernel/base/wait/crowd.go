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
	owed, at   atomic.Int64 // ticks, and when; see Young
}

// Young adds what a thread of this user has run of its first slice, in ticks, where now is the
// time. Owed is by how much a thread that begins now comes behind others: what its user's new
// threads have run lately beyond half of the time, but no more than most. Without this, a user
// who starts one thread after another, each of which runs for a slice and then waits, would
// have a slice for each of them at once.
func (c *Crowd) Young(ran, now, most int64) {
	owed := min(c.Owed(now)+ran, most)
	c.at.Store(now)
	c.owed.Store(owed)
}

// Owed is described at Young.
func (c *Crowd) Owed(now int64) int64 { return max(c.owed.Load()-(now-c.at.Load())/2, 0) }

// crowds is the users of whom some wait.
type crowds struct {
	first *Crowd // guarded by turnQueue.lock

	// fewest is how many threads the user with the fewest has waiting; 0 while no more than
	// one user waits.
	fewest atomic.Int64

	// left is the two users who had threads here last, and have none, and when they left;
	// changed with turnQueue.lock held.
	left [2]struct {
		crowd atomic.Pointer[Crowd]
		when  atomic.Int64
	}
}

// linger is for how long, in nanoseconds, a user counts as one with a thread that waits after
// none does: its thread runs, or waits for another one, and will be back.
const linger = 10_000_000

// maxCompared is how many users are looked at for the one with the fewest threads: the last
// that came.
const maxCompared = 8

// Rate returns how fast virtual time passes for a thread that runs: 1 for the users with the
// fewest threads.
func (c *Crowd) Rate() int64 {
	n := int64(0)
	if c != nil {
		n = c.waiting.Load()
	}
	if n == 0 {
		return 1
	}
	few := turnQueue.crowds.fewest.Load()
	if few != 1 && turnQueue.crowds.lingers(c) {
		few = 1
	}
	if few == 0 {
		return 1
	}
	return max((n+1)/few, 1)
}

// HasRivals reports whether threads of other users wait, or did a moment ago.
func (c *Crowd) HasRivals() bool {
	return turnQueue.crowds.fewest.Load() != 0 || turnQueue.crowds.lingers(c)
}

// lingers reports whether another user than c was here a moment ago.
func (l *crowds) lingers(c *Crowd) bool {
	for i := range l.left {
		if o := l.left[i].crowd.Load(); o != nil && o != c && Now()-l.left[i].when.Load() < linger {
			return true
		}
	}
	return false
}

// leave notes that c has no threads here. Called with turnQueue.lock held.
func (l *crowds) leave(c *Crowd) {
	i := 0
	if l.left[0].crowd.Load() != c && (l.left[1].crowd.Load() == c || l.left[1].when.Load() < l.left[0].when.Load()) {
		i = 1
	}
	l.left[i].crowd.Store(c)
	l.left[i].when.Store(Now())
}

// add counts n threads more that wait, 1 or -1. Called with turnQueue.lock held.
func (l *crowds) add(c *Crowd, n int64) {
	if c == nil {
		return
	}
	switch n = c.waiting.Add(n); {
	case n == 0:
		l.remove(c)
		l.leave(c)
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
