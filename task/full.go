package task

// What happens when a worker's stack of spawned tasks is full. Spawn runs the child
// at once, as an ordinary call would, and keeps its result apart from the stack. So
// memory is bounded, and the parent makes progress as it would without workers.
//
// Children of a Group are many and nobody asks for one of them, so SpawnIn first
// makes room: it ends the youngest until half of the stack is free. What is left
// below is for thieves.

// atOnce is what the slot of a child that ran at once has in after.
type atOnce struct {
	emptySlot
	a     *activation // the parent's
	fault *Panic      // until it was asked for
}

// lateFrames is how many frames a stack has beyond its depth, for panics of
// children that ran at once: the parent's Sync, Try or end is to meet them.
const lateFrames = 16

// lateFaults is the job of such a frame: panics that nobody has asked for yet.
type lateFaults struct {
	emptySlot
	of    []*atOnce // oldest first
	sweep bool
}

func (l *lateFaults) fetched() bool { return len(l.of) == 0 }
func (l *lateFaults) drop()         { l.of = nil }
func (l *lateFaults) forget()       { l.of = nil }
func (l *lateFaults) sweepBelow()   { l.sweep = true }

func (l *lateFaults) below() bool {
	b := l.sweep
	l.sweep = false
	return b
}

// full tells whether nothing can be spawned in a's next frame.
func (a *activation) full() bool {
	return a.w.limited(a.base, a.used) && a.top().addr() >= a.w.end && !a.w.extend()
}

// spawnAtOnce is Spawn on a full stack.
func spawnAtOnce[A, R any](a *activation, fn func(Ctx, A) R, arg A) Child[A, R] {
	a.w.lookUp(a.w.index(a.top()))
	o := &atOnce{emptySlot: emptySlot{fn: noFunc}, a: a}
	s := &slot[A, R]{fn: fn, arg: arg, key: keyOf(a.used, 1) | keyChecked, after: o}
	if o.fault = s.apart(a); o.fault != nil {
		a.late(o)
	}
	return Child[A, R]{s, s.key}
}

// apart runs the child in an activation of its own.
func (s *slot[A, R]) apart(a *activation) (p *Panic) {
	w := a.w
	b, fine := w.enter(a.top(), w.scope()), false
	defer func() {
		if !fine {
			p = w.failed(b, recover())
		}
		w.leave(b)
	}()
	s.res = s.fn(Ctx{b}, s.arg)
	if b.used != 0 {
		b.syncFrom(0)
	}
	fine = true
	return nil
}

// late keeps the panic of a child that has ended already. With too many of them it
// goes on at once.
func (a *activation) late(o *atOnce) {
	if _, ok := o.fault.Value.(abortSignal); ok {
		o.fault.throw()
	}
	if a.used > 0 {
		if l, ok := a.last().ext.(*lateFaults); ok && a.last().fn == fnNone {
			l.of = append(l.of, o)
			return
		}
	}
	f, w := a.top(), a.w
	if int(w.index(f)) >= len(w.frames)-2 {
		o.fault.throw()
	}
	f.fn, f.fault = fnNone, o.fault
	f.ext = &lateFaults{emptySlot: emptySlot{fn: noFunc}, of: []*atOnce{o}}
	a.used += frameBytes
}

// asked takes the panic of a child that ran at once, if it had one.
func (o *atOnce) asked(a *activation) *Panic {
	p := o.fault
	o.fault = nil
	if p == nil || a.used == 0 {
		return p
	}
	f := a.last()
	l, ok := f.ext.(*lateFaults)
	if !ok || f.fn != fnNone {
		return p
	}
	l.of = without(l.of, o)
	f.fault = nil
	if len(l.of) > 0 {
		f.fault = l.of[0].fault
	}
	a.lower(a.place(f), false)
	return p
}

// makeRoom ends the youngest children as far as they are a group's, and begins none
// any more when half of the stack is free. It waits for nobody.
func (a *activation) makeRoom() {
	w := a.w
	enough := a.used - min(a.used, uint32(w.rt.depth/2)*frameBytes)
	for a.used > 0 {
		f := a.last()
		if f.fn == fnJob && f.ext.ofGroup() && a.used > enough && w.takeBack(f) {
			if !a.runLast(f) {
				return
			}
		} else if !a.letGo(f) {
			return
		}
		if w.rung() {
			w.lookUp(w.index(a.top()))
		}
	}
}

// runLast runs the group's child in f, the last frame, and tells whether it was well.
func (a *activation) runLast(f *Frame) bool {
	s := f.ext
	s.drop()
	sweep := s.below()
	a.used -= frameBytes
	p := s.early(Ctx{a})
	s.drop()
	if p == nil {
		a.lower(a.used, sweep)
		return true
	}
	a.late(&atOnce{fault: p})
	return false
}

// letGo lets go of f, the last frame, if its child was a group's and has ended well.
func (a *activation) letGo(f *Frame) bool {
	w := a.w
	if !f.ext.ofGroup() || f.fault != nil || w.index(f) >= word(w.word.Load()).tail() {
		return false
	}
	if s := f.state.Load(); s&stateDone == 0 || s&stateFailed != 0 {
		return false
	}
	w.release(f)
	f.ext.drop()
	a.used -= frameBytes
	a.lower(a.used, f.ext.below())
	return true
}
