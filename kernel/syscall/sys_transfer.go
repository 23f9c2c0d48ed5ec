package syscall

import (
	"encoding/binary"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Transfers between two files, sizes and syncing.
var transferCalls = []Call{
	{linux.SYS_sendfile, "sendfile", sysSendfile, "works"},
	{linux.SYS_copy_file_range, "copy_file_range", sysCopyFileRange, "works"},
	{linux.SYS_truncate, "truncate", sysTruncate, "works"},
	{linux.SYS_ftruncate, "ftruncate", sysFtruncate, "works"},
	{linux.SYS_fallocate, "fallocate", sysFallocate, "works except FALLOC_FL_UNSHARE_RANGE"},
	{linux.SYS_fsync, "fsync", sysFsync, "works"},
	{linux.SYS_fdatasync, "fdatasync", sysFdatasync, "works"},
	{linux.SYS_sync, "sync", sysSync, "works"},
	{linux.SYS_syncfs, "syncfs", sysSyncfs, "works"},
	{linux.SYS_sync_file_range, "sync_file_range", sysSyncFileRange, "works"},
	{linux.SYS_fadvise64, "fadvise64", sysFadvise, "works"},
	{linux.SYS_readahead, "readahead", sysReadahead, "works"},
}

// transferSize is how much goes through kernel memory at a time.
const transferSize = 64 << 10

var transferBuffers = sync.Pool{New: func() any { return new([transferSize]byte) }}

// pages is a file whose pages can be looked at in place.
type pages interface {
	mem.Cacher
	Size() int64
}

// transfer moves up to n bytes from offset in of src to offset out of dst (a
// stream ignores it) and returns how many. What the reader gave and the writer
// did not take is not counted, so src must have offsets.
func transfer(t *proc.Thread, dst, src *vfs.File, in, out int64, n int) (done int, e linux.Errno) {
	buf := transferBuffers.Get().(*[transferSize]byte)
	defer transferBuffers.Put(buf)
	for n > 0 && e == 0 {
		var got, put int
		if got, put, e = transferSome(t, dst, src, in, out, n, buf[:]); got == 0 {
			break
		}
		in, out, n, done = in+int64(put), out+int64(put), n-put, done+put
		if put < got && kindOf(dst) != linux.S_IFREG {
			break // a file is asked again: it says why it took no more
		}
		if e == 0 && n > 0 && t.Interrupted() {
			e = linux.ERESTARTSYS
		}
	}
	t.IO.NoteRead(done)
	t.IO.NoteWrite(done)
	if done > 0 {
		if kindOf(dst) == linux.S_IFREG {
			dst.NotifyWrite(done) // of the file's own write, as on Linux; the call's is below
		}
		src.NotifyRead(done)
		dst.NotifyWrite(done)
		return done, 0
	}
	return 0, e
}

// transferSome moves one buffer; a piece within one page of a file in memory
// is written from where it lies.
func transferSome(t *proc.Thread, dst, src *vfs.File, in, out int64, n int, buf []byte) (got, put int, e linux.Errno) {
	if p, ok := src.Ops.(pages); ok {
		left := p.Size() - in
		if left <= 0 {
			return 0, 0, 0
		}
		n = int(min(int64(n), left))
		at := int(in % mem.PageSize)
		if at+n <= mem.PageSize {
			if fr, ok := p.Cached(uint64(in) / mem.PageSize); ok {
				t.Vec.InitBytes(fr.Bytes()[at : at+n])
				put, e = dst.Ops.Write(&t.Ctx, dst, &t.Vec, out)
				fr.Put()
				src.Accessed()
				return n, put, e
			}
		}
	}
	t.Vec.InitBytes(buf[:min(n, len(buf))])
	if got, e = src.Ops.Read(&t.Ctx, src, &t.Vec, in); got == 0 || e != 0 {
		return 0, 0, e
	}
	t.Vec.InitBytes(buf[:got])
	put, e = dst.Ops.Write(&t.Ctx, dst, &t.Vec, out)
	return got, put, e
}

// readOffset copies a loff_t in.
func readOffset(t *proc.Thread, addr uio.Addr) (int64, linux.Errno) {
	b, e := readUser(t, addr, 8)
	if e != 0 {
		return 0, e
	}
	off := int64(binary.LittleEndian.Uint64(b))
	if off < 0 {
		return 0, linux.EINVAL
	}
	return off, 0
}

// sysSendfile is sendfile(int out, int in, off_t *off, size_t n).
func sysSendfile(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	at := position{addr: a.Addr(2)}
	var e linux.Errno
	if at.addr != 0 {
		if at.off, e = readOffset(t, at.addr); e == linux.EFAULT {
			return 0, e // before the descriptors are looked at
		}
	}
	dst, src := t.FDs.Get(a.Int(0)), t.FDs.Get(a.Int(1))
	defer putFile(dst)
	defer putFile(src)
	if src == nil || !src.Readable() {
		return 0, linux.EBADF
	}
	switch at.f = src; {
	case at.addr != 0 && !src.Seekable():
		return 0, linux.ESPIPE
	case e != 0:
		return 0, e
	case at.addr == 0 && src.Seekable():
		at.off = posOf(src)
	}
	if e = at.fits(a[3]); e != 0 {
		return 0, e
	}
	if dst == nil || !dst.Writable() {
		return 0, linux.EBADF
	}
	n, e := sendable(dst, src, at.off, min(a[3], uio.MaxTransfer))
	if e == 0 {
		e = mayMove(dst, src, n)
	}
	if e != 0 {
		return 0, e
	}
	done, e := moveTo(t, dst, src, at.off, int(n))
	if e2 := at.end(t, done); e == 0 {
		e = e2
	}
	return uint64(done), e
}

// mayMove says what sendfile refuses.
func mayMove(dst, src *vfs.File, n uint64) linux.Errno {
	out := position{f: dst}
	if dst.Seekable() {
		out.off = posOf(dst)
	}
	if e := out.fits(n); e != 0 {
		return e
	}
	typ, major, minor := driver(src)
	if pipe.PipeOf(dst) != nil && readable(src, typ, major, minor) {
		return 0 // as splice would
	}
	if !seeks(src) {
		return linux.EINVAL
	}
	if n == 0 {
		return 0
	}
	if dst.Flags()&linux.O_APPEND != 0 || !readable(src, typ, major, minor) || !spliceInto(dst) {
		return linux.EINVAL
	}
	return 0
}

// sendable is how many of n bytes from off on the file systems of both files can hold;
// EOVERFLOW for none.
func sendable(dst, src *vfs.File, off int64, n uint64) (uint64, linux.Errno) {
	most := min(maxBytes(src), maxBytes(dst))
	if uint64(off)+n <= uint64(most) {
		return n, 0
	}
	if off >= most {
		return 0, linux.EOVERFLOW
	}
	return uint64(most - off), 0
}

// maxBytes is the end of what the file's file system can hold in a file.
func maxBytes(f *vfs.File) int64 {
	if f.Path.Zero() {
		return maxOffset
	}
	return f.Path.Inode().FS.MaxBytes
}

// moveTo transfers to dst's position. No position is locked meanwhile, as on
// Linux: two transfers crossing each other would stand still.
func moveTo(t *proc.Thread, dst, src *vfs.File, off int64, n int) (int, linux.Errno) {
	if !dst.Seekable() {
		return transfer(t, dst, src, off, 0, n)
	}
	pos := posOf(dst)
	done, e := transfer(t, dst, src, off, pos, n)
	setPos(dst, pos+int64(done))
	return done, e
}

func posOf(f *vfs.File) int64 {
	f.PosMu.Lock()
	defer f.PosMu.Unlock()
	return f.Pos
}

func setPos(f *vfs.File, pos int64) {
	f.PosMu.Lock()
	f.Pos = pos
	f.PosMu.Unlock()
}

func putFile(f *vfs.File) {
	if f != nil {
		f.Put()
	}
}

// sysCopyFileRange is copy_file_range(in, *off_in, out, *off_out, n, flags).
func sysCopyFileRange(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	src, dst := file(t, a.Int(0)), file(t, a.Int(2))
	defer putFile(dst)
	defer putFile(src)
	if dst == nil || src == nil {
		return 0, linux.EBADF
	}
	in, e := offsetOf(t, src, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	out, e := offsetOf(t, dst, a.Addr(3))
	if e != 0 {
		return 0, e
	}
	if a.Uint(5) != 0 {
		return 0, linux.EINVAL
	}
	if e := copyable(dst, src); e != 0 {
		return 0, e
	}
	n, e := copyLength(t, dst, src, in, out, a[4])
	if e != 0 || n == 0 {
		return 0, e
	}
	done, e := transfer(t, dst, src, in, out, n)
	if e != 0 || done == 0 {
		return 0, e
	}
	if e = moveOffset(t, src, a.Addr(1), in+int64(done)); e == 0 {
		e = moveOffset(t, dst, a.Addr(3), out+int64(done))
	}
	return uint64(done), e
}

// copyable decides whether ranges can be copied between two files: regular ones of one
// file system.
func copyable(dst, src *vfs.File) linux.Errno {
	from, to := kindOf(src), kindOf(dst)
	switch {
	case from == linux.S_IFDIR || to == linux.S_IFDIR:
		return linux.EISDIR
	case from != linux.S_IFREG || to != linux.S_IFREG:
		return linux.EINVAL
	case !src.Readable() || !dst.Writable() || dst.Flags()&linux.O_APPEND != 0:
		return linux.EBADF
	case src.Path.Inode().FS != dst.Path.Inode().FS:
		return linux.EXDEV
	case dst.Path.Inode().Attrs()&vfs.Immutable != 0:
		return linux.EPERM
	}
	return 0
}

// copyLength is how many of the n bytes that are to be copied there are, and that dst
// may hold.
func copyLength(t *proc.Thread, dst, src *vfs.File, in, out int64, n uint64) (int, linux.Errno) {
	if uint64(in)+n < uint64(in) || uint64(out)+n < uint64(out) {
		return 0, linux.EOVERFLOW
	}
	// What the file has now is copied: not what the copy itself adds to it.
	if size := src.Path.Inode().Size(); in >= size {
		n = 0
	} else {
		n = min(n, uint64(size)-uint64(in))
	}
	if own := t.FileSizeLimit.Load(); own <= maxOffset {
		if out >= int64(own) {
			caller.SignalSelf(&t.Ctx, int(linux.SIGXFSZ))
			return 0, linux.EFBIG
		}
		n = min(n, own-uint64(out))
	}
	most := maxBytes(dst)
	if out >= most {
		return 0, linux.EFBIG
	}
	n = min(n, uint64(most)-uint64(out))
	if src.Path.Inode() == dst.Path.Inode() && in < out+int64(n) && out < in+int64(n) {
		return 0, linux.EINVAL
	}
	if n > maxOffset || in < 0 || out < 0 || beyond(in, n) || beyond(out, n) {
		return 0, linux.EINVAL
	}
	return int(min(n, uio.MaxTransfer)), 0
}

// kindOf returns the kind of an open file in a file system; 0 for another.
func kindOf(f *vfs.File) uint32 {
	if f.Path.Zero() {
		return 0
	}
	return f.Path.Inode().Type()
}

// offsetOf reads an offset argument, or the file's position without one.
func offsetOf(t *proc.Thread, f *vfs.File, addr uio.Addr) (int64, linux.Errno) {
	if addr != 0 {
		b, e := readUser(t, addr, 8)
		return int64(binary.LittleEndian.Uint64(b)), e
	}
	return posOf(f), 0
}

func moveOffset(t *proc.Thread, f *vfs.File, addr uio.Addr, to int64) linux.Errno {
	if addr != 0 {
		return writeWords(t, addr, to)
	}
	setPos(f, to)
	return 0
}

// sysTruncate is truncate(const char *path, off_t length).
func sysTruncate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[1]) < 0 {
		return 0, linux.EINVAL
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	return 0, vfs.Truncate(&t.Ctx, p, int64(a[1]))
}

// sysFtruncate is ftruncate(int fd, off_t length).
func sysFtruncate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[1]) < 0 {
		return 0, linux.EINVAL
	}
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, f.FTruncate(&t.Ctx, int64(a[1]))
}

// sysFallocate is fallocate(int fd, int mode, off_t off, off_t n).
func sysFallocate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	off, n, mode := int64(a[2]), int64(a[3]), a.Uint(1)
	if off < 0 || n <= 0 {
		return 0, linux.EINVAL
	}
	if e := checkAllocate(f, mode, off, n); e != 0 {
		return 0, e
	}
	al, ok := f.Ops.(vfs.Allocator)
	if !ok {
		return 0, linux.EOPNOTSUPP
	}
	e := al.Allocate(&t.Ctx, f, mode, off, n)
	if e == 0 {
		f.NotifyWrite(1)
	}
	return 0, e
}

// checkAllocate decides whether a range of f can be allocated or freed as mode says.
func checkAllocate(f *vfs.File, mode uint32, off, n int64) linux.Errno {
	const (
		keep     = linux.FALLOC_FL_KEEP_SIZE
		punch    = linux.FALLOC_FL_PUNCH_HOLE
		zero     = linux.FALLOC_FL_ZERO_RANGE
		collapse = linux.FALLOC_FL_COLLAPSE_RANGE
		insert   = linux.FALLOC_FL_INSERT_RANGE
		unshare  = linux.FALLOC_FL_UNSHARE_RANGE
	)
	switch {
	case mode&^(keep|punch|zero|collapse|insert|unshare) != 0, mode&punch != 0 && mode&(zero|keep) != keep:
		return linux.EOPNOTSUPP
	case mode&collapse != 0 && mode != collapse, mode&insert != 0 && mode != insert,
		mode&unshare != 0 && mode&^(unshare|keep) != 0:
		return linux.EINVAL
	case !f.Writable():
		return linux.EBADF
	}
	if !f.Path.Zero() {
		attrs := f.Path.Inode().Attrs()
		if attrs&vfs.Immutable != 0 || attrs&vfs.AppendOnly != 0 && mode&^keep != 0 {
			return linux.EPERM
		}
	}
	switch typeOf(f) {
	case linux.S_IFIFO:
		return linux.ESPIPE
	case linux.S_IFDIR:
		return linux.EISDIR
	case linux.S_IFREG, linux.S_IFBLK:
	default:
		return linux.ENODEV
	}
	if off+n < 0 || off+n > maxBytes(f) {
		return linux.EFBIG
	}
	return 0
}

// sysFsync is fsync(int fd).
func sysFsync(t *proc.Thread, a *Args) (uint64, linux.Errno) { return syncFile(t, a.Int(0), false) }

// sysFdatasync is fdatasync(int fd).
func sysFdatasync(t *proc.Thread, a *Args) (uint64, linux.Errno) { return syncFile(t, a.Int(0), true) }

func syncFile(t *proc.Thread, fd int32, dataOnly bool) (uint64, linux.Errno) {
	f := file(t, fd)
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if s, ok := f.Ops.(vfs.Syncer); ok {
		return 0, s.Sync(&t.Ctx, f, dataOnly)
	}
	if f.Path.Zero() {
		return 0, linux.EINVAL
	}
	switch i := f.Path.Inode(); i.Type() {
	case linux.S_IFREG, linux.S_IFDIR:
		if i.FS.Magic != linux.PROC_SUPER_MAGIC {
			return 0, 0
		}
	}
	return 0, linux.EINVAL
}

// typeOf returns the kind of an open file, S_IFIFO and its sisters; 0 for one that
// is neither in a file system nor a pipe or a socket.
func typeOf(f *vfs.File) uint32 {
	if !f.Path.Zero() {
		return f.Path.Inode().Type()
	}
	if pipe.PipeOf(f) != nil {
		return linux.S_IFIFO
	}
	return 0
}

// sysSync is sync(void).
func sysSync(*proc.Thread, *Args) (uint64, linux.Errno) {
	vfs.SyncAll()
	return 0, 0
}

// sysSyncfs is syncfs(int fd).
func sysSyncfs(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, f.SyncFS()
}

// sysSyncFileRange is sync_file_range(fd, off, n, flags).
func sysSyncFileRange(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	off, n := int64(a[1]), int64(a[2])
	if off < 0 || n < 0 || off+n < off || a.Uint(3)&^7 != 0 {
		return 0, linux.EINVAL
	}
	switch typeOf(f) {
	case linux.S_IFREG, linux.S_IFBLK, linux.S_IFDIR:
	default:
		return 0, linux.ESPIPE
	}
	if a.Uint(3) == 0 {
		return 0, 0
	}
	if n == 0 {
		n = 1<<63 - 1 - off
	}
	switch s := f.Ops.(type) {
	case vfs.RangeSyncer:
		return 0, s.SyncRange(&t.Ctx, f, off, n)
	case vfs.Syncer:
		return 0, s.Sync(&t.Ctx, f, true) // more than was asked for
	}
	return 0, 0
}

// sysFadvise is posix_fadvise(int fd, off_t off, off_t n, int advice).
func sysFadvise(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if typeOf(f) == linux.S_IFIFO {
		return 0, linux.ESPIPE
	}
	if int64(a[2]) < 0 || a.Uint(3) > 5 {
		return 0, linux.EINVAL
	}
	if v, ok := f.Ops.(vfs.Advisor); ok {
		return 0, v.Advise(f, int64(a[1]), int64(a[2]), a.Uint(3))
	}
	return 0, 0
}

// sysReadahead is readahead(int fd, off_t off, size_t n).
func sysReadahead(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if !f.Readable() {
		return 0, linux.EBADF
	}
	if f.Path.Zero() || f.Path.Inode().Type() != linux.S_IFREG {
		return 0, linux.EINVAL
	}
	if v, ok := f.Ops.(vfs.Advisor); ok {
		return 0, v.Advise(f, int64(a[1]), int64(a[2]), linux.POSIX_FADV_WILLNEED)
	}
	return 0, 0
}
