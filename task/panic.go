package task

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// What misuse panics with, and what a task that cannot go on fails with.
var (
	ErrForeign = errors.New("task: a Ctx or Child is used outside of the task that it belongs to, or after that has returned")
	ErrSynced  = errors.New("task: Sync of a child that was synced before")
	ErrNoFunc  = errors.New("task: a nil function; Run, Spawn and the others want one to call")
	ErrNoChild = errors.New("task: Sync of a zero Child; use the one that Spawn gave")
	ErrDepth   = errors.New("task: too many tasks forked and not ended on one worker; make the Runtime with a larger WithDepth, or use Spawn")
	ErrGoexit  = errors.New("task: runtime.Goexit was called in a task")
	ErrNoGroup = errors.New("task: a Group that NewGroup did not make; use g := task.NewGroup(c, inlet)")
	ErrNoCtx   = errors.New("task: a zero Ctx; use the one that Run, RunOn or Spawn gave to the task's function")
	ErrClosed  = errors.New("task: the runtime has been closed")
)

// A Panic is what a task's panic becomes on its way to the parent: Try gives it,
// Sync, Join and Run panic with it.
type Panic struct {
	Value   any    // what the task panicked with
	Stack   []byte // where, as from debug.Stack; of the parents too that ran it by a call
	Parents []byte // the stacks of the parents that waited for it elsewhere, innermost first
}

func (p *Panic) Error() string {
	s := fmt.Sprintf("%v\n\nin a task:\n%s", p.Value, p.Stack)
	if len(p.Parents) > 0 {
		s += fmt.Sprintf("\nawaited by:\n%s", p.Parents)
	}
	return s
}

// awaited adds the caller's stack: it has waited for a stolen task.
func (p *Panic) awaited() *Panic {
	if _, ok := p.Value.(abortSignal); !ok {
		p.Parents = append(p.Parents, debug.Stack()...)
	}
	return p
}

func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// abortSignal unwinds a task whose scope has been aborted.
type abortSignal struct{}

// failed cleans up after activation a, which ended by panicking with r, or by
// Goexit, when r is nil.
func (w *Worker) failed(a *activation, r any) *Panic {
	p := caught(r)
	w.restore(a.depth)
	w.unwind(a.base)
	return p
}

// caught is to be called while the panic's stack is still there.
func caught(r any) *Panic {
	switch r := r.(type) {
	case nil:
		return &Panic{Value: ErrGoexit, Stack: debug.Stack()}
	case *Panic:
		return r
	case abortSignal:
		return &Panic{Value: r}
	default:
		return &Panic{Value: r, Stack: debug.Stack()}
	}
}

func (p *Panic) throw() {
	if s, ok := p.Value.(abortSignal); ok {
		panic(s)
	}
	panic(p)
}

// restore makes the activation of this depth the innermost again after a panic
// has left those that it had called.
func (w *Worker) restore(depth int32) {
	w.depth = depth
	n := len(w.scopes)
	for w.scopes[n-1].depth > depth {
		n--
	}
	w.scopes = w.scopes[:n]
}

// rethrow panics with what the stolen task in f failed with.
func (w *Worker) rethrow(f *Frame) {
	f.fault.awaited().throw()
}
