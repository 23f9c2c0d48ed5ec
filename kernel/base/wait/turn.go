package wait

import "sync/atomic"

// A Turn is a thread's place in the queue of those that could run in user mode while
// another does. The queue is ordered by Key, and threads of equal keys by their arrival;
// the scheduler takes the first one when no goroutine is runnable
// (overlay/_runtime/turns_unsafe.go). It is a pairing heap: a thread is in it once, so
// that waiting allocates nothing.
type Turn struct {
	// Key and Weight are set by the thread before it waits. The least key comes first; it
	// is positive.
	Key, Weight int64

	arrived      uint64
	child, right *Turn // its first child, its next sibling
	g            goroutine
}

// turnQueue is the threads that wait. Its lock spins, and is taken on the scheduler's
// stack, or with preemption off; nothing is called with it held. It comes after all others.
var turnQueue struct {
	lock  atomic.Uint32
	first *Turn  // guarded by lock
	count uint64 // of arrivals; guarded by lock

	// least is the first one's key, 0 if nobody waits. passed is the greatest key that
	// was taken: the virtual time. weight is that of all that wait.
	least, passed, weight atomic.Int64
}

// processors is how many Ps there are.
var processors = int64(1)

// TurnLoad returns the weight of the threads that wait, and the number of Ps.
func TurnLoad() (weight, ps int64) { return turnQueue.weight.Load(), processors }

// FirstTurn returns the key of the thread that is next, and whether there is one.
func FirstTurn() (key int64, some bool) {
	key = turnQueue.least.Load()
	return key, key != 0
}

// OthersWait reports whether a thread waits for its turn.
func OthersWait() bool { return turnQueue.least.Load() != 0 }

// VirtualTime returns the greatest key that has had its turn.
func VirtualTime() int64 { return turnQueue.passed.Load() }

func (t *Turn) before(o *Turn) bool {
	return t.Key < o.Key || t.Key == o.Key && t.arrived < o.arrived
}

// meld joins two heaps.
func meld(a, b *Turn) *Turn {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case b.before(a):
		a, b = b, a
	}
	b.right, a.child = a.child, b
	return a
}

// push adds a thread; called with the lock held.
func pushTurn(t *Turn) {
	q := &turnQueue
	q.count++
	t.arrived, t.child, t.right = q.count, nil, nil
	q.first = meld(q.first, t)
	q.least.Store(q.first.Key)
	q.weight.Add(t.Weight)
}

// pop takes the first thread, or nil; called with the lock held.
func popTurn() *Turn {
	q := &turnQueue
	t := q.first
	if t == nil {
		return nil
	}
	// The children in pairs from the left, then the pairs from the right.
	var pairs *Turn
	for c := t.child; c != nil; {
		a, b := c, c.right
		c, a.right = nil, nil
		if b != nil {
			c, b.right = b.right, nil
		}
		a = meld(a, b)
		a.right, pairs = pairs, a
	}
	var first *Turn
	for pairs != nil {
		next := pairs.right
		pairs.right = nil
		first = meld(first, pairs)
		pairs = next
	}
	t.child = nil
	q.first = first
	q.weight.Add(-t.Weight)
	if first != nil {
		q.least.Store(first.Key)
	} else {
		q.least.Store(0)
	}
	if t.Key > q.passed.Load() {
		q.passed.Store(t.Key)
	}
	return t
}
