package task

import (
	"sync"
	"sync/atomic"
)

// An ID is the number of a task function of the fast form.
type ID uint32

var (
	functions  atomic.Pointer[[]func(f *Frame, a, b uint64) uint64]
	registerMu sync.Mutex // guards replacing functions
)

func init() {
	functions.Store(&[]func(*Frame, uint64, uint64) uint64{fnNone: nil, fnJob: nil})
}

// Register gives fn a number for Fork; call it once for each function, in a
// variable's initializer or an init function. fn is called when a task was
// stolen, with a frame of the thief's stack and the arguments of Fork.
//
// A number instead of a func value: a frame then holds no pointer that each
// spawn would have to tell the garbage collector about.
func Register(fn func(f *Frame, a, b uint64) uint64) ID {
	registerMu.Lock()
	defer registerMu.Unlock()
	all := append([]func(*Frame, uint64, uint64) uint64(nil), *functions.Load()...)
	all = append(all, fn)
	functions.Store(&all)
	return ID(len(all) - 1)
}

// Fast calls a function of the fast form from the ordinary one, with the first
// free frame. While it runs, nothing may be spawned by c.
func Fast[R any](c Ctx, fn func(f *Frame) R) R {
	a := c.live()
	w, f, used, fine := a.w, a.top(), a.used, false
	a.used = usedNone // c is not in use meanwhile
	defer func() {
		if !fine {
			w.restore(a.depth)
			w.unwind(f)
		}
		a.used = used
	}()
	r := fn(f)
	fine = true
	return r
}

// Do is the way from the fast form to the ordinary one: it calls fn as a task
// on top of f, and ends when that and what it has spawned have ended.
func (f *Frame) Do(fn func(c Ctx)) {
	w := f.w
	a, fine := w.enter(f, w.scope()), false
	defer func() {
		if !fine {
			w.restore(a.depth)
			w.unwind(f)
		}
		w.leave(a)
	}()
	fn(Ctx{a})
	if a.used != 0 {
		a.syncFrom(0)
	}
	fine = true
}
