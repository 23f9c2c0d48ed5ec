//go:build !race

package wait

import (
	"math/bits"
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
	some    func() bool
	due     func(when int64) (ticks int64)
	stand   func(early bool) (ticks int64, cpu int)
	look    func(cpu int) bool
	stood   func(cpu int, found bool)
}

//go:linkname procyield runtime.procyield
func procyield(cycles uint32)

// SetTurns begins the queue of threads. Called once, before threads exist.
func SetTurns(h TurnHooks) {
	if hooks = h; turns != nil {
		if turns.next != nil {
			panic("wait: turns set twice")
		}
		turnQueue.passed.Store(firstPassed)
		if h.Wanted != nil {
			wanted = h.Wanted
		}
		if h.Count != nil {
			h.Count(&turnQueue.look)
		}
		turns.next, turns.some, turns.due = nextTurn, someTurn, timerDue
		if collectorRests != nil {
			collectorRests(ReadyFirst)
		}
		if h.Pending != nil {
			turns.stand, turns.look, turns.stood = stand, look, stood
		}
	}
}

// timerDue tells the hook when the first timer is due, and returns that in ticks.
func timerDue(when int64) (ticks int64) {
	hooks.Due(when)
	return ticksAt(when)
}

// HasTurns reports whether the scheduler takes threads from the queue; without it, a
// thread that gives way is one of its goroutines.
func HasTurns() bool { return turns != nil }

// Wait gives way to goroutines that are runnable, and to threads with lesser keys. It
// returns when it is t's turn.
func (t *Turn) Wait() { gopark(commitTurn, unsafe.Pointer(t), waitReason, 0, 2) }

// collectorRests is filled by the linker where the image is built with the overlay's topic
// "collector" (overlay/_runtime/collector_unsafe.go), and else stays nil.
//
//go:linkname collectorRests
var collectorRests func(turn func() bool)

// ReadyFirst makes the thread that is next a runnable goroutine of this P, and reports whether
// there is one.
func ReadyFirst() bool {
	p := procPin()
	g, goesOn := popHere()
	if g != nil {
		if !goesOn && hooks.Begin != nil {
			hooks.Begin()
		}
		casgstatus(g, gwaiting, grunnable)
		runqput(allp[p], g, false)
	}
	procUnpin()
	return g != nil
}

// commitTurn runs on the scheduler's stack when the goroutine no longer runs.
func commitTurn(g, turn unsafe.Pointer) bool {
	t := (*Turn)(turn)
	t.g.g = g
	if oneP {
		lockTurns()
		pushTurn(t)
		turns.waiting.Add(1)
		turnQueue.lock.Store(0)
		return true
	}
	me := thisCPU()
	lockTurns()
	pushTurn(t)
	first, _ := turnQueue.first(me)
	// This P takes the first one, unless goroutines come before that.
	more := t.realTime > 0 && (first != t || Ready())
	priority, allowed := t.realTime, t.group.cpus.Load()
	if t.group == &turnQueue.all {
		allowed = 0
	}
	turns.waiting.Add(1)
	turnQueue.lock.Store(0)
	if allowed != 0 {
		callCPU(me, allowed, priority)
		return true
	}
	wakep()
	if more {
		kickFor(priority, 0)
	}
	return true
}

// callCPU has a processor look for a thread that waits and may run on those allowed.
func callCPU(me int, allowed uint64, priority int32) {
	if allowed &^= off.Load(); allowed == 0 {
		allowed = everyCPU() &^ off.Load()
	}
	if allowed&standing.Load() != 0 {
		return // it looks all the time
	}
	idle := allowed & hooks.Idle()
	switch {
	case allowed>>me&1 != 0 && idle == 0 && priority == 0:
		return // this one is as good as any
	case idle != 0:
		hooks.Kick(bits.TrailingZeros64(idle))
	case priority > 0:
		kickFor(priority, allowed)
	default:
		hooks.Kick(bits.TrailingZeros64(allowed))
	}
	wakep() // the processor may be about to become idle
}

// nextTurn takes the goroutine whose turn it is. If there is none for this processor, but
// one for another that is idle, the M goes there.
func nextTurn() unsafe.Pointer {
	g, goesOn := popHere()
	for g == nil && !oneP {
		at := idleWanted(thisCPU())
		if at < 0 || !hooks.Go(at) {
			return nil
		}
		g, goesOn = popHere()
	}
	if g != nil && !goesOn && hooks.Begin != nil {
		hooks.Begin()
	}
	return g
}

// someTurn reports whether nextTurn may find one.
func someTurn() bool {
	q := &turnQueue
	return oneP || q.leastFair()|q.leastRealTime() != 0 || idleWanted(thisCPU()) >= 0
}

// popHere takes the goroutine whose turn it is on this processor, and tells whether its slice
// goes on; called where nothing preempts it.
func popHere() (g unsafe.Pointer, goesOn bool) {
	me := thisCPU()
	q := &turnQueue
	full := q.leastRealTime() != 0 && RealTimeFull(cputicks())
	lockTurns()
	t := popTurn(me, full)
	if t != nil {
		turns.waiting.Add(-1)
	}
	q.lock.Store(0)
	if t == nil {
		return nil, false
	}
	return t.g.g, t.GoesOn
}

// Allow sets the processors that the thread may run on; anybody may call it.
func (t *Turn) Allow(cpus uint64) {
	procPin()
	lockTurns()
	waits := allow(t, cpus)
	allowed := t.allowed
	if waits && t.group != &turnQueue.all {
		allowed = t.group.cpus.Load()
	}
	priority := t.realTime
	turnQueue.lock.Store(0)
	procUnpin()
	if waits && !oneP {
		if allowed == 0 {
			allowed = everyCPU()
		}
		callCPU(hooks.CPU(), allowed, priority)
	}
}

// SetOff says which processors run nothing. Those that wait for them alone wait for all
// others from then on.
func SetOff(gone uint64) {
	off.Store(gone)
	for more := true; more; {
		procPin()
		lockTurns()
		more = turnQueue.regroup()
		turnQueue.lock.Store(0)
		procUnpin()
	}
	for on := everyCPU() &^ gone; on != 0 && hooks.Kick != nil; on &= on - 1 {
		hooks.Kick(bits.TrailingZeros64(on)) // it looks for them
	}
	for i := range cpus {
		if gone>>i&1 != 0 {
			cpus[i].running.Store(0)
		}
	}
}

// SetRealTime gives the thread a real-time priority, or 0; anybody may call it.
func (t *Turn) SetRealTime(priority int32) {
	procPin()
	lockTurns()
	waits := setRealTime(t, priority)
	allowed := t.allowed
	turnQueue.lock.Store(0)
	procUnpin()
	if waits && priority > 0 {
		kickFor(priority, allowed)
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
