package syscall

import (
	"encoding/binary"
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Mounts by descriptors.
var mountTreeCalls = []Call{
	{linux.SYS_open_tree, "open_tree", sysOpenTree, "works"},
	{linux.SYS_move_mount, "move_mount", sysMoveMount, "works except MOVE_MOUNT_SET_GROUP (EINVAL): mounts do not propagate"},
	{linux.SYS_mount_setattr, "mount_setattr", sysMountSetattr, "works; propagation has no effect, and there is no other user namespace for MOUNT_ATTR_IDMAP (EPERM)"},
}

// sysOpenTree is open_tree(int dfd, const char *path, unsigned flags).
func sysOpenTree(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(2)
	clone, rec := flags&linux.OPEN_TREE_CLONE != 0, flags&linux.AT_RECURSIVE != 0
	w, e := walkFlags(flags&^(linux.OPEN_TREE_CLONE|linux.AT_RECURSIVE|linux.OPEN_TREE_CLOEXEC|linux.AT_NO_AUTOMOUNT),
		linux.AT_EMPTY_PATH|linux.AT_SYMLINK_NOFOLLOW)
	switch {
	case e != 0 || rec && !clone:
		return 0, linux.EINVAL
	case clone && !t.Cred().Has(creds.CapSysAdmin):
		return 0, linux.EPERM
	}
	p, e := lookupUser(t, a.Int(0), a.Addr(1), w)
	if e != 0 {
		return 0, e
	}
	var f *vfs.File
	switch {
	case !clone:
		f, e = vfs.OpenPlace(p)
	case p.Mnt == nil: // a pipe or the like
		e = linux.EINVAL
	default:
		var m *vfs.Mount
		if m, e = p.Namespace().Copy(p, rec); e == 0 {
			f = vfs.OpenLoose(m)
		}
	}
	if e != 0 {
		return 0, e
	}
	return addFile(t, f, flags&linux.OPEN_TREE_CLOEXEC != 0)
}

// sysMoveMount is move_mount(int from_dfd, const char *from, int to_dfd, const char *to,
// unsigned flags).
func sysMoveMount(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	const known = linux.MOVE_MOUNT_F_SYMLINKS | linux.MOVE_MOUNT_F_AUTOMOUNTS | linux.MOVE_MOUNT_F_EMPTY_PATH |
		linux.MOVE_MOUNT_T_SYMLINKS | linux.MOVE_MOUNT_T_AUTOMOUNTS | linux.MOVE_MOUNT_T_EMPTY_PATH | linux.MOVE_MOUNT_SET_GROUP
	flags := a.Uint(4)
	switch {
	case !t.Cred().Has(creds.CapSysAdmin):
		return 0, linux.EPERM
	case flags&^uint32(known) != 0:
		return 0, linux.EINVAL
	}
	from, e := lookupUser(t, a.Int(0), a.Addr(1), moveWalk(flags))
	if e != 0 {
		return 0, e
	}
	to, e := lookupUser(t, a.Int(2), a.Addr(3), moveWalk(flags>>4))
	switch {
	case e != 0:
		return 0, e
	case to.Mnt == nil || flags&linux.MOVE_MOUNT_SET_GROUP != 0:
		return 0, linux.EINVAL
	}
	m, e := from.MountPath()
	if e == 0 {
		e = to.Namespace().Move(m, to)
	}
	return 0, e
}

// moveWalk turns the flags MOVE_MOUNT_F_* into those of a walk.
func moveWalk(flags uint32) (w vfs.WalkFlags) {
	if flags&linux.MOVE_MOUNT_F_SYMLINKS != 0 {
		w |= vfs.FollowLast
	}
	if flags&linux.MOVE_MOUNT_F_EMPTY_PATH != 0 {
		w |= vfs.EmptyPath
	}
	return w
}

// mountAttrs are the flags of struct mount_attr, apart from access times.
var mountAttrs = []struct{ attr, flag uint32 }{
	{linux.MOUNT_ATTR_RDONLY, linux.MS_RDONLY}, {linux.MOUNT_ATTR_NOSUID, linux.MS_NOSUID},
	{linux.MOUNT_ATTR_NODEV, linux.MS_NODEV}, {linux.MOUNT_ATTR_NOEXEC, linux.MS_NOEXEC},
	{linux.MOUNT_ATTR_NODIRATIME, linux.MS_NODIRATIME}, {linux.MOUNT_ATTR_NOSYMFOLLOW, linux.MS_NOSYMFOLLOW},
}

const knownMountAttrs = linux.MOUNT_ATTR_RDONLY | linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV | linux.MOUNT_ATTR_NOEXEC |
	linux.MOUNT_ATTR__ATIME | linux.MOUNT_ATTR_NODIRATIME | linux.MOUNT_ATTR_NOSYMFOLLOW

// attrFlags turns MOUNT_ATTR_* into MS_*; EINVAL for access times that exclude one
// another.
func attrFlags(attrs uint32) (flags uint32, e linux.Errno) {
	for _, x := range mountAttrs {
		if attrs&x.attr != 0 {
			flags |= x.flag
		}
	}
	switch attrs & linux.MOUNT_ATTR__ATIME {
	case linux.MOUNT_ATTR_RELATIME:
	case linux.MOUNT_ATTR_NOATIME:
		flags |= linux.MS_NOATIME
	case linux.MOUNT_ATTR_STRICTATIME:
		flags |= linux.MS_STRICTATIME
	default:
		e = linux.EINVAL
	}
	return flags, e
}

// sysMountSetattr is mount_setattr(int dfd, const char *path, unsigned flags,
// struct mount_attr *attr, size_t size).
func sysMountSetattr(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(2)
	w, e := walkFlags(flags&^(linux.AT_RECURSIVE|linux.AT_NO_AUTOMOUNT), linux.AT_EMPTY_PATH|linux.AT_SYMLINK_NOFOLLOW)
	switch {
	case e != 0:
		return 0, e
	case a[4] > 4096:
		return 0, linux.E2BIG
	case a[4] < linux.MOUNT_ATTR_SIZE_VER0:
		return 0, linux.EINVAL
	case !t.Cred().Has(creds.CapSysAdmin):
		return 0, linux.EPERM
	}
	if e := checkZero(t, a.Addr(3)+linux.MOUNT_ATTR_SIZE_VER0, a[4]-linux.MOUNT_ATTR_SIZE_VER0); e != 0 {
		return 0, e
	}
	b, e := readUser(t, a.Addr(3), linux.MOUNT_ATTR_SIZE_VER0)
	if e != 0 {
		return 0, e
	}
	le := binary.LittleEndian
	set, clear, propagation := le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])
	userns := le.Uint64(b[24:])
	if set|clear|propagation == 0 {
		return 0, 0
	}
	attrs, e := mountChange(set, clear, propagation)
	if e == 0 && (set|clear)&linux.MOUNT_ATTR_IDMAP != 0 {
		e = idMapped(t, clear, userns)
	}
	if e != 0 {
		return 0, e
	}
	p, e := lookupUser(t, a.Int(0), a.Addr(1), w)
	switch {
	case e != 0:
		return 0, e
	case p.Mnt == nil:
		return 0, linux.EINVAL
	}
	return 0, p.Namespace().SetAttrs(p, flags&linux.AT_RECURSIVE != 0, attrs)
}

// mountChange checks what mount_setattr is to do.
func mountChange(set, clear, propagation uint64) (a vfs.Attrs, e linux.Errno) {
	const kinds = linux.MS_SHARED | linux.MS_PRIVATE | linux.MS_SLAVE | linux.MS_UNBINDABLE
	const atimes = linux.MS_NOATIME | linux.MS_RELATIME | linux.MS_STRICTATIME
	switch {
	case propagation&^kinds != 0 || bits.OnesCount64(propagation) > 1,
		(set|clear)&^(knownMountAttrs|linux.MOUNT_ATTR_IDMAP) != 0,
		clear&linux.MOUNT_ATTR__ATIME == 0 && set&linux.MOUNT_ATTR__ATIME != 0,
		clear&linux.MOUNT_ATTR__ATIME != 0 && clear&linux.MOUNT_ATTR__ATIME != linux.MOUNT_ATTR__ATIME:
		return a, linux.EINVAL
	}
	a.Clear, _ = attrFlags(uint32(clear) &^ linux.MOUNT_ATTR__ATIME)
	if clear&linux.MOUNT_ATTR__ATIME != 0 {
		a.Clear |= atimes
	}
	a.Set, e = attrFlags(uint32(set))
	return a, e
}

// idMapped refuses MOUNT_ATTR_IDMAP as Linux does where the first user namespace is the
// only one.
func idMapped(t *proc.Thread, clear, userns uint64) linux.Errno {
	if clear&linux.MOUNT_ATTR_IDMAP != 0 || userns > 1<<31-1 {
		return linux.EINVAL
	}
	f := file(t, int32(userns))
	if f == nil {
		return linux.EBADF
	}
	defer f.Put()
	if n := nsfs.Of(f); n == nil || n.Kind != linux.CLONE_NEWUSER {
		return linux.EINVAL
	}
	return linux.EPERM
}
