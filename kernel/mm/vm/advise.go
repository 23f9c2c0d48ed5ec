package vm

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// Madvise is madvise(2). Advice on memory with gaps is carried out where there
// is something, and then answered with ENOMEM.
func (s *Space) Madvise(c *caller.Ctx, addr, length uint64, advice int32) linux.Errno {
	var set, reset uint32
	switch advice {
	case linux.MADV_NORMAL, linux.MADV_RANDOM, linux.MADV_SEQUENTIAL, linux.MADV_WILLNEED,
		linux.MADV_MERGEABLE, linux.MADV_UNMERGEABLE, linux.MADV_HUGEPAGE, linux.MADV_NOHUGEPAGE,
		linux.MADV_DONTDUMP, linux.MADV_DODUMP, linux.MADV_COLD, linux.MADV_PAGEOUT,
		linux.MADV_DONTNEED, linux.MADV_DONTNEED_LOCKED, linux.MADV_FREE, linux.MADV_REMOVE,
		linux.MADV_POPULATE_READ, linux.MADV_POPULATE_WRITE:
	case linux.MADV_DONTFORK:
		set = vDontFork
	case linux.MADV_DOFORK:
		reset = vDontFork
	case linux.MADV_WIPEONFORK:
		set = vWipe
	case linux.MADV_KEEPONFORK:
		reset = vWipe
	default:
		return linux.EINVAL
	}
	end, e := checkRange(addr, length, linux.EINVAL, linux.ENOMEM)
	if e != 0 || end == addr {
		return e
	}
	switch advice {
	case linux.MADV_DONTNEED, linux.MADV_DONTNEED_LOCKED, linux.MADV_FREE:
		return s.discard(addr, end, advice)
	case linux.MADV_REMOVE:
		return s.punch(addr, end)
	case linux.MADV_POPULATE_READ, linux.MADV_POPULATE_WRITE:
		return s.advisePopulate(c, addr, end, advice == linux.MADV_POPULATE_WRITE)
	}
	if set|reset == 0 {
		return s.hinted(addr, end, advice)
	}
	s.lock()
	defer s.unlock()
	gap := s.mapped(addr, end) != end-addr
	for at := addr; at < end; {
		i := s.find(at)
		if i == s.vmas.len() || s.vmas.at(i).start >= end {
			break
		}
		v := s.vmas.at(i)
		from, to := max(at, v.start), min(end, v.end)
		if e := s.change(from, to, func(v *vma) (uint32, uint32, linux.Errno) {
			if set == vWipe && (v.obj != nil && v.flags&vSpecial == 0 || !v.private()) || reset == vDontFork && v.kernels() {
				return 0, 0, linux.EINVAL
			}
			return v.prot, v.flags&^reset | set, 0
		}); e == linux.ENOMEM {
			return linux.EAGAIN // too many mappings
		} else if e != 0 {
			return e
		}
		at = to
	}
	if gap {
		return linux.ENOMEM
	}
	return 0
}

// hinted is advice that changes nothing here: what is left is to refuse it where
// Linux does, and to look for gaps.
func (s *Space) hinted(addr, end uint64, advice int32) linux.Errno {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := s.find(addr); i < s.vmas.len() && s.vmas.at(i).start < end; i++ {
		v := s.vmas.at(i)
		switch advice {
		case linux.MADV_COLD, linux.MADV_PAGEOUT:
			if v.flags&vLocked != 0 || v.kernels() {
				return linux.EINVAL
			}
		case linux.MADV_DODUMP:
			if v.flags&vSpecial != 0 {
				return linux.EINVAL
			}
		}
	}
	if s.mapped(addr, end) != end-addr {
		return linux.ENOMEM
	}
	return 0
}

// discard forgets pages: private memory reads as zero or as the file again. Lazy
// freeing (MADV_FREE) does it at once, which its contract allows. Mappings stay as
// they are, so mu is held for reading only.
func (s *Space) discard(addr, end uint64, advice int32) linux.Errno {
	s.mu.RLock()
	defer s.mu.RUnlock()
	gap := s.mapped(addr, end) != end-addr
	g := s.gather()
	s.pt.Lock()
	var e linux.Errno
	for i := s.find(addr); i < s.vmas.len() && s.vmas.at(i).start < end; i++ {
		v := s.vmas.at(i)
		if v.flags&vLocked != 0 && advice != linux.MADV_DONTNEED_LOCKED || v.kernels() ||
			advice == linux.MADV_FREE && (v.obj != nil || !v.private()) {
			e = linux.EINVAL
			break
		}
		s.zapRange(g, v, max(addr, v.start), min(end, v.end), zapAll)
	}
	g.done()
	s.pt.Unlock()
	if e == 0 && gap {
		e = linux.ENOMEM
	}
	return e
}

// Wipe forgets the memory that no child gets (MADV_WIPEONFORK), where it may be locked too.
func (s *Space) Wipe() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.gather()
	s.pt.Lock()
	for i := range s.vmas.len() {
		if v := s.vmas.at(i); v.flags&vWipe != 0 {
			s.zapRange(g, v, v.start, v.end, zapAll)
		}
	}
	g.done()
	s.pt.Unlock()
}

// punch frees the pages of shared objects (MADV_REMOVE).
func (s *Space) punch(addr, end uint64) linux.Errno {
	for addr < end {
		s.mu.RLock()
		v := s.at(addr)
		if v == nil {
			s.mu.RUnlock()
			return linux.ENOMEM
		}
		stop := min(end, v.end)
		obj, file := v.obj, v.file
		first, n := v.page(addr), (stop-addr)>>pageShift
		var e linux.Errno
		switch {
		case v.flags&vLocked != 0, v.obj == nil, v.private() && v.file == nil:
			e = linux.EINVAL
		case v.private(), v.flags&vMayWrite == 0:
			e = linux.EACCES
		}
		p, ok := obj.(mem.Puncher)
		if e == 0 && !ok {
			e = linux.EOPNOTSUPP
		}
		counted, isCounted := obj.(mem.Counted)
		isCounted = isCounted && file == nil
		if e == 0 {
			if file != nil {
				file.Get()
			} else if isCounted {
				counted.Attach()
			}
		}
		s.mu.RUnlock()
		if e != 0 {
			return e
		}
		e = p.Punch(first, n)
		if file != nil {
			file.Put()
		} else if isCounted {
			counted.Detach()
		}
		if e != 0 {
			return e
		}
		addr = stop
	}
	return 0
}

// advisePopulate is MADV_POPULATE_READ and _WRITE.
func (s *Space) advisePopulate(c *caller.Ctx, addr, end uint64, write bool) linux.Errno {
	for n := 0; addr < end; addr += pageSize {
		if n++; n&511 == 0 && caller.Killed(c) {
			return linux.EINTR
		}
		s.mu.RLock()
		v := s.at(addr)
		var r FaultResult
		var e linux.Errno
		switch {
		case v == nil:
			e = linux.ENOMEM
		case v.prot == 0, write && v.prot&linux.PROT_WRITE == 0, v.kernels():
			e = linux.EINVAL
		default:
			if r = s.handle(v, addr, write, true); r != FaultOK {
				e = r.errno()
			}
		}
		s.mu.RUnlock()
		if e != 0 {
			return e
		}
	}
	return 0
}

// Msync is msync(2). Pages of a file are the file's own, so only MS_SYNC has
// something to do: the file's Sync.
func (s *Space) Msync(c *caller.Ctx, addr, length uint64, flags uint32) linux.Errno {
	if flags&^(linux.MS_ASYNC|linux.MS_INVALIDATE|linux.MS_SYNC) != 0 ||
		flags&(linux.MS_ASYNC|linux.MS_SYNC) == linux.MS_ASYNC|linux.MS_SYNC {
		return linux.EINVAL
	}
	if n, ok := pages(length); !ok {
		length = n // as Linux rounds it: to nothing
	}
	end, e := checkRange(addr, length, linux.ENOMEM, linux.ENOMEM)
	if e != 0 {
		return e
	}
	var gap linux.Errno
	for addr < end {
		s.mu.RLock()
		i := s.find(addr)
		if i == s.vmas.len() || s.vmas.at(i).start >= end {
			s.mu.RUnlock()
			return linux.ENOMEM
		}
		v := s.vmas.at(i)
		if v.start > addr {
			gap = linux.ENOMEM
		}
		if flags&linux.MS_INVALIDATE != 0 && v.flags&vLocked != 0 {
			s.mu.RUnlock()
			return linux.EBUSY
		}
		addr = v.end
		file := v.file
		if v.private() || flags&linux.MS_SYNC == 0 {
			file = nil
		}
		if file != nil {
			file.Get()
		}
		s.mu.RUnlock()
		if file != nil {
			if y, ok := file.Ops.(vfs.Syncer); ok {
				e = y.Sync(c, file, false)
			}
			file.Put()
			if e != 0 {
				return e
			}
		}
	}
	return gap
}

// Mincore fills vec with one byte a page: 1 if it is in memory. ENOMEM where
// something is not mapped.
func (s *Space) Mincore(addr uint64, vec []byte) linux.Errno {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mapped(addr, addr+uint64(len(vec))<<pageShift) != uint64(len(vec))<<pageShift {
		return linux.ENOMEM
	}
	for k := range vec {
		va := addr + uint64(k)<<pageShift
		vec[k] = 0
		if t := s.leaf(va); t != nil && load(&t[index(va)]) != 0 {
			vec[k] = 1
			continue
		}
		v := s.at(va)
		if c, ok := v.obj.(mem.Cacher); ok {
			if f, ok := c.Cached(v.page(va)); ok {
				f.Put()
				vec[k] = 1
			}
		}
	}
	return 0
}

// Resident reports whether a page is in memory and mapped: 0, ENOENT if it is not
// there, EFAULT if nothing can be there.
func (s *Space) Resident(addr uint64) linux.Errno {
	if addr >= userTop {
		return linux.EFAULT
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.at(addr) == nil {
		return linux.EFAULT
	}
	t := s.leaf(addr)
	if t == nil {
		return linux.ENOENT
	}
	switch e := load(&t[index(addr)]); {
	case e == 0:
		return linux.ENOENT
	case frameOf(e) == zeroFrame:
		return linux.EFAULT
	}
	return 0
}

// Mlock is mlock2(2).
func (s *Space) Mlock(c *caller.Ctx, addr, length uint64, flags uint32) linux.Errno {
	if flags&^linux.MLOCK_ONFAULT != 0 {
		return linux.EINVAL
	}
	add := vLocked
	if flags != 0 {
		add |= vOnFault
	}
	limit := s.memlock(c)
	if limit == 0 {
		return linux.EPERM
	}
	start, end, e := lockRange(addr, length)
	if e != 0 || start == end {
		return e
	}
	s.lock()
	if limit != ^uint64(0) && s.locked+(end-start)-s.lockedIn(start, end) > limit {
		s.unlock()
		return linux.ENOMEM
	}
	e = s.setLocked(start, end, add)
	s.unlock()
	if e == 0 && flags == 0 {
		if e = s.populate(c, start, end); e == linux.EFAULT {
			e = linux.ENOMEM // PROT_NONE or beyond the end of a file
		}
	}
	return e
}

// Munlock is munlock(2).
func (s *Space) Munlock(addr, length uint64) linux.Errno {
	start, end, e := lockRange(addr, length)
	if e != 0 || start == end {
		return e
	}
	s.lock()
	defer s.unlock()
	return s.setLocked(start, end, 0)
}

// Mlockall is mlockall(2).
func (s *Space) Mlockall(c *caller.Ctx, flags uint32) linux.Errno {
	if flags&^(linux.MCL_CURRENT|linux.MCL_FUTURE|linux.MCL_ONFAULT) != 0 || flags == 0 || flags == linux.MCL_ONFAULT {
		return linux.EINVAL
	}
	limit := s.memlock(c)
	if limit == 0 {
		return linux.EPERM
	}
	add := vLocked
	if flags&linux.MCL_ONFAULT != 0 {
		add |= vOnFault
	}
	s.lock()
	if flags&linux.MCL_CURRENT != 0 && s.size > limit {
		s.unlock()
		return linux.ENOMEM
	}
	s.lockNext = 0
	if flags&linux.MCL_FUTURE != 0 {
		s.lockNext = add
	}
	var ranges [][2]uint64
	if flags&linux.MCL_CURRENT != 0 {
		s.lockAll(add)
		for i := range s.vmas.len() {
			ranges = append(ranges, [2]uint64{s.vmas.at(i).start, s.vmas.at(i).end})
		}
	}
	s.unlock()
	if add == vLocked {
		for _, r := range ranges { // as far as it goes: Linux ignores failures here
			if s.populate(c, r[0], r[1]) == linux.EINTR {
				break
			}
		}
	}
	return 0
}

// Munlockall is munlockall(2).
func (s *Space) Munlockall() linux.Errno {
	s.lock()
	defer s.unlock()
	s.lockNext = 0
	s.lockAll(0)
	return 0
}

// lockAll sets the lock flags of every mapping.
func (s *Space) lockAll(add uint32) {
	for i := 0; i < s.vmas.len(); {
		end := s.vmas.at(i).end
		s.setLocked(s.vmas.at(i).start, end, add)
		i = s.find(end)
	}
}

// memlock returns how many bytes c may lock.
func (s *Space) memlock(c *caller.Ctx) uint64 {
	if c == nil || c.Cred().Has(creds.CapIPCLock) {
		return ^uint64(0)
	}
	return s.limit(linux.RLIMIT_MEMLOCK)
}

func lockRange(addr, length uint64) (start, end uint64, e linux.Errno) {
	start = addr &^ pageMask
	length += addr - start
	if n, ok := pages(length); !ok {
		length = n // as Linux rounds it: to nothing
	}
	end, e = checkRange(start, length, linux.EINVAL, linux.ENOMEM)
	return start, end, e
}

func (s *Space) setLocked(start, end uint64, add uint32) linux.Errno {
	return s.change(start, end, func(v *vma) (uint32, uint32, linux.Errno) {
		if v.flags&vSpecial != 0 {
			return v.prot, v.flags, 0
		}
		return v.prot, v.flags&^(vLocked|vOnFault) | add, 0
	})
}

// lockedIn returns how many bytes of [start, end) are locked already.
func (s *Space) lockedIn(start, end uint64) uint64 {
	n := uint64(0)
	for i := s.find(start); i < s.vmas.len() && s.vmas.at(i).start < end; i++ {
		if v := s.vmas.at(i); v.flags&vLocked != 0 {
			n += min(end, v.end) - max(start, v.start)
		}
	}
	return n
}
