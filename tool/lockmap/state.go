package lockmap

import "maps"

// keys is a set of locks.
type keys map[string]bool

// state is what may be locked at one point of a function; a nil state is that of a
// point which nothing reaches.
type state struct {
	held     keys // on some way here
	deferred keys // likewise, and a deferred call unlocks it
	promised keys // a deferred call will unlock it, and it is not locked yet
	freed    keys // what the caller has locked and every way here has unlocked

	unless map[string]keys // locks that are not held if a variable is an error
}

func newState() *state {
	return &state{keys{}, keys{}, keys{}, keys{}, map[string]keys{}}
}

func (s *state) clone() *state {
	if s == nil {
		return nil
	}
	return &state{maps.Clone(s.held), maps.Clone(s.deferred), maps.Clone(s.promised), maps.Clone(s.freed), maps.Clone(s.unless)}
}

func (s *state) locked() bool { return s != nil && len(s.held)+len(s.deferred) > 0 }

func (s *state) acquire(k string) {
	s.forget(k)
	switch {
	case s == nil:
	case s.freed[k]: // given back to the caller
		delete(s.freed, k)
	case s.promised[k]:
		s.deferred[k] = true
	default:
		s.held[k] = true
	}
}

func (s *state) release(k string) {
	s.forget(k)
	switch {
	case s == nil:
	case s.held[k]:
		delete(s.held, k)
	case s.deferred[k]: // unlocked for a while; it counts all the same
	default:
		s.freed[k] = true
	}
}

// forget ends what is known of a lock's conditions: it is locked or unlocked again.
func (s *state) forget(k string) {
	if s == nil {
		return
	}
	for v, locks := range s.unless {
		if locks[k] {
			delete(s.unless, v)
		}
	}
}

// promise is a deferred release.
func (s *state) promise(k string) {
	switch {
	case s == nil:
	case s.held[k]:
		delete(s.held, k)
		s.deferred[k] = true
	default:
		s.promised[k] = true
	}
}

// join is what may hold where two ways meet.
func join(a, b *state) *state {
	switch {
	case a == nil:
		return b.clone()
	case b == nil:
		return a.clone()
	}
	s := a.clone()
	maps.Copy(s.held, b.held)
	maps.Copy(s.deferred, b.deferred)
	for k := range s.freed {
		if !b.freed[k] {
			delete(s.freed, k)
		}
	}
	for k := range s.promised {
		if !b.promised[k] {
			delete(s.promised, k)
		}
	}
	for v, locks := range s.unless {
		if !maps.Equal(locks, b.unless[v]) {
			delete(s.unless, v)
		}
	}
	return s
}

func same(a, b *state) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.held, b.held) && maps.Equal(a.deferred, b.deferred) &&
		maps.Equal(a.promised, b.promised) && maps.Equal(a.freed, b.freed) &&
		maps.EqualFunc(a.unless, b.unless, func(x, y keys) bool { return maps.Equal(x, y) })
}
