package syscall

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/proc"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
)

// The mount table.
var mountCalls = []Call{
	{linux.SYS_mount, "mount", sysMount, "works for ext4 on block devices, tmpfs, proc, sysfs, devtmpfs, devpts, binds and remounts; propagation flags have no effect; no MS_MOVE"},
	{linux.SYS_umount2, "umount2", sysUmount, "works except MNT_EXPIRE"},
}

// sysMount is mount(source, target, type, unsigned long flags, data).
func sysMount(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(kern.CapSysAdmin) {
		return 0, linux.EPERM
	}
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
	if p.Mnt == nil { // a pipe or the like, through /proc/self/fd
		return 0, linux.ENOTDIR
	}
	const keep = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_NOATIME | linux.MS_NODIRATIME | linux.MS_RELATIME | linux.MS_STRICTATIME
	if flags&linux.MS_STRICTATIME != 0 {
		flags &^= linux.MS_NOATIME | linux.MS_RELATIME
	}
	switch {
	case flags&linux.MS_REMOUNT != 0:
		m, e := p.MountPath()
		if e == 0 {
			if flags&linux.MS_BIND == 0 {
				e = vfs.Remount(m.FS, flags&keep, data)
			}
			if e == 0 {
				m.Remount(flags & keep)
			}
		}
		return 0, e
	case flags&linux.MS_BIND != 0:
		from, e := lookupAt(t, linux.AT_FDCWD, source, vfs.FollowLast)
		if e != 0 {
			return 0, e
		}
		if from.Mnt == nil {
			return 0, linux.EINVAL
		}
		return 0, bind(p, from, flags&linux.MS_REC != 0)
	case flags&(linux.MS_SHARED|linux.MS_PRIVATE|linux.MS_SLAVE|linux.MS_UNBINDABLE) != 0:
		_, e := p.MountPath() // there is one namespace: nothing propagates
		return 0, e
	case flags&linux.MS_MOVE != 0:
		return 0, linux.EINVAL
	}
	if vfs.OnDevice(kind) {
		return 0, mountDisk(t, kind, source, data, p, flags&keep)
	}
	fs, e := vfs.MakeFS(kind, data)
	if e != 0 {
		return 0, e
	}
	if source == "" {
		source = "none"
	}
	_, e = p.Namespace().Mount(fs, fs.Root, source, p, flags&keep)
	return 0, e
}

// mountDisk mounts the file system on the block device source.
func mountDisk(t *proc.Thread, kind, source, data string, p vfs.Path, flags uint32) linux.Errno {
	if source == "" {
		return linux.EINVAL
	}
	dev, e := lookupAt(t, linux.AT_FDCWD, source, vfs.FollowLast)
	if e != 0 {
		return e
	}
	i := dev.Inode()
	if i.Type() != linux.S_IFBLK {
		return linux.ENOTBLK
	}
	if dev.Mnt != nil && dev.Mnt.Flags()&linux.MS_NODEV != 0 {
		return linux.EACCES
	}
	fs, e := vfs.OpenFS(kind, i.Rdev, flags, data)
	if e != 0 {
		return e
	}
	_, e = p.Namespace().Mount(fs, fs.Root, source, p, flags)
	fs.Drop()
	return e
}

// bind mounts the tree at from on p; with rec also what is mounted below it.
func bind(p, from vfs.Path, rec bool) linux.Errno {
	ns := p.Namespace()
	m, e := ns.Mount(from.Mnt.FS, from.Dentry, from.Mnt.Source, p, from.Mnt.Flags())
	if e != 0 || !rec {
		return e
	}
	copies := map[*vfs.Mount]*vfs.Mount{from.Mnt: m}
	for _, x := range ns.Mounts() {
		at, ok := x.Point()
		if !ok || x == m {
			continue
		}
		parent := copies[at.Mnt]
		if parent == nil || at.Mnt == from.Mnt && !at.Dentry.Below(from.Dentry) {
			continue
		}
		c, e := ns.Mount(x.FS, x.Root, x.Source, vfs.Path{Mnt: parent, Dentry: at.Dentry}, x.Flags())
		if e != 0 {
			return e
		}
		copies[x] = c
	}
	return 0
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
	if flags&^(linux.MNT_FORCE|linux.MNT_DETACH|linux.UMOUNT_NOFOLLOW) != 0 {
		return 0, linux.EINVAL
	}
	if !t.Cred().Has(kern.CapSysAdmin) {
		return 0, linux.EPERM
	}
	w := vfs.FollowLast
	if flags&linux.UMOUNT_NOFOLLOW != 0 {
		w = 0
	}
	p, e := lookupUser(t, linux.AT_FDCWD, a.Addr(0), w)
	if e != 0 {
		return 0, e
	}
	m, e := p.MountPath()
	if e != 0 {
		return 0, e
	}
	return 0, p.Namespace().Umount(m, flags&linux.MNT_DETACH != 0)
}
