package task

import "sync/atomic"

// Ctx stands for the task that runs: what a task function gets as its first
// argument and hands to Spawn, Sync and the others. It is good until the
// function returns, and for the goroutine that runs it only.
type Ctx struct{ a *activation }

// An activation is a running task of the ordinary form. A worker keeps one for
// each depth of nesting. It belongs to the worker alone.
type activation struct {
	w     *Worker     // immutable
	next  *activation // immutable once set: one deeper
	depth int32       // immutable: Worker.depth while this is the innermost
	n     int32       // its children lie in the frames base, base+1 … base+n-1
	base  *Frame
}

// enter begins an activation on top of base, in scope s; the caller ends it
// with leave.
func (w *Worker) enter(base *Frame, s *scope) *activation {
	a := w.current().above()
	a.base, a.n = base, 0
	w.depth = a.depth
	w.scopes = append(w.scopes, scopeMark{base, s, a.depth})
	return a
}

func (w *Worker) leave(a *activation) {
	w.depth = a.depth - 1
	n := len(w.scopes) - 1
	w.scopes[n] = scopeMark{}
	w.scopes = w.scopes[:n]
}

func (w *Worker) current() *activation { return w.acts[w.depth] }

func (a *activation) above() *activation {
	if a.next == nil {
		a.next = &activation{w: a.w, depth: a.depth + 1}
		a.w.acts = append(a.w.acts, a.next)
	}
	return a.next
}

// A job is the typed part of a spawned task: a *slot for some argument and
// result.
type job interface {
	run(c Ctx)          // call the function, keep the result
	early(c Ctx) *Panic // the same for a task that is the caller's own again
	fetched() bool      // nobody will ask for the result any more
	following() *job    // the next slot of the same frame
	drop()              // nobody may ask for the result from now on
	forget()            // let go of what it refers to
}

// A slot holds a spawned task's function, argument and result. Each frame has
// one for each pair of types that was spawned in it, the last one used first.
type slot[A, R any] struct {
	f     *Frame         // immutable
	fn    func(Ctx, A) R // nil once it has run out of order: the result is in res
	arg   A
	res   R
	key   uint64 // of the newest Child
	after job
}

// A Child is a spawned task. Its zero value is none.
type Child[A, R any] struct {
	s   *slot[A, R]
	key uint64
}

// A key tells the Childs of one slot apart: its place among its parent's
// children, a bit that says that no Sync has been done, a count.
const (
	keyOpen = 1 << 32
	keyStep = 1 << 33
)

func keyPlace(key uint64) int32 { return int32(uint32(key)) }

// Spawn lets fn(c, arg) run in parallel with the rest of the task c. The task
// does not end before the child has ended, asked or not. A spawn does not
// allocate, but for the first at each depth of a worker's stack.
func Spawn[A, R any](c Ctx, fn func(Ctx, A) R, arg A) Child[A, R] {
	a := c.a
	w := a.w
	if w.depth != a.depth {
		a.astray()
	}
	n := a.n
	f := a.at(n)
	s, ok := f.ext.(*slot[A, R])
	if !ok {
		s = slotFor[A, R](f)
	}
	s.fn, s.arg = fn, arg
	key := (s.key+keyStep)>>32<<32 | keyOpen | uint64(uint32(n))
	s.key = key
	f.fn = fnJob
	if f.addr() >= atomic.LoadUintptr(&w.limit) {
		f.pushed()
	}
	a.n = n + 1
	return Child[A, R]{s, key}
}

// slotFor finds or makes the slot of f for these types and puts it first.
func slotFor[A, R any](f *Frame) *slot[A, R] {
	for at := &f.ext; *at != nil; at = (*at).following() {
		if s, ok := (*at).(*slot[A, R]); ok {
			*at = s.after
			s.after = f.ext
			f.ext = s
			return s
		}
	}
	s := &slot[A, R]{f: f, after: f.ext}
	f.ext = s
	return s
}

// Sync waits for the child and gives its result. It runs the child here and now
// if nobody has begun it. If the child panicked, so does Sync.
func (x Child[A, R]) Sync(c Ctx) R {
	s, a := x.s, c.a
	n := keyPlace(x.key)
	if s == nil || s.key != x.key || a.n != n+1 {
		return x.syncSlow(c)
	}
	f, fn := s.f, s.fn
	if f != a.at(n) || f.addr() < a.w.split || fn == nil {
		return x.syncSlow(c)
	}
	s.key = x.key - keyOpen
	a.n = n
	r := fn(c, s.arg)
	if a.n != n {
		a.syncFrom(n)
	}
	return r
}

// call runs the child, which is the caller's own again, by an ordinary call.
func (s *slot[A, R]) call(a *activation) R {
	n := a.n
	r := s.fn(Ctx{a}, s.arg)
	if a.n != n {
		a.syncFrom(n)
	}
	return r
}

func (s *slot[A, R]) run(c Ctx) { s.res = s.call(c.a) }

func (s *slot[A, R]) early(c Ctx) (p *Panic) {
	a, depth, fine := c.a, c.a.w.depth, false
	defer func() {
		if !fine {
			a.w.restore(depth)
			p = caught(recover())
		}
		s.fn = nil
	}()
	s.res = s.call(a)
	fine = true
	return nil
}

func (s *slot[A, R]) fetched() bool   { return s.key&keyOpen == 0 }
func (s *slot[A, R]) drop()           { s.key &^= keyOpen }
func (s *slot[A, R]) following() *job { return &s.after }

func (s *slot[A, R]) forget() {
	var arg A
	var res R
	s.arg, s.res, s.fn = arg, res, nil
}
