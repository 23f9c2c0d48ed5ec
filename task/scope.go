package task

import (
	"context"
	"sync/atomic"
	"time"
)

// A scope is a set of tasks that can be aborted together: a Run, or a Group
// within it. A task inherits its parent's scope.
type scope struct {
	outer *scope      // immutable
	rt    *Runtime    // immutable
	ends  atomic.Bool // set once

	// For the scope of a Run whose context can end. Immutable.
	ctx      context.Context
	deadline time.Time // zero: none
}

// A scopeMark says that a worker's frames from base on belong to s.
type scopeMark struct {
	base  *Frame
	s     *scope
	depth int32 // of the activation that it began with
}

// scope is the innermost scope that the worker is in.
func (w *Worker) scope() *scope { return w.scopes[len(w.scopes)-1].s }

// ended tells whether s or a scope around it has been aborted.
func (s *scope) ended() bool {
	for ; s != nil; s = s.outer {
		if s.ends.Load() {
			return true
		}
	}
	return false
}

// abort ends the scope's tasks: those not begun never begin, the others see it
// at their next spawn or Check.
func (s *scope) abort() {
	if s.ends.Swap(true) {
		return
	}
	for _, w := range *s.rt.workers.Load() {
		if w != nil {
			w.ring(flagAbort)
		}
	}
}

// Aborted tells whether the task should end, because its Run's context was
// cancelled or its Group aborted. Spawn in such a task unwinds it by a panic
// that runs its deferred functions and stops at the edge of the Run or Group.
func (c Ctx) Aborted() bool {
	w := c.must().w
	w.checkContext()
	return w.scope().ended()
}

// Check unwinds the task, as Spawn would, if it has been aborted.
func (c Ctx) Check() {
	if c.Aborted() {
		panic(abortSignal{})
	}
}
