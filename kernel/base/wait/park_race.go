//go:build race

package wait

import "time"

// Under the race detector (host tests only) code may not run on the
// scheduler's stack, so parking goes through a channel and timers through
// goroutines.

var start = time.Now()

// Now returns monotonic nanoseconds since an arbitrary origin.
func Now() int64 { return int64(time.Since(start)) + 1 }

// goroutine is a parked goroutine.
type goroutine struct{ c chan struct{} }

func (g goroutine) ready() { g.c <- struct{}{} }

func (s *Sleeper) park() {
	if s.g.c == nil {
		s.g.c = make(chan struct{}, 1)
	}
	if s.state.CompareAndSwap(stateArmed, stateParked) {
		<-s.g.c
	}
}

// timer wakes one sleeper at a time of its choosing.
type timer struct{ t *time.Timer }

func (t *timer) set(s *Sleeper, when int64) {
	if t.t == nil {
		t.t = time.AfterFunc(time.Duration(when-Now()), s.Wake)
		return
	}
	t.t.Reset(time.Duration(when - Now()))
}

func (t *timer) stop() {
	if t.t != nil {
		t.t.Stop()
	}
}

// readyAt does nothing: no processor stands by here.
func (g goroutine) readyAt(t *Turn) bool { return false }

// SetProcessors tells how many processors there may be.
func SetProcessors(n int) { processors = int64(n) }

// SetAlone is not needed here.
func SetAlone(bool) {}

// Share has nothing to do here.
func Share() {}

// Quiet reports whether nobody waits for a P.
func Quiet() bool { return false }

// Ready reports whether this P's run queue has goroutines; it is not known here.
func Ready() bool { return true }

// SetTurns has little to do here.
func SetTurns(h TurnHooks) { hooks = h }

// HasTurns reports that there is no queue of threads here.
func HasTurns() bool { return false }

// Wait is not called here.
func (t *Turn) Wait() { panic("wait: no queue of threads") }

// ReadyFirst finds nobody here.
func ReadyFirst() bool { return false }

// SetRealTime has nothing to do here.
func (t *Turn) SetRealTime(priority int32) {}

// Allow has nothing to do here.
func (t *Turn) Allow(cpus uint64) {}

// SetOff only notes which processors run nothing.
func SetOff(gone uint64) { off.Store(gone) }

// Live has nothing to do here.
func (t *Turn) Live(lives bool) {}

func hurry(priority int32) {}

// Hurry knows of nobody here.
func Hurry() int32 { return 0 }
