package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// Mprotect is mprotect(2).
func (s *Space) Mprotect(_ *caller.Ctx, addr, length uint64, prot uint32) linux.Errno {
	return s.mprotect(addr, length, prot, false)
}

// MprotectExec is Mprotect that adds PROT_EXEC where a mapping may have it
// (READ_IMPLIES_EXEC).
func (s *Space) MprotectExec(_ *caller.Ctx, addr, length uint64, prot uint32) linux.Errno {
	return s.mprotect(addr, length, prot, true)
}

func (s *Space) mprotect(addr, length uint64, prot uint32, implied bool) linux.Errno {
	grow := prot & (linux.PROT_GROWSDOWN | linux.PROT_GROWSUP)
	if grow == linux.PROT_GROWSDOWN|linux.PROT_GROWSUP {
		return linux.EINVAL
	}
	end, e := checkRange(addr, length, linux.ENOMEM, linux.ENOMEM)
	if e != 0 || length == 0 {
		return e
	}
	if prot&^(protMask|linux.PROT_SEM|linux.PROT_GROWSDOWN) != 0 {
		return linux.EINVAL
	}
	prot &= protMask
	s.lock()
	defer s.unlock()
	if grow != 0 {
		v := s.at(addr)
		if v == nil || v.flags&vGrowsDown == 0 {
			return linux.EINVAL
		}
		addr = v.start
	}
	return s.change(addr, end, func(v *vma) (uint32, uint32, linux.Errno) {
		prot := prot
		if implied && v.flags&vNoExec == 0 {
			prot |= linux.PROT_EXEC
		}
		if prot&linux.PROT_EXEC != 0 && v.flags&vNoExec != 0 {
			return 0, 0, linux.EACCES
		}
		if prot&linux.PROT_WRITE != 0 {
			if v.flags&vMayWrite == 0 {
				return 0, 0, linux.EACCES
			}
			if w := (vma{prot: prot, flags: v.flags}); !v.committed() && w.committed() {
				if e := s.afford(&w, 0); e != 0 || !s.mayCommit(min(v.end, end)-max(v.start, addr)) {
					return 0, 0, linux.ENOMEM
				}
			}
		}
		flags := v.flags &^ vAccount
		if prot&linux.PROT_WRITE == 0 && v.committed() && atomic.LoadUint32(&v.used) != 0 {
			flags |= vAccount
		}
		return prot, flags, 0
	})
}

// change gives each mapping of [start, end) the protection and flags that f
// returns for it, cutting mappings at the ends. It stops at the first error or
// gap (ENOMEM), what came before stays changed, as Linux does it. The caller
// holds mu and pt for writing.
func (s *Space) change(start, end uint64, f func(*vma) (prot, flags uint32, e linux.Errno)) linux.Errno {
	g := s.gather()
	defer g.done()
	at := start
	i := s.find(start)
	for at < end {
		if i >= s.vmas.len() || s.vmas.at(i).start > at {
			return linux.ENOMEM
		}
		v := s.vmas.at(i)
		prot, flags, e := f(v)
		if e != 0 {
			return e
		}
		stop := min(v.end, end)
		if prot == v.prot && flags == v.flags {
			at = stop
			i = s.mergeBack(i)
			continue
		}
		if (v.start < at || v.end > stop) && s.full(2) {
			return linux.ENOMEM
		}
		i = s.split(at)
		s.split(stop)
		v = s.vmas.at(i)
		s.shrink(v)
		old := v.prot
		v.prot, v.flags = prot, flags
		s.grow(v)
		if prot != old {
			s.protect(g, v)
		}
		at = stop
		i = s.mergeBack(i)
	}
	if i < s.vmas.len() {
		s.merge(i, i)
	}
	return 0
}

// mergeBack joins mapping i with the one before it if it continues that, and
// returns the index of the next one.
func (s *Space) mergeBack(i int) int {
	n := s.vmas.len()
	s.merge(i, i)
	return i + 1 - (n - s.vmas.len())
}

// protect gives the entries of v its protection.
func (s *Space) protect(g *gather, v *vma) {
	bits := v.bits()
	for va := v.start; va < v.end; {
		t, at, stop := s.next(va, v.end)
		if t == nil {
			return
		}
		for i, last := index(at), index(stop-pageSize); i <= last; i++ {
			e := t[i]
			if e == 0 {
				continue
			}
			n := e&(pteAddr|pteAnon|pteD) | bits
			// Private pages of one owner become writable at once; the rest
			// goes through a fault, which copies it or tells its object.
			if v.prot&linux.PROT_WRITE != 0 && (e&pteW != 0 || e&pteAnon != 0 && frameOf(e).Refs() == 1) {
				n |= pteW | pteD
			}
			if n == e {
				continue
			}
			atomic.StoreUint64(&t[i], n)
			if e&^n&(pteP|pteW) != 0 || n&^e&pteNX != 0 { // something was taken away
				va := at + uint64(i-index(at))<<pageShift
				g.touch(va, va+pageSize)
			}
		}
		va = stop
	}
}
