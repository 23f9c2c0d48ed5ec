package ext4fs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
)

// file is the node of a regular file, with its pages.
type file struct {
	node
	pages pagecache.File
}

// opened is an open regular file.
type opened struct {
	vfs.BaseOps
	*file
	reader pagecache.Reader
	seen   atomic.Uint32 // errors of writing that fsync has told of
}

// Open opens the file.
func (f *file) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) {
	o := &opened{file: f}
	o.seen.Store(f.pages.Errors().Sample())
	return o, 0
}

// Read reads through the page cache.
func (o *opened) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	n, size := int64(v.Len()), o.Size()
	if of.Flags()&linux.O_DIRECT != 0 {
		return o.readDirect(c, of, v, off)
	}
	if n == 0 {
		return 0, 0
	}
	of.Accessed() // at the end of the file too, as on Linux
	if off >= size {
		return 0, 0
	}
	return o.pages.Read(c, v, &o.reader, off, int(min(n, size-off)))
}

// Write writes into the page cache.
func (o *opened) Write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	n, fresh, rest, e := o.writeFirst(c, of, v, off)
	if rest {
		n = o.WriteRest(c, v, n, func(n int) (int, linux.Errno) {
			l := held{mu: &o.Mu}
			l.lock()
			m, k, e := o.write(c, of, v, off+int64(n), &l)
			l.unlock()
			fresh += k
			return m, e
		})
	}
	if n > 0 {
		o.pages.Balance(c, fresh)
		if of.Flags()&linux.O_DSYNC != 0 || o.Attrs()&linux.FS_SYNC_FL != 0 {
			if e := o.Sync(c, of, of.Flags()&linux.O_SYNC != linux.O_SYNC); e != 0 {
				return 0, e
			}
		}
	}
	return n, e
}

// writeFirst writes as far as memory goes, and reports whether WriteRest is to follow.
func (o *opened) writeFirst(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (n, fresh int, rest bool, e linux.Errno) {
	direct := of.Flags()&linux.O_DIRECT != 0
	locked := !direct || of.Flags()&linux.O_APPEND != 0 || c.Append
	for {
		l := held{mu: &o.Mu}
		if locked {
			l.lock()
		}
		if locked && o.RestWaits() {
			l.unlock()
			if e := o.AwaitRest(c); e != 0 {
				return 0, 0, false, e
			}
			continue
		}
		n, fresh, e = o.write(c, of, v, off, &l)
		if rest = n > 0 && v.Len() > 0 && !direct; rest {
			o.BeginRest()
		}
		l.unlock()
		return n, fresh, rest, e
	}
}

// held is a mutex that is locked when it turns out to be needed.
type held struct {
	mu *sync.Mutex
	on bool
}

func (l *held) lock() {
	if !l.on {
		l.mu.Lock()
		l.on = true
	}
}

func (l *held) unlock() {
	if l.on {
		l.mu.Unlock()
	}
}

func (o *opened) write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64, l *held) (done, fresh int, e linux.Errno) {
	f := o.file
	if f.fs.ext.ReadOnly() {
		return 0, 0, linux.EROFS
	}
	if f.Attrs()&vfs.Immutable != 0 {
		return 0, 0, linux.EPERM
	}
	appending := of.Flags()&linux.O_APPEND != 0 || c.Append
	if appending {
		off = f.Size()
	}
	limit := f.fs.MaxBytes
	own := c.FileSizeLimit.Load()
	if own < uint64(limit) {
		limit = int64(own)
	}
	if off >= limit {
		if uint64(off) >= own {
			caller.SignalSelf(c, int(linux.SIGXFSZ))
		}
		return 0, 0, linux.EFBIG
	}
	if int64(v.Len()) > limit-off {
		v.Limit(int(limit - off))
	}
	if f.Privileged() {
		l.lock()
		if e := f.RemovePrivs(c); e != 0 {
			return 0, 0, e
		}
	}
	if of.Flags()&linux.O_DIRECT != 0 {
		done, e = f.writeDirect(c, v, off, l)
		wait.NoteWritten(uint64(done))
	} else {
		done, fresh, e = f.writeCached(c, v, off)
		f.Written() // even if no byte could be copied, as on Linux
	}
	if done > 0 && appending {
		of.Pos = off + int64(done)
	}
	return done, fresh, e
}

// writeCached copies into the page cache. Where the disk is nearly full everything is
// written back before ENOSPC.
func (f *file) writeCached(c *caller.Ctx, v *uio.Vec, off int64) (done, fresh int, e linux.Errno) {
	done, fresh, e = f.pages.Write(c, v, off)
	if v.Len() == 0 || caller.Killed(c) || e != 0 && e != linux.ENOSPC || !f.MakeRoom() {
		return done, fresh, e
	}
	m, k, err := f.pages.Write(c, v, off+int64(done))
	if done == 0 {
		e = err
	}
	return done + m, fresh + k, e
}

// MakeRoom writes back everything where the disk is nearly full: then nothing is set
// aside any more for nodes of trees that are not needed. What was freed and waits for a
// commit, ext4 frees itself.
func (f *file) MakeRoom() bool {
	if !f.fs.ext.Crowded() {
		return false
	}
	pagecache.WriteAll(f.fs)
	return true
}

// Seek moves the position; holes are what is neither on disk nor dirty.
func (o *opened) Seek(_ *caller.Ctx, of *vfs.File, off int64, whence int) (int64, linux.Errno) {
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += of.Pos
	case linux.SEEK_END:
		off += o.Size()
	case linux.SEEK_DATA, linux.SEEK_HOLE:
		var e linux.Errno
		if off, e = o.seekData(off, whence); e != 0 {
			return 0, e
		}
	default:
		return 0, linux.EINVAL
	}
	if off < 0 || off > o.fs.MaxBytes {
		return 0, linux.EINVAL // a sum that wrapped comes here too
	}
	of.Pos = off
	return off, 0
}

// seekData writes what is dirty, so that the disk knows where there is data. What cannot
// be written is fsync's to tell, and no data.
func (f *file) seekData(off int64, whence int) (int64, linux.Errno) {
	if off < 0 || off >= f.Size() {
		return 0, linux.ENXIO
	}
	f.pages.WriteBack(0, ^uint64(0))
	off, err := f.fs.ext.Seek(f.in, off, whence)
	return off, f.fs.errno(err)
}

// Map lets the file be mapped, which counts as a read.
func (o *opened) Map(_ *caller.Ctx, of *vfs.File) (mem.Object, linux.Errno) {
	of.Accessed()
	return &o.pages, 0
}

// Cached returns a page that is in memory.
func (f *file) Cached(n uint64) (mem.Frame, bool) { return f.pages.Cached(n) }

// Punch is madvise MADV_REMOVE.
func (f *file) Punch(first, n uint64) linux.Errno {
	if n == 0 || first+n < first || first+n > 1<<51 {
		return 0
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.allocate(linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, int64(first)<<mem.PageShift, int64(n)<<mem.PageShift)
}

// Allocate is fallocate(2).
func (o *opened) Allocate(c *caller.Ctx, _ *vfs.File, mode uint32, off, n int64) linux.Errno {
	f := o.file
	switch mode &^ linux.FALLOC_FL_KEEP_SIZE {
	case linux.FALLOC_FL_COLLAPSE_RANGE, linux.FALLOC_FL_INSERT_RANGE:
		return f.shift(c, mode, off, n)
	case 0, linux.FALLOC_FL_ZERO_RANGE:
	case linux.FALLOC_FL_PUNCH_HOLE:
		if mode&linux.FALLOC_FL_KEEP_SIZE == 0 {
			return linux.EOPNOTSUPP
		}
	default:
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
	if f.fs.ext.ReadOnly() {
		return linux.EROFS
	}
	end := off + n // checked by the caller
	if end > f.Size() && mode&linux.FALLOC_FL_KEEP_SIZE == 0 && uint64(end) > c.FileSizeLimit.Load() {
		caller.SignalSelf(c, int(linux.SIGXFSZ))
		return linux.EFBIG
	}
	if e := f.RemovePrivs(c); e != 0 {
		return e
	}
	e := f.allocate(mode, off, n)
	if e == linux.ENOSPC && f.MakeRoom() {
		e = f.allocate(mode, off, n)
	}
	return e
}

// allocate changes where the file has blocks; Mu is held.
func (f *file) allocate(mode uint32, off, n int64) linux.Errno {
	first, last := uint64(off)>>mem.PageShift, uint64(off+n-1)>>mem.PageShift
	// Dirty pages before it are written too: ext4 must know the size.
	e := f.pages.Bypass(first, last, func() linux.Errno {
		err := f.fs.ext.Fallocate(f.in, mode, off, n)
		if end := f.in.Size(); mode&linux.FALLOC_FL_KEEP_SIZE == 0 && end > f.Size() { // also on a disk that got full
			f.pages.Grow(end)
		}
		return f.fs.errno(err)
	})
	f.adopt()
	return e
}

// SetAttr changes attributes, the size among them; Mu is held.
func (f *file) SetAttr(_ *caller.Ctx, _ *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize == 0 {
		return f.setAttr(a)
	}
	if f.fs.ext.ReadOnly() {
		return linux.EROFS
	}
	if f.Attrs()&vfs.Immutable != 0 {
		return linux.EPERM
	}
	if a.Size > f.fs.MaxBytes {
		return linux.EFBIG
	}
	e := f.pages.Cut(a.Size, func() linux.Errno { return f.fs.errno(f.fs.ext.Truncate(f.in, a.Size)) })
	f.adopt()
	if e != 0 {
		f.SetSize(f.in.Size())
	}
	return e
}

// Sync makes the file durable, and tells of writes that failed since it was opened.
func (o *opened) Sync(_ *caller.Ctx, _ *vfs.File, dataOnly bool) linux.Errno {
	f := o.file
	f.pages.WriteBack(0, ^uint64(0))
	err := f.fs.ext.Fsync(f.in, dataOnly)
	if e := f.pages.Errors().Check(&o.seen); e != 0 && ext4.Errno(err) != linux.EROFS {
		return e
	}
	return f.fs.errno(err)
}

// SyncRange writes the data of a range.
func (o *opened) SyncRange(_ *caller.Ctx, _ *vfs.File, off, n int64) linux.Errno {
	o.pages.WriteBack(uint64(off)>>mem.PageShift, uint64(off+n)>>mem.PageShift)
	return o.pages.Errors().Check(&o.seen)
}

// Advise reads ahead, or drops what is not needed.
func (o *opened) Advise(_ *vfs.File, off, n int64, advice uint32) linux.Errno {
	end := o.Size()
	if n != 0 && n < end-off {
		end = off + n
	}
	switch advice {
	case linux.POSIX_FADV_NORMAL, linux.POSIX_FADV_SEQUENTIAL, linux.POSIX_FADV_RANDOM:
		o.reader.Advise(advice)
	case linux.POSIX_FADV_WILLNEED:
		if off >= 0 && off < end {
			o.pages.Prefetch(uint64(off)>>mem.PageShift, uint64(end-1)>>mem.PageShift)
		}
	case linux.POSIX_FADV_DONTNEED:
		// Whole pages only; the last one of the file counts as whole.
		first, last := uint64(max(off, 0)+mem.PageSize-1)>>mem.PageShift, uint64(end)>>mem.PageShift
		if end == o.Size() {
			last++
		}
		if first < last {
			o.pages.Clean(first, last-1)
		}
	}
	return 0
}

// Blocks is the space on disk, and what dirty pages will take.
func (f *file) Blocks(*vfs.Inode) int64 {
	return f.blocks.Load() + f.pages.Reserved()*int64(f.fs.ext.BlockSize()>>9)
}

// Evict ends a file without names and users.
func (f *file) Evict(*vfs.Inode) {
	f.pages.Drop()
	f.fs.forget(&f.Inode)
	f.release()
}

// The rest is pagecache.Store.

// ReadPages reads from the disk.
func (f *file) ReadPages(pages [][]byte, off int64) linux.Errno {
	return f.fs.errno(f.fs.ext.ReadPages(f.in, pages, off))
}

// WritePages writes to the disk.
func (f *file) WritePages(pages [][]byte, off, size, reserved int64) linux.Errno {
	_, mt, ct := f.Times()
	err := f.fs.ext.WritePages(f.in, &ext4.Out{Pages: pages, Off: off, Size: size, Reserved: reserved, Mtime: mt, Ctime: ct})
	f.countBlocks()
	e := f.fs.errno(err)
	if e != 0 {
		f.fs.WriteErrors.Set(e)
	}
	return e
}

// countBlocks takes over how many blocks the file has on disk.
func (f *file) countBlocks() {
	var st linux.Stat
	f.in.Stat(&st)
	f.blocks.Store(st.Blocks)
}

// Reserve sets blocks aside.
func (f *file) Reserve(blocks int64) linux.Errno { return f.fs.errno(f.fs.ext.Reserve(blocks)) }

// Unreserve gives them back.
func (f *file) Unreserve(blocks int64) { f.fs.ext.Unreserve(blocks) }

// Missing counts the holes of a page.
func (f *file) Missing(n uint64) (int64, linux.Errno) {
	blocks, err := f.fs.ext.Holes(f.in, int64(n)<<mem.PageShift, mem.PageSize)
	return blocks, f.fs.errno(err)
}

// Stored notes that somebody is about to store through a mapping.
func (f *file) Stored() linux.Errno {
	if f.fs.ext.ReadOnly() {
		return linux.EROFS
	}
	f.Written()
	return 0
}

var (
	_ vfs.Seeker       = (*opened)(nil)
	_ vfs.Syncer       = (*opened)(nil)
	_ vfs.Mapper       = (*opened)(nil)
	_ vfs.Allocator    = (*opened)(nil)
	_ mem.Cacher       = (*file)(nil)
	_ vfs.XattrNode    = (*file)(nil)
	_ vfs.InodeRenamer = (*node)(nil)
	_ vfs.DirReader    = (*dir)(nil)
	_ pagecache.Store  = (*file)(nil)
)
