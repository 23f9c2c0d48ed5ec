package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Names: making, moving and removing them, and the directories of a process.
var pathCalls = []Call{
	{linux.SYS_mkdir, "mkdir", sysMkdir, "works"},
	{linux.SYS_mkdirat, "mkdirat", sysMkdirat, "works"},
	{linux.SYS_rmdir, "rmdir", sysRmdir, "works"},
	{linux.SYS_unlink, "unlink", sysUnlink, "works"},
	{linux.SYS_unlinkat, "unlinkat", sysUnlinkat, "works"},
	{linux.SYS_rename, "rename", sysRename, "works"},
	{linux.SYS_renameat, "renameat", sysRenameat, "works"},
	{linux.SYS_renameat2, "renameat2", sysRenameat2, "works"},
	{linux.SYS_link, "link", sysLink, "works"},
	{linux.SYS_linkat, "linkat", sysLinkat, "works"},
	{linux.SYS_symlink, "symlink", sysSymlink, "works"},
	{linux.SYS_symlinkat, "symlinkat", sysSymlinkat, "works"},
	{linux.SYS_mknod, "mknod", sysMknod, "works"},
	{linux.SYS_mknodat, "mknodat", sysMknodat, "works"},
	{linux.SYS_readlink, "readlink", sysReadlink, "works"},
	{linux.SYS_readlinkat, "readlinkat", sysReadlinkat, "works"},
	{linux.SYS_chdir, "chdir", sysChdir, "works"},
	{linux.SYS_fchdir, "fchdir", sysFchdir, "works"},
	{linux.SYS_chroot, "chroot", sysChroot, "works"},
	{linux.SYS_getcwd, "getcwd", sysGetcwd, "works"},
	{linux.SYS_umask, "umask", sysUmask, "works"},
}

// pathAt copies a path in and finds the directory that it starts at, to be given to
// putFile.
func pathAt(t *proc.Thread, fd int32, addr uio.Addr) (string, *vfs.File, linux.Errno) {
	path, e := readPath(t, addr)
	if e != 0 {
		return "", nil, e
	}
	if path == "" {
		return "", nil, linux.ENOENT
	}
	at, e := dirAt(t, fd, path)
	return path, at, e
}

// withPath hands the path at addr and its starting directory to do.
func withPath(t *proc.Thread, fd int32, addr uio.Addr, do func(at *vfs.File, path string) linux.Errno) (uint64, linux.Errno) {
	path, at, e := pathAt(t, fd, addr)
	if e != 0 {
		return 0, e
	}
	e = do(at, path)
	putFile(at)
	return 0, e
}

// withAnyPath is withPath where the path may be empty.
func withAnyPath(t *proc.Thread, fd int32, addr uio.Addr, do func(at *vfs.File, path string) linux.Errno) (uint64, linux.Errno) {
	path, e := readPath(t, addr)
	if e != 0 {
		return 0, e
	}
	at, e := dirAt(t, fd, path)
	if e != 0 {
		return 0, e
	}
	e = do(at, path)
	putFile(at)
	return 0, e
}

// sysMkdir is mkdir(const char *path, mode_t mode).
func sysMkdir(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return mkdir(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1))
}

// sysMkdirat is mkdirat(int fd, const char *path, mode_t mode).
func sysMkdirat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return mkdir(t, a.Int(0), a.Addr(1), a.Uint(2))
}

func mkdir(t *proc.Thread, fd int32, addr uio.Addr, mode uint32) (uint64, linux.Errno) {
	return withPath(t, fd, addr, func(at *vfs.File, path string) linux.Errno {
		return vfs.MkdirAt(&t.Ctx, t.FS, at, path, mode)
	})
}

// sysRmdir is rmdir(const char *path).
func sysRmdir(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return remove(t, linux.AT_FDCWD, a.Addr(0), true)
}

// sysUnlink is unlink(const char *path).
func sysUnlink(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return remove(t, linux.AT_FDCWD, a.Addr(0), false)
}

// sysUnlinkat is unlinkat(int fd, const char *path, int flags).
func sysUnlinkat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(2)&^linux.AT_REMOVEDIR != 0 {
		return 0, linux.EINVAL
	}
	return remove(t, a.Int(0), a.Addr(1), a.Uint(2) != 0)
}

func remove(t *proc.Thread, fd int32, addr uio.Addr, dir bool) (uint64, linux.Errno) {
	return withPath(t, fd, addr, func(at *vfs.File, path string) linux.Errno {
		if dir {
			return vfs.RmdirAt(&t.Ctx, t.FS, at, path)
		}
		return vfs.UnlinkAt(&t.Ctx, t.FS, at, path)
	})
}

// sysRename is rename(const char *old, const char *new).
func sysRename(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return rename(t, linux.AT_FDCWD, a.Addr(0), linux.AT_FDCWD, a.Addr(1), 0)
}

// sysRenameat is renameat(int oldfd, old, int newfd, new).
func sysRenameat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return rename(t, a.Int(0), a.Addr(1), a.Int(2), a.Addr(3), 0)
}

// sysRenameat2 is renameat2(oldfd, old, newfd, new, unsigned flags).
func sysRenameat2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return rename(t, a.Int(0), a.Addr(1), a.Int(2), a.Addr(3), a.Uint(4))
}

func rename(t *proc.Thread, oldfd int32, old uio.Addr, newfd int32, new uio.Addr, flags uint32) (uint64, linux.Errno) {
	if e := vfs.CheckRename(flags); e != 0 {
		return 0, e
	}
	return withPath(t, oldfd, old, func(oldAt *vfs.File, oldPath string) linux.Errno {
		newPath, newAt, e := pathAt(t, newfd, new)
		if e != 0 {
			if e2 := vfs.CheckParent(&t.Ctx, t.FS, oldAt, oldPath); e2 != 0 {
				return e2
			}
			return e
		}
		defer putFile(newAt)
		return vfs.RenameAt(&t.Ctx, t.FS, oldAt, oldPath, newAt, newPath, flags)
	})
}

// sysLink is link(const char *old, const char *new).
func sysLink(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return link(t, linux.AT_FDCWD, a.Addr(0), linux.AT_FDCWD, a.Addr(1), 0)
}

// sysLinkat is linkat(oldfd, old, newfd, new, int flags).
func sysLinkat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(4)
	if flags&^(linux.AT_SYMLINK_FOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return 0, linux.EINVAL
	}
	var w vfs.WalkFlags
	if flags&linux.AT_SYMLINK_FOLLOW != 0 {
		w |= vfs.FollowLast
	}
	if flags&linux.AT_EMPTY_PATH != 0 {
		if !t.Cred().Has(creds.CapDacReadSearch) {
			return 0, linux.ENOENT
		}
		w |= vfs.EmptyPath
	}
	return link(t, a.Int(0), a.Addr(1), a.Int(2), a.Addr(3), w)
}

func link(t *proc.Thread, oldfd int32, old uio.Addr, newfd int32, new uio.Addr, flags vfs.WalkFlags) (uint64, linux.Errno) {
	from := withPath
	if flags&vfs.EmptyPath != 0 {
		from = withAnyPath
	}
	return from(t, oldfd, old, func(oldAt *vfs.File, oldPath string) linux.Errno {
		newPath, newAt, e := pathAt(t, newfd, new)
		if e != 0 {
			if _, e2 := vfs.Lookup(&t.Ctx, t.FS, oldAt, oldPath, flags); e2 != 0 {
				return e2
			}
			return e
		}
		defer putFile(newAt)
		return vfs.LinkAt(&t.Ctx, t.FS, oldAt, oldPath, newAt, newPath, flags)
	})
}

// sysSymlink is symlink(const char *target, const char *path).
func sysSymlink(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return symlink(t, a.Addr(0), linux.AT_FDCWD, a.Addr(1))
}

// sysSymlinkat is symlinkat(const char *target, int fd, const char *path).
func sysSymlinkat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return symlink(t, a.Addr(0), a.Int(1), a.Addr(2))
}

func symlink(t *proc.Thread, target uio.Addr, fd int32, addr uio.Addr) (uint64, linux.Errno) {
	text, e := readPath(t, target)
	if e != 0 {
		return 0, e
	}
	return withPath(t, fd, addr, func(at *vfs.File, path string) linux.Errno {
		return vfs.SymlinkAt(&t.Ctx, t.FS, text, at, path)
	})
}

// sysMknod is mknod(const char *path, mode_t mode, dev_t dev).
func sysMknod(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return mknod(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1), a.Uint(2))
}

// sysMknodat is mknodat(int fd, const char *path, mode_t mode, dev_t dev).
func sysMknodat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return mknod(t, a.Int(0), a.Addr(1), a.Uint(2), a.Uint(3))
}

func mknod(t *proc.Thread, fd int32, addr uio.Addr, mode, dev uint32) (uint64, linux.Errno) {
	switch mode & linux.S_IFMT { // before the path is looked at
	case 0, linux.S_IFREG, linux.S_IFIFO, linux.S_IFSOCK, linux.S_IFCHR, linux.S_IFBLK:
	case linux.S_IFDIR:
		return 0, linux.EPERM
	default:
		return 0, linux.EINVAL
	}
	return withPath(t, fd, addr, func(at *vfs.File, path string) linux.Errno {
		return vfs.MknodAt(&t.Ctx, t.FS, at, path, mode&^0o7777&0xffff|mode&0o7777, uint64(dev))
	})
}

// sysReadlink is readlink(const char *path, char *buf, size_t n).
func sysReadlink(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return readlink(t, linux.AT_FDCWD, a.Addr(0), a.Addr(1), a.Int(2))
}

// sysReadlinkat is readlinkat(int fd, const char *path, char *buf, size_t n).
func sysReadlinkat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return readlink(t, a.Int(0), a.Addr(1), a.Addr(2), a.Int(3))
}

func readlink(t *proc.Thread, fd int32, addr, buf uio.Addr, size int32) (uint64, linux.Errno) {
	if size <= 0 {
		return 0, linux.EINVAL
	}
	path, e := readPath(t, addr)
	if e != 0 {
		return 0, e
	}
	flags := vfs.EmptyPath
	if fd == linux.AT_FDCWD {
		flags = 0
	}
	p, e := lookupAt(t, fd, path, flags)
	if e != 0 {
		return 0, e
	}
	text, e := vfs.ReadLink(&t.Ctx, t.FS, p)
	if e == linux.EINVAL && path == "" {
		e = linux.ENOENT
	}
	if e != 0 {
		return 0, e
	}
	//maxlive:len 4096 because a link has at most PATH_MAX bytes
	b := []byte(text[:min(len(text), int(size))])
	_, e = t.Mem.CopyOut(buf, b)
	return uint64(len(b)), e
}

// sysChdir is chdir(const char *path).
func sysChdir(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	return 0, t.FS.Chdir(&t.Ctx, p)
}

// sysFchdir is fchdir(int fd).
func sysFchdir(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if f.Path.Zero() {
		return 0, linux.ENOTDIR
	}
	return 0, t.FS.Chdir(&t.Ctx, f.Path)
}

// sysChroot is chroot(const char *path).
func sysChroot(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	return 0, t.FS.Chroot(&t.Ctx, p)
}

// sysGetcwd is getcwd(char *buf, size_t n); it returns the length with the zero.
func sysGetcwd(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	cwd := t.FS.Cwd()
	if cwd.Dentry.Gone() {
		return 0, linux.ENOENT
	}
	s, reachable := cwd.String(t.FS.Root())
	if len(s) >= linux.PATH_MAX {
		return 0, linux.ENAMETOOLONG
	}
	if !reachable {
		//maxlive:len 4112 because longer ones are refused above
		s = "(unreachable)" + s
	}
	if len(s) >= linux.PATH_MAX {
		return 0, linux.ENAMETOOLONG
	}
	if uint64(len(s)) >= a[1] {
		return 0, linux.ERANGE
	}
	//maxlive:len 4096 because longer ones are refused above
	_, e := t.Mem.CopyOut(a.Addr(0), append([]byte(s), 0))
	return uint64(len(s) + 1), e
}

// sysUmask is umask(mode_t mask).
func sysUmask(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return uint64(t.FS.SetUmask(a.Uint(0))), 0
}
