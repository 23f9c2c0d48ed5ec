package lock

import (
	"sync"
	"sync/atomic"
)

// CLH is a queue lock: who comes first gets it first, and each waiter looks at a
// cache line that one other writes once. The zero value is unlocked. It must not be
// copied after first use.
//
// It is never for more runnable threads than cores: the next in the queue may not be
// running, and nobody can pass it. Use sync.Mutex or Elided there.
//
// State. tail is the node of the last in the queue, nil before the first Lock. A
// node's word is 1 from the time before it enters the queue until its owner
// unlocks. A goroutine that locks swaps its own node into tail and waits for the
// node that was there, its predecessor's, to become 0; from then on nobody else
// refers to that node, and it goes to the pool for a later Lock. holder, guarded by
// the lock, is the node of the goroutine that has it.
//
// Order. The swap is a locked instruction: the node's 1 is visible before the node
// is. The load that sees the predecessor's 0 sees its critical section.
//
// TryLock reads tail and replaces it if its node is released. That would go wrong
// if the node left the queue and came back in between, held. Hence triers, which
// it raises before it reads tail: a Lock that finds triers raised after its swap
// does not use its predecessor's node again but leaves it to the collector.
//
// Craig, Building FIFO and priority-queuing spin locks from atomic swap, 1993;
// Magnusson, Landin, Hagersten, Queue locks on cache coherent multiprocessors, 1994.
type CLH struct {
	Checker
	tail    atomic.Pointer[clhNode]
	triers  atomic.Int32
	holder  *clhNode
	waiting atomic.Int32 // goroutines that had to wait, for Waiting
}

type clhNode struct {
	held uint32
	_    [line - 4]byte
}

var clhNodes = sync.Pool{New: func() any { return new(clhNode) }}

// Lock waits until all that came before have unlocked.
func (l *CLH) Lock() {
	l.before()
	n := clhNodes.Get().(*clhNode)
	StoreRelease32(&n.held, 1)
	if pred := l.tail.Swap(n); pred != nil {
		if atomic.LoadUint32(&pred.held) != 0 {
			l.wait(pred)
		}
		if l.triers.Load() == 0 {
			clhNodes.Put(pred)
		}
	}
	l.holder = n
	l.acquired()
}

func (l *CLH) wait(pred *clhNode) {
	l.waiting.Add(1)
	for i := uint32(0); atomic.LoadUint32(&pred.held) != 0; i++ {
		relax(i)
	}
	l.waiting.Add(-1)
}

// TryLock locks if nobody has the lock or waits for it, and tells whether it did.
// It fails also if another goroutine comes in between.
func (l *CLH) TryLock() bool {
	l.triers.Add(1)
	defer l.triers.Add(-1)
	pred := l.tail.Load()
	if pred != nil && atomic.LoadUint32(&pred.held) != 0 {
		return false
	}
	n := clhNodes.Get().(*clhNode)
	StoreRelease32(&n.held, 1)
	if !l.tail.CompareAndSwap(pred, n) {
		clhNodes.Put(n)
		return false
	}
	l.holder = n // pred is left to the collector: others may be trying too
	l.acquired()
	return true
}

// Unlock gives the lock to the next in the queue. It panics if nobody has it.
func (l *CLH) Unlock() {
	l.released()
	n := l.holder
	if n == nil {
		panic("lock: Unlock of a CLH lock that is not locked")
	}
	l.holder = nil
	StoreRelease32(&n.held, 0)
}

// Waiting is how many goroutines wait now.
func (l *CLH) Waiting() int { return int(l.waiting.Load()) }
