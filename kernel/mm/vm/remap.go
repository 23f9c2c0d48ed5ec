package vm

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
)

// Mremap is mremap(2).
func (s *Space) Mremap(c *caller.Ctx, addr, oldLen, newLen uint64, flags uint32, to uint64) (uint64, linux.Errno) {
	old, ok1 := pages(oldLen)
	length, ok2 := pages(newLen)
	keep := flags&linux.MREMAP_DONTUNMAP != 0
	switch {
	case flags&^(linux.MREMAP_MAYMOVE|linux.MREMAP_FIXED|linux.MREMAP_DONTUNMAP) != 0,
		flags&(linux.MREMAP_FIXED|linux.MREMAP_DONTUNMAP) != 0 && flags&linux.MREMAP_MAYMOVE == 0,
		keep && oldLen != newLen, newLen == 0,
		addr&pageMask != 0, !ok1, !ok2:
		return 0, linux.EINVAL
	}
	at, grown, e := s.remap(c, addr, old, length, flags, to)
	if e == 0 && grown > 0 {
		s.populate(c, at+length-grown, at+length)
	}
	return at, e
}

// remap does the work; grown is how much of the end is locked and fresh.
func (s *Space) remap(c *caller.Ctx, addr, old, length uint64, flags uint32, to uint64) (at, grown uint64, e linux.Errno) {
	s.lock()
	defer s.unlock()
	v := s.at(addr)
	if v == nil {
		return 0, 0, linux.EFAULT
	}
	if old == 0 && v.private() {
		return 0, 0, linux.EINVAL
	}
	fixed, keep := flags&linux.MREMAP_FIXED != 0, flags&linux.MREMAP_DONTUNMAP != 0
	switch {
	case !fixed && !keep:
	case to&pageMask != 0, length > userTop, to > userTop-length, addr < to+length && to < addr+max(old, pageSize):
		return 0, 0, linux.EINVAL
	case fixed && to < lowest():
		return 0, 0, linux.EPERM
	}
	if !fixed && !keep && old >= length && old != 0 {
		return addr, 0, s.shrinkAt(addr, old, length)
	}
	switch {
	case keep && v.flags&vSpecial != 0:
		return 0, 0, linux.EINVAL
	case old > v.end-addr, length > old && v.flags&vSpecial != 0:
		return 0, 0, linux.EFAULT
	}
	if grown, e = s.affordMore(c, v, addr, old, length, keep); e != 0 {
		return 0, 0, e
	}
	if !fixed && !keep && old > 0 && addr+old == v.end && s.fits(v.end, length-old) {
		more := *v
		more.start, more.end = v.end, addr+length
		if more.obj != nil {
			more.off += v.end - v.start
		}
		s.dup(&more)
		s.insert(more)
		return addr, grown, 0
	}
	if flags&linux.MREMAP_MAYMOVE == 0 {
		return 0, 0, linux.ENOMEM
	}
	if s.full(4) {
		return 0, 0, linux.ENOMEM
	}
	hint := MapArgs{}
	if keep {
		hint.Addr = to
	}
	if fixed {
		s.unmap(to, to+length)
	} else if to = s.choose(&hint, length); to == 0 {
		return 0, 0, linux.ENOMEM
	}
	if old > length { // MREMAP_FIXED that shrinks
		s.unmap(addr+length, addr+old)
		old = length
	}
	if e := s.move(addr, old, to, length, keep); e != 0 {
		return 0, 0, e
	}
	return to, grown, 0
}

// shrinkAt gives the end of old bytes at addr back.
func (s *Space) shrinkAt(addr, old, length uint64) linux.Errno {
	if old > length {
		if old > userTop-addr || s.full(2) {
			return linux.ENOMEM
		}
		s.unmap(addr+length, addr+old)
	}
	return 0
}

// affordMore asks whether there may be what a mapping gets, and with keep what it gets
// once more; grown is how much of the end will be locked and fresh.
func (s *Space) affordMore(c *caller.Ctx, v *vma, addr, old, length uint64, keep bool) (grown uint64, e linux.Errno) {
	switch {
	case keep:
		return 0, s.afford(v, length)
	case length <= old:
		return 0, 0
	case length > userTop:
		return 0, linux.ENOMEM
	case v.off+(addr-v.start)+length < v.off:
		return 0, linux.EINVAL
	}
	if e := s.afford(v, length-old); e != 0 {
		return 0, e
	}
	if v.flags&vLocked != 0 {
		if s.locked+length-old > s.memlock(c) {
			return 0, linux.EAGAIN
		}
		grown = length - old
	}
	return grown, 0
}

// move makes the mapping at addr, or old bytes of it, one of length bytes at to,
// which is free; its pages go along. With old 0 (shared memory) it stays where
// it was, too, and with keep, then without its pages.
func (s *Space) move(addr, old, to, length uint64, keep bool) linux.Errno {
	// Tables first: afterwards nothing can fail.
	w := *s.at(addr)
	w.off += addr - w.start
	if w.obj == nil {
		w.off = 0
	}
	w.start, w.end = to, to+length
	w.flags &^= vGrowsDown
	g := s.gather()
	defer g.done()
	for va := addr; va < addr+old; {
		t, at, stop := s.next(va, addr+old)
		if t == nil {
			break
		}
		d := at - addr + to
		if s.makeLeaf(d) == nil || s.makeLeaf(d+(stop-at)-pageSize) == nil {
			i := s.find(to)
			lo, hi := s.hole(i, i)
			s.prune(g, to, to+length, lo, hi)
			return linux.ENOMEM
		}
		va = stop
	}
	if old == 0 {
		s.dup(&w)
		s.insert(w)
		return 0
	}
	for va := addr; va < addr+old; {
		t, at, stop := s.next(va, addr+old)
		if t == nil {
			break
		}
		for va = at; va < stop; va += pageSize {
			e := t[index(va)]
			if e == 0 {
				continue
			}
			t[index(va)] = 0
			d := va - addr + to
			s.leaf(d)[index(d)] = e
			g.touch(va, va+pageSize)
		}
	}
	// First the new place, so that its tables are not taken for unused ones.
	s.dup(&w)
	s.insert(w)
	if keep {
		return s.setLocked(addr, addr+old, 0)
	}
	s.split(addr)
	s.split(addr + old)
	s.remove(g, addr, addr+old)
	return 0
}

// SetBrk sets where the heap begins (exec).
func (s *Space) SetBrk(start uint64) {
	s.mu.Lock()
	s.brkStart, s.brk = start, start
	s.mu.Unlock()
}

// Brk is brk(2): it returns the break, moved or not.
func (s *Space) Brk(c *caller.Ctx, to uint64) uint64 {
	brk, grown := s.setBrk(c, to)
	if grown != 0 {
		end := (brk + pageMask) &^ pageMask
		s.populate(c, end-grown, end)
	}
	return brk
}

// setBrk moves the break; grown is the locked part that is fresh.
func (s *Space) setBrk(c *caller.Ctx, to uint64) (brk, grown uint64) {
	s.mu.RLock()
	brk = s.brk
	same := to < s.brkStart || to == brk || to > userTop-pageSize
	s.mu.RUnlock()
	if same {
		return brk, 0
	}
	s.lock()
	defer s.unlock()
	oldEnd, end := (s.brk+pageMask)&^pageMask, (to+pageMask)&^pageMask
	switch {
	case end < oldEnd:
		if s.full(1) {
			return s.brk, 0
		}
		s.unmap(end, oldEnd)
	case end > oldEnd:
		v := vma{start: oldEnd, end: end, prot: linux.PROT_READ | linux.PROT_WRITE, flags: vMayWrite | s.lockNext, name: "[heap]"}
		if s.Limits != nil && to-s.brkStart > s.limit(linux.RLIMIT_DATA) || s.afford(&v, end-oldEnd) != 0 {
			return s.brk, 0
		}
		if v.flags&vLocked != 0 && s.locked+end-oldEnd > s.memlock(c) || !s.fits(oldEnd, end-oldEnd+pageSize) || s.full(1) {
			return s.brk, 0
		}
		s.insert(v)
		if v.flags&(vLocked|vOnFault) == vLocked {
			grown = end - oldEnd
		}
	}
	s.brk = to
	return to, grown
}

// MapStack maps the first thread's stack, which grows down to RLIMIT_STACK, and
// returns its top, at random with aslr: what is below top may be written.
func (s *Space) MapStack(aslr, exec bool) (top uint64, e linux.Errno) {
	top = userTop
	if aslr {
		top -= randomOffset(16<<30, pageSize)
	}
	first := min(max(s.limit(linux.RLIMIT_STACK)&^pageMask, 8*pageSize), 132<<10)
	v := vma{start: top - first, end: top, prot: linux.PROT_READ | linux.PROT_WRITE, flags: vMayWrite | vGrowsDown, name: "[stack]"}
	if exec {
		v.prot |= linux.PROT_EXEC
	}
	s.lock()
	defer s.unlock()
	if !s.free(v.start, v.end) {
		return 0, linux.ENOMEM
	}
	if e := s.afford(&v, first); e != 0 {
		return 0, e
	}
	s.insert(v)
	return top, 0
}

var _ mem.Mapper = (*Space)(nil)
