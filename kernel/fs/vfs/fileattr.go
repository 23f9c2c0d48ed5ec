package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
)

// Flags of an inode that chattr(1) sets, as FS_IOC_GETFLAGS shows them.
const (
	Immutable  = linux.FS_IMMUTABLE_FL
	AppendOnly = linux.FS_APPEND_FL
)

// Flags of an inode that no user sees, of files that the kernel makes.
const (
	Strict = 0x08000000 // capabilities override no permission bits (/proc/sys)
	Mine   = 0x04000000 // who looked it up may do everything (a process's own descriptors)
)

const (
	// attrsInTree are the flags that a file system in memory has.
	attrsInTree = linux.FS_IMMUTABLE_FL | linux.FS_APPEND_FL | linux.FS_NODUMP_FL | linux.FS_NOATIME_FL
	// attrsInherited go from a directory to what is made in it.
	attrsInherited = linux.FS_NODUMP_FL | linux.FS_NOATIME_FL
)

// AttrNode keeps the flags of its inode itself (on a disk).
type AttrNode interface {
	// SetAttrs stores flags that the caller may set; EOPNOTSUPP for flags that cannot
	// be changed. The inode's Mu is held.
	SetAttrs(i *Inode, attrs uint32) linux.Errno
}

// Attrs returns the flags that chattr(1) sets.
func (i *Inode) Attrs() uint32 { return i.attrs.Load() }

// AdoptAttrs is for file systems that keep the flags themselves.
func (i *Inode) AdoptAttrs(attrs uint32) { i.attrs.Store(attrs) }

// fixed reports whether the inode's attributes and names must not change.
func (i *Inode) fixed() bool { return i.attrs.Load()&(Immutable|AppendOnly) != 0 }

// hasAttrs reports whether the inode can have such flags.
func (i *Inode) hasAttrs() bool {
	return i.FS.Flags&FSXattr != 0 && (i.Type() == linux.S_IFREG || i.IsDir())
}

// FileAttrs is FS_IOC_GETFLAGS; ENOTTY where there are none.
func (f *File) FileAttrs() (uint32, linux.Errno) {
	if f.Path.Zero() || !f.Path.Inode().hasAttrs() {
		return 0, linux.ENOTTY
	}
	return f.Path.Inode().Attrs(), 0
}

// SetFileAttrs is FS_IOC_SETFLAGS.
func (f *File) SetFileAttrs(c *caller.Ctx, attrs uint32) linux.Errno {
	if f.Path.Zero() || !f.Path.Inode().hasAttrs() {
		return linux.ENOTTY
	}
	if e := f.Path.Writable(); e != 0 {
		return e
	}
	i := f.Path.Inode()
	if !IsOwner(c.Cred(), i) {
		return linux.EPERM
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if (attrs^i.attrs.Load())&(Immutable|AppendOnly) != 0 && !c.Cred().Has(creds.CapLinuxImmutable) {
		return linux.EPERM
	}
	return i.setAttrs(attrs)
}

// setAttrs stores flags; Mu is held.
func (i *Inode) setAttrs(attrs uint32) linux.Errno {
	if n, ok := i.Node.(AttrNode); ok {
		return n.SetAttrs(i, attrs)
	}
	if attrs&^attrsInTree != 0 {
		return linux.EOPNOTSUPP
	}
	i.attrs.Store(attrs)
	i.Changed()
	return 0
}

// inheritAttrs gives a new inode the flags that its directory hands on.
func (i *Inode) inheritAttrs(dir *Inode) {
	attrs := dir.attrs.Load() & attrsInherited
	if attrs == 0 || i.FS.Flags&FSXattr == 0 || i.attrs.Load()&attrs == attrs {
		return
	}
	if _, ok := i.Node.(AttrNode); ok {
		i.Mu.Lock()
		defer i.Mu.Unlock()
	}
	i.setAttrs(i.attrs.Load() | attrs) // a disk that cannot store it says so elsewhere
}
