//go:build !race

package wait

import (
	"sync/atomic"
	"unsafe"
)

// The Go scheduler's own park and ready, and its timers with a direct call-back:
// a blocked thread costs no channel, no allocation and no second goroutine.
// The build passes -checklinkname=0 for the timer functions.

//go:linkname gopark runtime.gopark
func gopark(unlockf func(g, lock unsafe.Pointer) bool, lock unsafe.Pointer, reason uint8, traceReason uint8, traceskip int)

//go:linkname casgstatus runtime.casgstatus
func casgstatus(g unsafe.Pointer, old, new uint32)

//go:linkname runqput runtime.runqput
func runqput(p, g unsafe.Pointer, next bool)

//go:linkname wakep runtime.wakep
func wakep()

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

//go:linkname allp runtime.allp
var allp []unsafe.Pointer

//go:linkname nanotime runtime.nanotime
func nanotime() int64

//go:linkname newTimer time.newTimer
func newTimer(when, period int64, f func(any, uintptr, int64), arg any, c unsafe.Pointer) unsafe.Pointer

//go:linkname resetTimer time.resetTimer
func resetTimer(t unsafe.Pointer, when, period int64) bool

//go:linkname stopTimer time.stopTimer
func stopTimer(t unsafe.Pointer) bool

// waitReasonSleepy is what goroutine dumps show for a parked thread
// (runtime.waitReasonSelect would mislead; "chan receive" is nearest: 14).
const waitReason = 14

// Now returns monotonic nanoseconds since an arbitrary origin.
func Now() int64 {
	if clock.mult != 0 {
		return sinceBoot(cputicks())
	}
	return nanotime()
}

// goroutine is a parked goroutine.
type goroutine struct{ g unsafe.Pointer }

// Goroutine states (runtime2.go).
const (
	grunnable = 1
	gwaiting  = 4
)

// unshared is for each P the last goroutine that was made ready on it and of which
// no other P has been told, or 0; it is the P's own.
var unshared [64]struct {
	g uintptr
	_ [56]byte
}

// oneP says that there is one P, so that nobody need ever be told.
var oneP bool

// SetProcessors tells how many processors there may be; called before threads exist.
func SetProcessors(n int) { oneP, processors = n == 1, int64(n) }

// SetAlone says that there is one P now, or that there will be more. It is called while there
// is one: nobody is between reading oneP and acting on it then, but where a processor more
// is told of a goroutine in vain.
func SetAlone(alone bool) { oneP = alone }

// ready is the runtime's goready but for one thing: an idle P is told at once
// only of a second goroutine. Mostly the caller blocks soon and the goroutine
// runs next on this P; waking another CPU to steal it would cost more than its
// work. Share tells of the first one where the caller goes on instead.
func (g goroutine) ready() {
	p := procPin()
	casgstatus(g.g, gwaiting, grunnable)
	runqput(allp[p], g.g, true)
	if oneP {
		procUnpin()
		return
	}
	second := unshared[p].g != 0
	unshared[p].g = uintptr(g.g)
	procUnpin()
	if second {
		tell()
	}
}

// Share lets idle Ps have the goroutines that were made ready here: the caller
// is about to enter user mode, which may take long.
func Share() {
	if !oneP {
		share()
	}
}

func share() {
	p := procPin()
	some := unshared[p].g != 0
	unshared[p].g = 0
	procUnpin()
	if some {
		tell()
	}
}

// tell finds a P for goroutines that are ready.
func tell() {
	if Tell.Call != nil {
		Tell.Call()
	}
	wakep()
}

//go:linkname runqempty runtime.runqempty
func runqempty(p unsafe.Pointer) bool

// Ready reports whether this P's run queue has goroutines.
func Ready() bool {
	empty := runqempty(allp[procPin()])
	procUnpin()
	return !empty
}

func (s *Sleeper) park() {
	if !oneP {
		unshared[procPin()].g = 0
		procUnpin()
	}
	if ran != nil {
		s.readied = 0
		gopark(commitPark, unsafe.Pointer(s), waitReason, 0, 2)
		if s.readied != 0 {
			s.delayed += startOf(s.g.g) - s.readied
		}
	} else {
		s.parkCounted()
	}
	if !oneP {
		// It runs where it was made ready: nobody need be told any more.
		if p := procPin(); unshared[p].g == uintptr(s.g.g) {
			unshared[p].g = 0
		}
		procUnpin()
	}
}

// parkCounted counts the time where nobody else does.
func (s *Sleeper) parkCounted() {
	before := cputicks()
	s.since.Store(before)
	gopark(commitPark, unsafe.Pointer(s), waitReason, 0, 2)
	s.since.Store(0)
	s.idle.Store(s.idle.Load() + cputicks() - before)
}

// commitPark runs on the scheduler's stack when the goroutine can no longer be
// running; false makes it go on at once.
func commitPark(g, lock unsafe.Pointer) bool {
	s := (*Sleeper)(lock)
	s.g.g = g
	return s.state.CompareAndSwap(stateArmed, stateParked)
}

// timer wakes one sleeper at a time of its choosing.
type timer struct {
	t unsafe.Pointer
	// at is when it fires, 0 when it is not set: stored by the owner, cleared
	// when it fires.
	at atomic.Int64
}

// set makes the timer fire at when or before; the first use allocates it. A
// timer that is set for an earlier time is left alone: the sleeper it wakes
// looks at its condition and comes back here, which is rare, whereas most
// sleeps end long before their time.
func (t *timer) set(s *Sleeper, when int64) {
	if at := t.at.Load(); at != 0 && at <= when {
		return // its Wake comes after this load, and so after the owner's Arm
	}
	t.at.Store(when)
	if t.t == nil {
		t.t = newTimer(when, 0, fireTimer, s, nil)
		return
	}
	resetTimer(t.t, when, 0)
}

func (t *timer) stop() {
	if t.t != nil {
		stopTimer(t.t)
		t.at.Store(0)
	}
}

// fireTimer runs inside the scheduler: it may only make goroutines runnable.
func fireTimer(arg any, _ uintptr, _ int64) {
	s := arg.(*Sleeper)
	s.timer.at.Store(0)
	s.Wake()
}
