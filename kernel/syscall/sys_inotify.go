package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Watching files.
var inotifyCalls = []Call{
	{linux.SYS_inotify_init, "inotify_init", sysInotifyInit, "works"},
	{linux.SYS_inotify_init1, "inotify_init1", sysInotifyInit1, "works"},
	{linux.SYS_inotify_add_watch, "inotify_add_watch", sysInotifyAddWatch, "works"},
	{linux.SYS_inotify_rm_watch, "inotify_rm_watch", sysInotifyRmWatch, "works"},
}

// sysInotifyInit is inotify_init(void).
func sysInotifyInit(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return inotifyInit(t, 0) }

// sysInotifyInit1 is inotify_init1(int flags).
func sysInotifyInit1(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return inotifyInit(t, a.Uint(0))
}

func inotifyInit(t *proc.Thread, flags uint32) (uint64, linux.Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return 0, linux.EINVAL
	}
	f, e := vfs.NewInotify(t.Cred(), flags)
	if e != 0 {
		return 0, e
	}
	fd, e := t.FDs.Add(f, 0, t.NoFile(), flags&linux.O_CLOEXEC != 0)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}

// inotifyOf returns the instance at fd; the file is to be Put.
func inotifyOf(t *proc.Thread, fd int32) (*vfs.Inotify, *vfs.File, linux.Errno) {
	f := file(t, fd)
	if f == nil {
		return nil, nil, linux.EBADF
	}
	in, ok := f.Ops.(*vfs.Inotify)
	if !ok {
		f.Put()
		return nil, nil, linux.EINVAL
	}
	return in, f, 0
}

// sysInotifyAddWatch is inotify_add_watch(int fd, const char *path, uint32_t mask).
func sysInotifyAddWatch(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	mask := a.Uint(2)
	const known = linux.IN_ALL_EVENTS | linux.IN_UNMOUNT | linux.IN_Q_OVERFLOW | linux.IN_IGNORED | linux.IN_ONLYDIR |
		linux.IN_DONT_FOLLOW | linux.IN_EXCL_UNLINK | linux.IN_MASK_CREATE | linux.IN_MASK_ADD | linux.IN_ISDIR | linux.IN_ONESHOT
	if mask&^known != 0 || mask == 0 {
		return 0, linux.EINVAL
	}
	in, f, e := inotifyOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	if mask&linux.IN_MASK_ADD != 0 && mask&linux.IN_MASK_CREATE != 0 {
		return 0, linux.EINVAL
	}
	w := vfs.FollowLast
	if mask&linux.IN_DONT_FOLLOW != 0 {
		w = 0
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(1), w)
	if e != 0 {
		return 0, e
	}
	if mask&linux.IN_ONLYDIR != 0 && !p.Inode().IsDir() {
		return 0, linux.ENOTDIR
	}
	if e := vfs.Permission(&t.Ctx, p.Inode(), vfs.MayRead); e != 0 {
		return 0, e
	}
	wd, e := in.AddWatch(p, mask)
	return uint64(wd), e
}

// sysInotifyRmWatch is inotify_rm_watch(int fd, int wd).
func sysInotifyRmWatch(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	in, f, e := inotifyOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	return 0, in.RemoveWatch(a.Int(1))
}
