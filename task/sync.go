package task

// syncSlow is Sync for all but the youngest child, unstolen.
func (x Child[A, R]) syncSlow(c Ctx) R {
	s, a := x.s, x.check(c)
	if s.f == nil {
		s.key++
		if p := s.after.(*atOnce).asked(a); p != nil {
			p.throw()
		}
		return s.res
	}
	return s.end(a)
}

// check finds out whether x may be synced by c, and gives c's activation.
func (x Child[A, R]) check(c Ctx) *activation {
	s := x.s
	if s == nil {
		panic(ErrNoChild)
	}
	a := c.live()
	if s.f == nil {
		switch {
		case s.after.(*atOnce).a != a:
			panic(ErrForeign)
		case s.key != x.key:
			panic(ErrSynced)
		}
		return a
	}
	switch {
	case s.f.w != a.w || s.f.addr() < a.base.addr() || s.f.addr() >= a.top().addr():
		if s.f.w == a.w && !x.due() {
			panic(ErrSynced)
		}
		panic(ErrForeign)
	case !x.due():
		panic(ErrSynced)
	}
	return a
}

// due tells whether x has not been synced yet.
func (x Child[A, R]) due() bool { return x.s.key == x.key || x.s.held == uint32(x.key) }

// end gives the result of the child in s, however far it is.
func (s *slot[A, R]) end(a *activation) (r R) {
	if a.takeLast(s.f) {
		s.drop()
		sweep := s.below()
		r = s.call(a)
		a.lower(a.used, sweep)
		return r
	}
	p := a.finish(s.f)
	r = s.res
	if p != nil {
		p.throw()
	}
	return r
}

// takeLast takes f off the stack, if it is the youngest child's and not begun.
func (a *activation) takeLast(f *Frame) bool {
	if f != a.last() || f.fn != fnJob || !a.w.takeBack(f) {
		return false
	}
	a.used -= frameBytes
	return true
}

// finish ends the child in f, out of order or stolen. If younger ones keep its
// frame from being let go of, the next one is to do that.
func (a *activation) finish(f *Frame) *Panic {
	p := a.complete(f)
	f.ext.drop()
	f.leave()
	at := a.place(f)
	a.lower(at, false)
	if a.used > at+frameBytes {
		f.Next().ext.sweepBelow()
	}
	return p
}

// Try is Sync for a parent that goes on when the child panics: it gives the
// panic, with the stacks of child and parent, instead of passing it on. It costs
// some two nanoseconds more, since a deferred function guards the child.
//
// An abort of the task (see Ctx.Aborted) is none of the child's: it goes on.
func (x Child[A, R]) Try(c Ctx) (r R, p *Panic) {
	s, a := x.s, x.check(c)
	if s.f == nil {
		s.key++
		p = s.after.(*atOnce).asked(a)
	} else if a.takeLast(s.f) {
		s.drop()
		sweep := s.below()
		p = s.guarded(a)
		a.lower(a.used, sweep)
	} else {
		p = a.finish(s.f)
	}
	if p == nil {
		return s.res, nil
	}
	if _, ok := p.Value.(abortSignal); ok {
		p.throw()
	}
	return r, p
}

// complete makes sure that the child in f has ended, and tells its panic. If it
// was stolen, its younger siblings that nobody has begun run first.
func (a *activation) complete(f *Frame) *Panic {
	w := a.w
	if f.fn == fnNone {
		p := f.fault // it ran early
		f.fault = nil
		return p
	}
	if w.takeBack(f) {
		return a.early(f)
	}
	if f.state.Load()&stateDone == 0 {
		for g := a.last(); g != f; g = g.prev() {
			if g.fn == fnJob && w.takeBack(g) {
				a.early(g)
			}
		}
	}
	w.await(f, a.top())
	if f.state.Load()&stateFailed != 0 {
		p := f.fault.awaited()
		f.fault = nil
		return p
	}
	return nil
}

// early runs the child in f, out of order. The frame stays in use, as a hole.
func (a *activation) early(f *Frame) *Panic {
	f.fn = fnNone
	f.fault = f.ext.early(Ctx{a})
	return f.fault
}

// leave makes a hole of f, whose child has ended. It does not write what is a
// hole already: that may have been shared, and a thief be looking at it.
func (f *Frame) leave() {
	if f.fn != fnNone {
		f.fn = fnNone
	}
}

// lower lets go of the youngest frames from place at on that nobody needs, and
// of holes below for which that was asked: no others, which may be those of a
// task that runs the caller.
func (a *activation) lower(at uint32, sweep bool) {
	w := a.w
	for a.used > at || sweep {
		f := a.last()
		if f.fn != fnNone || !f.ext.fetched() {
			return
		}
		if !w.takeBack(f) {
			w.await(f, a.top())
			w.release(f)
		}
		a.used -= frameBytes
		sweep = f.ext.below()
	}
}

// syncFrom ends the children from place at on, which nobody has asked for. The
// panic of the oldest that panicked goes on when all have ended.
func (a *activation) syncFrom(at uint32) {
	if a.used == usedNone {
		panic(ErrForeign)
	}
	var p *Panic
	for a.used > at {
		if a.w.rung() {
			a.w.lookUp(a.w.index(a.top()))
		}
		f := a.last()
		if q := a.complete(f); q != nil {
			p = q
		}
		f.ext.drop()
		f.leave()
		a.lower(at, false)
	}
	if p != nil {
		p.throw()
	}
}
