package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

// Descriptors, and device control.
var fdCalls = []Call{
	{linux.SYS_close, "close", sysClose, "works"},
	{linux.SYS_close_range, "close_range", sysCloseRange, "works"},
	{linux.SYS_dup, "dup", sysDup, "works"},
	{linux.SYS_dup2, "dup2", sysDup2, "works"},
	{linux.SYS_dup3, "dup3", sysDup3, "works"},
	{linux.SYS_ioctl, "ioctl", sysIoctl, "works for the requests each file knows; FS_IOC_FIEMAP writes back dirty pages first and does not support FIEMAP_FLAG_XATTR"},
}

// sysClose is close(int fd).
func sysClose(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.FDs.Close(&t.Ctx, a.Int(0))
}

// sysCloseRange is close_range(unsigned first, unsigned last, unsigned flags).
func sysCloseRange(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	first, last, flags := a.Uint(0), a.Uint(1), a.Uint(2)
	if first > last || flags&^(linux.CLOSE_RANGE_UNSHARE|linux.CLOSE_RANGE_CLOEXEC) != 0 {
		return 0, linux.EINVAL
	}
	if flags&linux.CLOSE_RANGE_UNSHARE != 0 && t.FDs.Users() > 1 {
		if e := t.UnshareFiles(); e != 0 {
			return 0, e
		}
	}
	lo, hi := int(min(first, vfs.MaxFDs)), int(min(last, vfs.MaxFDs-1))
	if flags&linux.CLOSE_RANGE_CLOEXEC != 0 {
		t.FDs.MarkCloseOnExec(lo, hi)
	} else {
		t.FDs.CloseRange(&t.Ctx, lo, hi, false)
	}
	return 0, 0
}

// dupTo gives fd's file a further descriptor, the lowest from min on.
func dupTo(t *proc.Thread, fd int32, min int, cloexec bool) (uint64, linux.Errno) {
	f := t.FDs.Get(fd)
	if f == nil {
		return 0, linux.EBADF
	}
	n, e := t.FDs.Add(f, min, t.NoFile(), cloexec)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(n), 0
}

// sysDup is dup(int fd).
func sysDup(t *proc.Thread, a *Args) (uint64, linux.Errno) { return dupTo(t, a.Int(0), 0, false) }

// sysDup2 is dup2(int old, int new).
func sysDup2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(0) == a.Int(1) {
		f := t.FDs.Get(a.Int(0))
		if f == nil {
			return 0, linux.EBADF
		}
		f.Put()
		return uint64(a.Uint(1)), 0
	}
	return dupOver(t, a.Int(0), a.Int(1), false)
}

// sysDup3 is dup3(int old, int new, int flags).
func sysDup3(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(2)&^linux.O_CLOEXEC != 0 || a.Int(0) == a.Int(1) {
		return 0, linux.EINVAL
	}
	return dupOver(t, a.Int(0), a.Int(1), a.Uint(2) != 0)
}

func dupOver(t *proc.Thread, old, fd int32, cloexec bool) (uint64, linux.Errno) {
	f := t.FDs.Get(old)
	if f == nil {
		return 0, linux.EBADF
	}
	if e := t.FDs.Replace(&t.Ctx, fd, f, t.NoFile(), cloexec); e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}

// sysIoctl is ioctl(int fd, unsigned cmd, unsigned long arg): what concerns the
// descriptor is done here, the rest by the file.
func sysIoctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	cmd := a.Uint(1)
	switch cmd {
	case linux.FIOCLEX, linux.FIONCLEX:
		return 0, t.FDs.SetCloseOnExec(a.Int(0), cmd == linux.FIOCLEX)
	case linux.FIONBIO, linux.FIOASYNC:
		return 0, ioctlFlag(t, f, cmd, a)
	case linux.SIOCUNIXFILE:
		if n, ok := f.Ops.(named); ok {
			return openName(t, n)
		}
	}
	if e, done := ioctlFile(t, f, cmd, a.Addr(2)); done {
		return 0, e
	}
	return f.Ops.Ioctl(&t.Ctx, f, cmd, a[2])
}

// named is a socket whose name may be a file (SIOCUNIXFILE).
type named interface {
	OpenName(c *caller.Ctx) (*vfs.File, linux.Errno)
}

// openName gives the caller a descriptor of that file.
func openName(t *proc.Thread, n named) (uint64, linux.Errno) {
	f, e := n.OpenName(&t.Ctx)
	if e != 0 {
		return 0, e
	}
	fd, e := t.FDs.Reserve(0, t.NoFile())
	if e != 0 {
		f.Put()
		return 0, e
	}
	t.FDs.Install(fd, f, true)
	return uint64(fd), 0
}

// ioctlFlag is FIONBIO and FIOASYNC, which set a flag of an open file.
func ioctlFlag(t *proc.Thread, f *vfs.File, cmd uint32, a *Args) linux.Errno {
	b, e := readUser(t, a.Addr(2), 4)
	if e != 0 {
		return e
	}
	on := binary.LittleEndian.Uint32(b) != 0
	flag := uint32(linux.O_NONBLOCK)
	if cmd == linux.FIOASYNC {
		flag = linux.O_ASYNC
		if on != (f.Flags()&flag != 0) && !signalsIO(f) {
			return linux.ENOTTY
		}
	}
	v := f.Flags() &^ flag
	if on {
		v |= flag
	}
	return setFlags(t, f, v, a.Int(0))
}

// ioctlFile does the commands that are the same for all files; done is false where the
// file's own operation has to answer.
func ioctlFile(t *proc.Thread, f *vfs.File, cmd uint32, arg uio.Addr) (e linux.Errno, done bool) {
	if cmd == linux.FIGETBSZ && (f.Path.Zero() || f.Path.Inode().Type() != linux.S_IFREG) {
		return writeU32(t, arg, uint32(f.PathOf().Inode().FS.BlockSize)), true
	}
	if _, ok := sock.Of(f); ok && cmd >= linux.FIOSETOWN && cmd <= linux.SIOCGPGRP {
		return socketOwner(t, f, cmd, arg), true
	}
	if !f.Path.Zero() && f.Path.Inode().Type() == linux.S_IFREG {
		switch cmd {
		case linux.FIONREAD:
			f.PosMu.Lock()
			n := f.Path.Inode().Size() - f.Pos
			f.PosMu.Unlock()
			return writeU32(t, arg, uint32(n)), true
		case linux.FIGETBSZ:
			return writeU32(t, arg, uint32(blockSize(f))), true
		}
	}
	switch cmd {
	case linux.FIOQSIZE:
		if mode := typeOf(f); mode == linux.S_IFREG || mode == linux.S_IFDIR {
			return storedBytes(t, f, arg), true
		}
		return linux.ENOTTY, true
	case linux.FIFREEZE, linux.FITHAW:
		return freeze(t, cmd), true
	case linux.FS_IOC_FIEMAP:
		return fileExtents(t, f, arg), true
	case linux.FIBMAP:
		if typeOf(f) == linux.S_IFREG {
			return fileBlock(t, f, arg), true
		}
	case linux.FS_IOC_GETFLAGS:
		if attrs, e := f.FileAttrs(); e == 0 {
			return writeU32(t, arg, attrs), true
		}
	case linux.FS_IOC_SETFLAGS:
		b, e := readUser(t, arg, 4)
		if e != 0 {
			return e, true
		}
		if _, e := f.FileAttrs(); e == 0 {
			return f.SetFileAttrs(&t.Ctx, binary.LittleEndian.Uint32(b)), true
		}
	case linux.FS_IOC_FSGETXATTR, linux.FS_IOC_FSSETXATTR:
		if _, e := f.FileAttrs(); e == 0 {
			return fsXattr(t, f, cmd, arg), true
		}
	case linux.FICLONE:
		return fileClone(t, f, int32(arg)), true
	}
	return 0, false
}

// storedBytes is FIOQSIZE.
func storedBytes(t *proc.Thread, f *vfs.File, addr uio.Addr) linux.Errno {
	i := f.Path.Inode()
	b := t.Scratch[:8]
	binary.LittleEndian.PutUint64(b, uint64(i.Node.Blocks(i))*512)
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// fsXattr is FS_IOC_FSGETXATTR and FS_IOC_FSSETXATTR: the flags of chattr(1) once more, by
// other numbers. The other fields of struct fsxattr do not exist here.
func fsXattr(t *proc.Thread, f *vfs.File, cmd uint32, addr uio.Addr) linux.Errno {
	flags := [...]struct{ file, x uint32 }{
		{linux.FS_IMMUTABLE_FL, 0x08}, {linux.FS_APPEND_FL, 0x10}, {linux.FS_SYNC_FL, 0x20},
		{linux.FS_NOATIME_FL, 0x40}, {linux.FS_NODUMP_FL, 0x80},
	}
	attrs, _ := f.FileAttrs()
	if cmd == linux.FS_IOC_FSGETXATTR {
		b := t.Scratch[:28]
		clear(b)
		x := uint32(0)
		for _, m := range flags {
			if attrs&m.file != 0 {
				x |= m.x
			}
		}
		binary.LittleEndian.PutUint32(b, x)
		_, e := t.Mem.CopyOut(addr, b)
		return e
	}
	b, e := readUser(t, addr, 28)
	if e != 0 {
		return e
	}
	x := binary.LittleEndian.Uint32(b)
	for _, m := range flags {
		attrs &^= m.file
		if x&m.x != 0 {
			attrs |= m.file
			x &^= m.x
		}
	}
	if x != 0 {
		return linux.EOPNOTSUPP
	}
	return f.SetFileAttrs(&t.Ctx, attrs)
}

// fileClone is FICLONE: no file system here shares blocks between files.
func fileClone(t *proc.Thread, f *vfs.File, fd int32) linux.Errno {
	src := t.FDs.Get(fd)
	if src == nil {
		return linux.EBADF
	}
	defer src.Put()
	to, from := typeOf(f), typeOf(src)
	switch {
	case src.PathOf().Inode().FS != f.PathOf().Inode().FS:
		return linux.EXDEV
	case to == linux.S_IFDIR || from == linux.S_IFDIR:
		return linux.EISDIR
	case to != linux.S_IFREG || from != linux.S_IFREG:
		return linux.EINVAL
	case !src.Readable() || !f.Writable() || f.Flags()&linux.O_APPEND != 0:
		return linux.EBADF
	}
	return linux.EOPNOTSUPP
}

// freeze is FIFREEZE and FITHAW: no file system here can be frozen, so that none is.
func freeze(t *proc.Thread, cmd uint32) linux.Errno {
	switch {
	case !t.Cred().Has(creds.CapSysAdmin):
		return linux.EPERM
	case cmd == linux.FITHAW:
		return linux.EINVAL
	}
	return linux.EOPNOTSUPP
}

// socketOwner is F_SETOWN and F_GETOWN by ioctl.
func socketOwner(t *proc.Thread, f *vfs.File, cmd uint32, addr uio.Addr) linux.Errno {
	switch cmd {
	case linux.FIOSETOWN, linux.SIOCSPGRP:
		b, e := readUser(t, addr, 4)
		if e != 0 {
			return e
		}
		return setOwnerID(t, f, int32(binary.LittleEndian.Uint32(b)))
	}
	return writeU32(t, addr, uint32(ownerID(f)))
}

// writeU32 copies an unsigned int out.
func writeU32(t *proc.Thread, addr uio.Addr, v uint32) linux.Errno {
	b := t.Scratch[:4]
	binary.LittleEndian.PutUint32(b, v)
	_, e := t.Mem.CopyOut(addr, b)
	return e
}
