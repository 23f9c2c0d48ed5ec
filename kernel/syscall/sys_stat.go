package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Attributes of files.
var statCalls = []Call{
	{linux.SYS_stat, "stat", sysStat, "works"},
	{linux.SYS_lstat, "lstat", sysLstat, "works"},
	{linux.SYS_fstat, "fstat", sysFstat, "works"},
	{linux.SYS_newfstatat, "newfstatat", sysNewfstatat, "works"},
	{linux.SYS_statx, "statx", sysStatx, "works"},
	{linux.SYS_statfs, "statfs", sysStatfs, "works"},
	{linux.SYS_fstatfs, "fstatfs", sysFstatfs, "works"},
	{linux.SYS_access, "access", sysAccess, "works"},
	{linux.SYS_faccessat, "faccessat", sysFaccessat, "works"},
	{linux.SYS_faccessat2, "faccessat2", sysFaccessat2, "works"},
	{linux.SYS_chmod, "chmod", sysChmod, "works"},
	{linux.SYS_fchmod, "fchmod", sysFchmod, "works"},
	{linux.SYS_fchmodat, "fchmodat", sysFchmodat, "works"},
	{linux.SYS_chown, "chown", sysChown, "works"},
	{linux.SYS_fchown, "fchown", sysFchown, "works"},
	{linux.SYS_lchown, "lchown", sysLchown, "works"},
	{linux.SYS_fchownat, "fchownat", sysFchownat, "works"},
	{linux.SYS_utime, "utime", sysUtime, "works"},
	{linux.SYS_utimes, "utimes", sysUtimes, "works"},
	{linux.SYS_futimesat, "futimesat", sysFutimesat, "works"},
	{linux.SYS_utimensat, "utimensat", sysUtimensat, "works"},
}

// writeStat copies a struct stat out.
func writeStat(t *proc.Thread, addr uio.Addr, st *linux.Stat) linux.Errno {
	b := t.Scratch[:144]
	le := binary.LittleEndian
	le.PutUint64(b[0:], st.Dev)
	le.PutUint64(b[8:], st.Ino)
	le.PutUint64(b[16:], st.Nlink)
	le.PutUint32(b[24:], st.Mode)
	le.PutUint32(b[28:], st.UID)
	le.PutUint32(b[32:], st.GID)
	le.PutUint32(b[36:], 0)
	le.PutUint64(b[40:], st.Rdev)
	le.PutUint64(b[48:], uint64(st.Size))
	le.PutUint64(b[56:], uint64(st.Blksize))
	le.PutUint64(b[64:], uint64(st.Blocks))
	for i, ts := range [...]linux.Timespec{st.Atime, st.Mtime, st.Ctime} {
		le.PutUint64(b[72+16*i:], uint64(ts.Sec))
		le.PutUint64(b[80+16*i:], uint64(ts.Nsec))
	}
	clear(b[120:])
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// statPath stats the file at a path; an empty one may be a file without a place.
// (By value: what a file's own Stat fills in would have to be on the heap.)
func statPath(t *proc.Thread, fd int32, addr uio.Addr, flags vfs.WalkFlags) (st linux.Stat, e linux.Errno) {
	path, e := readPath(t, addr)
	if e != 0 {
		return st, e
	}
	if path == "" && flags&vfs.EmptyPath != 0 && fd != linux.AT_FDCWD {
		return statFD(t, fd)
	}
	p, e := lookupAt(t, fd, path, flags)
	if e == 0 {
		if p.Asked() {
			p.Renew(&t.Ctx, path)
		}
		p.Inode().FillStat(&st)
	}
	return st, e
}

// statFD stats an open file.
func statFD(t *proc.Thread, fd int32) (st linux.Stat, e linux.Errno) {
	f := t.FDs.Get(fd)
	if f == nil {
		return st, linux.EBADF
	}
	if _, own := f.Ops.(vfs.Stater); !own && !f.Path.Zero() {
		f.Path.Inode().FillStat(&st)
	} else {
		var own linux.Stat
		e = f.StatFile(&t.Ctx, &own)
		st = own
	}
	f.Put()
	return st, e
}

func statUser(t *proc.Thread, fd int32, path uio.Addr, flags vfs.WalkFlags, out uio.Addr) (uint64, linux.Errno) {
	st, e := statPath(t, fd, path, flags)
	if e != 0 {
		return 0, e
	}
	return 0, writeStat(t, out, &st)
}

// sysStat is stat(const char *path, struct stat *st).
func sysStat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return statUser(t, linux.AT_FDCWD, a.Addr(0), vfs.FollowLast, a.Addr(1))
}

// sysLstat is lstat(const char *path, struct stat *st).
func sysLstat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return statUser(t, linux.AT_FDCWD, a.Addr(0), 0, a.Addr(1))
}

// sysFstat is fstat(int fd, struct stat *st).
func sysFstat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	st, e := statFD(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, writeStat(t, a.Addr(1), &st)
}

// sysNewfstatat is newfstatat(int fd, const char *path, struct stat *st, int flags).
func sysNewfstatat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	w, e := walkFlags(a.Uint(3), linux.AT_SYMLINK_NOFOLLOW|linux.AT_NO_AUTOMOUNT|linux.AT_EMPTY_PATH|linux.AT_STATX_SYNC_TYPE)
	if e != 0 {
		return 0, e
	}
	return statUser(t, a.Int(0), a.Addr(1), w, a.Addr(2))
}

// sysStatx is statx(int fd, const char *path, int flags, unsigned mask, struct statx *out).
func sysStatx(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(2)
	w, e := walkFlags(flags, linux.AT_SYMLINK_NOFOLLOW|linux.AT_NO_AUTOMOUNT|linux.AT_EMPTY_PATH|linux.AT_STATX_SYNC_TYPE)
	if e != 0 {
		return 0, e
	}
	if flags&linux.AT_STATX_SYNC_TYPE == linux.AT_STATX_SYNC_TYPE || a.Uint(3)&linux.STATX__RESERVED != 0 {
		return 0, linux.EINVAL
	}
	var x statxResult
	if e := x.find(t, a.Int(0), a.Addr(1), w); e != 0 {
		return 0, e
	}
	_, e = t.Mem.CopyOut(a.Addr(4), x.encode(t.Scratch[:256], a.Uint(3)))
	return 0, e
}

// writeStatfs copies a struct statfs out.
func writeStatfs(t *proc.Thread, addr uio.Addr, st linux.Statfs) linux.Errno {
	b := t.Scratch[:120]
	clear(b)
	for i, v := range [...]uint64{uint64(st.Type), uint64(st.Bsize), st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree,
		uint64(uint32(st.Fsid[0])) | uint64(uint32(st.Fsid[1]))<<32, uint64(st.Namelen), uint64(st.Frsize), uint64(st.Flags)} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// sysStatfs is statfs(const char *path, struct statfs *st).
func sysStatfs(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	return 0, writeStatfs(t, a.Addr(1), vfs.StatFS(p))
}

// sysFstatfs is fstatfs(int fd, struct statfs *st).
func sysFstatfs(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, writeStatfs(t, a.Addr(1), vfs.StatFS(f.PathOf()))
}

// sysAccess is access(const char *path, int mode).
func sysAccess(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return access(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1), 0)
}

// sysFaccessat is faccessat(int fd, const char *path, int mode).
func sysFaccessat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return access(t, a.Int(0), a.Addr(1), a.Uint(2), 0)
}

// sysFaccessat2 is faccessat2(int fd, const char *path, int mode, int flags).
func sysFaccessat2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return access(t, a.Int(0), a.Addr(1), a.Uint(2), a.Uint(3))
}

func access(t *proc.Thread, fd int32, addr uio.Addr, mode, flags uint32) (uint64, linux.Errno) {
	w, e := walkFlags(flags, linux.AT_EACCESS|linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH)
	if e != 0 {
		return 0, e
	}
	if mode&^7 != 0 {
		return 0, linux.EINVAL
	}
	p, e := lookupUser(t, fd, addr, w)
	if e != 0 || mode == 0 {
		return 0, e
	}
	return 0, vfs.CheckAccess(&t.Ctx, p, vfs.Access(mode), flags&linux.AT_EACCESS != 0)
}

// sysChmod is chmod(const char *path, mode_t mode).
func sysChmod(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return chmod(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1))
}

// sysFchmodat is fchmodat(int fd, const char *path, mode_t mode).
func sysFchmodat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return chmod(t, a.Int(0), a.Addr(1), a.Uint(2))
}

func chmod(t *proc.Thread, fd int32, addr uio.Addr, mode uint32) (uint64, linux.Errno) {
	p, e := lookupUser(t, fd, addr, vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	return 0, vfs.Chmod(&t.Ctx, p, mode)
}

// sysFchmod is fchmod(int fd, mode_t mode).
func sysFchmod(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, vfs.Chmod(&t.Ctx, f.PathOf(), a.Uint(1))
}

// sysChown is chown(const char *path, uid_t uid, gid_t gid).
func sysChown(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return chown(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1), a.Uint(2), vfs.FollowLast)
}

// sysLchown is lchown(const char *path, uid_t uid, gid_t gid).
func sysLchown(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return chown(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1), a.Uint(2), 0)
}

// sysFchownat is fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags).
func sysFchownat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	w, e := walkFlags(a.Uint(4), linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH)
	if e != 0 {
		return 0, e
	}
	return chown(t, a.Int(0), a.Addr(1), a.Uint(2), a.Uint(3), w)
}

func chown(t *proc.Thread, fd int32, addr uio.Addr, uid, gid uint32, w vfs.WalkFlags) (uint64, linux.Errno) {
	p, e := lookupUser(t, fd, addr, w)
	if e != 0 {
		return 0, e
	}
	return 0, vfs.Chown(&t.Ctx, p, uid, gid)
}

// sysFchown is fchown(int fd, uid_t uid, gid_t gid).
func sysFchown(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, vfs.Chown(&t.Ctx, f.PathOf(), a.Uint(1), a.Uint(2))
}

// readTimes copies two struct timespec (unit 1) or timeval (unit 1000) in;
// none at address 0 means now.
func readTimes(t *proc.Thread, addr uio.Addr, unit int64) (*vfs.Times, linux.Errno) {
	tm := &vfs.Times{SetAtime: true, SetMtime: true}
	if addr == 0 {
		tm.AtimeNow, tm.MtimeNow = true, true
		return tm, 0
	}
	b, e := readUser(t, addr, 32)
	if e != 0 {
		return nil, e
	}
	for i, f := range []struct {
		ns       *int64
		set, now *bool
	}{{&tm.Atime, &tm.SetAtime, &tm.AtimeNow}, {&tm.Mtime, &tm.SetMtime, &tm.MtimeNow}} {
		sec := int64(binary.LittleEndian.Uint64(b[16*i:]))
		sub := int64(binary.LittleEndian.Uint64(b[16*i+8:]))
		switch {
		case unit == 1 && sub == linux.UTIME_NOW:
			*f.now = true
		case unit == 1 && sub == linux.UTIME_OMIT:
			*f.set = false
		case sub < 0 || sub >= 1e9/unit:
			if unit != 1 {
				return nil, linux.EINVAL
			}
			tm.Bad = true // nanoseconds are looked at when the file was found
		default:
			// Years beyond 2262 are cut, as Linux cuts what a file system cannot hold.
			*f.ns = min(max(sec, -maxSeconds), maxSeconds)*1_000_000_000 + sub*unit
		}
	}
	return tm, 0
}

const maxSeconds = (1<<63-1)/1_000_000_000 - 1

// sysUtimensat is utimensat(int fd, const char *path, struct timespec t[2], int flags).
func sysUtimensat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	tm, e := readTimes(t, a.Addr(2), 1)
	if e != 0 || !tm.SetAtime && !tm.SetMtime { // nothing to do: not even the path is looked at
		return 0, e
	}
	w, e := walkFlags(a.Uint(3), linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH)
	if e != 0 {
		return 0, e
	}
	if a[1] == 0 && a.Int(0) != linux.AT_FDCWD && a.Uint(3) != 0 {
		return 0, linux.EINVAL
	}
	if a[1] != 0 || a.Int(0) == linux.AT_FDCWD {
		return utimens(t, a.Int(0), a.Addr(1), tm, w)
	}
	return futimens(t, a.Int(0), tm)
}

// futimens sets the times of an open file.
func futimens(t *proc.Thread, fd int32, tm *vfs.Times) (uint64, linux.Errno) {
	f := file(t, fd)
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, vfs.Utimens(&t.Ctx, f.PathOf(), tm)
}

func utimens(t *proc.Thread, fd int32, addr uio.Addr, tm *vfs.Times, w vfs.WalkFlags) (uint64, linux.Errno) {
	p, e := lookupUser(t, fd, addr, w)
	if e != 0 {
		return 0, e
	}
	return 0, vfs.Utimens(&t.Ctx, p, tm)
}

// sysUtimes is utimes(const char *path, struct timeval t[2]).
func sysUtimes(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	tm, e := readTimes(t, a.Addr(1), 1000)
	if e != 0 {
		return 0, e
	}
	return utimens(t, linux.AT_FDCWD, a.Addr(0), tm, vfs.FollowLast)
}

// sysFutimesat is futimesat(int fd, const char *path, struct timeval t[2]).
func sysFutimesat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	tm, e := readTimes(t, a.Addr(2), 1000)
	if e != 0 {
		return 0, e
	}
	if a[1] == 0 && a.Int(0) != linux.AT_FDCWD {
		return futimens(t, a.Int(0), tm)
	}
	return utimens(t, a.Int(0), a.Addr(1), tm, vfs.FollowLast)
}

// sysUtime is utime(const char *path, struct utimbuf *times): whole seconds.
func sysUtime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	tm := &vfs.Times{SetAtime: true, SetMtime: true, AtimeNow: true, MtimeNow: true}
	if a[1] != 0 {
		b, e := readUser(t, a.Addr(1), 16)
		if e != 0 {
			return 0, e
		}
		sec := func(b []byte) int64 {
			return min(max(int64(binary.LittleEndian.Uint64(b)), -maxSeconds), maxSeconds) * 1_000_000_000
		}
		tm.Atime, tm.Mtime, tm.AtimeNow, tm.MtimeNow = sec(b), sec(b[8:]), false, false
	}
	return utimens(t, linux.AT_FDCWD, a.Addr(0), tm, vfs.FollowLast)
}
