package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// readPath copies a path in; an empty one is ENOENT unless the call allows it.
func readPath(t *proc.Thread, addr uio.Addr) (string, linux.Errno) {
	return t.Space.ReadString(addr, linux.PATH_MAX)
}

// dirAt returns the file that a relative path starts at; nil for the working
// directory, or where the path is absolute. The caller gives it to putFile.
func dirAt(t *proc.Thread, fd int32, path string) (*vfs.File, linux.Errno) {
	if fd == linux.AT_FDCWD || len(path) > 0 && path[0] == '/' {
		return nil, 0
	}
	f := t.FDs.Get(fd)
	if f == nil {
		return nil, linux.EBADF
	}
	return f, 0
}

// lookupAt finds a path relative to a descriptor.
func lookupAt(t *proc.Thread, fd int32, path string, flags vfs.WalkFlags) (vfs.Path, linux.Errno) {
	if path == "" && flags&vfs.EmptyPath == 0 {
		return vfs.Path{}, linux.ENOENT
	}
	at, e := dirAt(t, fd, path)
	if e != 0 {
		return vfs.Path{}, e
	}
	p, e := vfs.Lookup(&t.Ctx, t.FS, at, path, flags)
	putFile(at)
	return p, e
}

// lookupUser finds a path in user memory.
func lookupUser(t *proc.Thread, fd int32, addr uio.Addr, flags vfs.WalkFlags) (vfs.Path, linux.Errno) {
	path, e := readPath(t, addr)
	if e != 0 {
		return vfs.Path{}, e
	}
	return lookupAt(t, fd, path, flags)
}

// walkFlags turns AT_* flags into those of a walk, which follows a last link
// unless told otherwise; EINVAL for flags outside allowed.
func walkFlags(at, allowed uint32) (vfs.WalkFlags, linux.Errno) {
	if at&^allowed != 0 {
		return 0, linux.EINVAL
	}
	w := vfs.FollowLast
	if at&linux.AT_SYMLINK_NOFOLLOW != 0 {
		w = 0
	}
	if at&linux.AT_EMPTY_PATH != 0 {
		w |= vfs.EmptyPath
	}
	return w, 0
}
