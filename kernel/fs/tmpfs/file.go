package tmpfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// maxSize is the largest file (Linux's MAX_LFS_FILESIZE).
const maxSize = 1<<63 - 1

const pageMask = mem.PageSize - 1

var zeroPage [mem.PageSize]byte

// file is a regular file: inode, open file and mapped object in one, so that
// opening makes nothing but the vfs.File.
type file struct {
	vfs.BaseNode
	vfs.BaseOps
	vfs.Inode
	account *account // changed under Mu and mu

	mu    sync.Mutex // see the package comment
	pages pages      // guarded by mu
	fresh *pages     // guarded by mu, and set under Mu too; see reserve.go
	seals uint32     // F_SEAL_*; guarded by mu, and changed under Mu too
	// writers counts shared mappings that may be written to; it leaves 0 under mu only.
	writers atomic.Int32
	maps    mem.Mappings
}

// Open gives a file pages of its own before it may be written to.
func (f *file) Open(_ *caller.Ctx, _ vfs.Path, flags uint32) (vfs.Ops, linux.Errno) {
	if lent.end != 0 && flags&linux.O_ACCMODE != linux.O_RDONLY {
		if e := f.ownForWriting(); e != 0 {
			return nil, e
		}
	}
	return f, 0
}

// page returns page n with a reference, or 0 for a hole.
func (f *file) page(n uint64) mem.Frame {
	f.mu.Lock()
	fr := f.pages.get(n)
	if fr != 0 {
		fr.Get()
	}
	f.mu.Unlock()
	return fr
}

// Read copies straight from the frames.
func (f *file) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	size := f.Size()
	of.Accessed() // whatever comes of it, as on Linux
	if off >= size {
		return 0, 0
	}
	left := v.Len()
	if int64(left) > size-off {
		left = int(size - off)
		v.Limit(left)
	}
	done := 0
	for left > 0 {
		at := int(off & pageMask)
		n := min(mem.PageSize-at, left)
		var m int
		var e linux.Errno
		if fr := f.page(uint64(off) >> mem.PageShift); fr != 0 {
			m, e = v.CopyOut(fr.Bytes()[at : at+n])
			fr.Put()
		} else {
			m, e = v.CopyOut(zeroPage[:n])
		}
		done += m
		if e != 0 {
			if done > 0 {
				break
			}
			return 0, e
		}
		off += int64(m)
		left -= m
		if caller.KilledAt(c, off) {
			break
		}
	}
	return done, 0
}

// Write copies straight into the frames.
func (f *file) Write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	again := false
	for {
		f.Mu.Lock()
		if f.RestWaits() {
			f.Mu.Unlock()
			if e := f.AwaitRest(c); e != 0 {
				return 0, e
			}
			continue
		}
		n, e := f.write(c, of, v, off)
		rest := n > 0 && v.Len() > 0
		if rest {
			f.BeginRest()
		}
		f.Mu.Unlock()
		switch {
		case rest:
			return f.writeRest(c, of, v, off, n), 0
		case again || e != linux.ENOMEM || !mem.Relieve():
			return n, e
		}
		again = true
	}
}

// writeRest goes on with a write that came to n bytes.
func (f *file) writeRest(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64, n int) int {
	return f.WriteRest(c, v, n, func(n int) (int, linux.Errno) {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return f.write(c, of, v, off+int64(n))
	})
}

// write is not inlined into Write, which would then be too large for its own calls to be
// inlined.
//
//go:noinline
func (f *file) write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	size := f.Size()
	appending := of.Flags()&linux.O_APPEND != 0 || c.Append
	if appending {
		off = size
	}
	limit := uint64(maxSize)
	if l := c.FileSizeLimit.Load(); l < limit {
		limit = l
	}
	if uint64(off) >= limit {
		if limit < maxSize {
			caller.SignalSelf(c, int(linux.SIGXFSZ))
		}
		return 0, linux.EFBIG
	}
	if uint64(v.Len()) > limit-uint64(off) {
		v.Limit(int(limit - uint64(off)))
	}
	left := v.Len()
	if f.seals != 0 { // changed under Mu too
		if f.seals&(linux.F_SEAL_WRITE|linux.F_SEAL_FUTURE_WRITE) != 0 ||
			f.seals&linux.F_SEAL_GROW != 0 && off+int64(left) > size && off >= size&^pageMask {
			return 0, linux.EPERM
		}
		if f.seals&linux.F_SEAL_GROW != 0 && off+int64(left) > size {
			left = int(size&^pageMask - off) // whole pages, as on Linux
			v.Limit(left)
		}
	}
	if f.Privileged() {
		if e := f.RemovePrivs(c); e != 0 {
			return 0, e
		}
	}
	done := 0
	var e linux.Errno
	for left > 0 && e == 0 {
		at := int(off & pageMask)
		n := min(mem.PageSize-at, left)
		var m int
		page := uint64(off) >> mem.PageShift
		if fr := f.page(page); fr != 0 {
			m, e = v.CopyIn(fr.Bytes()[at : at+n])
			fr.Put()
		} else {
			m, e = f.writeHole(v, page, at, n)
		}
		done += m
		off += int64(m)
		left -= m
		if caller.KilledAt(c, off) {
			break
		}
	}
	f.Modified() // even if no byte could be copied, as on Linux
	if done == 0 {
		return 0, e
	}
	if off > size {
		f.SetSize(off)
	}
	if appending {
		of.Pos = off
	}
	return done, 0
}

// writeHole writes to a page that does not exist: bytes at … at+n-1.
func (f *file) writeHole(v *uio.Vec, page uint64, at, n int) (int, linux.Errno) {
	if f.fresh != nil {
		if fr := f.reserved(page); fr != 0 {
			return f.writeReserved(v, page, fr, at, n)
		}
	}
	if !f.account.charge() {
		return 0, linux.ENOSPC
	}
	fr, ok := mem.Alloc()
	if !ok {
		f.account.release(1)
		return 0, linux.ENOMEM
	}
	b := fr.Bytes()
	clear(b[:at])
	m, e := v.CopyIn(b[at : at+n])
	clear(b[at+m:])
	if m == 0 {
		fr.Put()
		f.account.release(1)
		return 0, e
	}
	f.mu.Lock()
	if now := f.pages.get(page); now != 0 { // a page fault was faster
		copy(now.Bytes()[at:at+m], b[at:])
		f.mu.Unlock()
		fr.Put()
		f.account.release(1)
		return m, e
	}
	f.pages.set(page, fr)
	f.mu.Unlock()
	return m, e
}

// fill returns page n, which it makes if there is none; mu is held.
func (f *file) fill(n uint64) (mem.Frame, linux.Errno) {
	if fr := f.pages.get(n); fr != 0 {
		return fr, 0
	}
	if f.fresh != nil {
		if fr := f.fresh.take(n); fr != 0 {
			f.pages.set(n, fr)
			return fr, 0
		}
	}
	if !f.account.charge() {
		return 0, linux.ENOSPC
	}
	fr, ok := mem.AllocZeroed()
	if !ok {
		f.account.release(1)
		return 0, linux.ENOMEM
	}
	f.pages.set(n, fr)
	return fr, 0
}

// Seek moves the position; SEEK_DATA and SEEK_HOLE know the pages.
func (f *file) Seek(_ *caller.Ctx, of *vfs.File, off int64, whence int) (int64, linux.Errno) {
	size := f.Size()
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += of.Pos
	case linux.SEEK_END:
		off += size
	case linux.SEEK_DATA, linux.SEEK_HOLE:
		if off < 0 || off >= size {
			return 0, linux.ENXIO
		}
		first := uint64(off) >> mem.PageShift
		end := (uint64(size) + pageMask) >> mem.PageShift
		f.mu.Lock()
		n := f.pages.next(first, end, whence == linux.SEEK_DATA)
		f.mu.Unlock()
		if n > first {
			off = int64(n << mem.PageShift)
		}
		if n == end {
			if whence == linux.SEEK_DATA {
				return 0, linux.ENXIO
			}
			off = size
		}
	default:
		return 0, linux.EINVAL
	}
	if off < 0 {
		return 0, linux.EINVAL // a sum that wrapped comes here too
	}
	of.Pos = off
	return off, 0
}

// SetAttr sets what is asked for; Mu is held.
func (f *file) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize != 0 {
		if e := f.truncate(a.Size); e != 0 {
			return e
		}
		b := *a
		b.Mask &^= vfs.AttrSize
		a = &b
	}
	if a.Mask&vfs.AttrMode != 0 && f.seals&linux.F_SEAL_EXEC != 0 && (a.Mode^f.Mode())&0o111 != 0 {
		return linux.EPERM
	}
	if a.Mask&vfs.AttrUID != 0 {
		f.mu.Lock()
		f.account = f.account.move(a.UID, int64(f.used()))
		f.mu.Unlock()
	}
	i.Apply(a)
	return 0
}

// truncate sets the length; Mu is held.
func (f *file) truncate(size int64) linux.Errno {
	old := f.Size()
	if size < old && f.seals&linux.F_SEAL_SHRINK != 0 || size > old && f.seals&linux.F_SEAL_GROW != 0 {
		return linux.EPERM
	}
	if size > 0 && f.seals&sealLent != 0 {
		if e := f.own(); e != 0 {
			return e
		}
	}
	f.mu.Lock()
	f.SetSize(size)
	f.zeroTail(min(size, old))
	empty := f.used() == 0
	f.mu.Unlock()
	if size <= old {
		first := (uint64(size) + pageMask) >> mem.PageShift
		f.maps.Truncate(f, first)
		if !empty {
			f.drop(first, maxSize>>mem.PageShift+1)
		}
	}
	return 0
}

// zeroTail clears what follows the end in its page; mu is held.
func (f *file) zeroTail(end int64) {
	if at := end & pageMask; at != 0 {
		if fr := f.pages.get(uint64(end) >> mem.PageShift); fr != 0 {
			clear(fr.Bytes()[at:])
		}
	}
}

// drop unmaps and frees the pages first … end-1.
func (f *file) drop(first, end uint64) {
	f.maps.Zap(f, first, end-first)
	f.mu.Lock()
	n := f.cut(first, end)
	f.mu.Unlock()
	f.account.release(n)
}

// Map lets the file be mapped, which counts as a read.
func (f *file) Map(_ *caller.Ctx, of *vfs.File) (mem.Object, linux.Errno) {
	of.Accessed()
	return f, 0
}

// Page is a page fault in a mapping.
func (f *file) Page(n uint64, write bool) (mem.Frame, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n >= (uint64(f.Size())+pageMask)>>mem.PageShift {
		return 0, linux.EFAULT
	}
	if write && f.seals&linux.F_SEAL_WRITE != 0 {
		return 0, linux.EFAULT
	}
	fr, e := f.fill(n)
	if e != 0 {
		if e == linux.ENOSPC {
			e = linux.EFAULT // SIGBUS, as on Linux
		}
		return 0, e
	}
	fr.Get()
	if write {
		f.Modified()
	}
	return fr, 0
}

// Mappings is the register of who maps the file.
func (f *file) Mappings() *mem.Mappings { return &f.maps }

// Sync has nowhere to write to.
func (f *file) Sync(*caller.Ctx, *vfs.File, bool) linux.Errno { return 0 }

// Blocks counts the frames in use.
func (f *file) Blocks(*vfs.Inode) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(f.used()) * (mem.PageSize / 512)
}

// Evict frees the content.
func (f *file) Evict(*vfs.Inode) {
	f.mu.Lock()
	n := 0
	if f.used() != 0 {
		n = f.cut(0, maxSize>>mem.PageShift+1)
	}
	f.mu.Unlock()
	f.account.release(n)
	f.account.leave()
}

// Cached returns a page that is there already.
func (f *file) Cached(n uint64) (mem.Frame, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n >= (uint64(f.Size())+pageMask)>>mem.PageShift {
		return 0, false
	}
	fr := f.pages.get(n)
	if fr == 0 {
		return 0, false
	}
	fr.Get()
	return fr, true
}

// Punch is madvise MADV_REMOVE.
func (f *file) Punch(first, n uint64) linux.Errno {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.seals&(linux.F_SEAL_WRITE|linux.F_SEAL_FUTURE_WRITE) != 0 {
		return linux.EPERM
	}
	if n > 0 && first+n > first {
		f.drop(first, first+n)
	}
	return 0
}
