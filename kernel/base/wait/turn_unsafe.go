//go:build !race

package wait

import (
	"sync/atomic"
	"unsafe"
)

// turns is filled by the linker where the image is built with the overlay's topic
// "turns" (overlay/_runtime/turns_unsafe.go), and else stays nil.
//
//go:linkname turns
var turns *struct {
	waiting atomic.Int32
	next    func() unsafe.Pointer
	due     func(when int64)
}

//go:linkname procyield runtime.procyield
func procyield(cycles uint32)

// SetTurns begins the queue of threads. Called once, before threads exist.
func SetTurns(h TurnHooks) {
	if hooks = h; turns != nil {
		if turns.next != nil {
			panic("wait: turns set twice")
		}
		turns.next, turns.due = nextTurn, h.Due
	}
}

// HasTurns reports whether the scheduler takes threads from the queue; without it, a
// thread that gives way is one of its goroutines.
func HasTurns() bool { return turns != nil }

// Wait gives way to goroutines that are runnable, and to threads with lesser keys. It
// returns when it is t's turn.
func (t *Turn) Wait() { gopark(commitTurn, unsafe.Pointer(t), waitReason, 0, 2) }

// ReadyFirst makes the thread that is next a runnable goroutine of this P.
func ReadyFirst() {
	p := procPin()
	if g := nextTurn(); g != nil {
		casgstatus(g, gwaiting, grunnable)
		runqput(allp[p], g, false)
	}
	procUnpin()
}

// commitTurn runs on the scheduler's stack when the goroutine no longer runs.
func commitTurn(g, turn unsafe.Pointer) bool {
	t := (*Turn)(turn)
	t.g.g = g
	lockTurns()
	pushTurn(t)
	first := turnQueue.realTime.first
	// This P takes the first one, unless goroutines come before that.
	more := first != nil && (first.child != nil || Ready())
	priority := t.realTime
	turns.waiting.Add(1)
	turnQueue.lock.Store(0)
	if !oneP {
		wakep()
		if more && priority > 0 {
			kickFor(priority)
		}
	}
	return true
}

// nextTurn takes the goroutine whose turn it is; called where nothing preempts it.
func nextTurn() unsafe.Pointer {
	full := turnQueue.realTime.least.Load() != 0 && RealTimeFull(cputicks())
	lockTurns()
	t := popTurn(full)
	if t != nil {
		turns.waiting.Add(-1)
	}
	turnQueue.lock.Store(0)
	if t == nil {
		return nil
	}
	return t.g.g
}

// SetRealTime gives the thread a real-time priority, or 0; anybody may call it.
func (t *Turn) SetRealTime(priority int32) {
	procPin()
	lockTurns()
	waits := setRealTime(t, priority)
	turnQueue.lock.Store(0)
	procUnpin()
	if waits && priority > 0 {
		kickFor(priority)
	}
}

// Live says that the thread begins or ends.
func (t *Turn) Live(lives bool) {
	procPin()
	lockTurns()
	countRealTime(t, lives)
	turnQueue.lock.Store(0)
	procUnpin()
}

// hurry notes on this P that a real-time thread was woken.
func hurry(priority int32) {
	u := &urgent[procPin()].priority
	if u.Load() < priority {
		u.Store(priority)
	}
	procUnpin()
}

// Hurry returns the highest priority of the real-time threads that were woken on this P and
// may wait there for the caller, which enters user mode; 0: none.
func Hurry() int32 {
	p := procPin()
	u := urgent[p].priority.Load()
	if u != 0 {
		urgent[p].priority.Store(0)
		if runqempty(allp[p]) {
			u = 0
		}
	}
	procUnpin()
	return u
}

func lockTurns() {
	for !turnQueue.lock.CompareAndSwap(0, 1) {
		procyield(10)
	}
}
