package ump

import (
	"sync"
	"sync/atomic"
	"time"
)

// The sweeper ends sleeps that last: twice in longestNap it rouses the places where
// somebody has slept since it last looked. It runs only while places are used.
type sweeper struct {
	running atomic.Bool
	mu      sync.Mutex
	places  map[*Place]struct{} // guarded by mu
}

var theSweeper sweeper

func (s *sweeper) add(p *Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = make(map[*Place]struct{})
	}
	s.places[p] = struct{}{}
}

func (s *sweeper) remove(p *Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, p)
}

// start is called when a sleep begins, after that shows in its place.
func (s *sweeper) start() {
	if !s.running.Load() && s.running.CompareAndSwap(false, true) {
		time.AfterFunc(longestNap/2, s.sweep)
	}
}

func (s *sweeper) sweep() {
	if s.look() {
		time.AfterFunc(longestNap/2, s.sweep)
		return
	}
	s.running.Store(false)
	if s.look() { // a sleep began before it could see that nobody sweeps
		s.start()
	}
}

// look rouses those who sleep as they did the last time, and reports whether any place
// was used since.
func (s *sweeper) look() (used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.places {
		n := p.sleeps.Load()
		if n&1 != 0 && n == p.seen {
			p.Rouse()
		}
		used = used || n&1 != 0 || n != p.seen
		p.seen = n
	}
	return used
}
