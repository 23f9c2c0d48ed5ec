package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// anonFS is where files without a name live: st_dev of pipes, sockets,
// eventfds.
var anonFS = NewFileSystem("anon_inodefs", linux.ANON_INODE_MAGIC, FSInTree)

// Reopener is a file without a name that /proc/PID/fd/N can open once more (a
// pipe).
type Reopener interface {
	Reopen(c *kern.Ctx, f *File, flags uint32) (Ops, linux.Errno)
}

// Chmodder is a file without a name that has permissions of its own (a socket, whose
// name gets them in bind).
type Chmodder interface{ Chmod(mode uint32) }

// anonNode stands for an open file without a path where a path is needed.
type anonNode struct {
	BaseNode
	Inode
	f *File
}

// anonPath makes a place for a file that has none.
func anonPath(f *File) Path {
	n := &anonNode{f: f}
	n.Init(anonFS, n, &NewNode{Mode: 0o600})
	var st linux.Stat
	if s, ok := f.Ops.(Stater); ok && s.Stat(nil, f, &st) == 0 {
		n.mode.Store(st.Mode)
		n.uid.Store(st.UID)
		n.gid.Store(st.GID)
		n.Ino = st.Ino
	}
	return Path{Dentry: NewRoot(&n.Inode)}
}

// Open opens the file behind it once more.
func (n *anonNode) Open(c *kern.Ctx, _ Path, flags uint32) (Ops, linux.Errno) {
	if r, ok := n.f.Ops.(Reopener); ok {
		return r.Reopen(c, n.f, flags)
	}
	return nil, linux.ENXIO
}

// SetAttr changes the permissions of those that have some.
func (n *anonNode) SetAttr(_ *kern.Ctx, _ *Inode, a *Attr) linux.Errno {
	m, ok := n.f.Ops.(Chmodder)
	if !ok || a.Mask&^(AttrMode|AttrCtime) != 0 {
		return linux.EPERM
	}
	m.Chmod(a.Mode)
	return 0
}

// AnonIno returns an inode number for a new anonymous file.
func AnonIno() uint64 { return anonFS.nextIno.Add(1) }

// AnonDev returns the device number of anonymous files.
func AnonDev() uint64 { return anonFS.Dev }

// NameOf is the text of /proc/PID/fd/N.
func (f *File) NameOf(root Path) string {
	if !f.Path.Zero() {
		return f.Path.Text(root)
	}
	if n, ok := f.Ops.(Namer); ok {
		return n.Name(f)
	}
	return "anon_inode:[unknown]"
}

// PathOf is where an open file leads: its path, or a place made for it. For
// links of /proc/PID/fd.
func (f *File) PathOf() Path {
	if f.Path.Zero() {
		return anonPath(f)
	}
	return f.Path
}
