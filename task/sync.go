package task

// syncSlow is Sync for all but the youngest child, unstolen.
func (x Child[A, R]) syncSlow(c Ctx) R {
	s, a := x.s, c.a
	switch {
	case s == nil:
		panic(ErrNoChild)
	case a.w.depth != a.depth:
		panic(ErrForeign)
	case s.f.w != a.w || s.f.addr() < a.base.addr() || s.f.addr() >= a.top().addr():
		if s.f.w == a.w && s.key != x.key {
			panic(ErrSynced)
		}
		panic(ErrForeign)
	case s.key != x.key:
		panic(ErrSynced)
	}
	if s.f == a.last() && s.f.fn == fnJob && a.w.takeBack(s.f) {
		a.n--
		s.drop()
		return s.call(a)
	}
	p := a.complete(s.f)
	s.f.fault = nil
	r := s.res
	s.drop()
	s.f.leave()
	a.lower(0)
	if p != nil {
		p.throw()
	}
	return r
}

// complete sees to it that the child in f has ended, and tells its panic. If it
// was stolen, its younger siblings that nobody has begun run first.
func (a *activation) complete(f *Frame) *Panic {
	w := a.w
	if f.fn == fnNone {
		return f.fault // it ran early
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
		return f.fault
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

// lower lets go of the youngest frames from n on that nobody needs.
func (a *activation) lower(n int32) {
	w := a.w
	for a.n > n {
		f := a.last()
		if f.fn != fnNone || !f.ext.fetched() {
			return
		}
		if !w.takeBack(f) {
			w.await(f, a.top())
			w.release(f)
		}
		a.n--
	}
}

// syncFrom ends the children from n on, which nobody has asked for. The panic of
// the oldest that panicked goes on when all have ended. There may be fewer than n:
// a child that ran in a lets go of its elder siblings' holes too.
func (a *activation) syncFrom(n int32) {
	w := a.w
	if w.depth != a.depth {
		panic(ErrForeign)
	}
	var p *Panic
	for a.n > n {
		f := a.last()
		if q := a.complete(f); q != nil {
			p = q
		}
		f.ext.drop()
		f.leave()
		a.lower(n)
	}
	if p != nil {
		p.throw()
	}
}
