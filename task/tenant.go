package task

import "slices"

// A Tenant is something that lives where a worker runs and has to move when that
// worker's core is taken away: the receiving end of a connection, a cache, a
// poller. Move is called once for each move, from no task, with no lock held;
// the tenant is attached to its new seat already.
type Tenant interface{ Move(to *Seat) }

type move struct {
	t  Tenant
	to *Seat
}

type moves []move

func (m moves) run() {
	for _, x := range m {
		x.t.Move(x.to)
	}
}

// Runtime is the runtime that the task runs in.
func (c Ctx) Runtime() *Runtime { return c.must().w.rt }

// Worker is the worker that runs the task: an identity, to compare with others.
func (c Ctx) Worker() *Worker { return c.must().w }

// Seat is where the task runs now; nil when it has come back from waiting and
// found none free.
func (c Ctx) Seat() *Seat { return c.must().w.seat.Load() }

// Attach makes t a tenant of s, or of its successor when s has been removed
// meanwhile; it gives the seat that it became.
func (s *Seat) Attach(t Tenant) *Seat {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	if s.gone.Load() {
		s = s.rt.successor()
	}
	s.tenants = append(s.tenants, t)
	return s
}

// Attach makes t a tenant of the seat that has the fewest.
func (rt *Runtime) Attach(t Tenant) *Seat {
	rt.made()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := rt.successor()
	s.tenants = append(s.tenants, t)
	return s
}

// Detach ends that, wherever t lives by now; it tells whether t was a tenant.
func (rt *Runtime) Detach(t Tenant) bool {
	rt.made()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, s := range rt.seats {
		if i := slices.Index(s.tenants, t); i >= 0 {
			s.tenants = slices.Delete(s.tenants, i, i+1)
			return true
		}
	}
	return false
}

// successor picks the seat that has the fewest tenants. rt.mu is held; there
// always is a seat that has not been removed.
func (rt *Runtime) successor() *Seat {
	var best *Seat
	for _, s := range rt.seats {
		if !s.gone.Load() && (best == nil || len(s.tenants) < len(best.tenants)) {
			best = s
		}
	}
	return best
}
