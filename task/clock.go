package task

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A clock lets the tasks of a Run see within a millisecond that its context has
// ended, though all processors (Ps) of Go's scheduler are busy with tasks. The
// scheduler then runs a timer, or the goroutine of a context.AfterFunc, only when it
// has preempted a task, which takes it 10 ms. The clock is a thread that has no P
// (clock_unsafe.go): each tick it lowers the limit of every worker, and these look
// at the context themselves, at their next Spawn, Fork or Check.
//
// It runs while there are Runs whose context can end, and lingers a little; a
// runtime that has none has no such thread.
type clock struct {
	wanted atomic.Int32  // Runs whose context can end
	ticks  atomic.Uint32 // goes up each tick
	mu     sync.Mutex    // innermost; guards on
	on     bool          // its goroutine runs
	list   workerList    // all workers that there ever were
}

const (
	clockTick = 500 * time.Microsecond
	lingering = 20 // ticks without a Run that wants it
)

func (k *clock) want(rt *Runtime) {
	k.wanted.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on {
		k.on = true
		go rt.clockLoop()
	}
}

func (k *clock) unwant() { k.wanted.Add(-1) }

func (rt *Runtime) clockLoop() {
	k := &rt.clock
	for {
		k.tick()
		k.mu.Lock()
		if k.wanted.Load() == 0 {
			k.on = false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
	}
}

// limits says when the scope's tasks are to end.
func (s *scope) limits(ctx context.Context) {
	s.ctx = ctx
	s.deadline, _ = ctx.Deadline()
}

// checkContext aborts the Run that the worker is in if its context has ended. It
// looks once each tick.
func (w *Worker) checkContext() {
	t := w.rt.clock.ticks.Load()
	if t == w.ticks {
		return
	}
	w.ticks = t
	s := w.scope()
	for s != nil && s.outer != nil {
		s = s.outer
	}
	if s != nil && s.ctx != nil && !s.ends.Load() && s.over() {
		s.abort()
	}
}

// over tells whether the context has ended, or will as soon as its timer runs.
func (s *scope) over() bool {
	return s.ctx.Err() != nil || !s.deadline.IsZero() && !time.Now().Before(s.deadline)
}

// cancelled is the error of a Run whose context has ended: context.Canceled or
// context.DeadlineExceeded, with the cause if that is another.
func cancelled(ctx context.Context) error {
	if ctx.Err() == nil { // a worker saw the deadline before the context's timer ran
		late := time.NewTimer(10 * time.Millisecond)
		defer late.Stop()
		select {
		case <-ctx.Done():
		case <-late.C:
			return context.DeadlineExceeded
		}
	}
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		if cause == nil {
			return err
		}
		return cause
	}
	return &endedError{err, cause}
}

// An endedError says why a context has ended, and is its error too.
type endedError struct{ err, cause error }

func (e *endedError) Error() string   { return e.err.Error() + ": " + e.cause.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.err} }
