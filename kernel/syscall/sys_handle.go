package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// File handles.
var handleCalls = []Call{
	{linux.SYS_name_to_handle_at, "name_to_handle_at", sysNameToHandleAt, "works for files on ext4 and tmpfs; EOPNOTSUPP for others"},
	{linux.SYS_open_by_handle_at, "open_by_handle_at", sysOpenByHandleAt, "works; /proc shows / as the path of ext4 files opened this way"},
}

const (
	handleHeader = 8   // of struct file_handle: length and type
	maxHandle    = 128 // bytes behind it
)

// sysNameToHandleAt is name_to_handle_at(int fd, const char *path, struct file_handle
// *handle, int *mount_id, int flags).
func sysNameToHandleAt(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(4)
	if flags&^(linux.AT_SYMLINK_FOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return 0, linux.EINVAL
	}
	var w vfs.WalkFlags
	if flags&linux.AT_SYMLINK_FOLLOW != 0 {
		w |= vfs.FollowLast
	}
	if flags&linux.AT_EMPTY_PATH != 0 {
		w |= vfs.EmptyPath
	}
	p, e := lookupUser(t, a.Int(0), a.Addr(1), w)
	if e != 0 {
		return 0, e
	}
	if p.Zero() || p.Mnt == nil || p.Inode().FS.Handles == nil {
		return 0, linux.EOPNOTSUPP
	}
	le := binary.LittleEndian
	var b [handleHeader + 16]byte
	if _, e := t.Mem.CopyIn(b[:handleHeader], a.Addr(2)); e != 0 {
		return 0, e
	}
	room := le.Uint32(b[:])
	if room > maxHandle {
		return 0, linux.EINVAL
	}
	kind, words := p.Inode().FS.Handles.Handle(p.Dentry)
	n := handleHeader + 4*len(words)
	for i, x := range words {
		le.PutUint32(b[handleHeader+4*i:], x)
	}
	if room&^3 < uint32(4*len(words)) {
		kind, n, e = vfs.HandleInvalid, handleHeader, linux.EOVERFLOW
	}
	le.PutUint32(b[0:], uint32(4*len(words)))
	le.PutUint32(b[4:], uint32(kind))
	if e := writeU32(t, a.Addr(3), uint32(p.Mnt.ID)); e != 0 {
		return 0, e
	}
	if _, e := t.Mem.CopyOut(a.Addr(2), b[:n]); e != 0 {
		return 0, e
	}
	return 0, e
}

// sysOpenByHandleAt is open_by_handle_at(int mount_fd, struct file_handle *handle, int flags).
func sysOpenByHandleAt(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapDacReadSearch) {
		return 0, linux.EPERM
	}
	kind, words, e := readHandle(t, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	at := t.FS.Cwd()
	if fd := a.Int(0); fd != linux.AT_FDCWD {
		f := file(t, fd)
		if f == nil {
			return 0, linux.EBADF
		}
		defer f.Put()
		at = f.Path
	}
	if at.Zero() || at.Mnt == nil || at.Mnt.FS.Handles == nil {
		return 0, linux.ESTALE
	}
	d, e := at.Mnt.FS.Handles.Find(&t.Ctx, kind, words)
	if e != 0 {
		return 0, e
	}
	flags := a.Uint(2) & openFlags
	if flags&linux.O_PATH != 0 {
		flags &= linux.O_PATH | linux.O_DIRECTORY | linux.O_NOFOLLOW | linux.O_CLOEXEC
	}
	fd, e := t.FDs.Reserve(0, t.NoFile())
	if e != 0 {
		return 0, e
	}
	f, e := vfs.OpenHandle(&t.Ctx, t.FS, at.Mnt, d, flags)
	if e != 0 {
		t.FDs.Unreserve(fd)
		return 0, e
	}
	t.FDs.Install(fd, f, flags&linux.O_CLOEXEC != 0)
	return uint64(fd), 0
}

// readHandle copies a handle in: its type, and the whole words of it.
func readHandle(t *proc.Thread, addr uio.Addr) (kind int32, words []uint32, e linux.Errno) {
	var b [handleHeader + maxHandle]byte
	if _, e := t.Mem.CopyIn(b[:handleHeader], addr); e != 0 {
		return 0, nil, e
	}
	le := binary.LittleEndian
	n := le.Uint32(b[:])
	if n > maxHandle || n == 0 {
		return 0, nil, linux.EINVAL
	}
	if _, e := t.Mem.CopyIn(b[handleHeader:handleHeader+n], addr+handleHeader); e != 0 {
		return 0, nil, e
	}
	for i := uint32(0); i+4 <= n; i += 4 {
		words = append(words, le.Uint32(b[handleHeader+i:]))
	}
	return int32(le.Uint32(b[4:])), words, 0
}
