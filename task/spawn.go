package task

// Ctx stands for the task that runs: what a task function gets as its first
// argument and hands to Spawn, Sync and the others. It is good until the
// function returns, and for the goroutine that runs it only.
type Ctx struct{ a *activation }

// An activation is a running task of the ordinary form. A worker keeps one for
// each depth of nesting. It belongs to the worker alone.
//
// A child that its parent runs itself shares the parent's activation: that is
// why an inline child costs no more than a call.
type activation struct {
	w     *Worker // immutable
	base  *Frame
	used  uint32      // bytes of the frames from base on that its children take, or usedNone
	under uint32      // used of the activation that this one was entered from
	depth int32       // immutable: Worker.depth while this is the innermost
	next  *activation // immutable once set: one deeper
}

// usedNone is the used of an activation that is not the innermost of its worker,
// or has ended. It lies beyond each stack, so that the compare with the limit
// that each Spawn makes finds it.
const usedNone = 1 << 31

// enter begins an activation on top of base, in scope s; the caller ends it
// with leave.
func (w *Worker) enter(base *Frame, s *scope) *activation {
	outer := w.current()
	a := outer.above()
	a.base, a.used, a.under = base, 0, outer.used
	outer.used = usedNone
	w.depth = a.depth
	w.scopes = append(w.scopes, scopeMark{base, s, a.depth})
	return a
}

func (w *Worker) leave(a *activation) {
	a.used = usedNone
	w.depth = a.depth - 1
	w.current().used = a.under
	n := len(w.scopes) - 1
	w.scopes[n] = scopeMark{}
	w.scopes = w.scopes[:n]
}

func (w *Worker) current() *activation { return w.acts[w.depth] }

func (a *activation) above() *activation {
	if a.next == nil || a.w.rt.checks { // with checks none is used again
		a.next = &activation{w: a.w, depth: a.depth + 1}
		a.w.acts = append(a.w.acts[:a.depth+1], a.next)
	}
	return a.next
}

// live is c's activation, which must be the innermost of its worker.
func (c Ctx) live() *activation {
	a := c.must()
	if !a.w.onIt() || a.used == usedNone {
		panic(ErrForeign)
	}
	return a
}

// must is c's activation, which a zero Ctx has not.
func (c Ctx) must() *activation {
	if c.a == nil {
		panic(ErrNoCtx)
	}
	return c.a
}

// A job is the typed part of a spawned task: a *slot for some argument and
// result.
type job interface {
	run(c Ctx)          // call the function, keep the result
	early(c Ctx) *Panic // the same out of order, for a task that is the caller's own again
	sweepBelow()        // when this one ends, let go of the hole below too
	below() bool        // whether that was asked for, once
	fetched() bool      // nobody will ask for the result any more
	following() *job    // the next slot of the same frame
	drop()              // nobody may ask for the result from now on
	forget()            // let go of what it refers to
	ofGroup() bool      // it is a Group's child
}

// A slot holds a spawned task's function, argument and result. Each frame has
// one for each pair of types that was spawned in it, the last one used first.
type slot[A, R any] struct {
	fn    func(Ctx, A) R // first: see slotWith
	f     *Frame         // immutable; nil when the child ran at once (full.go)
	key   uint64         // of the newest Child; its count is even once that has been synced
	held  uint32         // what the count was before hold, which keeps Sync from the short way, or 0
	sweep bool           // see sweepBelow
	group bool           // it is a Group's child
	arg   A
	res   R // when it was stolen or ran out of order
	after job
}

// A Child is a spawned task. Its zero value is none.
type Child[A, R any] struct {
	s   *slot[A, R]
	key uint64
}

// A key tells the Childs of one slot apart: in its upper half it has the place of
// the frame, the distance from the base of the parent's activation in bytes, in
// its lower half a count that goes up at each Spawn and at each Sync. Childs of a
// runtime with checks have keyChecked too, so that no Sync takes the short way.
const keyChecked = 1 << 32

func keyOf(place, count uint32) uint64 { return uint64(place)<<32 | uint64(count) }

func (x Child[A, R]) place() uint32 { return uint32(x.key >> 32) }

// Spawn lets fn(c, arg) run in parallel with the rest of the task c. The task
// does not end before the child has ended, asked or not. A spawn does not
// allocate, except for the first at each depth of a worker's stack. With as many tasks
// spawned and not ended as the stack holds (see WithDepth), Spawn runs the child at
// once, and its panic waits for Sync, Try or the parent's end.
//
// The frame remembers the function that was spawned in it last: the same again,
// as in a recursion, takes the short way.
func Spawn[A, R any](c Ctx, fn func(Ctx, A) R, arg A) Child[A, R] {
	a := c.must()
	base, at := a.base, a.used
	if a.w.limited(base, at) {
		return spawnSlow(c, fn, arg)
	}
	f := base.up(at)
	s, ok := slotWith(f, fn)
	if !ok {
		return spawnSlow(c, fn, arg)
	}
	s.arg = arg
	f.fn = fnJob
	key := keyOf(at, uint32(s.key)+1)
	s.key = key
	a.used = at + frameBytes
	return Child[A, R]{s, key}
}

func spawnSlow[A, R any](c Ctx, fn func(Ctx, A) R, arg A) Child[A, R] {
	if fn == nil {
		panic(ErrNoFunc)
	}
	a := c.live()
	if a.full() {
		return spawnAtOnce(a, fn, arg)
	}
	f := a.top()
	s, ok := f.ext.(*slot[A, R])
	if !ok {
		s = slotFor[A, R](f)
	}
	s.fn, s.arg = fn, arg
	s.key = keyOf(a.used, uint32(s.key)+1)
	if a.w.rt.checks {
		s.key |= keyChecked
	}
	f.fn = fnJob
	if a.w.limited(f, 0) {
		f.pushed()
	}
	a.used += frameBytes
	return Child[A, R]{s, s.key}
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
	s := &slot[A, R]{f: f}
	if f.ext != noJob {
		s.after = f.ext
	}
	f.ext = s
	return s
}

// Sync waits for the child and gives its result. It runs the child here and now
// if nobody has begun it. If the child panicked, so does Sync: see Try.
func (x Child[A, R]) Sync(c Ctx) R {
	s, a, at := x.s, c.a, x.place()
	if s == nil || s.key != x.key || a.used != at+frameBytes {
		return x.syncSlow(c)
	}
	if f := a.at(at); s.f != f || f.addr() < a.w.split {
		return x.syncSlow(c)
	}
	s.key = x.key + 1
	a.used = at
	r := s.fn(c, s.arg)
	if a.used != at {
		a.syncFrom(at)
	}
	return r
}

// Join runs now(c, x) and later(c, y), in parallel if a core is free, and gives
// both results. It is Spawn of later, a call of now and Sync in one, and faster.
func Join[A, R, B, S any](c Ctx, now func(Ctx, A) R, x A, later func(Ctx, B) S, y B) (R, S) {
	a := c.must()
	base, at := a.base, a.used
	if a.w.limited(base, at) {
		return joinSlow(c, now, x, later, y)
	}
	f := base.up(at)
	s, ok := slotWith(f, later)
	if !ok {
		return joinSlow(c, now, x, later, y)
	}
	s.arg = y
	f.fn = fnJob
	a.used = at + frameBytes
	r := now(c, x)
	if a.used != at+frameBytes {
		return r, joinEnd(a, at, s)
	}
	if s.f.addr() < a.w.split {
		return r, joinEnd(a, at, s)
	}
	a.used = at
	q := s.fn(c, s.arg)
	if a.used != at {
		a.syncFrom(at)
	}
	return r, q
}

func joinSlow[A, R, B, S any](c Ctx, now func(Ctx, A) R, x A, later func(Ctx, B) S, y B) (R, S) {
	child := spawnSlow(c, later, y)
	n := c.a.used
	r := now(c, x)
	if c.a.used != n {
		c.a.syncFrom(n)
	}
	return r, child.Sync(c)
}

// joinEnd ends a Join whose later has been shared, or whose now has children.
func joinEnd[A, R any](a *activation, at uint32, s *slot[A, R]) R {
	if a.used != at+frameBytes {
		a.syncFrom(at + frameBytes)
	}
	return s.end(a)
}

// call runs the child, which is the caller's own again, by an ordinary call.
func (s *slot[A, R]) call(a *activation) R {
	if a.w.rt.checks {
		return s.callChecked(a)
	}
	at := a.used
	r := s.fn(Ctx{a}, s.arg)
	if a.used != at {
		a.syncFrom(at)
	}
	return r
}

func (s *slot[A, R]) run(c Ctx) { s.res = s.call(c.a) }

func (s *slot[A, R]) early(c Ctx) (p *Panic) {
	s.hold()
	return s.guarded(c.a)
}

func (s *slot[A, R]) hold() {
	switch {
	case s.held != 0:
	case s.key&1 == 0:
		s.held = 2 // of Join, which has no Child: any even number
	default:
		s.held = uint32(s.key)
		s.key++
	}
}

func (s *slot[A, R]) below() bool {
	b := s.sweep
	s.sweep = false
	return b
}

func (s *slot[A, R]) sweepBelow() {
	if s.f.fn == fnNone {
		s.sweep = true
	} else if s.key&1 != 0 || s.held != 0 { // else it is Join's, which would not look
		s.sweep = true
		s.hold()
	}
}

// guarded runs the child and keeps its result, or gives its panic.
func (s *slot[A, R]) guarded(a *activation) (p *Panic) {
	depth, at, fine := a.w.depth, a.used, false
	defer func() {
		if !fine {
			p = caught(recover())
			a.w.restore(depth)
			a.w.unwind(a.at(at))
			a.used = at
		}
	}()
	s.res = s.call(a)
	fine = true
	return nil
}

func (s *slot[A, R]) fetched() bool   { return s.key&1 == 0 && s.held == 0 }
func (s *slot[A, R]) drop()           { s.key, s.held = (s.key+1)&^1, 0 }
func (s *slot[A, R]) ofGroup() bool   { return s.group }
func (s *slot[A, R]) following() *job { return &s.after }

func (s *slot[A, R]) forget() {
	var arg A
	var res R
	s.arg, s.res = arg, res
	unsetFunc(s)
}
