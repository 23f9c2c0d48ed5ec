//go:build !race

package wait

import "sync/atomic"

// A processor stands by before it idles: the M that found nothing to do looks at the queue of
// threads for some microseconds more. Two threads that are bound to different processors, and
// wake each other, meet there without interrupts and without a P that changes hands. Whoever
// wakes such a thread puts it into the queue of its processor at once, if that stands by or is
// idle. One that nobody came to a few times does not stand by for a while.

// standTicks is how long a processor stands by: about 20 microseconds on machines of 1 to 4 GHz.
const (
	standTicks = 40_000
	standFails = 4  // times in vain before a rest
	standRest  = 64 // times without standing by
)

// standing is the processors that stand by, a bit each. Who queues a thread looks there
// afterwards; who ends standing looks at the queue afterwards.
var standing atomic.Uint64

// standers are what each processor remembers; its own.
var standers [64]struct {
	fails, rest uint32
	vain        bool // nobody came the last time
	_           [55]byte
}

// stand begins; called on the scheduler's stack, as look and stood are. early: the M has not
// looked everywhere yet. That is worth while where somebody came the last time.
func stand(early bool) (ticks int64, cpu int) {
	if oneP || bound.Load() == 0 {
		return 0, 0
	}
	cpu = hooks.CPU()
	s := &standers[cpu&63]
	if early && s.vain {
		return 0, 0
	}
	if s.rest != 0 {
		s.rest--
		return 0, 0
	}
	if hooks.Pending() || off.Load()>>cpu&1 != 0 {
		return 0, 0
	}
	standing.Or(1 << cpu)
	return standTicks, cpu
}

// look reports whether a thread waits for the processor, or an interrupt to be served.
func look(cpu int) bool {
	return turnQueue.leastFairOn(cpu)|turnQueue.leastRealTimeOn(cpu) != 0 || hooks.Pending()
}

// stood ends standing by. The caller looks at the queue once more before the P idles.
func stood(cpu int, found bool) {
	standing.And(^(1 << cpu))
	s := &standers[cpu&63]
	if s.vain = !found; found {
		s.fails = 0
	} else if s.fails++; s.fails >= standFails {
		s.fails, s.rest = standFails-1, standRest
	}
	if hooks.CPU() != cpu && off.Load()>>cpu&1 == 0 {
		hooks.Kick(cpu) // the M has moved: who counted on it must be seen by another
	}
}

// readyAt puts a goroutine that was parked into the queue of another processor, where its
// thread may run, if one stands by or is idle. It reports false if there is none, or the
// thread may run here: then it first runs here, until it would enter user mode.
func (g goroutine) readyAt(t *Turn) bool {
	if oneP {
		return false
	}
	procPin()
	me, key := hooks.CPU(), hooks.Slept(t)
	lockTurns()
	allowed := t.allowed &^ off.Load()
	if allowed == 0 || allowed>>me&1 != 0 || allowed&(standing.Load()|hooks.Idle()) == 0 {
		turnQueue.lock.Store(0)
		procUnpin()
		return false
	}
	t.g = goroutine{g.g}
	t.Key, t.Late, t.GoesOn = key, 0, false
	if t.Place == 0 {
		t.Place = Arrive()
	}
	pushTurn(t)
	priority := t.realTime
	turns.waiting.Add(1)
	turnQueue.lock.Store(0)
	callCPU(me, allowed, priority)
	procUnpin()
	return true
}
