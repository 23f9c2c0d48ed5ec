package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Extended attributes.
var xattrCalls = []Call{
	{linux.SYS_setxattr, "setxattr", sysSetxattr, "works for user., trusted., security. and access control lists on tmpfs and ext4; EOPNOTSUPP for others"},
	{linux.SYS_lsetxattr, "lsetxattr", sysLsetxattr, "as setxattr"},
	{linux.SYS_fsetxattr, "fsetxattr", sysFsetxattr, "as setxattr"},
	{linux.SYS_getxattr, "getxattr", sysGetxattr, "as setxattr"},
	{linux.SYS_lgetxattr, "lgetxattr", sysLgetxattr, "as setxattr"},
	{linux.SYS_fgetxattr, "fgetxattr", sysFgetxattr, "as setxattr"},
	{linux.SYS_listxattr, "listxattr", sysListxattr, "as setxattr"},
	{linux.SYS_llistxattr, "llistxattr", sysLlistxattr, "as setxattr"},
	{linux.SYS_flistxattr, "flistxattr", sysFlistxattr, "as setxattr"},
	{linux.SYS_removexattr, "removexattr", sysRemovexattr, "as setxattr"},
	{linux.SYS_lremovexattr, "lremovexattr", sysLremovexattr, "as setxattr"},
	{linux.SYS_fremovexattr, "fremovexattr", sysFremovexattr, "as setxattr"},
}

// Each call comes in three kinds: args 0 is a path, a path whose last link is
// not followed, or a descriptor. on finds the place and hands it to do.
func on(t *proc.Thread, a *Args, kind int, do func(p vfs.Path) (uint64, linux.Errno)) (uint64, linux.Errno) {
	if kind == byFD {
		f := file(t, a.Int(0))
		if f == nil {
			return 0, linux.EBADF
		}
		defer f.Put()
		return do(f.PathOf())
	}
	var w vfs.WalkFlags
	if kind == byPath {
		w = vfs.FollowLast
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), w)
	if e != 0 {
		return 0, e
	}
	return do(p)
}

const (
	byPath = iota
	byLink
	byFD
)

// xattrName copies an attribute's name in.
func xattrName(t *proc.Thread, addr uio.Addr) (string, linux.Errno) {
	name, e := t.Space.ReadString(addr, linux.XATTR_NAME_MAX+1)
	if e == linux.ENAMETOOLONG || e == 0 && name == "" {
		e = linux.ERANGE
	}
	return name, e
}

// giveXattr copies a result out; size 0 only asks how long it is.
func giveXattr(t *proc.Thread, addr uio.Addr, size uint64, b []byte) (uint64, linux.Errno) {
	if size == 0 {
		return uint64(len(b)), 0
	}
	if uint64(len(b)) > size {
		return 0, linux.ERANGE
	}
	_, e := t.Mem.CopyOut(addr, b)
	return uint64(len(b)), e
}

func setxattr(t *proc.Thread, a *Args, kind int) (uint64, linux.Errno) {
	return on(t, a, kind, func(p vfs.Path) (uint64, linux.Errno) {
		flags := a.Uint(4)
		if e := p.Writable(); e != 0 {
			return 0, e
		}
		if flags&^(linux.XATTR_CREATE|linux.XATTR_REPLACE) != 0 {
			return 0, linux.EINVAL
		}
		name, e := xattrName(t, a.Addr(1))
		if e != 0 {
			return 0, e
		}
		if a[3] > linux.XATTR_SIZE_MAX {
			return 0, linux.E2BIG
		}
		//maxlive:len 65536 because larger ones are refused above
		value := make([]byte, a[3])
		if _, e := t.Mem.CopyIn(value, a.Addr(2)); e != 0 {
			return 0, e
		}
		return 0, vfs.SetXattr(&t.Ctx, p, name, value, flags)
	})
}

func getxattr(t *proc.Thread, a *Args, kind int) (uint64, linux.Errno) {
	return on(t, a, kind, func(p vfs.Path) (uint64, linux.Errno) {
		name, e := xattrName(t, a.Addr(1))
		if e != 0 {
			return 0, e
		}
		v, e := vfs.GetXattr(&t.Ctx, p, name)
		if e != 0 {
			return 0, e
		}
		return giveXattr(t, a.Addr(2), a[3], v)
	})
}

func listxattr(t *proc.Thread, a *Args, kind int) (uint64, linux.Errno) {
	return on(t, a, kind, func(p vfs.Path) (uint64, linux.Errno) {
		v, e := vfs.ListXattr(&t.Ctx, p)
		if e != 0 {
			return 0, e
		}
		return giveXattr(t, a.Addr(1), a[2], v)
	})
}

func removexattr(t *proc.Thread, a *Args, kind int) (uint64, linux.Errno) {
	return on(t, a, kind, func(p vfs.Path) (uint64, linux.Errno) {
		if e := p.Writable(); e != 0 {
			return 0, e
		}
		name, e := xattrName(t, a.Addr(1))
		if e != 0 {
			return 0, e
		}
		return 0, vfs.RemoveXattr(&t.Ctx, p, name)
	})
}

// sysSetxattr is setxattr(path, name, value, size, flags).
func sysSetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return setxattr(t, a, byPath) }

// sysLsetxattr does not follow a link at the end.
func sysLsetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return setxattr(t, a, byLink) }

// sysFsetxattr takes a descriptor.
func sysFsetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return setxattr(t, a, byFD) }

// sysGetxattr is getxattr(path, name, value, size).
func sysGetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return getxattr(t, a, byPath) }

// sysLgetxattr does not follow a link at the end.
func sysLgetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return getxattr(t, a, byLink) }

// sysFgetxattr takes a descriptor.
func sysFgetxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return getxattr(t, a, byFD) }

// sysListxattr is listxattr(path, list, size).
func sysListxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return listxattr(t, a, byPath) }

// sysLlistxattr does not follow a link at the end.
func sysLlistxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return listxattr(t, a, byLink) }

// sysFlistxattr takes a descriptor.
func sysFlistxattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return listxattr(t, a, byFD) }

// sysRemovexattr is removexattr(path, name).
func sysRemovexattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return removexattr(t, a, byPath) }

// sysLremovexattr does not follow a link at the end.
func sysLremovexattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return removexattr(t, a, byLink) }

// sysFremovexattr takes a descriptor.
func sysFremovexattr(t *proc.Thread, a *Args) (uint64, linux.Errno) { return removexattr(t, a, byFD) }
