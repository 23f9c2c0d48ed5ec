package syscall

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// File systems that are set up step by step.
var fsConfigCalls = []Call{
	{linux.SYS_fsopen, "fsopen", sysFsopen, "works for the file systems of mount; on a disk, parameters are checked when the mount is made"},
	{linux.SYS_fsconfig, "fsconfig", sysFsconfig, "works except values that are paths, descriptors or binary (EOPNOTSUPP): no file system here has such parameters"},
	{linux.SYS_fsmount, "fsmount", sysFsmount, "works"},
	{linux.SYS_fspick, "fspick", sysFspick, "works"},
}

// sysFsopen is fsopen(const char *fsname, unsigned flags).
func sysFsopen(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapSysAdmin) {
		return 0, linux.EPERM
	}
	flags := a.Uint(1)
	if flags&^linux.FSOPEN_CLOEXEC != 0 {
		return 0, linux.EINVAL
	}
	kind, e := shortString(t, a.Addr(0), linux.PATH_MAX)
	if e != 0 {
		return 0, e
	}
	f, e := vfs.OpenConfig(kind)
	if e != 0 {
		return 0, e
	}
	return addFile(t, f, flags&linux.FSOPEN_CLOEXEC != 0)
}

// shortString copies a string of less than n bytes in; EINVAL for a longer one.
func shortString(t *proc.Thread, addr uio.Addr, n int) (string, linux.Errno) {
	s, e := t.Space.ReadString(addr, n)
	if e == linux.ENAMETOOLONG {
		e = linux.EINVAL
	}
	//maxlive:len 4096 because callers ask for at most a page
	return strings.Clone(s), e
}

// sysFspick is fspick(int dfd, const char *path, unsigned flags).
func sysFspick(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(2)
	switch {
	case !t.Cred().Has(creds.CapSysAdmin):
		return 0, linux.EPERM
	case flags&^(linux.FSPICK_CLOEXEC|linux.FSPICK_SYMLINK_NOFOLLOW|linux.FSPICK_NO_AUTOMOUNT|linux.FSPICK_EMPTY_PATH) != 0:
		return 0, linux.EINVAL
	}
	w := vfs.FollowLast
	if flags&linux.FSPICK_SYMLINK_NOFOLLOW != 0 {
		w = 0
	}
	if flags&linux.FSPICK_EMPTY_PATH != 0 {
		w |= vfs.EmptyPath
	}
	p, e := lookupUser(t, a.Int(0), a.Addr(1), w)
	if e != 0 {
		return 0, e
	}
	f, e := vfs.PickConfig(p)
	if e != 0 {
		return 0, e
	}
	return addFile(t, f, flags&linux.FSPICK_CLOEXEC != 0)
}

// sysFsconfig is fsconfig(int fd, unsigned cmd, const char *key, const void *value, int aux).
func sysFsconfig(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	cmd := a.Uint(1)
	if e := checkConfig(a); e != 0 {
		return 0, e
	}
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	x, ok := f.Ops.(*vfs.Config)
	if !ok {
		return 0, linux.EINVAL
	}
	may := t.Cred().Has(creds.CapSysAdmin)
	switch cmd {
	case linux.FSCONFIG_SET_BINARY, linux.FSCONFIG_SET_PATH, linux.FSCONFIG_SET_PATH_EMPTY, linux.FSCONFIG_SET_FD:
		return 0, linux.EOPNOTSUPP
	case linux.FSCONFIG_CMD_CREATE:
		return 0, x.Create(may, func(source, options string, flags uint32) (*vfs.FileSystem, linux.Errno) {
			return openDisk(t, x.Kind, source, options, flags)
		})
	case linux.FSCONFIG_CMD_RECONFIGURE:
		return 0, x.Change(may)
	}
	key, e := shortString(t, a.Addr(2), 256)
	if e != 0 {
		return 0, e
	}
	var value string
	if cmd == linux.FSCONFIG_SET_STRING {
		if value, e = shortString(t, a.Addr(3), 256); e != 0 {
			return 0, e
		}
	}
	return 0, x.Set(key, value, cmd == linux.FSCONFIG_SET_FLAG)
}

// checkConfig looks which arguments a command of fsconfig has.
func checkConfig(a *Args) linux.Errno {
	key, value, aux := a[2] != 0, a[3] != 0, a.Int(4)
	if a.Int(0) < 0 {
		return linux.EINVAL
	}
	var ok bool
	switch a.Uint(1) {
	case linux.FSCONFIG_SET_FLAG:
		ok = key && !value && aux == 0
	case linux.FSCONFIG_SET_STRING:
		ok = key && value && aux == 0
	case linux.FSCONFIG_SET_BINARY:
		ok = key && value && aux > 0 && aux <= 1<<20
	case linux.FSCONFIG_SET_PATH, linux.FSCONFIG_SET_PATH_EMPTY:
		ok = key && value && (aux >= 0 || aux == linux.AT_FDCWD)
	case linux.FSCONFIG_SET_FD:
		ok = key && !value && aux >= 0
	case linux.FSCONFIG_CMD_CREATE, linux.FSCONFIG_CMD_RECONFIGURE:
		ok = !key && !value && aux == 0
	default:
		return linux.EOPNOTSUPP
	}
	if !ok {
		return linux.EINVAL
	}
	return 0
}

// sysFsmount is fsmount(int fd, unsigned flags, unsigned attributes).
func sysFsmount(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	switch {
	case !t.Cred().Has(creds.CapSysAdmin):
		return 0, linux.EPERM
	case a.Uint(1)&^linux.FSMOUNT_CLOEXEC != 0, a.Uint(2)&^uint32(knownMountAttrs) != 0:
		return 0, linux.EINVAL
	}
	flags, e := attrFlags(a.Uint(2))
	if e != 0 {
		return 0, e
	}
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	x, ok := f.Ops.(*vfs.Config)
	if !ok {
		return 0, linux.EINVAL
	}
	m, e := x.Mount(t.FS.Root().Namespace(), flags)
	if e != 0 {
		return 0, e
	}
	return addFile(t, vfs.OpenLoose(m), a.Uint(1)&linux.FSMOUNT_CLOEXEC != 0)
}
