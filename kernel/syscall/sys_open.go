package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Opening files.
var openCalls = []Call{
	{linux.SYS_open, "open", sysOpen, "works"},
	{linux.SYS_creat, "creat", sysCreat, "works"},
	{linux.SYS_openat, "openat", sysOpenat, "works"},
	{linux.SYS_openat2, "openat2", sysOpenat2, "works"},
	{linux.SYS_memfd_create, "memfd_create", sysMemfdCreate, "works except MFD_HUGETLB; as in later versions of Linux, MFD_NOEXEC_SEAL works and write-sealed files can be mapped shared for reading"},
}

// Flags that open knows; it ignores the others, openat2 refuses them.
const openFlags = linux.O_ACCMODE | linux.O_CREAT | linux.O_EXCL | linux.O_NOCTTY | linux.O_TRUNC |
	linux.O_APPEND | linux.O_NONBLOCK | linux.O_SYNC | linux.O_ASYNC | linux.O_DIRECT |
	linux.O_LARGEFILE | linux.O_DIRECTORY | linux.O_NOFOLLOW | linux.O_NOATIME | linux.O_CLOEXEC |
	linux.O_PATH | linux.O_TMPFILE

// sysOpen is open(const char *path, int flags, mode_t mode).
func sysOpen(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return openUser(t, linux.AT_FDCWD, a.Addr(0), a.Uint(1), a.Uint(2))
}

// sysCreat is creat(const char *path, mode_t mode).
func sysCreat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return openUser(t, linux.AT_FDCWD, a.Addr(0), linux.O_CREAT|linux.O_WRONLY|linux.O_TRUNC, a.Uint(1))
}

// sysOpenat is openat(int fd, const char *path, int flags, mode_t mode).
func sysOpenat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return openUser(t, a.Int(0), a.Addr(1), a.Uint(2), a.Uint(3))
}

func openUser(t *proc.Thread, fd int32, addr uio.Addr, flags, mode uint32) (uint64, linux.Errno) {
	how := vfs.OpenHow{Flags: flags & openFlags, Mode: mode & 0o7777}
	if flags&linux.O_PATH != 0 {
		how.Flags &= linux.O_PATH | linux.O_DIRECTORY | linux.O_NOFOLLOW | linux.O_CLOEXEC
	}
	return openHow(t, fd, addr, &how)
}

// contradictory reports flags of open that exclude one another.
func contradictory(flags uint32) bool {
	const tmpfile = linux.O_TMPFILE &^ linux.O_DIRECTORY
	return flags&tmpfile != 0 && (flags&linux.O_DIRECTORY == 0 || flags&linux.O_CREAT != 0 || flags&linux.O_ACCMODE == linux.O_RDONLY) ||
		flags&(linux.O_DIRECTORY|linux.O_CREAT) == linux.O_DIRECTORY|linux.O_CREAT
}

// openHow opens and installs.
func openHow(t *proc.Thread, dir int32, addr uio.Addr, how *vfs.OpenHow) (uint64, linux.Errno) {
	if contradictory(how.Flags) {
		return 0, linux.EINVAL
	}
	path, e := readPath(t, addr)
	if e == 0 && path == "" {
		e = linux.ENOENT
	}
	if e != 0 {
		return 0, e
	}
	at, e := dirAt(t, dir, path)
	if e != 0 {
		return 0, e
	}
	fd, e := t.FDs.Reserve(0, t.NoFile())
	if e != 0 {
		putFile(at)
		return 0, e
	}
	f, e := vfs.OpenWith(&t.Ctx, t.FS, at, path, how)
	putFile(at)
	if e != 0 {
		t.FDs.Unreserve(fd)
		return 0, e
	}
	t.FDs.Install(fd, f, how.Flags&linux.O_CLOEXEC != 0)
	return uint64(fd), 0
}

// resolveFlags are the RESOLVE_* flags as a walk's; all names are cached.
var resolveFlags = []struct {
	resolve uint64
	walk    vfs.WalkFlags
}{
	{linux.RESOLVE_NO_XDEV, vfs.NoXDev},
	{linux.RESOLVE_NO_MAGICLINKS, vfs.NoMagicLinks},
	{linux.RESOLVE_NO_SYMLINKS, vfs.NoSymlinks | vfs.NoMagicLinks},
	{linux.RESOLVE_BENEATH, vfs.Beneath},
	{linux.RESOLVE_IN_ROOT, vfs.InRoot},
	{linux.RESOLVE_CACHED, 0},
}

// sysOpenat2 is openat2(int fd, const char *path, struct open_how *how, size_t size).
func sysOpenat2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	size := a[3]
	if size < linux.OPEN_HOW_SIZE_VER0 {
		return 0, linux.EINVAL
	}
	if size > 4096 {
		return 0, linux.E2BIG
	}
	if e := checkZero(t, a.Addr(2)+linux.OPEN_HOW_SIZE_VER0, size-linux.OPEN_HOW_SIZE_VER0); e != 0 {
		return 0, e
	}
	b, e := readUser(t, a.Addr(2), linux.OPEN_HOW_SIZE_VER0)
	if e != 0 {
		return 0, e
	}
	const internal = 1 << 26 // a flag of Linux's own, which it ignores
	flags, mode, resolve := binary.LittleEndian.Uint64(b)&^internal, binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	creates := flags&linux.O_CREAT != 0 || flags&linux.O_TMPFILE == linux.O_TMPFILE
	if flags&^openFlags != 0 || mode&^0o7777 != 0 || mode != 0 && !creates ||
		flags&linux.O_PATH != 0 && flags&^(linux.O_PATH|linux.O_DIRECTORY|linux.O_NOFOLLOW|linux.O_CLOEXEC) != 0 {
		return 0, linux.EINVAL
	}
	how := vfs.OpenHow{Flags: uint32(flags), Mode: uint32(mode)}
	for _, r := range resolveFlags {
		if resolve&r.resolve != 0 {
			how.Walk |= r.walk
			resolve &^= r.resolve
		}
	}
	if resolve != 0 || how.Walk&(vfs.Beneath|vfs.InRoot) == vfs.Beneath|vfs.InRoot {
		return 0, linux.EINVAL
	}
	cached := b[16]&linux.RESOLVE_CACHED != 0
	if cached && how.Flags&(linux.O_TRUNC|linux.O_CREAT|linux.O_TMPFILE&^linux.O_DIRECTORY) != 0 {
		return 0, linux.EAGAIN
	}
	open := openHow
	if how.Walk&vfs.InRoot != 0 || how.Walk&vfs.Beneath != 0 {
		open = openBelow // an absolute path starts at the directory too
	}
	fd, e := open(t, a.Int(0), a.Addr(1), &how)
	switch e {
	case linux.ENOENT, linux.ENOTDIR, linux.ENAMETOOLONG:
		if cached { // what is not there needs a look at the disk
			e = linux.EAGAIN
		}
	}
	return fd, e
}

// openBelow is openHow where the descriptor counts even for absolute paths.
func openBelow(t *proc.Thread, dir int32, addr uio.Addr, how *vfs.OpenHow) (uint64, linux.Errno) {
	if contradictory(how.Flags) {
		return 0, linux.EINVAL
	}
	path, e := readPath(t, addr)
	if e == 0 && path == "" {
		e = linux.ENOENT
	}
	if e != 0 {
		return 0, e
	}
	at, e := dirAt(t, dir, "")
	if e != 0 {
		return 0, e
	}
	f, e := vfs.OpenWith(&t.Ctx, t.FS, at, path, how)
	putFile(at)
	if e != 0 {
		return 0, e
	}
	fd, e := t.FDs.Add(f, 0, t.NoFile(), how.Flags&linux.O_CLOEXEC != 0)
	if e != 0 {
		f.Put()
	}
	return uint64(uint32(fd)), e
}

// checkZero is E2BIG unless the n bytes at addr are zero: fields of a structure
// newer than the kernel.
func checkZero(t *proc.Thread, addr uio.Addr, n uint64) linux.Errno {
	for n > 0 {
		k := min(n, uint64(len(t.Scratch)))
		b, e := readUser(t, addr, int(k))
		if e != 0 {
			return e
		}
		for _, x := range b {
			if x != 0 {
				return linux.E2BIG
			}
		}
		addr, n = addr+uio.Addr(k), n-k
	}
	return 0
}

// sysMemfdCreate is memfd_create(const char *name, unsigned flags).
func sysMemfdCreate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	const known = linux.MFD_CLOEXEC | linux.MFD_ALLOW_SEALING | linux.MFD_NOEXEC_SEAL | linux.MFD_EXEC
	flags := a.Uint(1)
	if flags&^known != 0 || flags&(linux.MFD_NOEXEC_SEAL|linux.MFD_EXEC) == linux.MFD_NOEXEC_SEAL|linux.MFD_EXEC {
		return 0, linux.EINVAL
	}
	name, e := t.Space.ReadString(a.Addr(0), linux.NAME_MAX-len("memfd:")+1)
	if e == linux.ENAMETOOLONG {
		e = linux.EINVAL
	}
	if e != 0 {
		return 0, e
	}
	f, e := tmpfs.MemFD(&t.Ctx, name, flags&(linux.MFD_ALLOW_SEALING|linux.MFD_NOEXEC_SEAL) != 0)
	if e != 0 {
		return 0, e
	}
	if flags&linux.MFD_NOEXEC_SEAL != 0 {
		i := f.Path.Inode()
		i.SetOwner(i.UID(), i.GID(), 0o666)
		f.Ops.(tmpfs.Sealer).AddSeals(linux.F_SEAL_EXEC)
	}
	fd, e := t.FDs.Add(f, 0, t.NoFile(), flags&linux.MFD_CLOEXEC != 0)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}
