package vm

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// pagesLocked is how many pages are moved before who changes the page tables has a turn.
const pagesLocked = 8

// ready calls do for the pieces of n bytes that are there, up to the first that is not, and
// returns how many bytes those have.
func (s *Space) ready(a uio.Addr, n int, need pte, do func(at int, p []byte)) (done int) {
	for va := uint64(a); done < n && va < userTop; {
		s.pt.RLock()
		for i := 0; i < pagesLocked && done < n && va < userTop; i++ {
			p := s.frame(va, need)
			if p == nil {
				s.pt.RUnlock()
				return done
			}
			p = p[:min(len(p), n-done)]
			do(done, p)
			va, done = va+uint64(len(p)), done+len(p)
		}
		s.pt.RUnlock()
	}
	return done
}

// FaultIn implements uio.Pager.
func (s *Space) FaultIn(a uio.Addr, n int, write bool) (done int, e linux.Errno) {
	need, code := pteP, uint64(readCode)
	if write {
		need, code = pteP|pteW, writeCode
	}
	for {
		done += s.ready(a+uio.Addr(done), n-done, need, func(int, []byte) {})
		va := uint64(a) + uint64(done)
		switch {
		case done == n:
			return done, 0
		case va >= userTop:
			return done, linux.EFAULT
		}
		if r := s.faultIn(va, code); r != FaultOK {
			return done, r.errno()
		}
	}
}

// TryCopyIn implements uio.Pager.
func (s *Space) TryCopyIn(dst []byte, src uio.Addr) int {
	return s.ready(src, len(dst), pteP, func(at int, p []byte) { copy(dst[at:], p) })
}

// TryCopyOut implements uio.Pager.
func (s *Space) TryCopyOut(dst uio.Addr, src []byte) int {
	return s.ready(dst, len(src), pteP|pteW, func(at int, p []byte) { copy(p, src[at:]) })
}

var _ uio.Pager = (*Space)(nil)
