package task

import (
	"sync"
	"sync/atomic"

	"hardtack/lock/core"
)

// A Group is a set of children whose results go to an inlet: a function that is
// called for each finished child, one call at a time, in the order in which the
// children finish. It usually adds the result to variables of the parent, which
// the parent may look at after Ctx.Sync, or within Do.
type Group[R any] struct {
	scope scope
	mu    sync.Mutex     // held while the inlet runs
	inlet func(R)        // immutable
	a     *activation    // immutable: of the task that made it
	from  uint32         // a's: its children come from this place on
	owner atomic.Uintptr // the goroutine that holds mu, as core.Self tells
	later []R            // results that came while that one held it
}

// NewGroup makes a group of children of the task c. An inlet of nil is none.
func NewGroup[R any](c Ctx, inlet func(R)) *Group[R] {
	a := c.live()
	w := a.w
	return &Group[R]{scope: scope{outer: w.scope(), rt: w.rt}, inlet: inlet, a: a, from: a.used}
}

// Abort ends the group's children: those that have not begun never begin, those
// that run unwind at their next spawn or Check, with their deferred functions.
// The inlet is not called for them, nor for any that finishes from now on. It
// may be called from anywhere, the inlet included.
func (g *Group[R]) Abort() {
	g.made()
	g.scope.abort()
}

// Aborted tells whether Abort has been called.
func (g *Group[R]) Aborted() bool { return g.scope.ends.Load() }

// Do calls fn while no inlet of the group runs.
func (g *Group[R]) Do(fn func()) {
	g.made()
	self := core.Self()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owner.Store(self)
	defer g.owner.Store(0)
	fn()
	g.deliver()
}

// A groupCall is the argument of a child in a group.
type groupCall[A, R any] struct {
	g   *Group[R]
	fn  func(Ctx, A) R
	arg A
}

// SpawnIn spawns fn(c, arg) as a child of the task c, in the group g. When the stack
// of spawned tasks is full it first runs some of the task's younger ones that are in
// groups. So any number of children takes bounded memory, and a parent that spawns
// more than some thousand must not hold a lock that they want.
func SpawnIn[A, R any](c Ctx, g *Group[R], fn func(Ctx, A) R, arg A) {
	g.made()
	if fn == nil {
		panic(ErrNoFunc)
	}
	if a := c.a; a != nil && a.w.limited(a.base, a.used) && c.live().full() {
		a.makeRoom()
	}
	x := Spawn(c, runInGroup[A, R], groupCall[A, R]{g, fn, arg})
	x.s.group = true
	if c.a == g.a { // the task's elder children may have ended since NewGroup
		g.from = min(g.from, uint32((x.key&^keyChecked)>>32))
	}
}

func runInGroup[A, R any](c Ctx, x groupCall[A, R]) (none struct{}) {
	g, a := x.g, c.a
	w := a.w
	if g.scope.ended() {
		if g.scope.outer.ended() {
			panic(abortSignal{})
		}
		return
	}
	b := w.enter(a.top(), &g.scope)
	fine := false
	defer func() {
		if fine {
			w.leave(b)
			return
		}
		p := w.failed(b, recover())
		w.leave(b)
		if _, ok := p.Value.(abortSignal); ok && !g.scope.outer.ended() {
			return // this is as far as the abort goes
		}
		if p.Value != ErrGoexit {
			p.throw()
		}
	}()
	r := x.fn(Ctx{b}, x.arg)
	if b.used != 0 {
		b.syncFrom(0)
	}
	g.finished(r)
	fine = true
	return
}

func (g *Group[R]) finished(r R) {
	self := core.Self()
	if g.owner.Load() == self { // SpawnIn in Do or the inlet has run a child at once
		g.later = append(g.later, r)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owner.Store(self)
	defer g.owner.Store(0)
	if g.inlet != nil && !g.scope.ended() {
		g.inlet(r)
	}
	g.deliver()
}

// deliver calls the inlet for what came while the caller held mu.
func (g *Group[R]) deliver() {
	for len(g.later) > 0 {
		r := g.later[0]
		g.later = g.later[1:]
		if g.inlet != nil && !g.scope.ended() {
			g.inlet(r)
		}
	}
	g.later = nil
}

// made refuses a Group that NewGroup did not make.
func (g *Group[R]) made() {
	if g == nil || g.a == nil {
		panic(ErrNoGroup)
	}
}

// Sync waits for all children that the task has spawned since NewGroup, in this
// group or not. It is for the task that made the group. The results of those
// outside of the group are gone: Child.Sync after it is an error.
func (g *Group[R]) Sync(c Ctx) {
	g.made()
	a := c.live()
	if a != g.a {
		panic(ErrForeign)
	}
	if a.used > g.from {
		a.syncFrom(g.from)
	}
}
