package procfs

import (
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
)

// mountFlags in the order of /proc/mounts.
var mountFlags = []struct {
	flag uint32
	name string
}{
	{linux.MS_NOSUID, ",nosuid"}, {linux.MS_NODEV, ",nodev"}, {linux.MS_NOEXEC, ",noexec"},
	{linux.MS_NOATIME, ",noatime"}, {linux.MS_NODIRATIME, ",nodiratime"}, {linux.MS_NOSYMFOLLOW, ",nosymfollow"},
}

func mountOptions(m *vfs.Mount) string {
	s := "rw"
	if m.ReadOnly() {
		s = "ro"
	}
	for _, f := range mountFlags {
		if m.Flags()&f.flag != 0 {
			s += f.name
		}
	}
	if m.Relatime() {
		s += ",relatime"
	}
	return s
}

// escapeMount writes blanks and the like in octal, as getmntent reads them.
var escapeMount = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace

// dirRoot is the process's root directory; EINVAL of a zombie.
func (x *about) dirRoot() (vfs.Path, linux.Errno) {
	if t := x.thread(); t != nil {
		if root, _, ok := t.Dirs(); ok {
			return root, 0
		}
	}
	return vfs.Path{}, linux.EINVAL
}

// eachMount calls fn for the mounts below the process's root.
func eachMount(x *about, fn func(m *vfs.Mount, at string)) linux.Errno {
	root, e := x.dirRoot()
	if e != 0 {
		return e
	}
	for _, m := range root.Namespace().Mounts() {
		at, reachable := vfs.Path{Mnt: m, Dentry: m.Root}.String(root)
		if reachable {
			fn(m, at)
		}
	}
	return 0
}

func superOptions(m *vfs.Mount) string {
	if m.FS.Options == nil {
		return ""
	}
	return m.FS.Options()
}

func readMounts(x *about) (b []byte, e linux.Errno) {
	e = eachMount(x, func(m *vfs.Mount, at string) {
		b = fmt.Appendf(b, "%s %s %s %s%s 0 0\n", escapeMount(m.Source), escapeMount(at), m.FS.Type, mountOptions(m), superOptions(m))
	})
	return b, e
}

func readMountstats(x *about) (b []byte, e linux.Errno) {
	e = eachMount(x, func(m *vfs.Mount, at string) {
		b = fmt.Appendf(b, "device %s mounted on %s with fstype %s\n", escapeMount(m.Source), escapeMount(at), m.FS.Type)
	})
	return b, e
}

func readMountinfo(x *about) (b []byte, e linux.Errno) {
	e = eachMount(x, func(m *vfs.Mount, at string) {
		parent := m.ID
		if p, ok := m.Point(); ok {
			parent = p.Mnt.ID
		}
		rw := "rw"
		if m.FS.ReadOnly() {
			rw = "ro"
		}
		// The part of the file system that is mounted: below its root for a bind.
		sub, _ := vfs.Path{Dentry: m.Root}.String(vfs.Path{Dentry: m.FS.Root})
		b = fmt.Appendf(b, "%d %d %d:%d %s %s %s - %s %s %s%s\n", m.ID, parent, linux.Major(m.FS.Dev), linux.Minor(m.FS.Dev),
			escapeMount(sub), escapeMount(at), mountOptions(m), m.FS.Type, escapeMount(m.Source), rw, superOptions(m))
	})
	return b, e
}
