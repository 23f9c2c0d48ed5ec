package pagecache

import (
	"runtime"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
)

// Cut makes the file size bytes long: pages beyond are dropped, written or not, and
// do lets the file system cut what it has. The caller holds the file system's lock of
// the inode.
func (f *File) Cut(size int64, do func() linux.Errno) linux.Errno {
	f.gate.Lock()
	defer f.gate.Unlock()
	old := f.size.Load()
	if size > old {
		f.zeroTail(size)
	}
	f.size.Store(size)
	if size < old {
		if s := f.slot(uint64(size) >> mem.PageShift); s != nil && size&pageMask != 0 && f.blockSize < mem.PageSize {
			if _, ok := s.pin(); ok { // its last blocks go
				s.change(backed, 0)
				s.unpin()
			}
		}
		first := uint64(size+pageMask) >> mem.PageShift
		f.maps.Truncate(f, first)
		f.drop(first, ^uint64(0))
		if at := size & pageMask; at != 0 {
			if fr, ok := f.lookup(uint64(size) >> mem.PageShift); ok {
				clear(fr.Bytes()[at:])
				fr.Put()
			}
		}
	}
	return do()
}

// Grow is Cut for a file system that has made the file longer itself.
func (f *File) Grow(size int64) {
	f.zeroTail(size)
	f.reach(0, int(size))
}

// Bypass writes pages first … last back, drops them, and lets do change the file on
// disk past the cache: direct writes, holes. The caller holds the file system's lock
// of the inode.
func (f *File) Bypass(first, last uint64, do func() linux.Errno) linux.Errno {
	f.gate.Lock()
	defer f.gate.Unlock()
	if f.pages.Load() != 0 {
		f.writing.Lock()
		e := f.writeBack(first, last, 1<<62)
		f.writing.Unlock()
		if e != 0 {
			return e
		}
		f.drop(first, last)
	}
	return do()
}

// Overwrite lets do write over what the pages first … last have on disk, past the
// cache, without the file system's lock of the inode. Several may do so at once, with
// reads and write-backs of other pages. do returns false if it did nothing, since more
// has to change; so does Overwrite where pages cannot simply be dropped: Bypass is for
// both. stale says that somebody has read or stored to one of the pages meanwhile, and
// the caller has to drop them by Bypass.
func (f *File) Overwrite(first, last uint64, do func() (bool, linux.Errno)) (did, stale bool, e linux.Errno) {
	if !f.vacate(first, last) {
		return false, false, 0
	}
	f.gate.RLock()
	did, e = do()
	f.gate.RUnlock()
	return did, did && !f.vacate(first, last), e
}

// vacate drops clean pages, and reports whether that left none.
func (f *File) vacate(first, last uint64) bool {
	if f.absent(first, last) {
		return true
	}
	f.Clean(first, last)
	return f.absent(first, last)
}

// absent reports whether none of the pages first … last is in memory, or on its way.
func (f *File) absent(first, last uint64) bool {
	for n := first; n <= last && f.pages.Load() != 0; n++ {
		if s := f.slot(n); s != nil && s.w.Load()&frameBits != 0 {
			return false
		}
	}
	return true
}

// Drop ends the cache of a file that nobody uses any more: what is dirty is lost.
func (f *File) Drop() {
	f.gate.Lock()
	f.ended = true // for goroutines that read ahead
	f.drop(0, ^uint64(0))
	f.gate.Unlock()
	cache.dirty.remove(f)
}

// Clean drops the pages first … last that are clean and not mapped.
func (f *File) Clean(first, last uint64) {
	f.eachLeaf(first, last, func(l *leaf) {
		for i := range l.slots {
			if n := l.base + uint64(i); n >= first && n <= last {
				l.evict(i) // the first time only says that it was used
				l.evict(i)
			}
		}
		f.tidy(l)
	})
}

// drop unmaps and frees the pages first … last; the gate is held alone.
func (f *File) drop(first, last uint64) {
	if f.pages.Load() != 0 {
		f.maps.Zap(f, first, max(last-first, last-first+1))
		f.eachLeaf(first, last, func(l *leaf) {
			for i := range l.slots {
				if n := l.base + uint64(i); n >= first && n <= last {
					f.discard(l, &l.slots[i])
				}
			}
		})
	}
	if f.dirty.Load() == 0 {
		f.unlist()
	}
	f.eachLeaf(first, last, f.tidy)
}

// discard empties a word, whatever its state but busy or writing.
func (f *File) discard(l *leaf, s *slot) {
	for {
		w := s.w.Load()
		switch {
		case w&frameBits == 0:
			return
		case w&pinMask != 0: // for a few instructions of somebody's
			runtime.Gosched()
			continue
		case !s.w.CompareAndSwap(w, 0):
			continue
		}
		if w&dirty != 0 {
			cache.nDirty.Add(-1)
			f.dirty.Add(-1)
		}
		if r := w & reservedMask >> reservedShift; r != 0 {
			f.reserved.Add(-int64(r))
			f.store.Unreserve(int64(r))
		}
		l.discounted()
		frameOf(w).Put()
		return
	}
}

// tidy takes a leaf without pages out of the tree.
func (f *File) tidy(l *leaf) {
	if l.count.Load() != 0 {
		return
	}
	f.mu.Lock()
	f.prune(l)
	f.mu.Unlock()
}

// Data returns the first page from n up to before end that is dirty (and so data,
// whatever the disk says), or end.
func (f *File) Data(n, end uint64) uint64 {
	found := end
	if f.dirty.Load() == 0 || n >= end {
		return end
	}
	f.eachLeaf(n, end-1, func(l *leaf) {
		for i := max(n, l.base); i < min(found, l.base+leafPages); i++ {
			if l.slots[i-l.base].w.Load()&(dirty|writing) != 0 {
				found = i
			}
		}
	})
	return found
}
