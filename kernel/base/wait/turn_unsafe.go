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

// SetTurns begins the queue of threads: due is told when the next timer of the running P is
// due (nanoseconds, 0 for none), whenever that changes. Called once, before threads exist.
func SetTurns(due func(when int64)) {
	if turns != nil {
		if turns.next != nil {
			panic("wait: turns set twice")
		}
		turns.next, turns.due = nextTurn, due
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
	turns.waiting.Add(1)
	turnQueue.lock.Store(0)
	if !oneP {
		wakep()
	}
	return true
}

// nextTurn takes the goroutine whose turn it is; called where nothing preempts it.
func nextTurn() unsafe.Pointer {
	lockTurns()
	t := popTurn()
	if t != nil {
		turns.waiting.Add(-1)
	}
	turnQueue.lock.Store(0)
	if t == nil {
		return nil
	}
	return t.g.g
}

func lockTurns() {
	for !turnQueue.lock.CompareAndSwap(0, 1) {
		procyield(10)
	}
}
