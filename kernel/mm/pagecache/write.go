package pagecache

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

// reserve sets aside what page n in state w may take on disk once it is dirty. set is
// backed where that turns out to be nothing.
func (f *File) reserve(n, w uint64) (blocks, set uint64, e linux.Errno) {
	if w&(backed|reservedMask) != 0 {
		return 0, 0, 0
	}
	blocks = uint64(mem.PageSize / f.blockSize)
	if e = f.store.Reserve(int64(blocks)); e != linux.ENOSPC {
		return blocks, 0, e
	}
	switch missing, err := f.store.Missing(n); {
	case err != 0:
		return 0, 0, err
	case missing == 0:
		return 0, backed, 0
	case missing < int64(blocks):
		return uint64(missing), 0, f.store.Reserve(missing)
	}
	return 0, 0, e
}

// markDirty makes a pinned page dirty, with blocks that were reserved for it, and gives
// back the pin. It returns 1 if the page was clean.
func (f *File) markDirty(l *leaf, n, blocks, set uint64) int {
	s := &l.slots[n%leafPages]
	for {
		w := s.w.Load()
		next := (w | dirty | set) - pin
		kept := w&(backed|reservedMask) == 0
		if kept {
			next |= blocks << reservedShift
		}
		if !s.w.CompareAndSwap(w, next) {
			continue
		}
		switch {
		case blocks == 0:
		case kept:
			f.reserved.Add(int64(blocks))
		default: // another was faster
			f.store.Unreserve(int64(blocks))
		}
		if w&dirty != 0 {
			return 0
		}
		f.addDirty(l, n)
		return 1
	}
}

// addDirty enters a page among the dirty ones.
func (f *File) addDirty(l *leaf, n uint64) {
	cache.nDirty.Add(1)
	first := f.dirty.Add(1) == 1
	l.dirty.Or(1 << (n % leafPages))
	if !l.listed.Load() {
		f.enlist(l)
	}
	if first {
		f.since.Store(clocks.Monotonic())
		cache.dirty.add(f)
	}
}

// enlist enters a leaf among those with dirty pages. Whoever writes back takes the leaf
// off the list before he looks at its bits: so a bit that was set before listed is
// seen by him or leads here.
func (f *File) enlist(l *leaf) {
	f.mu.Lock()
	if !l.listed.Load() {
		l.listed.Store(true)
		l.next, f.unclean = f.unclean, l
	}
	f.mu.Unlock()
}

// Write copies what v has to off and makes it part of the file, whose size it grows.
// The caller holds the file system's lock of the inode. It returns how many bytes
// were written and how many pages became dirty, for Balance; an error only if no byte
// was written.
func (f *File) Write(c *caller.Ctx, v *uio.Vec, off int64) (done, fresh int, e linux.Errno) {
	f.zeroTail(off)
	for left := v.Len(); left > 0 && e == 0 && !(done > 0 && caller.KilledAt(c, off)); {
		at := int(off & pageMask)
		k := min(mem.PageSize-at, left)
		n := uint64(off) >> mem.PageShift
		var m, s int
		l := f.leaf(n)
		if l != nil {
			if w, ok := l.slots[n%leafPages].pin(); ok {
				m, s, e = f.overwrite(v, l, n, w, at, k)
				done, fresh, off, left = done+m, fresh+s, off+int64(m), left-m
				continue
			}
		}
		if k == mem.PageSize || int64(n)<<mem.PageShift >= f.size.Load() {
			m, s, e = f.create(v, n, at, k)
			done, fresh, off, left = done+m, fresh+s, off+int64(m), left-m
			continue
		}
		var fr mem.Frame
		if fr, e = f.fill(n, 1); e == 0 {
			fr.Put()
		}
	}
	if done > 0 {
		e = 0
	}
	return done, fresh, e
}

// overwrite copies into a pinned page in state w.
func (f *File) overwrite(v *uio.Vec, l *leaf, n, w uint64, at, k int) (m, fresh int, e linux.Errno) {
	s := &l.slots[n%leafPages]
	r, set, e := f.reserve(n, w)
	if e != 0 {
		s.unpin()
		return 0, 0, e
	}
	m, e = v.CopyIn(frameOf(w).Bytes()[at : at+k])
	if m == 0 {
		if r != 0 {
			f.store.Unreserve(int64(r))
		}
		s.unpin()
		return 0, 0, e
	}
	f.reach(n, at+m)
	return m, f.markDirty(l, n, r, set), e
}

// reach lets the size cover the first bytes of page n.
func (f *File) reach(n uint64, bytes int) {
	if end := int64(n)<<mem.PageShift + int64(bytes); end > f.size.Load() {
		f.size.Store(end)
	}
}

// create writes to a page that is not in memory and need not be read.
func (f *File) create(v *uio.Vec, n uint64, at, k int) (m, fresh int, e linux.Errno) {
	r, set, e := f.reserve(n, 0)
	if e != 0 {
		return 0, 0, e
	}
	var one [1]mem.Frame
	if allocate(one[:]) == 0 {
		f.store.Unreserve(int64(r))
		return 0, 0, linux.ENOMEM
	}
	fr := one[0]
	b := fr.Bytes()
	clear(b[:at])
	m, e = v.CopyIn(b[at : at+k])
	clear(b[at+m:])
	if m == 0 {
		fr.Put()
		f.store.Unreserve(int64(r))
		return 0, 0, e
	}
	if m < k && int64(n)<<mem.PageShift+int64(at+m) < f.size.Load() {
		// Part of a page that the file has: the rest must be its own.
		return f.patch(n, fr, at, m, r, e)
	}
	f.mu.Lock()
	l := f.grow(n)
	s := &l.slots[n%leafPages]
	if s.w.Load()&frameBits != 0 { // a page fault was faster
		f.mu.Unlock()
		return f.patch(n, fr, at, m, r, e)
	}
	f.counted(l)
	s.w.Store(uint64(fr) | used | pin)
	f.mu.Unlock()
	f.reach(n, at+m)
	return m, f.markDirty(l, n, r, set), e
}

// patch copies m bytes at from fr, which it frees, into page n.
func (f *File) patch(n uint64, fr mem.Frame, at, m int, r uint64, e linux.Errno) (int, int, linux.Errno) {
	defer fr.Put()
	f.store.Unreserve(int64(r))
	for {
		page, err := f.fill(n, 1)
		if err != 0 {
			return 0, 0, err
		}
		page.Put()
		l := f.leaf(n)
		if l == nil {
			continue
		}
		w, ok := l.slots[n%leafPages].pin()
		if !ok {
			continue
		}
		r, set, err := f.reserve(n, w)
		if err != 0 {
			l.slots[n%leafPages].unpin()
			return 0, 0, err
		}
		copy(frameOf(w).Bytes()[at:at+m], fr.Bytes()[at:])
		f.reach(n, at+m)
		return m, f.markDirty(l, n, r, set), e
	}
}

// zeroTail clears what the page that holds the end has beyond it, before the file
// grows to off or further: a mapping may have stored there.
func (f *File) zeroTail(off int64) {
	size := f.size.Load()
	at := int(size & pageMask)
	if off <= size || at == 0 {
		return
	}
	if fr, ok := f.lookup(uint64(size) >> mem.PageShift); ok {
		clear(fr.Bytes()[at:])
		fr.Put()
	}
}
