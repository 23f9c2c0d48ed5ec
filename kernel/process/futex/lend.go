package futex

import "sync/atomic"

// Real-time priorities are inherited (Sha, Rajkumar, Lehoczky, 1990): who owns a PI futex has
// the highest priority of those that wait for it, and of those that wait for what they own.

// Raiser is a thread whose priority changes.
type Raiser interface {
	// Raise sets the real-time priority that counts, 0 for none. It takes the lock of the
	// queue of threads at most.
	Raise(priority int32)
}

// lending is what a thread has to do with inherited priorities; guarded by piMu, but for
// priority, which anybody may read.
type lending struct {
	raiser     Raiser       // immutable once the thread runs
	own        int32        // the priority that it was given
	priority   atomic.Int32 // that counts: its own, or what it inherited
	owns       *piState     // states with waiters that name it their owner, by nextOwned
	next, prev *Thread      // in the list of those that wait for the same state
}

// RaiseWith says who is told of the thread's priority, before it runs.
func (t *Thread) RaiseWith(r Raiser) { t.pi.raiser = r }

// SetPriority sets the thread's own real-time priority, 0 for none.
func (t *Thread) SetPriority(priority int32) {
	piMu.Lock()
	t.pi.own = priority
	t.settle()
	piMu.Unlock()
}

// settle brings the thread's priority up to date, and those of the threads that it waits for,
// one after the other. Called with piMu held.
func (t *Thread) settle() {
	for n := 0; t != nil && n <= longestChain; n++ {
		best := t.pi.own
		for p := t.pi.owns; p != nil; p = p.nextOwned {
			for w := p.waiters; w != nil; w = w.pi.next {
				best = max(best, w.pi.priority.Load())
			}
		}
		if best == t.pi.priority.Load() {
			return
		}
		t.pi.priority.Store(best)
		if t.pi.raiser != nil {
			t.pi.raiser.Raise(best)
		}
		if t.pi.waits == nil {
			return
		}
		t = t.pi.waits.owner
	}
}

// enlist adds a waiter. Called with piMu held, as delist and setOwner.
func (p *piState) enlist(t *Thread) {
	if p.waiters == nil && p.owner != nil {
		p.nextOwned, p.owner.pi.owns = p.owner.pi.owns, p
	}
	if t.pi.next = p.waiters; t.pi.next != nil {
		t.pi.next.pi.prev = t
	}
	p.waiters, t.pi.waits = t, p
	if p.owner != nil && t.pi.priority.Load() > p.owner.pi.priority.Load() {
		p.owner.settle()
	}
}

// delist takes a waiter out.
func (p *piState) delist(t *Thread) {
	l := &t.pi
	if l.prev != nil {
		l.prev.pi.next = l.next
	} else {
		p.waiters = l.next
	}
	if l.next != nil {
		l.next.pi.prev = l.prev
	}
	l.next, l.prev, l.waits = nil, nil, nil
	if p.owner == nil {
		return
	}
	if p.waiters == nil {
		p.disown()
	}
	if urgency := t.pi.priority.Load(); urgency > 0 && urgency == p.owner.pi.priority.Load() {
		p.owner.settle() // perhaps it was t's
	}
}

// disown takes the state out of its owner's list.
func (p *piState) disown() {
	for at := &p.owner.pi.owns; *at != nil; at = &(*at).nextOwned {
		if *at == p {
			*at, p.nextOwned = p.nextOwned, nil
			return
		}
	}
}

// setOwner gives the state another owner, or none.
func (p *piState) setOwner(t *Thread) {
	if old := p.owner; old != nil {
		p.disown()
		p.owner = nil
		if old.pi.priority.Load() != old.pi.own {
			old.settle()
		}
	}
	if p.owner = t; t != nil && p.waiters != nil {
		p.nextOwned, t.pi.owns = t.pi.owns, p
		t.settle()
	}
}
