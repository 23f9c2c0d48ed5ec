package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// MapArgs are the arguments of Mmap.
type MapArgs struct {
	Addr, Length uint64
	Prot, Flags  uint32
	File         *vfs.File  // nil for anonymous memory; Mmap takes its own reference
	Object       mem.Object // maps this instead of a file (vDSO, shared memory segments)
	Offset       uint64
	NoWrite      bool   // Object may not be made writable later
	Special      bool   // the kernel's own pages: they neither grow nor count as locked
	Name         string // shown in /proc/PID/maps: "[vdso]", …
}

const (
	protMask = linux.PROT_READ | linux.PROT_WRITE | linux.PROT_EXEC

	// mapFlags are the flags of mmap that are known; MAP_SHARED_VALIDATE
	// refuses others, the older types ignore them.
	mapFlags = linux.MAP_TYPE | linux.MAP_FIXED | linux.MAP_ANONYMOUS | linux.MAP_32BIT | linux.MAP_GROWSDOWN |
		linux.MAP_DENYWRITE | linux.MAP_EXECUTABLE | linux.MAP_LOCKED | linux.MAP_NORESERVE | linux.MAP_POPULATE |
		linux.MAP_NONBLOCK | linux.MAP_STACK | linux.MAP_FIXED_NOREPLACE | hugeSizes

	// hugeSizes are the bits of the sizes of huge pages that Linux knows.
	hugeShift = 26
	hugeSizes = (21 | 30) << hugeShift
)

// pages rounds a length up; false: it overflows.
func pages(n uint64) (uint64, bool) {
	r := (n + pageMask) &^ pageMask
	return r, r >= n
}

// Mmap is mmap(2).
func (s *Space) Mmap(c *caller.Ctx, a *MapArgs) (uint64, linux.Errno) {
	length, ok := pages(a.Length)
	switch {
	case a.Length == 0 || a.Offset&pageMask != 0:
		return 0, linux.EINVAL
	case !ok || length > userTop:
		return 0, linux.ENOMEM
	case a.Offset+length < a.Offset || a.Offset+length >= 1<<63:
		return 0, linux.EOVERFLOW
	case a.Flags&linux.MAP_HUGETLB != 0:
		return 0, hugeError(a)
	case a.Flags&linux.MAP_LOCKED != 0 && s.memlock(c) == 0:
		return 0, linux.EPERM
	}
	v := vma{prot: a.Prot & protMask, off: a.Offset, flags: vMayWrite, name: a.Name}
	switch a.Flags & linux.MAP_TYPE {
	case linux.MAP_PRIVATE:
	case linux.MAP_SHARED_VALIDATE:
		if a.Flags&linux.MAP_ANONYMOUS != 0 {
			return 0, linux.EINVAL
		}
		if a.Flags&^mapFlags != 0 {
			return 0, linux.EOPNOTSUPP
		}
		v.flags |= vShared
	case linux.MAP_SHARED:
		v.flags |= vShared
	default:
		return 0, linux.EINVAL
	}
	if a.Flags&linux.MAP_NORESERVE != 0 && settings.OvercommitMemory.Get() != overcommitNever {
		v.flags |= vNoReserve
	}
	if a.Flags&linux.MAP_GROWSDOWN != 0 {
		if a.File == nil && (a.Object != nil || v.flags&vShared != 0) {
			return 0, linux.EINVAL
		}
		v.flags |= vGrowsDown
	}
	if e := s.back(c, a, &v, length); e != 0 {
		return 0, e
	}
	addr, e := s.place(c, a, &v, length)
	if e != 0 {
		b := v.backing()
		b.release(s, 1)
		return 0, e
	}
	if a.Flags&linux.MAP_POPULATE != 0 && a.Flags&linux.MAP_NONBLOCK == 0 || v.flags&(vLocked|vOnFault) == vLocked {
		s.populate(c, addr, addr+length)
	}
	return addr, 0
}

// hugeError is the answer to MAP_HUGETLB: there are no huge pages.
func hugeError(a *MapArgs) linux.Errno {
	switch size := a.Flags >> hugeShift; {
	case a.Flags&linux.MAP_ANONYMOUS == 0, size != 0 && size != 21 && size != 30:
		return linux.EINVAL
	}
	return linux.ENOMEM
}

// back finds what v maps and takes the references it holds; on failure it
// holds nothing.
func (s *Space) back(c *caller.Ctx, a *MapArgs, v *vma, length uint64) linux.Errno {
	switch {
	case a.Object != nil:
		v.obj = a.Object
		v.flags |= vShmem
		if a.NoWrite {
			v.flags &^= vMayWrite
		}
		if a.Special {
			v.flags |= vSpecial
			if a.NoWrite {
				v.flags |= vNoExec
			}
		}
		b := v.backing()
		b.hold(1)
	case a.File == nil:
		v.off = 0
		if v.private() {
			return 0
		}
		o := newShared(length >> pageShift)
		if v.flags&vNoReserve == 0 {
			if !s.mayCommit(length) {
				return linux.ENOMEM
			}
			o.charge()
		}
		v.obj = o
		v.flags |= vShmem
	default:
		if e := s.backFile(c, a.File, v, length); e != 0 || v.file == nil {
			return e
		}
	}
	b := v.backing()
	b.register(s, 1)
	return 0
}

// mappedByLinux reports whether Linux can map a file that has no Mapper here: block
// devices, and most files of /proc and /sys. It looks at some flags before it fails.
func mappedByLinux(f *vfs.File) bool {
	if f.Path.Zero() {
		return false
	}
	kind := f.Path.Inode().Type()
	return kind == linux.S_IFBLK || kind == linux.S_IFREG
}

// backFile is back for a file. If v gets none it is anonymous memory.
func (s *Space) backFile(c *caller.Ctx, f *vfs.File, v *vma, length uint64) linux.Errno {
	if !f.Readable() {
		return linux.EACCES
	}
	if !v.private() && !f.Writable() {
		if v.prot&linux.PROT_WRITE != 0 {
			return linux.EACCES
		}
		v.flags &^= vMayWrite
	}
	if m := f.Path.Mnt; m != nil && m.Flags()&linux.MS_NOEXEC != 0 {
		if v.prot&linux.PROT_EXEC != 0 {
			return linux.EPERM
		}
		v.flags |= vNoExec
	}
	m, ok := f.Ops.(vfs.Mapper)
	if v.flags&vGrowsDown != 0 && (ok || mappedByLinux(f)) {
		return linux.EINVAL
	}
	if !ok {
		return linux.ENODEV
	}
	var obj mem.Object
	var e linux.Errno
	if w, ok := f.Ops.(vfs.WholeMapper); ok {
		obj, e = w.MapWhole(v.off, length)
	} else {
		obj, e = m.Map(c, f)
	}
	if e != 0 {
		return e
	}
	if obj == mem.Anonymous {
		v.off = 0
		if !v.private() {
			v.obj = newShared(length >> pageShift)
			v.flags |= vShmem
		}
		return 0
	}
	if _, ok := obj.(mem.ReadOnly); ok {
		if v.prot&(linux.PROT_WRITE|linux.PROT_EXEC) != 0 {
			return linux.EPERM
		}
		v.flags = v.flags&^vMayWrite | vNoExec
	}
	if o, ok := obj.(mem.Sealed); ok && !v.private() {
		writable, e := o.MapShared(v.prot&linux.PROT_WRITE != 0, v.flags&vMayWrite != 0)
		if e != 0 {
			return e
		}
		if !writable {
			v.flags &^= vMayWrite
		}
	}
	f.Get()
	v.obj, v.file = obj, f
	return 0
}

// place finds an address for v and puts it there.
func (s *Space) place(c *caller.Ctx, a *MapArgs, v *vma, length uint64) (uint64, linux.Errno) {
	s.lock()
	defer s.unlock()
	fixed := a.Flags&(linux.MAP_FIXED|linux.MAP_FIXED_NOREPLACE) != 0
	addr := a.Addr
	if fixed {
		if e := checkFixed(addr, length); e != 0 {
			return 0, e
		}
		if a.Flags&linux.MAP_FIXED_NOREPLACE != 0 && !s.free(addr, addr+length) {
			return 0, linux.EEXIST
		}
	} else if addr = s.choose(a, length); addr == 0 {
		return 0, linux.ENOMEM
	}
	v.start, v.end = addr, addr+length
	v.flags |= s.lockNext
	if a.Flags&linux.MAP_LOCKED != 0 {
		v.flags |= vLocked
	}
	if v.flags&vLocked != 0 && s.locked+length > s.memlock(c) {
		return 0, linux.EAGAIN
	}
	replaced := uint64(0)
	if fixed {
		replaced = s.mapped(v.start, v.end)
	}
	if e := s.afford(v, length-replaced); e != 0 {
		return 0, e
	}
	if s.full(s.splits(v.start, v.end) + 1) {
		return 0, linux.ENOMEM
	}
	if replaced != 0 {
		s.unmap(v.start, v.end)
	}
	s.insert(*v)
	return addr, 0
}

func checkFixed(addr, length uint64) linux.Errno {
	switch {
	case addr&pageMask != 0:
		return linux.EINVAL
	case length > userTop || addr > userTop-length:
		return linux.ENOMEM
	case addr < lowest():
		return linux.EPERM
	}
	return 0
}

// choose returns a free place for a mapping, or 0.
func (s *Space) choose(a *MapArgs, length uint64) uint64 {
	if hint := (a.Addr + pageMask) &^ pageMask; hint >= a.Addr && hint != 0 {
		hint = max(hint, lowest())
		if s.fits(hint, length) && (a.Flags&linux.MAP_32BIT == 0 || hint+length <= high32) {
			return hint
		}
	}
	if a.Flags&linux.MAP_32BIT != 0 {
		return s.holeAbove(length, low32, high32)
	}
	return s.findHole(length)
}

// mapped returns how many bytes of [start, end) are mapped.
func (s *Space) mapped(start, end uint64) uint64 {
	n := uint64(0)
	for i := s.find(start); i < s.vmas.len() && s.vmas.at(i).start < end; i++ {
		n += min(end, s.vmas.at(i).end) - max(start, s.vmas.at(i).start)
	}
	return n
}

// afford checks the limits for more bytes of a mapping like v: memory that can
// never be there (the overcommit heuristic), RLIMIT_AS and RLIMIT_DATA.
func (s *Space) afford(v *vma, more uint64) linux.Errno {
	if v.committed() && !s.mayCommit(more) {
		return linux.ENOMEM
	}
	if s.Limits == nil || more == 0 {
		return 0
	}
	if n := s.limit(linux.RLIMIT_AS); s.size+more > n {
		return linux.ENOMEM
	}
	if isData(v) {
		if n := s.limit(linux.RLIMIT_DATA); n != ^uint64(0) && s.data()+more > n {
			return linux.ENOMEM
		}
	}
	return 0
}

// isData says what RLIMIT_DATA and VmData count: private, writable, no stack.
func isData(v *vma) bool {
	return v.private() && v.prot&linux.PROT_WRITE != 0 && v.flags&vGrowsDown == 0
}

// data returns the bytes that RLIMIT_DATA counts.
func (s *Space) data() uint64 {
	n := uint64(0)
	for i := range s.vmas.len() {
		if v := s.vmas.at(i); isData(v) {
			n += v.end - v.start
		}
	}
	return n
}

// checkRange checks the page-aligned address and the length of a call on
// mapped memory, and returns where it ends: wraps is the answer where that is
// beyond 2⁶⁴, beyond where programs can have nothing mapped.
func checkRange(addr, length uint64, wraps, beyond linux.Errno) (end uint64, e linux.Errno) {
	n, ok := pages(length)
	switch {
	case addr&pageMask != 0:
		return 0, linux.EINVAL
	case length == 0: // nothing, wherever it is
		return addr, 0
	case !ok || addr+n < addr:
		return 0, wraps
	case addr > userTop || n > userTop-addr:
		return 0, beyond
	}
	return addr + n, 0
}

// Munmap is munmap(2).
func (s *Space) Munmap(_ *caller.Ctx, addr, length uint64) linux.Errno {
	end, e := checkRange(addr, length, linux.EINVAL, linux.EINVAL)
	if e != 0 || length == 0 {
		return linux.EINVAL
	}
	s.lock()
	defer s.unlock()
	if s.full(s.splits(addr, end)) {
		return linux.ENOMEM
	}
	s.unmap(addr, end)
	return 0
}

// RemapPages is remap_file_pages(2): other pages of the shared object that is
// mapped at addr come there. On Linux a mapping of what was opened read-only does not
// count as shared here.
func (s *Space) RemapPages(c *caller.Ctx, addr, length, page uint64, flags uint32) linux.Errno {
	addr &^= pageMask
	length &^= pageMask
	if addr+length <= addr || page+length>>pageShift < page {
		return linux.EINVAL
	}
	s.mu.RLock()
	v := s.at(addr)
	if v == nil || v.private() || addr+length > v.end ||
		v.file != nil && !v.file.Writable() || v.file == nil && !v.writes() {
		s.mu.RUnlock()
		return linux.EINVAL
	}
	if length > 1<<63-1 || page > (1<<63-1-length)>>pageShift {
		s.mu.RUnlock()
		return linux.EOVERFLOW
	}
	b := v.backing()
	a := MapArgs{Addr: addr, Length: length, Prot: v.prot, Flags: linux.MAP_SHARED | linux.MAP_FIXED | linux.MAP_POPULATE | flags,
		File: b.file, Offset: page << pageShift, NoWrite: v.flags&vMayWrite == 0, Name: v.name}
	if b.file == nil {
		a.Object = b.obj
	}
	b.hold(1)
	s.mu.RUnlock()
	_, e := s.Mmap(c, &a)
	b.drop(1)
	return e
}

// UnmapObject unmaps the pieces of an object's mapping that began at addr
// (shmdt); EINVAL if there is none. It reports the object to the caller.
func (s *Space) UnmapObject(addr uint64, is func(mem.Object) bool) (mem.Object, linux.Errno) {
	s.lock()
	defer s.unlock()
	var obj mem.Object
	for i := s.find(addr); i < s.vmas.len(); {
		v := s.vmas.at(i)
		if v.obj != nil && v.start-v.off == addr && v.file == nil && (obj == v.obj || obj == nil && is(v.obj)) {
			obj = v.obj
			start, end := v.start, v.end
			s.unmap(start, end)
			i = s.find(end)
			continue
		}
		i++
	}
	if obj == nil {
		return nil, linux.EINVAL
	}
	return obj, 0
}

// populate faults the pages of [start, end) in, as far as memory goes.
func (s *Space) populate(c *caller.Ctx, start, end uint64) linux.Errno {
	tries := 200
	for va := start; va < end; {
		if va&(1<<21-1) == 0 && caller.Killed(c) {
			return linux.EINTR
		}
		s.mu.RLock()
		v := s.at(va)
		if v == nil {
			s.mu.RUnlock()
			return linux.ENOMEM
		}
		write := v.prot&linux.PROT_WRITE != 0
		r := FaultAccErr
		if v.prot != 0 {
			r = s.handle(v, va, write, true)
		}
		s.mu.RUnlock()
		if r == FaultOOM && tries > 0 && relieve(c) {
			tries--
			continue
		}
		if r != FaultOK {
			return r.errno()
		}
		va = s.skipPresent(va+pageSize, end, write)
	}
	return 0
}

// relieve has somebody killed for memory and gives that a millisecond; false: it
// does not help, or the caller is the one. No lock is held.
func relieve(c *caller.Ctx) bool {
	if c == nil || OutOfMemory.Call == nil {
		return false
	}
	OutOfMemory.Call()
	c.Arm()
	return c.Sleep(clocks.Monotonic()+1e6) != wait.Interrupted
}

// skipPresent returns the first page at or after va that would fault.
func (s *Space) skipPresent(va, end uint64, write bool) uint64 {
	need := pteP
	if write {
		need |= pteW
	}
	s.pt.RLock()
	defer s.pt.RUnlock()
	for va < end {
		t := s.leaf(va)
		if t == nil {
			return va
		}
		for {
			if atomic.LoadUint64(&t[index(va)])&need != need {
				return va
			}
			if va += pageSize; va >= end || va&(leafSpan-1) == 0 {
				break
			}
		}
	}
	return va
}

// errno is what a system call answers where a page cannot be had.
func (r FaultResult) errno() linux.Errno {
	switch r {
	case FaultOK:
		return 0
	case FaultOOM:
		return linux.ENOMEM
	}
	return linux.EFAULT
}
