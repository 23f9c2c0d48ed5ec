package wait

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

// A Turn is a thread's place among those that could run in user mode while another does.
// The scheduler takes the first one when no goroutine is runnable
// (overlay/_runtime/turns_unsafe.go). Real-time threads come before all others, by
// priority, unless they have used up their share (realtime.go); the others come by Key.
// Threads of equal keys come by their arrival. There is a pairing heap for each of the two,
// and for each set of processors (groups.go). A thread is in one of them once, so that
// waiting allocates nothing.
type Turn struct {
	// Key and Weight are set by the thread before it waits. The least key comes first; it
	// is positive. Place is for a real-time thread, among those of its priority: a number
	// that Arrive gave.
	Key, Weight, Place int64
	// Virtual is what the thread has run, by weight, when that was last brought up to date;
	// the thread's own while it runs.
	Virtual int64
	// Crowd is the threads of its user. It changes only while the thread does not wait.
	Crowd *Crowd
	// Late is by how much Key is beyond the thread's virtual time, because it comes behind
	// others of its user; set with Key.
	Late int64
	// GoesOn says that the thread's slice is not over: it goes on when its turn comes.
	GoesOn bool

	counted  bool   // among the real-time threads if it is one; guarded by the lock
	realTime int32  // priority, 0: not real-time; guarded by the lock, the thread reads it freely
	allowed  uint64 // processors that it may run on, 0: all; guarded by the lock

	key         int64 // in the heap
	arrived     uint64
	heap        *turnHeap // that it is in, or nil; guarded by the lock
	group       *turnGroup
	child, next *Turn // its first child, its next sibling
	prev        *Turn // the sibling before it; of a first child the parent
	g           goroutine
}

// turnHeap is a pairing heap (Fredman et al., 1986); guarded by turnQueue.lock.
type turnHeap struct {
	first *Turn
	least atomic.Int64 // the first one's key, 0 if there is none; read without the lock
	late  atomic.Int64 // the first one's Late
}

// turnQueue is the threads that wait. Its lock spins, and is taken on the scheduler's
// stack, or with preemption off; nothing is called with it held. It comes after all others.
var turnQueue struct {
	lock  atomic.Uint32
	count uint64 // of arrivals; guarded by lock
	groups
	crowds crowds

	// passed is the greatest key that was taken of threads that are not real-time: the
	// virtual time. weight is that of all those that wait.
	passed, weight atomic.Int64
	// look is not 0 when a thread has to look around before it enters user mode: the
	// number of those that wait, and that of real-time threads in units of oneRealTime.
	look    atomic.Int64
	arrival atomic.Int64 // see Arrive
}

const oneRealTime = 1 << 32

// firstPassed is the virtual time at boot. Keys are less than that by slices and by what those
// who slept are given.
const firstPassed = 1 << 40

// processors is how many there may be, those of off included.
var processors = int64(1)

// TurnLoad returns the weight of the threads that wait, and the number of Ps.
func TurnLoad() (weight, ps int64) {
	return turnQueue.weight.Load(), processors - int64(bits.OnesCount64(off.Load()))
}

// OneP reports whether there is one P.
func OneP() bool { return processors-int64(bits.OnesCount64(off.Load())) == 1 }

// Look reports whether a thread must look at others before it enters user mode: some wait,
// or there are real-time threads.
func Look() bool { return turnQueue.look.Load() != 0 }

// FirstTurn returns the key of the thread that is next on this processor of those that are
// not real-time, and whether there is one.
func FirstTurn() (key int64, some bool) {
	key = turnQueue.leastFair()
	return key, key != 0
}

// FirstVirtual is FirstTurn, but returns the thread's virtual time.
func FirstVirtual() (virtual int64, some bool) {
	key, some := FirstTurn()
	if wanted.Load() == 0 {
		key -= turnQueue.all.fair.late.Load()
	}
	return key, some
}

// OthersWait reports whether a thread that is not real-time waits for this processor.
func OthersWait() bool { return turnQueue.leastFair() != 0 }

// VirtualTime returns the greatest key that has had its turn.
func VirtualTime() int64 { return turnQueue.passed.Load() }

// restBehind is by how much virtual time, in nanoseconds, who rests comes behind the thread that is
// next. Two who rest in turn would else keep all others out.
const restBehind = 250_000

// Rest lets goroutines run that are runnable, and the thread that is next, and comes soon after
// that one.
func (t *Turn) Rest() {
	if !HasTurns() || !OthersWait() {
		runtime.Gosched()
		return
	}
	t.restKey()
	t.Wait()
}

func (t *Turn) restKey() {
	first, _ := FirstTurn()
	virtual, _ := FirstVirtual()
	behind := max(ticksAt(Now()+restBehind)-cputicks(), 1)
	t.Key, t.Late, t.GoesOn = max(first, 1)+behind, max(first-virtual, 0), false
	t.Weight = max(t.Weight, 1)
}

// Rest is a turn's Rest, for long work that no thread does.
func Rest() { new(Turn).Rest() }

func (t *Turn) before(o *Turn) bool {
	return t.key < o.key || t.key == o.key && t.arrived < o.arrived
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
	if b.next = a.child; b.next != nil {
		b.next.prev = b
	}
	b.prev, a.child = a, b
	return a
}

// children makes one heap of those of t: in pairs from the left, then the pairs from the
// right.
func (t *Turn) children() *Turn {
	var pairs *Turn
	for c := t.child; c != nil; {
		a, b := c, c.next
		c, a.next = nil, nil
		if b != nil {
			c, b.next = b.next, nil
		}
		a = meld(a, b)
		a.next, pairs = pairs, a
	}
	var first *Turn
	for pairs != nil {
		next := pairs.next
		pairs.next = nil
		first = meld(first, pairs)
		pairs = next
	}
	t.child = nil
	return first
}

func (h *turnHeap) push(t *Turn) {
	t.heap, t.child, t.next, t.prev = h, nil, nil, nil
	h.setFirst(meld(h.first, t))
}

func (h *turnHeap) setFirst(t *Turn) {
	h.first = t
	if t == nil {
		h.least.Store(0)
		return
	}
	t.prev = nil
	h.least.Store(t.key)
	h.late.Store(t.Late)
}

func (h *turnHeap) remove(t *Turn) {
	if t == h.first {
		h.setFirst(t.children())
	} else {
		if t.prev.child == t {
			t.prev.child = t.next
		} else {
			t.prev.next = t.next
		}
		if t.next != nil {
			t.next.prev = t.prev
		}
		h.setFirst(meld(h.first, t.children()))
	}
	t.heap, t.next, t.prev = nil, nil, nil
}

// pushTurn adds a thread; called with the lock held.
func pushTurn(t *Turn) {
	q := &turnQueue
	q.count++
	t.arrived = q.count
	q.look.Add(1)
	g := q.enter(t)
	if t.realTime > 0 {
		t.key = realTimeKey(t.realTime) + t.Place
		g.realTime.push(t)
		return
	}
	t.key = t.Key
	g.fair.push(t)
	q.weight.Add(t.Weight)
	q.crowds.add(t.Crowd, 1)
}

// takeTurn takes a thread out; called with the lock held.
func takeTurn(t *Turn) {
	q := &turnQueue
	if t.heap == &t.group.fair {
		q.weight.Add(-t.Weight)
		q.crowds.add(t.Crowd, -1)
	}
	q.look.Add(-1)
	t.heap.remove(t)
	q.leave(t)
}

// popTurn takes the first thread for a processor, or nil: a real-time one if there is one,
// unless over says that these have used up their share and another waits. Called with the
// lock held.
func popTurn(cpu int, over bool) *Turn {
	q := &turnQueue
	t, fair := q.first(cpu)
	if t == nil || over && fair != nil {
		if t = fair; t == nil {
			return nil
		}
		if v := t.key - t.Late; v > q.passed.Load() {
			q.passed.Store(v)
		}
	}
	takeTurn(t)
	return t
}
