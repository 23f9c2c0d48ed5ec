package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/proc"
	"hardtack/kernel/sock"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
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
	{linux.SYS_preadv2, "preadv2", sysPreadv2, "works except RWF_NOWAIT and RWF_APPEND (EOPNOTSUPP)"},
	{linux.SYS_pwritev2, "pwritev2", sysPwritev2, "works except RWF_NOWAIT and RWF_APPEND (EOPNOTSUPP)"},
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

// userTop is the end of user addresses.
const userTop = 1<<47 - 4096

// userRange reports whether a range can be user memory at all.
func userRange(addr uio.Addr, n uint64) bool {
	return n <= userTop && uint64(addr) <= userTop-n
}

// sysRead is read(int fd, void *buf, size_t n).
func sysRead(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	if !userRange(a.Addr(1), a[2]) {
		f.Put()
		return 0, linux.EFAULT
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := readFile(t, f)
	f.Put()
	return uint64(n), e
}

// readFile reads at the file's position into the thread's Vec.
func readFile(t *proc.Thread, f *vfs.File) (n int, e linux.Errno) {
	if !f.Readable() {
		return 0, linux.EBADF
	}
	if f.Seekable() {
		f.PosMu.Lock()
		n, e = f.Ops.Read(&t.Ctx, f, &t.Vec, f.Pos)
		f.Pos += int64(n)
		f.PosMu.Unlock()
	} else {
		n, e = f.Ops.Read(&t.Ctx, f, &t.Vec, 0)
	}
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
		f.Put()
		return 0, linux.EFAULT
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := writeFile(t, f)
	f.Put()
	return uint64(n), e
}

// writeFile writes the thread's Vec at the file's position.
func writeFile(t *proc.Thread, f *vfs.File) (n int, e linux.Errno) {
	if !f.Writable() {
		return 0, linux.EBADF
	}
	if f.Seekable() {
		f.PosMu.Lock()
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, f.Pos)
		if f.Flags()&linux.O_APPEND == 0 {
			f.Pos += int64(n)
		}
		f.PosMu.Unlock()
	} else {
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, 0)
	}
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
	if !userRange(a.Addr(1), a[2]) {
		f.Put()
		return 0, linux.EFAULT
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := readAt(t, f, int64(a[3]))
	f.Put()
	return uint64(n), e
}

func readAt(t *proc.Thread, f *vfs.File, off int64) (int, linux.Errno) {
	if !f.Seekable() && !f.IsPath() {
		return 0, linux.ESPIPE
	}
	if !f.Readable() {
		return 0, linux.EBADF
	}
	n, e := f.Ops.Read(&t.Ctx, f, &t.Vec, off)
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
	if !userRange(a.Addr(1), a[2]) {
		f.Put()
		return 0, linux.EFAULT
	}
	t.Vec.Init(t.Mem, a.Addr(1), a[2])
	n, e := writeAt(t, f, int64(a[3]))
	f.Put()
	return uint64(n), e
}

func writeAt(t *proc.Thread, f *vfs.File, off int64) (n int, e linux.Errno) {
	if !f.Seekable() && !f.IsPath() {
		return 0, linux.ESPIPE
	}
	if !f.Writable() {
		return 0, linux.EBADF
	}
	if f.Flags()&linux.O_APPEND != 0 { // the file moves the position: put it back
		f.PosMu.Lock()
		pos := f.Pos
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, off)
		f.Pos = pos
		f.PosMu.Unlock()
	} else {
		n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, off)
	}
	f.NotifyWrite(n)
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

// withVec makes the iovecs at args 1 and 2 the thread's Vec and hands the file
// of args 0 to do.
func withVec(t *proc.Thread, a *Args, do func(f *vfs.File) (int, linux.Errno)) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	iov, e := readIOVec(t, a.Addr(1), a[2])
	if e == 0 {
		e = t.Vec.InitVec(t.Mem, iov)
	}
	if e != 0 {
		return 0, e
	}
	n, e := do(f)
	return uint64(n), e
}

// unasked reports whether a vector does not reach the file: one of nothing does not
// reach a socket, as write(2) of nothing does. It sends no empty datagram, waits for
// nothing and takes no error.
func unasked(t *proc.Thread, f *vfs.File) bool {
	_, ok := f.Ops.(sock.Socket)
	return ok && t.Vec.Len() == 0
}

// sysReadv is readv(int fd, const struct iovec *iov, int n).
func sysReadv(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return withVec(t, a, func(f *vfs.File) (int, linux.Errno) {
		if unasked(t, f) {
			return 0, 0
		}
		return readFile(t, f)
	})
}

// sysWritev is writev(int fd, const struct iovec *iov, int n).
func sysWritev(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return withVec(t, a, func(f *vfs.File) (int, linux.Errno) {
		if unasked(t, f) {
			return 0, 0
		}
		return writeFile(t, f)
	})
}

// sysPreadv is preadv(fd, iov, n, off_low, off_high); on this machine off_low is all.
func sysPreadv(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[3]) < 0 {
		return 0, linux.EINVAL
	}
	return withVec(t, a, func(f *vfs.File) (int, linux.Errno) { return readAt(t, f, int64(a[3])) })
}

// sysPwritev is pwritev(fd, iov, n, off_low, off_high).
func sysPwritev(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if int64(a[3]) < 0 {
		return 0, linux.EINVAL
	}
	return withVec(t, a, func(f *vfs.File) (int, linux.Errno) { return writeAt(t, f, int64(a[3])) })
}

// rwFlags checks the flags of preadv2 and pwritev2.
func rwFlags(flags uint32) linux.Errno {
	if flags&^(linux.RWF_HIPRI|linux.RWF_DSYNC|linux.RWF_SYNC) != 0 {
		return linux.EOPNOTSUPP
	}
	return 0
}

// sysPreadv2 is preadv2(fd, iov, n, off_low, off_high, flags); offset -1 is the position.
func sysPreadv2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if e := rwFlags(a.Uint(5)); e != 0 {
		return 0, e
	}
	if int64(a[3]) == -1 {
		return sysReadv(t, a)
	}
	return sysPreadv(t, a)
}

// sysPwritev2 is pwritev2(fd, iov, n, off_low, off_high, flags).
func sysPwritev2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if e := rwFlags(a.Uint(5)); e != 0 {
		return 0, e
	}
	write := sysPwritev
	if int64(a[3]) == -1 {
		write = sysWritev
	}
	n, e := write(t, a)
	if flags := a.Uint(5); e == 0 && n > 0 && flags&(linux.RWF_DSYNC|linux.RWF_SYNC) != 0 {
		if f := file(t, a.Int(0)); f != nil {
			if s, ok := f.Ops.(vfs.Syncer); ok {
				e = s.Sync(&t.Ctx, f, flags&linux.RWF_SYNC == 0)
			}
			f.Put()
		}
	}
	return n, e
}

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
