package syscall

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/fd/epoll"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fd/signalfd"
	"hardtack/kernel/fd/timerfd"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

// What an open file's driver offers, where Linux asks for it before anything else.

// driver says what kind of file f is: S_IFREG and its sisters, 0 for one without a name
// that is neither pipe nor socket; and the number of a character device.
func driver(f *vfs.File) (typ uint32, major, minor uint32) {
	if !f.Path.Zero() && f.Path.Inode().Type() == linux.S_IFREG { // the usual one, without asking its driver
		return linux.S_IFREG, 0, 0
	}
	if pipe.PipeOf(f) != nil {
		return linux.S_IFIFO, 0, 0
	}
	if _, ok := sock.Of(f); ok {
		return linux.S_IFSOCK, 0, 0
	}
	if f.Path.Zero() {
		return 0, 0, 0
	}
	i := f.Path.Inode()
	if typ = i.Type(); typ == linux.S_IFCHR {
		major, minor = linux.Major(i.Rdev), linux.Minor(i.Rdev)
	}
	return typ, major, minor
}

// Character devices of major number 1.
const (
	memMajor     = 1
	nullMinor    = 3
	zeroMinor    = 5
	fullMinor    = 7
	randomMinor  = 8
	urandomMinor = 9
	kmsgMinor    = 11
)

// isTerminal says whether a major number is one of terminals.
func isTerminal(major uint32) bool { return major == 4 || major == 5 || major >= 136 && major < 144 }

func isRandom(major, minor uint32) bool {
	return major == memMajor && (minor == randomMinor || minor == urandomMinor)
}

// signalsIO reports whether f sends SIGIO when O_ASYNC is set. For others the flag means
// nothing.
func signalsIO(f *vfs.File) bool {
	switch typ, major, minor := driver(f); typ {
	case linux.S_IFIFO, linux.S_IFSOCK:
		return true
	case linux.S_IFCHR:
		return isTerminal(major) || isRandom(major, minor)
	}
	_, ok := f.Ops.(*vfs.Inotify)
	return ok
}

// spliceFrom reports whether splice can read f.
func spliceFrom(f *vfs.File) bool {
	typ, major, minor := driver(f)
	return readable(f, typ, major, minor)
}

// readable is spliceFrom of a file whose driver is known.
func readable(f *vfs.File, typ, major, minor uint32) bool {
	switch typ {
	case linux.S_IFREG:
		return !isText(f) || isSystemText(f)
	case linux.S_IFBLK, linux.S_IFSOCK:
		return true
	case linux.S_IFCHR:
		return isTerminal(major) || isRandom(major, minor)
	}
	return false
}

// spliceInto reports whether splice can write f.
func spliceInto(f *vfs.File) bool {
	typ, major, minor := driver(f)
	if typ == linux.S_IFCHR && major == memMajor && (minor == nullMinor || minor == zeroMinor) {
		return true
	}
	return typ == linux.S_IFIFO || readable(f, typ, major, minor)
}

// seeks reports whether lseek of f succeeds, if only by doing nothing.
func seeks(f *vfs.File) bool {
	_, stands := f.Ops.(vfs.Unpositioned)
	return stands || f.Seekable()
}

// offersRead and offersWrite report whether the file has the operation at all, whatever
// its access mode.
func offersRead(f *vfs.File) bool {
	_, ok := f.Ops.(*epoll.Instance)
	return !ok && nsfs.Of(f) == nil && proc.FromPIDFD(f) == nil
}

func offersWrite(f *vfs.File) bool {
	switch f.Ops.(type) {
	case *signalfd.File, *timerfd.File:
		return false
	}
	return offersRead(f)
}

// takesFlags reports whether preadv2 or pwritev2 can carry RWF flags to the file. Those
// that Linux serves one vector at a time do not.
func takesFlags(f *vfs.File, write bool) bool {
	switch f.Ops.(type) {
	case *signalfd.File, *timerfd.File, *vfs.Inotify:
		return false
	}
	typ, major, minor := driver(f)
	switch {
	case typ == linux.S_IFDIR:
		return false
	case typ == linux.S_IFCHR && major == memMajor:
		return !(write && minor == fullMinor) && !(!write && minor == kmsgMinor)
	case typ == linux.S_IFREG:
		return write || !isText(f) || isSystemText(f)
	}
	return true
}

// isSystemText reports whether a text of procfs is not about a process, or tells of mounts.
func isSystemText(f *vfs.File) bool {
	name := procRoot(f).Name()
	return name[0] < '0' || name[0] > '9' || strings.HasPrefix(f.Path.Dentry.Name(), "mount")
}

// cannotWriteAt is why f, which has no position or is not open for writing, cannot be
// written at a position.
func cannotWriteAt(f *vfs.File) linux.Errno {
	if !f.Seekable() && !f.IsPath() {
		return linux.ESPIPE
	}
	return notWritableAt(f)
}

// notWritableAt is why f, which is not open for writing, cannot be written at a position.
// Text of procfs and sysfs has no positions for writing.
func notWritableAt(f *vfs.File) linux.Errno {
	if f.IsPath() || kindOf(f) != linux.S_IFREG {
		return linux.EBADF
	}
	if f.Path.Inode().FS.Magic == linux.SYSFS_MAGIC {
		return linux.ESPIPE
	}
	switch f.Path.Dentry.Name() {
	case "environ", "auxv", "mem": // memory, not text
	default:
		if isText(f) {
			return linux.ESPIPE
		}
	}
	return linux.EBADF
}

// isText reports whether f is a text of procfs that is made for each reader; those of
// /proc/sys are not.
func isText(f *vfs.File) bool {
	if f.Path.Inode().FS.Magic != linux.PROC_SUPER_MAGIC {
		return false
	}
	return procRoot(f).Name() != "sys"
}

// procRoot is the name right below /proc that leads to f.
func procRoot(f *vfs.File) *vfs.Dentry {
	d := f.Path.Dentry
	for d.Parent() != d && d.Parent().Parent() != d.Parent() {
		d = d.Parent()
	}
	return d
}
