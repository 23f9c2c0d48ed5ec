package vm

import "hardtack/kernel/base/hook"

// Await waits for a page in the middle of a call of a user's program, where set. It returns
// false once stop says that there is no need.
var Await hook.Of[func(owner uint32, stop func() bool) bool]

// SetOwner says whose program the space is.
func (s *Space) SetOwner(uid uint32) { s.owner.Store(uid) }

// Doom says that the program of this space ends and will not run again. Calls that it is
// in get no more memory: their copies fail.
func (s *Space) Doom() { s.doomed.Store(true) }

// Reap gives back the pages of a space whose program will not run again, while its threads
// may still be in calls. Those find no page there any more, and no page of zeros instead:
// Fault looks at doomed after it has mapped one.
func (s *Space) Reap() {
	s.doomed.Store(true)
	if !s.mu.TryRLock() {
		return
	}
	s.pt.Lock()
	s.zapped.Add(1)
	g := s.gather()
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		s.zapRange(g, v, v.start, v.end, zapAll)
	}
	g.done()
	s.pt.Unlock()
	s.mu.RUnlock()
}

// faultIn is Fault for a copy, which waits where memory is short.
//
//maxlive:point because a copy meets any number of pages that are not there, one after the other
func (s *Space) faultIn(va, code uint64) FaultResult {
	for {
		r := s.Fault(va, code)
		if r != FaultOOM || Await.Call == nil || !Await.Call(s.owner.Load(), s.doomed.Load) {
			return r
		}
	}
}
