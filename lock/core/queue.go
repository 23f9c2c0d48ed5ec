package core

import "sync/atomic"

// Yield, if it is set, is called now and then by those who wait for a lock for
// numbered cores. On a host it lets more goroutines play cores than there are
// processors; who holds the lock may be one that does not run. To be set before the
// locks are used.
var Yield func()

// pause is turn i of a wait loop.
func pause(i uint32) {
	Pause(1)
	if i%64 == 63 && Yield != nil {
		Yield()
	}
}

// MaxCores is how many cores the locks for numbered cores know.
const MaxCores = 64

// Queue is a CLH queue lock among cores 0 to MaxCores-1. It holds integers
// only, never enters the Go runtime, and its zero value is unlocked. A core may
// neither wait for it twice at once nor be interrupted by code that wants it.
//
// State. There is a node for each core and one more. tail names the node of the
// last in the queue, and the turn for which that one uses it. A node is held for
// turn t until its word done is t; turns of one node follow each other, so a value
// of tail never comes back (within 2^24 turns), and nothing has to be reset. A
// core that has the lock takes over the node of its predecessor for its next turn.
//
// Without a queue. Virtual cores, of which the hypervisor may stop any, do better
// with a lock that goes to whoever finds it free: in a queue nobody passes a waiter
// that does not run. For them the lock is taken by Seize, and by nothing else. Then
// no core has ever had a turn, mine is 0 for all, and done of node 0 is 1 while the
// lock is held: the same Release frees it.
//
// Order. As lock.CLH: a locked exchange, and a release store that the successor's load
// sees; for Seize, a locked compare-and-swap.
type Queue struct {
	tail  uint32 // turn<<8 | node, which is at most MaxCores
	_     [line - 4]byte
	nodes [nodeMask + 1]struct { // 65 are used
		done uint32
		_    [line - 4]byte
	}
	cores [MaxCores]struct {
		// What the core puts into tail next: the node that it has, for its next turn.
		// It is kept as the difference (exclusive or) to turn 1 of node core+1, which
		// is what zeros mean; node 0 is done.
		next uint32
		mine uint32 // in the queue: what is in tail for it
		_    [line - 8]byte
	}
}

const (
	line     = 128 // what different cores write lies so far apart, as in package lock
	nodeMask = 0x7f
	oneTurn  = 1 << 8
)

// Acquire waits until all cores that came before have released the lock.
func (q *Queue) Acquire(core uint32) {
	if !q.Join(core) {
		q.Await(core)
	}
}

// Join makes the core the last in the queue, and tells whether it is the first too
// and has the lock. If not, Await waits until it has. Together they are Acquire, for
// callers that want the compiler to put the common case where they are.
func (q *Queue) Join(core uint32) (first bool) {
	c := &q.cores[core%MaxCores]
	mine := c.next ^ (core + 1 + oneTurn)
	pred := atomic.SwapUint32(&q.tail, mine)
	c.mine, c.next = mine, (pred+oneTurn)^(core+1+oneTurn)
	return atomic.LoadUint32(&q.nodes[pred&nodeMask].done) == pred>>8
}

// Await ends a Join that was not the first.
func (q *Queue) Await(core uint32) {
	pred := (q.cores[core%MaxCores].next ^ (core + 1 + oneTurn)) - oneTurn
	wait(&q.nodes[pred&nodeMask].done, pred>>8)
}

func wait(word *uint32, value uint32) {
	for i := uint32(0); atomic.LoadUint32(word) != value; i++ {
		pause(i)
	}
}

// Seize takes the lock if it is free, and tells whether it did. It is for locks that
// are not taken in any other way.
func (q *Queue) Seize() bool { return atomic.CompareAndSwapUint32(&q.nodes[0].done, 0, 1) }

// AwaitSeize waits until the lock is free and nobody else was quicker.
func (q *Queue) AwaitSeize() {
	for !q.Seize() {
		wait(&q.nodes[0].done, 0)
	}
}

// Release gives the lock to the next core.
//
//go:noinline
func (q *Queue) Release(core uint32) {
	mine := q.cores[core%MaxCores].mine
	endRelease32(&q.nodes[mine&nodeMask].done, mine>>8)
}

// Readers is a big-reader lock among cores 0 to MaxCores-1; see lock.BigReader. It
// holds integers only, never enters the Go runtime, and its zero value is unlocked.
type Readers struct {
	writing uint32
	spare   uint32 // so many of the last cores never read; guarded by writers
	_       [line - 8]byte
	in      [MaxCores]struct {
		in uint32
		_  [line - 4]byte
	}
	writers Queue
}

// RAcquire waits while there is a writer.
func (l *Readers) RAcquire(core uint32) {
	atomic.SwapUint32(&l.in[core%MaxCores].in, 1) // visible before the load, see lock.BigReader
	if atomic.LoadUint32(&l.writing) != 0 {
		l.goBack(core)
	}
}

func (l *Readers) goBack(core uint32) {
	in := &l.in[core%MaxCores].in
	for {
		StoreRelease32(in, 0)
		for i := uint32(0); atomic.LoadUint32(&l.writing) != 0; i++ {
			pause(i)
		}
		atomic.SwapUint32(in, 1)
		if atomic.LoadUint32(&l.writing) == 0 {
			return
		}
	}
}

// RRelease ends reading.
//
//go:noinline
func (l *Readers) RRelease(core uint32) { endRelease32(&l.in[core%MaxCores].in, 0) }

// Acquire waits for the writers before, and for all readers.
func (l *Readers) Acquire(core uint32) {
	l.writers.Acquire(core)
	atomic.SwapUint32(&l.writing, 1)
	for i := range l.in[:MaxCores-l.spare%MaxCores] {
		wait(&l.in[i].in, 0)
	}
}

// SetCores says that only cores below n read, which saves writers visits to the others.
// It is for whoever has the lock, or before it is used; 0 and what is too much are MaxCores.
func (l *Readers) SetCores(n uint32) { l.spare = (MaxCores - min(n, MaxCores)) % MaxCores }

// Release ends writing.
func (l *Readers) Release(core uint32) {
	StoreRelease32(&l.writing, 0)
	l.writers.Release(core)
}

// Elided is a lock among cores 0 to MaxCores-1 whose critical sections run as
// hardware transactions, with a Queue to fall back on. It holds integers only,
// never enters the Go runtime, and its zero value is unlocked.
//
// held is 1 while a core has the queue and is in its section; transactions have it,
// and not the queue, in their read set. It is set by a locked instruction after the
// queue has been acquired; see lock.Elided.
type Elided struct {
	held  uint32
	_     [line - 4]byte
	queue Queue
}

// coreTries bounds the tries of one section.
const coreTries = 8

// Acquire begins the section, and tells whether it is a transaction. The answer is
// to be given to Release.
func (l *Elided) Acquire(core uint32) (transaction bool) {
	if Transactions() {
		for range coreTries {
			status := Begin(&l.held)
			if status == Started {
				return true
			}
			if status&StatusRetry == 0 && !WasHeld(status) {
				break
			}
			wait(&l.held, 0)
		}
	}
	l.AcquirePlain(core)
	return false
}

// AcquirePlain begins a section that is too long for a transaction. Release ends it,
// with false.
func (l *Elided) AcquirePlain(core uint32) {
	l.queue.Acquire(core)
	if Model != nil {
		Model.Take(&l.held)
	} else {
		atomic.SwapUint32(&l.held, 1)
	}
}

// Release ends the section.
func (l *Elided) Release(core uint32, transaction bool) {
	if transaction {
		End()
		return
	}
	StoreRelease32(&l.held, 0)
	l.queue.Release(core)
}
