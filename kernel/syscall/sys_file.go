package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Reading, writing and positions of open files.
var fileCalls = []Call{
	{linux.SYS_read, "read", sysRead, "works"},
	{linux.SYS_write, "write", sysWrite, "works"},
	{linux.SYS_pread64, "pread64", sysPread, "works"},
	{linux.SYS_pwrite64, "pwrite64", sysPwrite, "works"},
	{linux.SYS_readv, "readv", sysReadv, "works"},
	{linux.SYS_writev, "writev", sysWritev, "works"},
	{linux.SYS_preadv, "preadv", sysPreadv, "works"},
	{linux.SYS_pwritev, "pwritev", sysPwritev, "works"},
	{linux.SYS_preadv2, "preadv2", sysPreadv2, "works; RWF_NOWAIT for ext4 files, null, zero and random devices"},
	{linux.SYS_pwritev2, "pwritev2", sysPwritev2, "works; RWF_NOWAIT for direct writes to ext4 files, null, zero and random devices"},
	{linux.SYS_lseek, "lseek", sysLseek, "works"},
}

// file returns an open file for input or output: not an O_PATH descriptor.
func file(t *proc.Thread, fd int32) *vfs.File {
	f := t.FDs.Get(fd)
	if f != nil && f.IsPath() {
		f.Put()
		return nil
	}
	return f
}

// userRange reports whether a range is within user addresses.
func userRange(addr uio.Addr, n uint64) bool {
	return n <= linux.TaskSize && uint64(addr) <= linux.TaskSize-n
}

// sysRead is read(int fd, void *buf, size_t n).
func sysRead(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	if !userRange(a.Addr(1), a[2]) {
		return 0, badRange(f, f.Readable(), offersRead(f))
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := readFile(t, f, a[2])
	f.Put()
	return uint64(n), e
}

// badRange releases a file after a buffer outside of user memory. The access mode is
// checked first, then whether the file has the operation at all.
func badRange(f *vfs.File, right, offered bool) linux.Errno {
	f.Put()
	switch {
	case !right:
		return linux.EBADF
	case !offered:
		return linux.EINVAL
	}
	return linux.EFAULT
}

// maxOffset is the largest offset plus one.
const maxOffset = 1<<63 - 1

// beyond reports whether n bytes from pos end beyond the largest offset.
func beyond(pos int64, n uint64) bool { return uint64(pos)+n > maxOffset }

// readFile reads at the file's position into the thread's Vec; n is the length asked for.
func readFile(t *proc.Thread, f *vfs.File, length uint64) (n int, e linux.Errno) {
	if !f.Readable() {
		return 0, linux.EBADF
	}
	if f.Seekable() {
		f.PosMu.Lock()
		if beyond(f.Pos, length) {
			f.PosMu.Unlock()
			return 0, linux.EINVAL
		}
		n, e = f.Ops.Read(&t.Ctx, f, &t.Vec, f.Pos)
		f.Pos += int64(n)
		f.PosMu.Unlock()
	} else {
		n, e = f.Ops.Read(&t.Ctx, f, &t.Vec, 0)
	}
	t.IO.NoteRead(n)
	f.NotifyRead(n)
	return n, e
}

// sysWrite is write(int fd, const void *buf, size_t n).
func sysWrite(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	if !userRange(a.Addr(1), a[2]) {
		return 0, badRange(f, f.Writable(), offersWrite(f))
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := writeFile(t, f, a[2])
	f.Put()
	return uint64(n), e
}

// writeFile writes the thread's Vec at the file's position.
func writeFile(t *proc.Thread, f *vfs.File, length uint64) (n int, e linux.Errno) {
	if !f.Writable() {
		return 0, linux.EBADF
	}
	if f.Seekable() {
		f.PosMu.Lock()
		if beyond(f.Pos, length) {
			f.PosMu.Unlock()
			return 0, linux.EINVAL
		}
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, f.Pos)
		if f.Flags()&linux.O_APPEND == 0 && !t.Append {
			f.Pos += int64(n)
		}
		f.PosMu.Unlock()
	} else {
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, 0)
	}
	t.IO.NoteWrite(n)
	f.NotifyWrite(n)
	return n, e
}

// sysPread is pread64(int fd, void *buf, size_t n, loff_t off).
func sysPread(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[3]) < 0 {
		return 0, linux.EINVAL
	}
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	if f.Seekable() && !userRange(a.Addr(1), a[2]) {
		return 0, badRange(f, f.Readable(), true)
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := readAt(t, f, a[2], int64(a[3]))
	f.Put()
	return uint64(n), e
}

func readAt(t *proc.Thread, f *vfs.File, length uint64, off int64) (int, linux.Errno) {
	if !f.Seekable() && !f.IsPath() {
		return 0, linux.ESPIPE
	}
	if !f.Readable() {
		return 0, linux.EBADF
	}
	if beyond(off, length) {
		return 0, linux.EINVAL
	}
	n, e := f.Ops.Read(&t.Ctx, f, &t.Vec, off)
	t.IO.NoteRead(n)
	f.NotifyRead(n)
	return n, e
}

// sysPwrite is pwrite64(int fd, const void *buf, size_t n, loff_t off).
func sysPwrite(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[3]) < 0 {
		return 0, linux.EINVAL
	}
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	if f.Seekable() && !userRange(a.Addr(1), a[2]) {
		return 0, badRange(f, f.Writable(), true)
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := writeAt(t, f, a[2], int64(a[3]))
	f.Put()
	return uint64(n), e
}

func writeAt(t *proc.Thread, f *vfs.File, length uint64, off int64) (n int, e linux.Errno) {
	if !f.Seekable() || !f.Writable() {
		return 0, cannotWriteAt(f)
	}
	if beyond(off, length) {
		return 0, linux.EINVAL
	}
	if f.Flags()&linux.O_APPEND != 0 || t.Append {
		n, e = appendAt(t, f, off)
	} else {
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, off)
	}
	t.IO.NoteWrite(n)
	f.NotifyWrite(n)
	return n, e
}

// appendAt is a write that moves the file's position: it is put back.
func appendAt(t *proc.Thread, f *vfs.File, off int64) (int, linux.Errno) {
	f.PosMu.Lock()
	defer f.PosMu.Unlock()
	pos := f.Pos
	n, e := f.Ops.Write(&t.Ctx, f, &t.Vec, off)
	f.Pos = pos
	return n, e
}

// readIOVec copies an array of struct iovec in.
func readIOVec(t *proc.Thread, addr uio.Addr, count uint64) ([]uio.IOVec, linux.Errno) {
	if count > linux.IOV_MAX {
		return nil, linux.EINVAL
	}
	iov := make([]uio.IOVec, count)
	left := uint64(uio.MaxTransfer)
	for done := 0; done < len(iov); {
		k := min(len(iov)-done, len(t.Scratch)/16)
		b, e := readUser(t, addr+uio.Addr(16*done), 16*k)
		if e != 0 {
			return nil, e
		}
		for ; k > 0; k-- {
			v := uio.IOVec{Base: uio.Addr(binary.LittleEndian.Uint64(b)), Len: binary.LittleEndian.Uint64(b[8:])}
			if v.Len > 1<<63-1 {
				return nil, linux.EINVAL
			}
			if !userRange(v.Base, v.Len) {
				return nil, linux.EFAULT
			}
			v.Len = min(v.Len, left) // what is beyond the most that one call moves
			left -= v.Len
			iov[done] = v
			b = b[16:]
			done++
		}
	}
	return iov, 0
}

// initVec makes an array of struct iovec the thread's Vec.
func initVec(t *proc.Thread, addr uio.Addr, count uint64) linux.Errno {
	if count != 1 {
		iov, e := readIOVec(t, addr, count)
		if e != 0 {
			return e
		}
		return t.Vec.InitVec(t.Mem, iov)
	}
	b, e := readUser(t, addr, 16) // no array is needed for one
	if e != 0 {
		return e
	}
	base, n := uio.Addr(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])
	if n > 1<<63-1 {
		return linux.EINVAL
	}
	if !userRange(base, n) {
		return linux.EFAULT
	}
	t.Vec.Init(t.Mem, base, n)
	return 0
}

// vectored is the common part of the calls with iovecs: args 0 is the file, 1 and 2 are
// the iovecs. Without at (-1) the transfer is at the file's position.
type vectored struct {
	write bool
	at    int64
	flags uint32 // RWF_*
}

// atPosition is the offset that means the file's position.
const atPosition = -1

// do makes the iovecs the thread's Vec and reads or writes.
func (x *vectored) do(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if x.at != atPosition && !f.Seekable() {
		return 0, linux.ESPIPE
	}
	if e := initVec(t, a.Addr(1), a[2]); e != 0 {
		return 0, e
	}
	n, e := x.transfer(t, f)
	return uint64(n), e
}

// transfer reads or writes the thread's Vec. No bytes are nothing to do.
func (x *vectored) transfer(t *proc.Thread, f *vfs.File) (n int, e linux.Errno) {
	length := uint64(t.Vec.Len())
	switch {
	case x.write && !f.Writable():
		if x.at != atPosition {
			return 0, notWritableAt(f)
		}
		return 0, linux.EBADF
	case !x.write && !f.Readable():
		return 0, linux.EBADF
	case length == 0 || x.flags != 0:
		if x.write && !offersWrite(f) || !x.write && !offersRead(f) {
			return 0, linux.EINVAL
		}
	}
	switch {
	case length == 0:
		return 0, 0
	case x.flags&^(linux.RWF_HIPRI|linux.RWF_DSYNC|linux.RWF_SYNC|linux.RWF_NOWAIT|linux.RWF_APPEND) != 0,
		x.flags&^linux.RWF_HIPRI != 0 && !takesFlags(f, x.write):
		return 0, linux.EOPNOTSUPP
	}
	if x.flags&linux.RWF_NOWAIT == 0 {
		return x.move(t, f, length)
	}
	if e := x.mayNotWait(t, f); e != 0 {
		return 0, e
	}
	t.NoWait = true
	n, e = x.move(t, f, uint64(t.Vec.Len()))
	t.NoWait = false
	if e == linux.ENOMEM { // for which a call waits otherwise
		e = linux.EAGAIN
	}
	return n, e
}

// move is transfer after all checks.
func (x *vectored) move(t *proc.Thread, f *vfs.File, length uint64) (n int, e linux.Errno) {
	switch {
	case !x.write && x.at == atPosition:
		n, e = readFile(t, f, length)
	case !x.write:
		n, e = readAt(t, f, length, x.at)
	}
	if !x.write {
		if n == 0 && e == 0 {
			f.NotifyRead(1) // unlike with read, watches hear of the end, too
		}
		return n, e
	}
	t.Append = x.flags&linux.RWF_APPEND != 0
	if x.at == atPosition {
		n, e = writeFile(t, f, length)
	} else {
		n, e = writeAt(t, f, length, x.at)
	}
	t.Append = false
	if n > 0 && x.flags&(linux.RWF_DSYNC|linux.RWF_SYNC) != 0 {
		if s, ok := f.Ops.(vfs.Syncer); ok {
			if e := s.Sync(&t.Ctx, f, x.flags&linux.RWF_SYNC == 0); e != 0 {
				return 0, e
			}
		}
	}
	return n, e
}

// vectorAt is do with the offset and the flags that args 3 and 5 give.
func vectorAt(t *proc.Thread, a *Args, write, v2 bool) (uint64, linux.Errno) {
	x := vectored{write: write, at: int64(a[3])}
	if v2 {
		x.flags = a.Uint(5)
	}
	if x.at < 0 && !(v2 && x.at == atPosition) {
		return 0, linux.EINVAL
	}
	return x.do(t, a)
}

// sysReadv is readv(int fd, const struct iovec *iov, int n).
func sysReadv(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	x := vectored{at: atPosition}
	return x.do(t, a)
}

// sysWritev is writev(int fd, const struct iovec *iov, int n).
func sysWritev(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	x := vectored{write: true, at: atPosition}
	return x.do(t, a)
}

// sysPreadv is preadv(fd, iov, n, off_low, off_high); on this machine off_low is all.
func sysPreadv(t *proc.Thread, a *Args) (uint64, linux.Errno) { return vectorAt(t, a, false, false) }

// sysPwritev is pwritev(fd, iov, n, off_low, off_high).
func sysPwritev(t *proc.Thread, a *Args) (uint64, linux.Errno) { return vectorAt(t, a, true, false) }

// sysPreadv2 is preadv2(fd, iov, n, off_low, off_high, flags); offset -1 is the position.
func sysPreadv2(t *proc.Thread, a *Args) (uint64, linux.Errno) { return vectorAt(t, a, false, true) }

// sysPwritev2 is pwritev2(fd, iov, n, off_low, off_high, flags).
func sysPwritev2(t *proc.Thread, a *Args) (uint64, linux.Errno) { return vectorAt(t, a, true, true) }

// sysLseek is lseek(int fd, off_t off, int whence).
func sysLseek(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if a.Uint(2) > linux.SEEK_HOLE {
		return 0, linux.EINVAL
	}
	s, ok := f.Ops.(vfs.Seeker)
	if !ok {
		if _, ok := f.Ops.(vfs.Unpositioned); ok {
			return 0, 0
		}
		return 0, linux.ESPIPE
	}
	f.PosMu.Lock()
	defer f.PosMu.Unlock()
	n, e := s.Seek(&t.Ctx, f, int64(a[1]), int(a.Int(2)))
	return uint64(n), e
}
