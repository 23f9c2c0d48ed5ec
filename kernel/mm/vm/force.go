package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
)

// UserTop is the first address that programs cannot map.
const UserTop = userTop

// Peek copies from another program's memory whatever the protection of a mapping, and
// Poke into it; the latter gives a private mapping a page of its own. EIO where nothing
// is mapped, and for shared mappings that cannot be written to.
func (s *Space) Peek(b []byte, from uint64) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, int(pageSize-from&pageMask))
		if !s.forced(from, false, func(p []byte) { copy(b[done:done+n], p) }) {
			return done, linux.EIO
		}
		done, from = done+n, from+uint64(n)
	}
	return done, 0
}

// Poke is Peek the other way.
func (s *Space) Poke(b []byte, to uint64) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, int(pageSize-to&pageMask))
		if !s.forced(to, true, func(p []byte) { copy(p, b[done:done+n]) }) {
			return done, linux.EIO
		}
		done, to = done+n, to+uint64(n)
	}
	return done, 0
}

// forced calls fn with the bytes of a page from va on.
func (s *Space) forced(va uint64, write bool, fn func(p []byte)) bool {
	need, code := pteP, uint64(readCode)
	if write {
		need, code = pteP|pteW, writeCode
	}
	s.mu.RLock()
	v := s.at(va)
	kernels := v != nil && v.kernels()
	s.mu.RUnlock()
	if kernels || va >= userTop {
		return false
	}
	for range 16 { // somebody may take the page away again
		s.pt.RLock()
		if p := s.frame(va, need); p != nil {
			fn(p)
			s.pt.RUnlock()
			return true
		}
		s.pt.RUnlock()
		if s.Fault(va, code) != FaultOK {
			return s.force(va, write, fn)
		}
	}
	return false
}

// force is forced where the mapping does not allow the access.
func (s *Space) force(va uint64, write bool, fn func(p []byte)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.at(va)
	switch {
	case v == nil:
		return false
	case write && (!v.private() || v.flags&vMayWrite == 0 || v.prot&linux.PROT_WRITE != 0):
		return false
	case !write && v.prot != 0:
		return false
	}
	if !write {
		return s.hidden(v, va, fn)
	}
	t := s.makeLeaf(va)
	if t == nil {
		return false
	}
	atomic.StoreUint32(&v.used, 1)
	slot := &t[index(va)]
	for range 16 {
		// An anonymous page that only this space has stays where it is: fork waits for mu.
		s.pt.RLock()
		if e := load(slot); e&pteAnon != 0 && frameOf(e).Refs() == 1 {
			fn(mem.PageAt(e & pteAddr)[va&pageMask:])
			atomic.OrUint64(slot, pteD)
			s.pt.RUnlock()
			return true
		}
		s.pt.RUnlock()
		if !s.own(v, slot, va&^pageMask) {
			return false
		}
	}
	return false
}

// own puts a copy of what a private mapping shows into its entry, without the right to
// write to it. The caller holds mu for reading. False: there is nothing, or no memory.
func (s *Space) own(v *vma, slot *pte, va uint64) bool {
	f, ok := mem.AllocZeroed()
	if !ok {
		return false
	}
	bits := v.bits() | pteD | pteAnon
	e := load(slot)
	if e == 0 {
		seq := s.zapped.Load()
		if v.obj != nil {
			p, errno := v.obj.Page(v.page(va), false)
			if errno != 0 {
				f.Put()
				return false
			}
			f.Copy(p)
			p.Put()
		}
		s.pt.RLock()
		ok = s.zapped.Load() == seq && atomic.CompareAndSwapUint64(slot, 0, f.Phys()|bits)
		s.pt.RUnlock()
		if !ok {
			f.Put()
			return true // look again
		}
		s.resident(1, 0, 0)
		return true
	}
	old := frameOf(e)
	s.pt.Lock()
	if e&pteP != 0 && !s.suspend(slot, va, e) || e&pteP == 0 && load(slot) != e {
		s.pt.Unlock()
		f.Put()
		return true
	}
	f.Copy(old)
	atomic.StoreUint64(slot, f.Phys()|bits)
	s.pt.Unlock()
	switch {
	case old == zeroFrame:
		s.resident(1, 0, 0)
		return true
	case e&pteAnon != 0:
	case v.flags&vShmem != 0:
		s.resident(1, 0, -1)
	default:
		s.resident(1, -1, 0)
	}
	old.Put()
	return true
}

// hidden reads a page of a mapping without access (PROT_NONE). The caller holds mu for
// reading.
func (s *Space) hidden(v *vma, va uint64, fn func(p []byte)) bool {
	s.pt.RLock()
	if t := s.walk(va); t != nil {
		if e := load(&t[index(va)]); e&pteAddr != 0 {
			fn(mem.PageAt(e & pteAddr)[va&pageMask:])
			s.pt.RUnlock()
			return true
		}
	}
	s.pt.RUnlock()
	if v.obj == nil {
		fn(make([]byte, pageSize)[va&pageMask:])
		return true
	}
	p, e := v.obj.Page(v.page(va&^pageMask), false)
	if e != 0 {
		return false
	}
	fn(p.Bytes()[va&pageMask:])
	p.Put()
	return true
}
