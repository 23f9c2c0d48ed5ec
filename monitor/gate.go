package monitor

import "sync"

// gate is where goroutines sleep until what they wait for is there. Whoever kicks it looks for
// them, so that none wakes in vain, and what a sleeper's ready does itself (msg's Inline)
// needs no other goroutine.
type gate struct {
	mu       sync.Mutex
	sleepers []*sleeper // guarded by mu
	spare    []*sleeper // guarded by mu
}

type sleeper struct {
	ready func() bool
	looks bool          // somebody calls ready; guarded by the gate's mu
	again bool          // and is to call it once more; guarded by the gate's mu
	woken chan struct{} // one token: ready was true
}

// kick has all sleepers' ready called: here, or by whoever does so already.
func (g *gate) kick() {
	var few [4]*sleeper // there are no more
	look := few[:0]
	g.mu.Lock()
	for _, s := range g.sleepers {
		if s.looks {
			s.again = true
			continue
		}
		s.looks = true
		look = append(look, s)
	}
	g.mu.Unlock()
	for _, s := range look {
		g.look(s)
	}
}

// park returns when ready reports true. It is called now and after every kick, by one
// goroutine at a time.
func (g *gate) park(ready func() bool) {
	g.mu.Lock()
	var s *sleeper
	if n := len(g.spare); n > 0 {
		s, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		s = &sleeper{woken: make(chan struct{}, 1)}
	}
	s.ready, s.looks, s.again = ready, true, false
	g.sleepers = append(g.sleepers, s)
	g.mu.Unlock()
	g.look(s)
	<-s.woken
	g.mu.Lock()
	s.ready = nil
	g.spare = append(g.spare, s)
	g.mu.Unlock()
}

// look calls a sleeper's ready, and wakes it if that is true.
func (g *gate) look(s *sleeper) {
	for {
		ready := s.ready()
		g.mu.Lock()
		if ready {
			for i, x := range g.sleepers {
				if x == s {
					g.sleepers = append(g.sleepers[:i], g.sleepers[i+1:]...)
				}
			}
			g.mu.Unlock()
			s.woken <- struct{}{}
			return
		}
		if !s.again {
			s.looks = false
			g.mu.Unlock()
			return
		}
		s.again = false
		g.mu.Unlock()
	}
}
