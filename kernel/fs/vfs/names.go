package vfs

import (
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
)

// renameMu serialises all renames: the shape of the directory tree changes
// under it alone. Lock order: renameMu; Mu of directories, ancestors first,
// unrelated ones by address of their identity (file system, number); Mu of a
// file; locks of the file system.
var renameMu sync.Mutex

// maxNameLinks is the most names a file can have (LINK_MAX of tmpfs is larger;
// st_nlink must fit the 32 bits of statx).
const maxNameLinks = 1 << 30

// parentOf walks to the directory of path's last component.
func (w *walk) parentOf(c *caller.Ctx, fs *FSContext, at *File, path string) linux.Errno {
	if e := w.begin(c, fs, at, path, 0); e != 0 {
		return e
	}
	if path == "" {
		return linux.ENOENT
	}
	return w.parent(path)
}

// makeLast creates the last component; without excl an existing one is
// returned as well, created false.
func (w *walk) makeLast(n *NewNode, umask uint32, excl bool) (d *Dentry, created bool, e linux.Errno) {
	dir := w.cur.Dentry
	if dir.kids == nil {
		return nil, false, linux.ENOTDIR
	}
	if len(w.last) > linux.NAME_MAX {
		return nil, false, linux.ENAMETOOLONG
	}
	dir.Inode.Mu.Lock()
	defer dir.Inode.Mu.Unlock()
	if dir.gone.Load() {
		return nil, false, linux.ENOENT
	}
	if d, e = dir.lookupLocked(w.c, w.lastHash, w.last); e != 0 {
		return nil, false, e
	}
	if d != nil {
		if excl {
			return nil, false, linux.EEXIST
		}
		return d, false, 0
	}
	if w.cur.Mnt.ReadOnly() {
		return nil, false, linux.EROFS
	}
	if e := permission(w.cred, dir.Inode, MayWrite|MayExec); e != 0 {
		return nil, false, e
	}
	if n.isDevice() && !w.c.Cred().Has(creds.CapMknod) {
		return nil, false, linux.EPERM
	}
	lists, e := newOwner(w.c, dir.Inode, n, umask)
	if e != 0 {
		return nil, false, e
	}
	name := strings.Clone(w.last) //maxlive:len 255 because a name has at most NAME_MAX bytes
	i, e := dir.Inode.Node.Create(w.c, dir.Inode, name, *n)
	if e != 0 {
		return nil, false, e
	}
	i.caps.Store(capsNone)
	if lists != nil {
		if e := i.setInherited(w.c.User(), lists); e != 0 {
			dir.unmake(w.c, name, i)
			return nil, false, e
		}
	}
	if dir.Inode.attrs.Load() != 0 {
		i.inheritAttrs(dir.Inode)
	}
	d = newDentry(dir, name, w.lastHash, i)
	if dir.Inode.FS.Flags&FSNoCache == 0 {
		d.attach()
	}
	if i.IsDir() {
		i.settle(d)
		dir.Inode.countLink(1)
	}
	dir.Inode.Modified()
	notifyName(dir.Inode, linux.IN_CREATE|isDirEvent(i), name, 0)
	return d, true, 0
}

// unmake takes back what was just created, and has no place in the tree.
func (d *Dentry) unmake(c *caller.Ctx, name string, i *Inode) {
	i.Mu.Lock()
	e := d.Inode.Node.Unlink(c, d.Inode, name, i)
	i.Mu.Unlock()
	if e == 0 {
		n := uint32(1)
		if i.IsDir() {
			n = 2
		}
		i.dropLink(n)
	}
}

// makeAt creates path as n says, except for the bits of umask; a trailing slash is good for
// directories only.
func makeAt(c *caller.Ctx, fs *FSContext, at *File, path string, n *NewNode, umask uint32) (Path, linux.Errno) {
	var w walk
	if e := w.parentOf(c, fs, at, path); e != 0 {
		return Path{}, e
	}
	if w.last == "" || isDots(w.last) {
		return Path{}, linux.EEXIST
	}
	isDir := n.Mode&linux.S_IFMT == linux.S_IFDIR
	if w.lastDir && !isDir {
		if _, e := w.step(w.last, w.lastHash); e == 0 {
			return Path{}, linux.EEXIST
		}
		return Path{}, linux.ENOENT
	}
	d, _, e := w.makeLast(n, umask, true)
	if e != 0 {
		return Path{}, e
	}
	return Path{w.cur.Mnt, d}, 0
}

// isDevice tells whether something can be opened through the node: a whiteout, character
// device 0, is none.
func (n *NewNode) isDevice() bool {
	kind := n.Mode & linux.S_IFMT
	return kind == linux.S_IFBLK || kind == linux.S_IFCHR && n.Rdev != 0
}

// MkdirAt creates a directory.
func MkdirAt(c *caller.Ctx, fs *FSContext, at *File, path string, mode uint32) linux.Errno {
	_, e := makeAt(c, fs, at, path, &NewNode{Mode: linux.S_IFDIR | mode&0o1777}, fs.Umask())
	return e
}

// MknodAt creates a file, FIFO, socket or device node.
func MknodAt(c *caller.Ctx, fs *FSContext, at *File, path string, mode uint32, rdev uint64) linux.Errno {
	switch mode & linux.S_IFMT {
	case 0:
		mode, rdev = mode|linux.S_IFREG, 0
	case linux.S_IFREG, linux.S_IFIFO, linux.S_IFSOCK:
		rdev = 0
	case linux.S_IFCHR, linux.S_IFBLK:
	case linux.S_IFDIR:
		return linux.EPERM
	default:
		return linux.EINVAL
	}
	_, e := makeAt(c, fs, at, path, &NewNode{Mode: mode, Rdev: rdev}, fs.Umask())
	return e
}

// BindSocket creates a socket's name; priv is what connect finds there.
// EADDRINUSE if the name exists.
func BindSocket(c *caller.Ctx, fs *FSContext, path string, mode uint32, priv any) (Path, linux.Errno) {
	p, e := makeAt(c, fs, nil, path, &NewNode{Mode: linux.S_IFSOCK | mode&0o7777&^fs.Umask()}, 0)
	if e == linux.EEXIST {
		e = linux.EADDRINUSE
	}
	if e == 0 {
		p.Dentry.Inode.SetPrivate(priv)
	}
	return p, e
}

// FindSocket returns what is bound at path: ECONNREFUSED if nothing or no socket.
func FindSocket(c *caller.Ctx, fs *FSContext, path string) (any, linux.Errno) {
	p, e := Lookup(c, fs, nil, path, FollowLast)
	if e != 0 {
		return nil, e
	}
	if e := Permission(c, p.Dentry.Inode, MayWrite); e != 0 {
		return nil, e
	}
	if p.Dentry.Inode.Type() != linux.S_IFSOCK {
		return nil, linux.ECONNREFUSED
	}
	if v := p.Dentry.Inode.Private(); v != nil {
		return v, 0
	}
	return nil, linux.ECONNREFUSED
}

// SymlinkAt creates a symbolic link.
func SymlinkAt(c *caller.Ctx, fs *FSContext, target string, at *File, path string) linux.Errno {
	if target == "" {
		return linux.ENOENT
	}
	//maxlive:len 4096 because a link has at most PATH_MAX bytes
	_, e := makeAt(c, fs, at, path, &NewNode{Mode: linux.S_IFLNK | 0o777, Target: strings.Clone(target)}, 0)
	return e
}

// CheckParent walks to the directory of path's last component: the error of a call with
// two paths whose second one is bad.
func CheckParent(c *caller.Ctx, fs *FSContext, at *File, path string) linux.Errno {
	var w walk
	return w.parentOf(c, fs, at, path)
}

// LinkAt gives the file at old a further name.
func LinkAt(c *caller.Ctx, fs *FSContext, oldAt *File, old string, newAt *File, path string, flags WalkFlags) linux.Errno {
	from, e := Lookup(c, fs, oldAt, old, flags)
	if e != 0 {
		return e
	}
	var w walk
	if e := w.parentOf(c, fs, newAt, path); e != 0 {
		return e
	}
	if w.last == "" || isDots(w.last) {
		return linux.EEXIST
	}
	if len(w.last) > linux.NAME_MAX {
		return linux.ENAMETOOLONG
	}
	i, dir := from.Dentry.Inode, w.cur.Dentry
	dir.Inode.Mu.Lock()
	defer dir.Inode.Mu.Unlock()
	if dir.gone.Load() {
		return linux.ENOENT
	}
	d, e := dir.lookupLocked(c, w.lastHash, w.last)
	switch {
	case e != 0:
		return e
	case d != nil:
		return linux.EEXIST
	case w.lastDir:
		return linux.ENOENT
	case w.cur.Mnt.ReadOnly():
		return linux.EROFS
	case from.Mnt != w.cur.Mnt || i.FS != dir.Inode.FS:
		return linux.EXDEV
	}
	if e := mayLinkIn(w.cred, dir.Inode, i); e != 0 {
		return e
	}
	name := strings.Clone(w.last) //maxlive:len 255 because a name has at most NAME_MAX bytes
	if i.FS.Flags&FSAttrs != 0 {
		e = linkDisk(c, dir.Inode, name, i)
	} else {
		e = dir.Inode.Node.Link(c, dir.Inode, name, i)
	}
	if e != 0 {
		return e
	}
	if i.FS.Flags&FSAttrs == 0 && !i.addLink() {
		// An O_TMPFILE file gets its first name, and names' reference, once.
		if !i.linkable.Load() || !i.TryGet() {
			return linux.ENOENT
		}
		if !i.linkable.CompareAndSwap(true, false) {
			i.Put()
			return linux.ENOENT
		}
		i.nlink.Add(1)
	}
	newDentry(dir, name, w.lastHash, i).attach()
	i.Changed()
	dir.Inode.Modified()
	notifyInode(i, linux.IN_ATTRIB)
	notifyName(dir.Inode, linux.IN_CREATE, name, 0)
	return 0
}

// mayLinkIn says why a file may not have a further name in a directory.
func mayLinkIn(cred *creds.Cred, dir, i *Inode) linux.Errno {
	if e := mayLink(cred, i); e != 0 {
		return e
	}
	if e := permission(cred, dir, MayWrite|MayExec); e != 0 {
		return e
	}
	if i.IsDir() || i.fixed() {
		return linux.EPERM
	}
	if i.Nlink() >= maxNameLinks {
		return linux.EMLINK
	}
	return 0
}

// UnlinkAt removes the name of a file.
func UnlinkAt(c *caller.Ctx, fs *FSContext, at *File, path string) linux.Errno {
	var w walk
	if e := w.parentOf(c, fs, at, path); e != 0 {
		return e
	}
	if w.last == "" || isDots(w.last) {
		return linux.EISDIR
	}
	if e := w.cur.Writable(); e != 0 {
		return e
	}
	dir := w.cur.Dentry
	dir.Inode.Mu.Lock()
	d, e := w.removable(false)
	if e == 0 {
		disk := d.Inode.FS.Flags&FSAttrs != 0
		if disk { // the count changes in Unlink
			d.Inode.Mu.Lock()
		}
		e = dir.Inode.Node.Unlink(c, dir.Inode, d.Name(), d.Inode)
		if disk {
			d.Inode.Mu.Unlock()
		}
	}
	if e != 0 {
		dir.Inode.Mu.Unlock()
		return e
	}
	d.detach()
	d.Inode.Changed()
	dir.Inode.Modified()
	dir.Inode.Mu.Unlock()
	notifyInode(d.Inode, linux.IN_ATTRIB)
	d.Inode.dropLink(1)
	notifyName(dir.Inode, linux.IN_DELETE, d.Name(), 0)
	return 0
}

// linkDisk is Link where the file system counts (FSAttrs): a file without names
// gets one only if it never had any (O_TMPFILE).
func linkDisk(c *caller.Ctx, dir *Inode, name string, i *Inode) linux.Errno {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	first := i.nlink.Load() == 0
	if first && (!i.linkable.Load() || !i.TryGet()) {
		return linux.ENOENT
	}
	e := dir.Node.Link(c, dir, name, i)
	switch {
	case first && e != 0:
		i.Put()
	case first:
		i.linkable.Store(false)
		i.nameless.Store(false)
	}
	return e
}

// removable finds the last component and checks that the caller may remove it;
// the directory's Mu is held.
func (w *walk) removable(wantDir bool) (*Dentry, linux.Errno) {
	dir := w.cur.Dentry
	d, e := dir.lookupLocked(w.c, w.lastHash, w.last)
	if e != 0 {
		return nil, e
	}
	if d == nil {
		return nil, linux.ENOENT
	}
	if w.cur.Mnt.ReadOnly() {
		return nil, linux.EROFS
	}
	if !wantDir && w.lastDir { // a slash at the end: before permissions, as on Linux
		if d.Inode.IsDir() {
			return nil, linux.EISDIR
		}
		return nil, linux.ENOTDIR
	}
	if e := mayRemove(w.cred, dir.Inode, d.Inode); e != 0 {
		return nil, e
	}
	switch isDir := d.Inode.IsDir(); {
	case wantDir && !isDir:
		return nil, linux.ENOTDIR
	case !wantDir && isDir:
		return nil, linux.EISDIR
	case d.mounted.Load() != 0:
		return nil, linux.EBUSY
	}
	return d, 0
}

// RmdirAt removes an empty directory.
func RmdirAt(c *caller.Ctx, fs *FSContext, at *File, path string) linux.Errno {
	var w walk
	if e := w.parentOf(c, fs, at, path); e != 0 {
		return e
	}
	switch w.last {
	case "":
		return linux.EBUSY
	case ".":
		return linux.EINVAL
	case "..":
		return linux.ENOTEMPTY
	}
	if e := w.cur.Writable(); e != 0 {
		return e
	}
	dir := w.cur.Dentry
	dir.Inode.Mu.Lock()
	d, e := w.removable(true)
	if e != 0 {
		dir.Inode.Mu.Unlock()
		return e
	}
	d.Inode.Mu.Lock()
	if !d.empty() && !d.Inode.asks() {
		e = linux.ENOTEMPTY
	} else if e = dir.Inode.Node.Unlink(c, dir.Inode, d.Name(), d.Inode); e == 0 {
		d.detach()
	}
	d.Inode.Mu.Unlock()
	if e == 0 {
		dir.Inode.countLink(-1)
		dir.Inode.Modified()
	}
	dir.Inode.Mu.Unlock()
	if e == 0 {
		d.Inode.dropLink(2)
		notifyName(dir.Inode, linux.IN_DELETE|linux.IN_ISDIR, d.Name(), 0)
	}
	return e
}
