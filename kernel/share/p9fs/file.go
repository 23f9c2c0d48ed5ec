package p9fs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/share/p9"
)

// maxBytes is the largest file: the page cache counts pages in 51 bits.
const maxBytes = 1<<62 - 1

func now() linux.Timespec { return timespec(clocks.Realtime()) }

func timespec(ns int64) linux.Timespec {
	s, n := ns/1e9, ns%1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	return linux.Timespec{Sec: s, Nsec: n}
}

// file is the node of a regular file, with its pages. With cache=none the pages are those
// that are mapped, or were.
type file struct {
	node
	pages pagecache.File
	mtime atomic.Int64 // when the server's content changed, as far as the pages know

	mu    sync.Mutex
	users int // open files; guarded by mu
	moves int // writes of pages under way; guarded by mu
}

// opened is an open regular file.
type opened struct {
	vfs.BaseOps
	*file
	reader pagecache.Reader
	seen   atomic.Uint32 // errors of writing that fsync has told of
}

// adoptFile takes over what the server says of a file.
func (f *file) adoptFile(_ *caller.Ctx, a *p9.Attr) {
	if f.fs.options.loose {
		f.mu.Lock()
		used := f.users > 0
		f.mu.Unlock()
		if used || f.pages.Unwritten() { // what we have is newer
			_, mt, _ := f.Times()
			f.adoptAll(a)
			f.Apply(&vfs.Attr{Mask: vfs.AttrMtime, Mtime: max(mt, a.Stat.Mtime.Nano())})
			return
		}
	}
	f.adoptAll(a)
	size, mtime := a.Stat.Size, a.Stat.Mtime.Nano()
	if f.pages.Pages() == 0 {
		f.SetSize(size)
		f.mtime.Store(mtime)
		return
	}
	if size < f.Size() && f.Mu.TryLock() {
		f.pages.Cut(size, func() linux.Errno { return 0 })
		f.Mu.Unlock()
	}
	f.SetSize(size)
	if f.mtime.Swap(mtime) != mtime {
		f.pages.Clean(0, ^uint64(0))
	}
}

// Modes of names.open.
const (
	forReading = iota
	forWriting
	forBoth
)

// modes are the flags to open a file with, the first that the host permits.
var modes = [...][]uint32{forReading: {forReading}, forWriting: {forBoth, forWriting}, forBoth: {forBoth}}

var flagsOf = [...]uint32{forReading: linux.O_RDONLY, forWriting: linux.O_WRONLY, forBoth: linux.O_RDWR}

// handle returns the number of the open file to read from (forReading) or write to
// (forWriting); where there is none the file is opened.
func (f *file) handle(c *caller.Ctx, mode int) (uint32, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handleLocked(c, mode)
}

func (f *file) handleLocked(c *caller.Ctx, mode int) (fid uint32, e linux.Errno) {
	open := &f.names.open
	switch {
	case open[forBoth] != 0:
		return open[forBoth], 0
	case mode != forBoth && open[mode] != 0:
		return open[mode], 0
	}
	for _, m := range modes[mode] {
		var at uint32
		if at, e = f.request(); e != 0 {
			return p9.NoFID, e
		}
		if fid, _, e = f.fs.c.Walk(c, at, ""); e != 0 {
			return p9.NoFID, e
		}
		if e = f.fs.c.Open(c, fid, flagsOf[m]|linux.O_LARGEFILE); e == 0 {
			open[m] = fid
			return fid, 0
		}
		f.fs.c.Clunk(fid)
		if e != linux.EACCES && e != linux.EPERM {
			break
		}
	}
	return p9.NoFID, e
}

// opened keeps the number of a file that was created, and so is open, until somebody
// opens it: the mode that it was made with may not permit that again.
func (fs *FS) opened(i *vfs.Inode, fid uint32) {
	f, ok := i.Node.(*file)
	if !ok {
		fs.c.Clunk(fid)
		return
	}
	f.mu.Lock()
	if f.names.open[forBoth] == 0 {
		f.names.open[forBoth] = fid
	} else {
		fs.c.Clunk(fid)
	}
	f.mu.Unlock()
	fs.mu.Lock()
	old := fs.ready
	fs.ready = f
	fs.mu.Unlock()
	if old != nil && old != f {
		old.mu.Lock()
		old.shut()
		old.mu.Unlock()
	}
}

// shut ends the open numbers if nobody has the file open or writes its pages; mu is held.
func (f *file) shut() {
	if f.users > 0 || f.moves > 0 {
		return
	}
	for i, fid := range f.names.open {
		if fid != 0 {
			f.names.open[i] = 0
			f.fs.c.Clunk(fid)
		}
	}
}

// Open opens the file.
func (f *file) Open(c *caller.Ctx, _ vfs.Path, flags uint32) (vfs.Ops, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mode := flags & linux.O_ACCMODE
	var e linux.Errno
	if mode == linux.O_RDONLY || mode == linux.O_RDWR {
		_, e = f.handleLocked(c, forReading)
	}
	if e == 0 && mode != linux.O_RDONLY {
		_, e = f.handleLocked(c, forWriting)
	}
	if e != 0 {
		return nil, e
	}
	f.users++
	o := &opened{file: f}
	o.seen.Store(f.pages.Errors().Sample())
	return o, 0
}

// Release writes back what is dirty when nobody has the file open any more.
func (o *opened) Release(*vfs.File) {
	f := o.file
	f.mu.Lock()
	last := f.users == 1
	f.mu.Unlock()
	if last {
		f.pages.WriteBack(0, ^uint64(0)) // what fails is in WriteErrors
	}
	f.mu.Lock()
	f.users--
	f.shut()
	f.mu.Unlock()
	f.fs.mu.Lock()
	if f.fs.ready == f {
		f.fs.ready = nil
	}
	f.fs.mu.Unlock()
}

// Stat is fstat(2).
func (o *opened) Stat(c *caller.Ctx, _ *vfs.File, st *linux.Stat) linux.Errno {
	o.Renew(c, &o.Inode)
	o.FillStat(st)
	return 0
}

// Read reads from the server, or through the page cache.
func (o *opened) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	switch {
	case v.Len() == 0:
		return 0, 0
	case !o.fs.options.loose || of.Flags()&linux.O_DIRECT != 0:
		return o.readThrough(c, v, off)
	}
	n, size := int64(v.Len()), o.Size()
	if off >= size {
		return 0, 0
	}
	return o.pages.Read(c, v, &o.reader, off, int(min(n, size-off)))
}

// pagesAtOnce is how many pages are moved with one message, where they are.
const pagesAtOnce = 16

// batch gets pages for n bytes, as far as memory goes.
func batch(frames *[pagesAtOnce]mem.Frame, bytes *[pagesAtOnce][]byte, n int) ([][]byte, int) {
	got := mem.AllocBatch(frames[:min((n+mem.PageSize-1)>>mem.PageShift, pagesAtOnce)])
	for i := range got {
		bytes[i] = frames[i].Bytes()
	}
	return bytes[:got], min(got*mem.PageSize, n)
}

func (f *file) readThrough(c *caller.Ctx, v *uio.Vec, off int64) (done int, e linux.Errno) {
	fid, e := f.handle(c, forReading)
	if e != 0 {
		return 0, e
	}
	direct := !f.orphan.Load() && !f.fs.options.loose // the size is the server's
	for v.Len() > 0 && e == 0 && !(done > 0 && caller.Killed(c)) {
		if f.pages.Pages() > 0 { // none may be dirty, and some on their way to the server
			if e = f.pages.WriteBack(uint64(off)>>mem.PageShift, uint64(off+int64(v.Len()))>>mem.PageShift); e != 0 {
				break
			}
		}
		var n, got, moved int
		if direct {
			if n, e = v.FaultIn(f.fs.c.MaxData(), true); e != 0 {
				break
			}
			got, moved, e = f.fs.c.ReadUser(c, fid, v, off, n)
		}
		if e == 0 && moved == 0 && (got > 0 || !direct) { // or the pages went again
			n, got, moved, e = f.readPages(c, fid, v, off)
			if e == linux.ENOMEM && done > 0 && caller.MemoryCame(c) {
				e = 0
				continue
			}
		}
		done += moved
		off += int64(moved)
		if got < n && moved == got {
			break
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// readPages asks for n bytes and moves what it gets through pages of its own, where copies
// may have faults.
func (f *file) readPages(c *caller.Ctx, fid uint32, v *uio.Vec, off int64) (n, got, moved int, e linux.Errno) {
	var frames [pagesAtOnce]mem.Frame
	var bytes [pagesAtOnce][]byte
	pages, n := batch(&frames, &bytes, v.Len())
	if len(pages) == 0 {
		return 0, 0, 0, linux.ENOMEM
	}
	got, e = f.load(c, fid, pages, off, n)
	for i := 0; moved < got && e == 0; i++ {
		var k int
		k, e = v.CopyOut(pages[i][:min(got-moved, mem.PageSize)])
		moved += k
	}
	mem.PutBatch(frames[:len(pages)])
	return n, got, moved, e
}

// load reads n bytes into pages. Where the size is ours the file may be longer than the
// server's.
func (f *file) load(c *caller.Ctx, fid uint32, pages [][]byte, off int64, n int) (int, linux.Errno) {
	got, e := f.fs.c.Read(c, fid, pages, off, n)
	if e != 0 || !f.orphan.Load() && !f.fs.options.loose {
		return got, e
	}
	n = int(max(min(int64(n), f.Size()-off), 0))
	for i := min(got, n); i < n; {
		p := pages[i>>mem.PageShift][i&(mem.PageSize-1):]
		k := min(len(p), n-i)
		clear(p[:k])
		i += k
	}
	return n, 0
}

// Write writes to the server, or into the page cache.
func (o *opened) Write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	o.Mu.Lock()
	for o.RestWaits() {
		o.Mu.Unlock()
		if e := o.AwaitRest(c); e != 0 {
			return 0, e
		}
		o.Mu.Lock()
	}
	n, fresh, e := o.write(c, of, v, off)
	rest := n > 0 && v.Len() > 0
	if rest {
		o.BeginRest()
	}
	o.Mu.Unlock()
	if rest {
		n = o.WriteRest(c, v, n, func(n int) (int, linux.Errno) {
			o.Mu.Lock()
			defer o.Mu.Unlock()
			m, k, e := o.write(c, of, v, off+int64(n))
			fresh += k
			return m, e
		})
	}
	if n > 0 {
		if fresh > 0 {
			o.pages.Balance(c, fresh)
		}
		if of.Flags()&linux.O_DSYNC != 0 {
			if e := o.Sync(c, of, of.Flags()&linux.O_SYNC != linux.O_SYNC); e != 0 {
				return 0, e
			}
		}
	}
	return n, e
}

func (o *opened) write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (done, fresh int, e linux.Errno) {
	f := o.file
	appending := of.Flags()&linux.O_APPEND != 0 || c.Append
	if appending {
		f.Renew(c, &f.Inode)
		off = f.Size()
	}
	limit := int64(maxBytes)
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
		if e := f.RemovePrivs(c); e != 0 {
			return 0, 0, e
		}
	}
	if f.fs.options.loose && of.Flags()&linux.O_DIRECT == 0 {
		done, fresh, e = f.pages.Write(c, v, off)
	} else {
		done, e = f.writeThrough(c, v, off)
	}
	f.Written()
	if done > 0 && appending {
		of.Pos = off + int64(done)
	}
	return done, fresh, e
}

// writeThrough writes to the server; Mu is held.
func (f *file) writeThrough(c *caller.Ctx, v *uio.Vec, off int64) (done int, e linux.Errno) {
	fid, e := f.handle(c, forWriting)
	if e != 0 {
		return 0, e
	}
	for v.Len() > 0 && e == 0 && !(done > 0 && caller.Killed(c)) {
		n, err := v.FaultIn(f.fs.c.MaxData(), false)
		if e = err; e != 0 {
			break
		}
		var gave, took int
		e = f.bypass(off, n, func() (int, linux.Errno) {
			var e linux.Errno
			gave, took, e = f.fs.c.WriteUser(c, fid, v, off, n)
			return took, e
		})
		if e == 0 && gave == 0 { // the pages went again
			gave, took, e = f.writePages(c, fid, v, off)
		}
		if e == 0 && took < gave {
			e = linux.ENOSPC
		}
		done += took
		off += int64(took)
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// writePages moves bytes through pages of its own, where copies may have faults.
func (f *file) writePages(c *caller.Ctx, fid uint32, v *uio.Vec, off int64) (gave, took int, e linux.Errno) {
	var frames [pagesAtOnce]mem.Frame
	var bytes [pagesAtOnce][]byte
	pages, n := batch(&frames, &bytes, v.Len())
	if len(pages) == 0 {
		return 0, 0, linux.ENOMEM
	}
	for i := 0; gave < n && e == 0; i++ {
		var k int
		k, e = v.CopyIn(pages[i][:min(n-gave, mem.PageSize)])
		gave += k
	}
	if gave > 0 {
		if err := f.bypass(off, gave, func() (int, linux.Errno) {
			var e linux.Errno
			took, e = f.fs.c.Write(c, fid, pages, off, gave)
			return took, e
		}); err != 0 {
			e = err
		}
	}
	mem.PutBatch(frames[:len(pages)])
	return gave, took, e
}

// bypass has n bytes at off written past the page cache.
func (f *file) bypass(off int64, n int, write func() (done int, e linux.Errno)) linux.Errno {
	return f.pages.Bypass(uint64(off)>>mem.PageShift, uint64(off+int64(n)-1)>>mem.PageShift, func() linux.Errno {
		done, e := write()
		if e == 0 && done > 0 {
			f.pages.Grow(off + int64(done))
		}
		return e
	})
}

// Seek moves the position; all of a file is data.
func (o *opened) Seek(c *caller.Ctx, of *vfs.File, off int64, whence int) (int64, linux.Errno) {
	switch whence {
	case linux.SEEK_END, linux.SEEK_DATA, linux.SEEK_HOLE:
		o.Renew(c, &o.Inode)
	}
	return vfs.SeekSized(of, off, whence, o.Size(), maxBytes)
}

// Map lets the file be mapped.
func (o *opened) Map(c *caller.Ctx, _ *vfs.File) (mem.Object, linux.Errno) {
	o.Renew(c, &o.Inode)
	if _, e := o.handle(c, forReading); e != 0 {
		return nil, e
	}
	return &o.pages, 0
}

// Cached returns a page that is in memory.
func (f *file) Cached(n uint64) (mem.Frame, bool) { return f.pages.Cached(n) }

// SetAttr changes attributes, the size among them; Mu is held.
func (f *file) SetAttr(c *caller.Ctx, _ *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize == 0 {
		if a.Mask&vfs.AttrMtime != 0 { // writing would set the time
			f.pages.WriteBack(0, ^uint64(0))
		}
		return f.setAttr(c, a)
	}
	if a.Size > maxBytes {
		return linux.EFBIG
	}
	if f.orphan.Load() {
		return f.cutOrphan(c, a)
	}
	was := f.Size()
	e := f.pages.Cut(a.Size, func() linux.Errno { return f.setAttr(c, a) })
	if e != 0 {
		f.SetSize(was)
		return e
	}
	f.SetSize(a.Size)
	f.Written()
	return 0
}

// cutOrphan changes the size of a file without names. The server cannot: what is cut
// off is overwritten with zeros, and the size is ours.
func (f *file) cutOrphan(c *caller.Ctx, a *vfs.Attr) linux.Errno {
	was := f.Size()
	e := f.pages.Cut(a.Size, func() linux.Errno {
		var frames [pagesAtOnce]mem.Frame
		var bytes [pagesAtOnce][]byte
		for off := a.Size; off < was; {
			fid, e := f.handle(c, forWriting)
			if e != 0 {
				return e
			}
			pages, n := batch(&frames, &bytes, int(min(was-off, pagesAtOnce*mem.PageSize)))
			for _, p := range pages {
				clear(p)
			}
			if n > 0 {
				n, e = f.fs.c.Write(c, fid, pages, off, n)
			}
			mem.PutBatch(frames[:len(pages)])
			if n == 0 && e == 0 {
				e = linux.ENOMEM
			}
			if e != 0 {
				return e
			}
			off += int64(n)
		}
		return 0
	})
	if e != 0 {
		f.SetSize(was)
		return e
	}
	f.Apply(a)
	return 0
}

// Sync makes the file durable on the host, and tells of writes that failed since it was
// opened.
func (o *opened) Sync(c *caller.Ctx, _ *vfs.File, dataOnly bool) linux.Errno {
	f := o.file
	f.pages.WriteBack(0, ^uint64(0))
	f.mu.Lock()
	open := f.names.open
	f.mu.Unlock()
	var err linux.Errno
	for _, mode := range []int{forBoth, forWriting, forReading} {
		if open[mode] != 0 {
			err = f.fs.c.Fsync(c, open[mode], dataOnly)
			break
		}
	}
	if e := f.pages.Errors().Check(&o.seen); e != 0 {
		return e
	}
	return err
}

// SyncRange writes the data of a range.
func (o *opened) SyncRange(_ *caller.Ctx, _ *vfs.File, off, n int64) linux.Errno {
	o.pages.WriteBack(uint64(off)>>mem.PageShift, uint64(off+n)>>mem.PageShift)
	return o.pages.Errors().Check(&o.seen)
}

// Advise drops what is not needed.
func (o *opened) Advise(_ *vfs.File, off, n int64, advice uint32) linux.Errno {
	switch advice {
	case linux.POSIX_FADV_NORMAL, linux.POSIX_FADV_SEQUENTIAL, linux.POSIX_FADV_RANDOM:
		o.reader.Advise(advice)
	case linux.POSIX_FADV_DONTNEED:
		o.pages.Clean(uint64(max(off, 0)+mem.PageSize-1)>>mem.PageShift, ^uint64(0))
	}
	return 0
}

// Evict ends a file without names and users.
func (f *file) Evict(*vfs.Inode) {
	f.fs.forget(&f.node)
	f.close()
}

// The rest is pagecache.Store.

// ReadPages reads from the server.
func (f *file) ReadPages(pages [][]byte, off int64) linux.Errno {
	fid, e := f.handle(nil, forReading)
	if e != 0 {
		return e
	}
	n := 0
	for _, p := range pages {
		n += len(p)
	}
	got, e := f.fs.c.Read(nil, fid, pages, off, n)
	if e != 0 {
		return e
	}
	for _, p := range pages {
		k := min(got, len(p))
		clear(p[k:])
		got -= k
	}
	return 0
}

// WritePages writes to the server.
func (f *file) WritePages(pages [][]byte, off, size, _ int64) linux.Errno {
	n := 0
	for _, p := range pages {
		n += len(p)
	}
	n = int(min(int64(n), size-off))
	f.mu.Lock()
	f.moves++ // whoever closes the file meanwhile leaves the number open
	fid, e := f.handleLocked(nil, forWriting)
	f.mu.Unlock()
	for done := 0; e == 0 && n > 0; {
		var k int
		if k, e = f.fs.c.Write(nil, fid, pages, off, n); k == n || e != 0 {
			break
		}
		if k == 0 {
			e = linux.ENOSPC
			break
		}
		done, n, off = done+k, n-k, off+int64(k)
		pages = behind(pages, k)
	}
	f.mu.Lock()
	f.moves--
	f.shut()
	f.mu.Unlock()
	if e != 0 {
		f.fs.WriteErrors.Set(e)
	}
	return e
}

// behind returns pages without their first n bytes.
func behind(pages [][]byte, n int) [][]byte {
	var rest [][]byte
	for _, p := range pages {
		k := min(n, len(p))
		if n -= k; k < len(p) {
			rest = append(rest, p[k:])
		}
	}
	return rest
}

// Reserve has nothing to set aside: the host says when its disk is full.
func (f *file) Reserve(int64) linux.Errno { return 0 }

// Unreserve has nothing to give back.
func (f *file) Unreserve(int64) {}

// MakeRoom cannot.
func (f *file) MakeRoom() bool { return false }

// Missing counts nothing.
func (f *file) Missing(uint64) (int64, linux.Errno) { return 0, 0 }

// Stored notes that somebody is about to store through a mapping.
func (f *file) Stored() linux.Errno {
	if f.fs.ReadOnly() {
		return linux.EROFS
	}
	f.Written()
	return 0
}

// Punch makes no holes: the protocol has none.
func (f *file) Punch(uint64, uint64) linux.Errno { return linux.EOPNOTSUPP }

var (
	_ vfs.Asker        = (*file)(nil)
	_ vfs.Stater       = (*opened)(nil)
	_ vfs.Seeker       = (*opened)(nil)
	_ vfs.Syncer       = (*opened)(nil)
	_ vfs.Mapper       = (*opened)(nil)
	_ mem.Cacher       = (*file)(nil)
	_ vfs.XattrNode    = (*node)(nil)
	_ vfs.InodeRenamer = (*node)(nil)
	_ pagecache.Store  = (*file)(nil)
)
