package p9fs

import (
	"runtime"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/share/p9"
)

// node is a file in use: a directory, a symbolic link, a special file, or part of a file.
type node struct {
	vfs.BaseNode
	vfs.Inode
	fs     *FS    // immutable
	names  *names // immutable
	gone   runtime.Cleanup
	blocks atomic.Int64
	// orphan says that the file has no name any more: its attributes are ours.
	orphan atomic.Bool
	closed atomic.Bool
}

// newNode makes a node of what the server says.
func (fs *FS) newNode(a *p9.Attr, x *names) *vfs.Inode {
	x.path = a.QID.Path
	fs.count.Add(1)
	if a.Stat.Mode&linux.S_IFMT == linux.S_IFREG {
		f := &file{}
		f.fs, f.names = fs, x
		f.InitDisk(fs.FileSystem, f, &a.Stat, a.Btime)
		f.blocks.Store(a.Stat.Blocks)
		f.mtime.Store(a.Stat.Mtime.Nano())
		f.pages.Init(f, f.Length(), 4096, fs)
		f.gone = runtime.AddCleanup(f, fs.collected, x)
		return &f.Inode
	}
	n := &node{fs: fs, names: x}
	n.InitDisk(fs.FileSystem, n, &a.Stat, a.Btime)
	n.blocks.Store(a.Stat.Blocks)
	n.gone = runtime.AddCleanup(n, fs.collected, x)
	return &n.Inode
}

// adopt takes over attributes.
func (n *node) adopt(c *caller.Ctx, a *p9.Attr) {
	if n.orphan.Load() {
		return
	}
	if f, ok := n.Node.(*file); ok {
		f.adoptFile(c, a)
		return
	}
	n.adoptAll(a)
	n.SetSize(a.Stat.Size)
}

// adoptAll takes over all but the size.
func (n *node) adoptAll(a *p9.Attr) {
	n.Adopt(&a.Stat)
	n.Apply(&vfs.Attr{Mask: vfs.AttrAtime, Atime: a.Stat.Atime.Nano()})
	n.blocks.Store(a.Stat.Blocks)
}

// ask asks for the attributes behind a number, and reports whether it leads to the file
// still.
func (n *node) ask(c *caller.Ctx, fid uint32) (bool, linux.Errno) {
	var a p9.Attr
	switch e := n.fs.c.Getattr(c, fid, &a); {
	case e == linux.ENOENT, e == linux.ENOTDIR, e == linux.ELOOP, e == linux.ESTALE:
		return false, 0
	case e != 0:
		return false, e
	}
	if a.QID.Path != n.Ino || a.Stat.Mode&linux.S_IFMT != n.Type() {
		return false, 0
	}
	n.adopt(c, &a)
	return true, 0
}

// Still asks whether a name still leads to the file.
func (n *node) Still(c *caller.Ctx, dir, _ *vfs.Inode, nm string) (bool, linux.Errno) {
	fid, ok := n.find(dir.Ino, nm)
	if !ok {
		return false, 0
	}
	still, e := n.ask(c, fid)
	if !still && e == 0 {
		n.removed(dir.Ino, nm)
	}
	return still, e
}

// Renew asks for the attributes of a file that somebody has open.
func (n *node) Renew(c *caller.Ctx, _ *vfs.Inode) {
	if n.fs.options.loose || n.orphan.Load() {
		return
	}
	for {
		fid := n.fid()
		if fid == p9.NoFID {
			return
		}
		if still, e := n.ask(c, fid); still || e != 0 {
			return
		}
		n.names.mu.Lock()
		var last name
		if k := len(n.names.list); k > 0 {
			last = n.names.list[k-1]
		}
		n.names.mu.Unlock()
		if last.fid != fid || !n.removed(last.dir, last.name) {
			return
		}
	}
}

// removed notes that somebody else took a name away, and reports whether there is another.
func (n *node) removed(dir uint64, nm string) bool {
	if n == n.fs.root || n.lose(dir, nm) {
		return n != n.fs.root
	}
	n.lost(0)
	return false
}

// lost makes the file's attributes ours, since no name of it is known any more. links is
// how many names it has.
func (n *node) lost(links uint64) {
	n.orphan.Store(true)
	n.fs.forget(n)
	n.AdoptLinks(&linux.Stat{Nlink: links, Ctime: now()})
}

// request is what a request about the file begins with: its number, or ENOENT.
func (n *node) request() (uint32, linux.Errno) {
	if fid := n.fid(); fid != p9.NoFID {
		return fid, 0
	}
	return p9.NoFID, linux.ENOENT
}

// Lookup finds a name.
func (n *node) Lookup(c *caller.Ctx, _ *vfs.Inode, nm string) (*vfs.Inode, linux.Errno) {
	at, e := n.request()
	if e != 0 {
		return nil, e
	}
	fid, q, e := n.fs.c.Walk(c, at, nm)
	if e != 0 {
		return nil, e
	}
	var a p9.Attr
	if e = n.fs.c.Getattr(c, fid, &a); e == 0 && a.QID.Path != q.Path {
		e = linux.ENOENT // replaced just now
	}
	if e != 0 {
		n.fs.c.Clunk(fid)
		return nil, e
	}
	return n.fs.enter(c, n, nm, fid, &a), 0
}

// Create makes a file, under a name.
func (n *node) Create(c *caller.Ctx, dir *vfs.Inode, nm string, x vfs.NewNode) (*vfs.Inode, linux.Errno) {
	if nm == "" {
		return nil, linux.EOPNOTSUPP // O_TMPFILE
	}
	at, e := n.request()
	if e != 0 {
		return nil, e
	}
	open := uint32(0)
	client := n.fs.c
	perm := x.Mode & 0o7777
	switch x.Mode & linux.S_IFMT {
	case linux.S_IFDIR:
		e = client.Mkdir(c, at, nm, perm, x.GID)
	case linux.S_IFLNK:
		e = client.Symlink(c, at, nm, x.Target, x.GID)
	case linux.S_IFREG:
		if open, _, e = client.Walk(c, at, ""); e != 0 {
			return nil, e
		}
		if e = client.Create(c, open, nm, linux.O_RDWR|linux.O_CREAT|linux.O_EXCL|linux.O_LARGEFILE, perm, x.GID); e != 0 {
			client.Clunk(open)
		}
	default:
		major, minor := linux.Major(x.Rdev), linux.Minor(x.Rdev)
		e = client.Mknod(c, at, nm, x.Mode, major, minor, x.GID)
	}
	if e != 0 {
		return nil, e
	}
	i, e := n.Lookup(c, dir, nm)
	if e != 0 {
		if open != 0 {
			client.Clunk(open)
		}
		return nil, e
	}
	if open != 0 {
		n.fs.opened(i, open)
	}
	nodeOf(i).own(c, &x)
	n.Renew(c, dir)
	return i, 0
}

// own gives a new file to whoever made it, as far as the host lets the server.
func (n *node) own(c *caller.Ctx, x *vfs.NewNode) {
	a := p9.SetAttr{UID: x.UID, GID: x.GID}
	if x.UID != n.UID() {
		a.Valid |= p9.SetUID
	}
	if x.GID != n.GID() {
		a.Valid |= p9.SetGID
	}
	if fid := n.fid(); a.Valid != 0 && n.fs.c.Setattr(c, fid, &a) == 0 {
		if n.Type() != linux.S_IFLNK && x.Mode&0o6000 != 0 { // a change of owner took them
			n.fs.c.Setattr(c, fid, &p9.SetAttr{Valid: p9.SetMode, Mode: n.Type() | x.Mode&0o7777})
		}
		n.ask(c, fid)
	}
}

// Link gives a file another name.
func (n *node) Link(c *caller.Ctx, _ *vfs.Inode, nm string, i *vfs.Inode) linux.Errno {
	at, e := n.request()
	if e != 0 {
		return e
	}
	to := nodeOf(i)
	fid, e := to.request()
	if e != 0 {
		return e
	}
	if e = n.fs.c.Link(c, at, fid, nm); e != 0 {
		return e
	}
	if fid, _, err := n.fs.c.Walk(c, at, nm); err == 0 {
		var a p9.Attr
		if n.fs.c.Getattr(c, fid, &a) != 0 || a.QID.Path != to.Ino || !to.takes(&name{n.Ino, nm, fid}, &a) {
			n.fs.c.Clunk(fid)
		} else {
			to.adopt(c, &a)
		}
	}
	n.refresh(c)
	return 0
}

// refresh asks for the attributes of a directory whose names were changed, of which the
// vfs has the lock.
func (n *node) refresh(c *caller.Ctx) {
	if fid := n.fid(); fid != p9.NoFID {
		n.ask(c, fid)
	}
}

// Unlink takes a name away.
func (n *node) Unlink(c *caller.Ctx, _ *vfs.Inode, nm string, i *vfs.Inode) linux.Errno {
	at, e := n.request()
	if e != 0 {
		return e
	}
	to := nodeOf(i)
	if e = n.fs.c.Unlink(c, at, nm, i.IsDir()); e != 0 {
		return e
	}
	to.unlinked(c, n.Ino, nm)
	n.refresh(c)
	return 0
}

// unlinked notes that a name has gone by our doing.
func (n *node) unlinked(c *caller.Ctx, dir uint64, nm string) {
	left := uint64(n.Nlink())
	if n.IsDir() || left < 1 {
		left = 1
	}
	if !n.lose(dir, nm) {
		n.lost(left - 1)
		return
	}
	n.AdoptLinks(&linux.Stat{Nlink: left - 1, Ctime: now()})
	n.Renew(c, &n.Inode)
}

// RenameInodes moves a name.
func (n *node) RenameInodes(c *caller.Ctx, _ *vfs.Inode, old string, to *vfs.Inode, nm string, flags uint32, source, target *vfs.Inode) linux.Errno {
	if flags&^linux.RENAME_NOREPLACE != 0 {
		return linux.EINVAL
	}
	d := nodeOf(to)
	from, e := n.request()
	if e != 0 {
		return e
	}
	dest, e := d.request()
	if e != 0 {
		return e
	}
	if e := n.fs.c.Rename(c, from, old, dest, nm); e != 0 {
		return e
	}
	if target != nil {
		nodeOf(target).unlinked(c, d.Ino, nm)
	}
	s := nodeOf(source)
	s.moved(n.Ino, old, d.Ino, nm)
	s.refresh(c)
	n.refresh(c)
	if d != n {
		d.refresh(c)
	}
	return 0
}

// ReadLink returns a symbolic link's text. The guest follows it, never the host.
func (n *node) ReadLink(c *caller.Ctx, _ *vfs.Inode) (string, linux.Errno) {
	fid, e := n.request()
	if e != 0 {
		return "", e
	}
	return n.fs.c.Readlink(c, fid)
}

// SetAttr changes mode, owner and times.
func (n *node) SetAttr(c *caller.Ctx, _ *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize != 0 {
		return linux.EINVAL
	}
	return n.setAttr(c, a)
}

func (n *node) setAttr(c *caller.Ctx, a *vfs.Attr) linux.Errno {
	if n.orphan.Load() {
		n.Apply(a)
		return 0
	}
	// With the type: QEMU's mapped-xattr keeps the mode as it comes.
	x := p9.SetAttr{Mode: n.Type() | a.Mode&0o7777, UID: a.UID, GID: a.GID, Size: a.Size}
	for _, m := range []struct {
		is  vfs.AttrMask
		bit uint32
	}{{vfs.AttrMode, p9.SetMode}, {vfs.AttrUID, p9.SetUID}, {vfs.AttrGID, p9.SetGID}, {vfs.AttrSize, p9.SetSize}} {
		if a.Mask&m.is != 0 {
			x.Valid |= m.bit
		}
	}
	if a.Mask&vfs.AttrSize == 0 { // a change of size sets the times itself
		if a.Mask&vfs.AttrAtime != 0 {
			x.Valid, x.Atime = x.Valid|p9.SetAtime|p9.SetAtimeTo, timespec(a.Atime)
		}
		if a.Mask&vfs.AttrMtime != 0 {
			x.Valid, x.Mtime = x.Valid|p9.SetMtime|p9.SetMtimeTo, timespec(a.Mtime)
		}
	}
	fid, e := n.request()
	if e == 0 && x.Valid != 0 {
		e = n.fs.c.Setattr(c, fid, &x)
	}
	if e != 0 {
		return e
	}
	_, e = n.ask(c, fid)
	return e
}

// Open opens a directory.
func (n *node) Open(c *caller.Ctx, _ vfs.Path, _ uint32) (vfs.Ops, linux.Errno) {
	if !n.IsDir() {
		return nil, linux.ELOOP
	}
	at, e := n.request()
	if e != 0 {
		return nil, e
	}
	fid, _, e := n.fs.c.Walk(c, at, "")
	if e != 0 {
		return nil, e
	}
	if e = n.fs.c.Open(c, fid, linux.O_RDONLY|linux.O_DIRECTORY); e != 0 {
		n.fs.c.Clunk(fid)
		return nil, e
	}
	return &dir{node: n, fid: fid}, 0
}

// Blocks is the space on the host's disk.
func (n *node) Blocks(*vfs.Inode) int64 { return n.blocks.Load() }

// Evict ends a file without names and users.
func (n *node) Evict(*vfs.Inode) {
	n.fs.forget(n)
	n.close()
}

// close ends a node.
func (n *node) close() {
	if n.closed.Swap(true) {
		return
	}
	if f, ok := n.Node.(*file); ok {
		f.pages.Drop()
		f.mu.Lock()
		f.shut() // else opened does, once more, when the numbers are another file's
		f.mu.Unlock()
	}
	n.gone.Stop()
	n.fs.count.Add(-1)
	n.names.end(n.fs.c)
}
