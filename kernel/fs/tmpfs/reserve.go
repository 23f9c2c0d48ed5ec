package tmpfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// What fallocate reserves is charged, and has frames, but is a hole for lseek until
// something touches it. Such frames are zeroed and in file.fresh, so that whoever looks
// in file.pages finds a hole. What fills the hole takes the frame from there.

// Allocate is fallocate(2).
func (f *file) Allocate(c *caller.Ctx, of *vfs.File, mode uint32, off, n int64) linux.Errno {
	end := off + n // checked by the caller
	if mode&^(linux.FALLOC_FL_KEEP_SIZE|linux.FALLOC_FL_PUNCH_HOLE) != 0 {
		return linux.EOPNOTSUPP
	}
	f.Mu.Lock()
	for f.RestWaits() {
		f.Mu.Unlock()
		if e := f.AwaitRest(c); e != 0 {
			return e
		}
		f.Mu.Lock()
	}
	defer f.Mu.Unlock()
	keep := mode&linux.FALLOC_FL_KEEP_SIZE != 0
	if mode&linux.FALLOC_FL_PUNCH_HOLE == 0 && end > f.Size() {
		if uint64(end) > c.FileSizeLimit.Load() {
			caller.SignalSelf(c, int(linux.SIGXFSZ))
			return linux.EFBIG
		}
		if f.seals&linux.F_SEAL_GROW != 0 {
			return linux.EPERM
		}
	}
	switch mode &^ linux.FALLOC_FL_KEEP_SIZE {
	case linux.FALLOC_FL_PUNCH_HOLE:
		if !keep {
			return linux.EOPNOTSUPP
		}
		if f.seals&(linux.F_SEAL_WRITE|linux.F_SEAL_FUTURE_WRITE) != 0 {
			return linux.EPERM
		}
		f.punch(off, end)
	case 0:
		if e := f.reserve(c, off, end); e != 0 {
			return e
		}
		if end > f.Size() && !keep {
			f.mu.Lock()
			f.zeroTail(f.Size())
			f.SetSize(end)
			f.mu.Unlock()
		}
	default:
		return linux.EOPNOTSUPP
	}
	e := f.RemovePrivs(c)
	f.Modified()
	return e
}

// punch makes the bytes off … end-1 read as zeros and frees whole pages.
func (f *file) punch(off, end int64) {
	first, last := (uint64(off)+pageMask)>>mem.PageShift, uint64(end)>>mem.PageShift
	f.mu.Lock()
	zero := func(from, to int64) {
		if fr := f.pages.get(uint64(from) >> mem.PageShift); fr != 0 && to > from {
			at := int(from & pageMask)
			clear(fr.Bytes()[at : at+int(to-from)])
		}
	}
	if first > last { // inside one page
		zero(off, end)
	} else {
		zero(off, int64(first<<mem.PageShift))
		zero(int64(last<<mem.PageShift), end)
	}
	f.mu.Unlock()
	if first < last {
		f.drop(first, last)
	}
}

// reserve makes all pages of a range exist. It ends early for a signal. When it fails,
// it gives back what nothing has touched; a page that an earlier call reserved counts
// as touched by this one, as on Linux.
func (f *file) reserve(c *caller.Ctx, off, end int64) linux.Errno {
	first, last := uint64(off)>>mem.PageShift, (uint64(end)+pageMask)>>mem.PageShift
	if last-first > uint64(f.account.fs.maxPages.Load()) {
		return linux.ENOSPC
	}
	for n := first; n < last; n++ {
		e := linux.EINTR
		if !c.Interrupted() {
			f.mu.Lock()
			e = f.reservePage(n)
			f.mu.Unlock()
		}
		if e != 0 {
			f.mu.Lock()
			gone := 0
			if f.fresh != nil {
				gone = f.fresh.cut(first, n)
			}
			f.mu.Unlock()
			f.account.release(gone)
			return e
		}
	}
	return 0
}

// reservePage reserves page n; mu is held.
func (f *file) reservePage(n uint64) linux.Errno {
	if f.pages.get(n) != 0 {
		return 0
	}
	if f.fresh == nil {
		f.fresh = &pages{}
	} else if fr := f.fresh.take(n); fr != 0 {
		f.pages.set(n, fr)
		return 0
	}
	if !f.account.charge() {
		return linux.ENOSPC
	}
	fr, ok := mem.AllocZeroed()
	if !ok {
		f.account.release(1)
		return linux.ENOMEM
	}
	f.fresh.set(n, fr)
	return 0
}

// reserved returns the frame that is reserved for page n with a reference, or 0.
func (f *file) reserved(n uint64) mem.Frame {
	f.mu.Lock()
	fr := f.fresh.get(n)
	if fr != 0 {
		fr.Get()
	}
	f.mu.Unlock()
	return fr
}

// writeReserved writes into a reserved frame, which is the file's content once a byte is
// in it. A page fault may have made it so before.
func (f *file) writeReserved(v *uio.Vec, page uint64, fr mem.Frame, at, n int) (int, linux.Errno) {
	m, e := v.CopyIn(fr.Bytes()[at : at+n])
	if m > 0 {
		f.mu.Lock()
		if f.fresh.take(page) != 0 {
			f.pages.set(page, fr)
		}
		f.mu.Unlock()
	}
	fr.Put()
	return m, e
}

// used counts the frames; mu is held.
func (f *file) used() int {
	if f.fresh != nil {
		return int(f.pages.used) + int(f.fresh.used)
	}
	return int(f.pages.used)
}

// cut frees the pages first … end-1 and returns how many there were; mu is held.
func (f *file) cut(first, end uint64) int {
	n := f.pages.cut(first, end)
	if f.fresh != nil {
		n += f.fresh.cut(first, end)
	}
	return n
}
