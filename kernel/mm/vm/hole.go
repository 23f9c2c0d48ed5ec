package vm

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/random"
)

// Where new mappings go: the highest hole below mmapBase, then the lowest one
// above. Programs map and unmap at the lower end most of the time, so the search
// does not start at mmapBase again: holeTop and holeMin remember that every hole
// further up is too small.

const (
	low32, high32 = 0x40000000, 0x80000000 // MAP_32BIT

)

// setBase sets mmapBase; nothing is known of the holes below it.
func (s *Space) setBase(base uint64) {
	s.mmapBase, s.holeTop, s.holeMin = base, base, 0
}

// PickMmapBase chooses where mappings go, from RLIMIT_STACK and at random with
// aslr. It is called before the first mapping without MAP_FIXED.
func (s *Space) PickMmapBase(aslr bool) {
	gap := s.limit(linux.RLIMIT_STACK)
	gap = min(max(gap, 128<<20), userTop/6*5) + guardGap
	if aslr {
		gap += 16<<30 + random.Uint64N(1<<28)<<pageShift // the stack's own offset, and ours
	}
	s.mu.Lock()
	s.setBase((userTop - gap) &^ pageMask)
	s.mu.Unlock()
}

// fits reports whether n bytes at addr are free, with the guard gap of a stack
// above.
func (s *Space) fits(addr, n uint64) bool {
	if addr < lowest() || addr > userTop || n > userTop-addr {
		return false
	}
	i := s.find(addr)
	return i == s.vmas.len() || s.vmas.at(i).low() >= addr+n
}

// findHole returns where n bytes (whole pages) can go, or 0. The caller holds
// mu for writing.
func (s *Space) findHole(n uint64) uint64 {
	top := s.mmapBase
	if n >= s.holeMin {
		top = s.holeTop
	}
	if addr := s.holeBelow(n, top); addr != 0 {
		s.holeTop, s.holeMin = addr, n
		return addr
	}
	return s.holeAbove(n, lowest(), userTop)
}

// holeBelow returns the end of the highest hole of n bytes below top, less n.
func (s *Space) holeBelow(n, top uint64) uint64 {
	i := s.find(top)
	hi := top
	if i < s.vmas.len() {
		hi = min(hi, s.vmas.at(i).low())
	}
	for i--; ; i-- {
		lo := lowest()
		if i >= 0 {
			lo = max(lo, s.vmas.at(i).end)
		}
		if hi > lo && hi-lo >= n {
			return hi - n
		}
		if i < 0 {
			return 0
		}
		hi = min(hi, s.vmas.at(i).low())
	}
}

// holeAbove returns the start of the lowest hole of n bytes in [lo, hi), or 0.
func (s *Space) holeAbove(n, lo, hi uint64) uint64 {
	for i := s.find(lo); i < s.vmas.len() && lo < hi; i++ {
		v := s.vmas.at(i)
		if end := min(v.low(), hi); end > lo && end-lo >= n {
			return lo
		}
		lo = max(lo, v.end)
	}
	if lo < hi && hi-lo >= n {
		return lo
	}
	return 0
}

// randomOffset returns a multiple of align below span.
func randomOffset(span, align uint64) uint64 { return random.Uint64N(span/align) * align }
