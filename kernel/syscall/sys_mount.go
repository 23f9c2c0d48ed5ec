package syscall

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// The mount table.
var mountCalls = []Call{
	{linux.SYS_mount, "mount", sysMount, "works for ext4 on block devices, 9p over virtio, tmpfs, proc, sysfs, devtmpfs, devpts, binds, moves and remounts; propagation flags have no effect"},
	{linux.SYS_umount2, "umount2", sysUmount, "works"},
	{linux.SYS_pivot_root, "pivot_root", sysPivotRoot, "works; the root that came with the boot archive cannot be moved, as on Linux"},
}

// sysMount is mount(source, target, type, unsigned long flags, data).
func sysMount(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := uint32(a[3])
	if flags&0xffff0000 == 0xc0ed0000 {
		flags &= 0xffff // the magic of old programs
	}
	source, e := optionalString(t, a.Addr(0))
	if e != 0 {
		return 0, e
	}
	kind, e := optionalString(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	data, e := optionalString(t, a.Addr(4))
	if e != 0 {
		return 0, e
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(1), vfs.FollowLast)
	if e != 0 {
		return 0, e
	}
	if !t.Cred().Has(creds.CapSysAdmin) {
		return 0, linux.EPERM
	}
	if p.Mnt == nil { // a pipe or the like, through /proc/self/fd
		return 0, linux.ENOTDIR
	}
	switch {
	case flags&linux.MS_REMOUNT != 0:
		return 0, remount(p, flags, data)
	case flags&linux.MS_BIND != 0:
		from, e := mountSource(t, source)
		if e == 0 {
			e = p.Namespace().Bind(from, p, flags&linux.MS_REC != 0)
		}
		return 0, e
	case flags&propagation != 0:
		return 0, propagate(p, flags)
	case flags&linux.MS_MOVE != 0:
		from, e := mountSource(t, source)
		if e != 0 {
			return 0, e
		}
		m, e := from.MountPath()
		if e == 0 {
			e = p.Namespace().Move(m, p)
		}
		return 0, e
	case kind == "" && a[2] == 0:
		return 0, linux.EINVAL
	case kind == "":
		return 0, linux.ENODEV
	}
	if vfs.OnDevice(kind) {
		return 0, mountDisk(t, kind, source, data, p, mountFlags(flags, 0))
	}
	return 0, mountNew(kind, source, data, p, flags)
}

// mountNew mounts a file system that lies on no device.
func mountNew(kind, source, data string, p vfs.Path, flags uint32) linux.Errno {
	fs, e := vfs.MakeFS(kind, source, data)
	if e != 0 {
		return e
	}
	fs.Hold()
	defer fs.Drop()
	if source == "" {
		source = "none"
	}
	if _, e = p.Namespace().Mount(fs, fs.Root, source, p, mountFlags(flags, 0)); e == 0 && flags&linux.MS_RDONLY != 0 {
		fs.SetReadOnly(true)
	}
	return e
}

const propagation = linux.MS_SHARED | linux.MS_PRIVATE | linux.MS_SLAVE | linux.MS_UNBINDABLE

// propagate changes nothing: there is one namespace.
func propagate(p vfs.Path, flags uint32) linux.Errno {
	kind := flags & propagation
	if kind&(kind-1) != 0 || flags&^(propagation|linux.MS_REC|linux.MS_SILENT) != 0 {
		return linux.EINVAL
	}
	_, e := p.MountPath()
	return e
}

// mountFlags are the flags of mount(2) that a mount keeps. Without a word about access
// times a remount keeps those that the mount had.
func mountFlags(flags, had uint32) uint32 {
	const atimes = linux.MS_NOATIME | linux.MS_NODIRATIME | linux.MS_RELATIME | linux.MS_STRICTATIME
	const keep = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_NOSYMFOLLOW | atimes
	if flags&linux.MS_REMOUNT != 0 && flags&atimes == 0 {
		flags |= had & atimes
	}
	if flags&linux.MS_STRICTATIME != 0 {
		flags &^= linux.MS_NOATIME | linux.MS_RELATIME
	}
	return flags & keep
}

// remount changes the flags of the mount at p, and unless it is of the mount alone
// (MS_BIND) the file system's.
func remount(p vfs.Path, flags uint32, data string) linux.Errno {
	m, e := p.MountPath()
	if e != 0 {
		return e
	}
	keep := mountFlags(flags, m.Flags())
	if flags&linux.MS_BIND != 0 {
		return m.Remount(keep)
	}
	if flags&linux.MS_RDONLY != 0 && !m.FS.ReadOnly() && m.FS.Writers() > 0 {
		return linux.EBUSY
	}
	if e := vfs.Remount(m.FS, keep, data); e != 0 {
		return e
	}
	if e := m.FS.SetReadOnly(flags&linux.MS_RDONLY != 0); e != 0 {
		return e
	}
	return m.Remount(keep)
}

// mountSource finds what a bind or a move takes.
func mountSource(t *proc.Thread, source string) (vfs.Path, linux.Errno) {
	if source == "" {
		return vfs.Path{}, linux.EINVAL
	}
	from, e := lookupAt(t, linux.AT_FDCWD, source, vfs.FollowLast)
	if e == 0 && from.Mnt == nil {
		e = linux.EINVAL
	}
	return from, e
}

// mountDisk mounts the file system on the block device source.
func mountDisk(t *proc.Thread, kind, source, data string, p vfs.Path, flags uint32) linux.Errno {
	fs, e := openDisk(t, kind, source, data, flags)
	if e != 0 {
		return e
	}
	if m, e := p.MountPath(); e == 0 && m.FS == fs {
		fs.Drop()
		return linux.EBUSY // it is here already
	}
	_, e = p.Namespace().Mount(fs, fs.Root, source, p, flags)
	if e == 0 {
		fs.SetReadOnly(flags&linux.MS_RDONLY != 0)
	}
	fs.Drop()
	return e
}

// openDisk opens the file system on the block device source; the caller drops it.
func openDisk(t *proc.Thread, kind, source, data string, flags uint32) (*vfs.FileSystem, linux.Errno) {
	if source == "" {
		return nil, linux.EINVAL
	}
	dev, e := lookupAt(t, linux.AT_FDCWD, source, vfs.FollowLast)
	if e != 0 {
		return nil, e
	}
	i := dev.Inode()
	if i.Type() != linux.S_IFBLK {
		return nil, linux.ENOTBLK
	}
	if dev.Mnt != nil && dev.Mnt.Flags()&linux.MS_NODEV != 0 {
		return nil, linux.EACCES
	}
	return vfs.OpenFS(kind, i.Rdev, flags, data)
}

// optionalString copies a string in; "" at address 0.
func optionalString(t *proc.Thread, addr uio.Addr) (string, linux.Errno) {
	if addr == 0 {
		return "", 0
	}
	s, e := t.Space.ReadString(addr, linux.PATH_MAX)
	if e == linux.ENAMETOOLONG {
		e = linux.EINVAL
	}
	return strings.Clone(s), e
}

// sysUmount is umount2(const char *target, int flags).
func sysUmount(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(1)
	if flags&^(linux.MNT_FORCE|linux.MNT_DETACH|linux.MNT_EXPIRE|linux.UMOUNT_NOFOLLOW) != 0 {
		return 0, linux.EINVAL
	}
	w := vfs.FollowLast
	if flags&linux.UMOUNT_NOFOLLOW != 0 {
		w = 0
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), w)
	if e != 0 {
		return 0, e
	}
	if !t.Cred().Has(creds.CapSysAdmin) {
		return 0, linux.EPERM
	}
	if p.Mnt == nil {
		return 0, linux.EINVAL
	}
	m, e := p.Top().MountPath() // what is on "." too
	if e != 0 {
		return 0, e
	}
	if flags&linux.MNT_EXPIRE != 0 {
		if flags&(linux.MNT_FORCE|linux.MNT_DETACH) != 0 || m == t.FS.Root().Mnt {
			return 0, linux.EINVAL
		}
		return 0, p.Namespace().Expire(m)
	}
	return 0, p.Namespace().Umount(m, flags&linux.MNT_DETACH != 0)
}

// sysPivotRoot is pivot_root(const char *new_root, const char *put_old).
func sysPivotRoot(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapSysAdmin) {
		return 0, linux.EPERM
	}
	fresh, e := directory(t, a.Addr(0))
	if e != 0 {
		return 0, e
	}
	old, e := directory(t, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	root := t.FS.Root()
	if e := root.Namespace().Pivot(root, fresh, old); e != 0 {
		return 0, e
	}
	proc.MoveDirs(root, fresh)
	return 0, 0
}

// directory finds a directory of the tree.
func directory(t *proc.Thread, addr uio.Addr) (vfs.Path, linux.Errno) {
	p, e := lookupUser(t, linux.AT_FDCWD, addr, vfs.FollowLast)
	if e == 0 && (p.Mnt == nil || !p.Inode().IsDir()) {
		e = linux.ENOTDIR
	}
	return p, e
}
