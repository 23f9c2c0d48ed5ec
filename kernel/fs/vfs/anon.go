package vfs

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// anonFS is where files without a name live: st_dev of pipes, sockets,
// eventfds.
var anonFS = NewFileSystem("anon_inodefs", linux.ANON_INODE_MAGIC, FSInTree)

// Reopener is a file without a name that /proc/PID/fd/N can open once more (a
// pipe).
type Reopener interface {
	Reopen(c *caller.Ctx, f *File, flags uint32) (Ops, linux.Errno)
}

// AttrSetter is a file without a name that has attributes of its own (a pipe, a socket).
type AttrSetter interface{ SetAttr(a *Attr) }

// AnonAttr is what fchmod, fchown and futimens have set of such a file; embed it. The
// zero AnonAttr is nothing.
type AnonAttr struct{ set atomic.Pointer[Attr] }

// anonAttr belongs to all files that have no attributes of their own (eventfds, epolls …):
// as on Linux they share one inode.
var anonAttr AnonAttr

// SetAttr notes attributes.
func (x *AnonAttr) SetAttr(a *Attr) {
	//maxlive:loop 1 because a swap that fails leaves nothing
	for {
		old := x.set.Load()
		n := Attr{}
		if old != nil {
			n = *old
		}
		n.merge(a)
		if x.set.CompareAndSwap(old, &n) {
			return
		}
	}
}

// Overlay puts what was set into st.
func (x *AnonAttr) Overlay(st *linux.Stat) {
	a := x.set.Load()
	if a == nil {
		return
	}
	if a.Mask&AttrMode != 0 {
		st.Mode = st.Mode&linux.S_IFMT | a.Mode
	}
	if a.Mask&AttrUID != 0 {
		st.UID = a.UID
	}
	if a.Mask&AttrGID != 0 {
		st.GID = a.GID
	}
	if a.Mask&AttrAtime != 0 {
		st.Atime = linux.NsecToTimespec(a.Atime)
	}
	if a.Mask&AttrMtime != 0 {
		st.Mtime = linux.NsecToTimespec(a.Mtime)
	}
	if a.Mask&AttrCtime != 0 {
		st.Ctime = linux.NsecToTimespec(a.Ctime)
	}
}

// merge adds the fields that b sets.
func (a *Attr) merge(b *Attr) {
	if b.Mask&AttrMode != 0 {
		a.Mode = b.Mode
	}
	if b.Mask&AttrUID != 0 {
		a.UID = b.UID
	}
	if b.Mask&AttrGID != 0 {
		a.GID = b.GID
	}
	if b.Mask&AttrAtime != 0 {
		a.Atime = b.Atime
	}
	if b.Mask&AttrMtime != 0 {
		a.Mtime = b.Mtime
	}
	if b.Mask&AttrCtime != 0 {
		a.Ctime = b.Ctime
	}
	a.Mask |= b.Mask
}

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
	if f.StatFile(nil, &st) == 0 {
		n.mode.Store(st.Mode)
		n.uid.Store(st.UID)
		n.gid.Store(st.GID)
		n.Ino = st.Ino
	}
	return Path{Dentry: NewRoot(&n.Inode)}
}

// Open opens the file behind it once more.
func (n *anonNode) Open(c *caller.Ctx, _ Path, flags uint32) (Ops, linux.Errno) {
	if r, ok := n.f.Ops.(Reopener); ok {
		return r.Reopen(c, n.f, flags)
	}
	return nil, linux.ENXIO
}

// SetAttr changes the attributes.
func (n *anonNode) SetAttr(_ *caller.Ctx, _ *Inode, a *Attr) linux.Errno {
	if a.Mask&AttrSize != 0 {
		return linux.EPERM
	}
	if m, ok := n.f.Ops.(AttrSetter); ok {
		m.SetAttr(a)
	} else {
		anonAttr.SetAttr(a)
	}
	return 0
}

// AnonIno returns an inode number for a new anonymous file.
func AnonIno() uint64 { return anonFS.nextIno.Add(1) }

// AnonDev returns the device number of anonymous files.
func AnonDev() uint64 { return anonFS.Dev }

// NameOf is the text of /proc/PID/fd/N.
func (f *File) NameOf(root Path) string {
	if !f.Path.Zero() && f.Path.Mnt != nil {
		return f.Path.Text(root)
	}
	if n, ok := f.Ops.(Namer); ok {
		return n.Name(f)
	}
	if !f.Path.Zero() {
		return f.Path.Text(root)
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
