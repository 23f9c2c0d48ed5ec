package vfs

import (
	"runtime"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

// accessOf is the permission that an access mode of open needs; 3 is an old
// special mode that needs both.
var accessOf = [4]Access{MayRead, MayWrite, MayRead | MayWrite, MayRead | MayWrite}

// OpenHow is what open, openat2 and O_TMPFILE are told.
type OpenHow struct {
	Flags uint32 // O_*
	Mode  uint32 // of a new file, before the umask
	Walk  WalkFlags
	Exec  bool // for running: a regular file with execute permission
}

// Open opens path, relative to at (nil: the working directory).
func Open(c *caller.Ctx, fs *FSContext, at *File, path string, flags, mode uint32) (*File, linux.Errno) {
	return OpenWith(c, fs, at, path, &OpenHow{Flags: flags, Mode: mode})
}

// OpenExec opens a program to run it.
func OpenExec(c *caller.Ctx, fs *FSContext, at *File, path string, flags WalkFlags) (*File, linux.Errno) {
	how := OpenHow{Flags: linux.O_RDONLY, Exec: true, Walk: flags}
	if flags&FollowLast == 0 {
		how.Flags |= linux.O_NOFOLLOW
	}
	return OpenWith(c, fs, at, path, &how)
}

// OpenWith is Open with everything openat2 can say.
func OpenWith(c *caller.Ctx, fs *FSContext, at *File, path string, how *OpenHow) (*File, linux.Errno) {
	var w walk
	if e := w.begin(c, fs, at, path, how.Walk); e != 0 {
		return nil, e
	}
	flags := how.Flags
	if path == "" {
		if how.Walk&EmptyPath == 0 {
			return nil, linux.ENOENT
		}
		return openAt(c, w.cur, how, false)
	}
	if flags&linux.O_PATH == 0 && flags&linux.O_TMPFILE == linux.O_TMPFILE {
		return w.openTemp(fs, path, how)
	}
	for { //maxlive:loop 1 because only the round that opens the file leaves something
		from := w.cur
		if e := w.parent(path); e != 0 {
			return nil, e
		}
		p, created, e := w.openLast(fs, how)
		if e != 0 {
			return nil, e
		}
		if p.Dentry.Inode.Type() != linux.S_IFLNK {
			isDir := p.Dentry.Inode.IsDir()
			if flags&(linux.O_CREAT|linux.O_PATH) == linux.O_CREAT && !created && !isDir {
				if e := w.mayCreateOver(p.Dentry.Inode); e != 0 {
					return nil, e
				}
			}
			if w.lastDir && !isDir {
				return nil, linux.ENOTDIR
			}
			f, e := openAt(c, p, how, created)
			if e == linux.ENOENT && (p.Dentry.gone.Load() || p.ended()) && !from.ended() {
				w.cur = from // removed or replaced just now: what is there instead?
				runtime.Gosched()
				continue
			}
			return f, e
		}
		if flags&linux.O_NOFOLLOW != 0 && !w.lastDir {
			if flags&linux.O_PATH != 0 {
				return openAt(c, p, how, false)
			}
			if flags&linux.O_DIRECTORY != 0 {
				return nil, linux.ENOTDIR
			}
			return nil, linux.ELOOP
		}
		dir := w.lastDir
		if e := w.mayFollow(p.Dentry.Inode); e != 0 {
			return nil, e
		}
		text, jumped, e := w.readLink(p)
		switch {
		case e != 0:
			return nil, e
		case jumped:
			if dir && !w.cur.Dentry.Inode.IsDir() {
				return nil, linux.ENOTDIR
			}
			return openAt(c, w.cur, how, false)
		case dir:
			text += "/" //maxlive:len 4097 because a link has at most PATH_MAX bytes
		}
		path = text
	}
}

// openLast finds the last component, or creates it.
func (w *walk) openLast(fs *FSContext, how *OpenHow) (p Path, created bool, e linux.Errno) {
	create := how.Flags&linux.O_CREAT != 0 && how.Flags&linux.O_PATH == 0
	if w.last == "" || isDots(w.last) {
		if create && how.Flags&linux.O_EXCL != 0 {
			return p, false, linux.EEXIST
		}
		if create {
			return p, false, linux.EISDIR
		}
		if w.last == "" {
			return w.cur, false, 0
		}
		p, e = w.step(w.last, w.lastHash)
		return p, false, e
	}
	if create && w.lastDir {
		return p, false, linux.EISDIR
	}
	p, e = w.step(w.last, w.lastHash)
	switch {
	case e == 0 && create && how.Flags&linux.O_EXCL != 0:
		return p, false, linux.EEXIST
	case e == 0 || e != linux.ENOENT || !create:
		return p, false, e
	}
	n := NewNode{Mode: linux.S_IFREG | how.Mode&0o7777}
	d, created, e := w.makeLast(&n, fs.Umask(), how.Flags&linux.O_EXCL != 0)
	if e != 0 {
		return p, false, e
	}
	p = Path{w.cur.Mnt, d}
	if !created {
		p = p.top()
	}
	return p, created, 0
}

func isDots(name string) bool { return name == "." || name == ".." }

// openAt opens what was found.
func openAt(c *caller.Ctx, p Path, how *OpenHow, created bool) (*File, linux.Errno) {
	i := p.Dentry.Inode
	flags := how.Flags
	kind := i.Type()
	if flags&linux.O_DIRECTORY != 0 && kind != linux.S_IFDIR {
		return nil, linux.ENOTDIR
	}
	if flags&linux.O_PATH != 0 {
		if e := p.keep(); e != 0 {
			return nil, e
		}
		f := NewFile(pathOps{}, flags&(linux.O_PATH|linux.O_DIRECTORY|linux.O_NOFOLLOW))
		f.setPath(p)
		return f, 0
	}
	var e linux.Errno
	want := MayRead
	if kind != linux.S_IFREG || flags&(linux.O_ACCMODE|linux.O_TRUNC|linux.O_SYNC) != 0 || how.Exec {
		if want, flags, e = how.access(p, kind); e != 0 {
			return nil, e
		}
	}
	if !created {
		if e := permission(c.Cred(), i, want); e != 0 {
			return nil, e
		}
		if i.attrs.Load()&AppendOnly != 0 || flags&linux.O_NOATIME != 0 {
			if e := mayOpen(c, i, flags); e != 0 {
				return nil, e
			}
		}
	}
	if flags&linux.O_DIRECT != 0 && !i.direct() && (kind == linux.S_IFREG || kind == linux.S_IFDIR) {
		return nil, linux.EINVAL // before it is cut
	}
	if !i.TryGet() {
		return nil, linux.ENOENT
	}
	var writer int32
	if kind == linux.S_IFREG {
		if how.Exec {
			writer = -1
		} else if want&MayWrite != 0 {
			writer = 1
		}
		if writer != 0 {
			if e := i.countWriter(writer); e != 0 {
				i.Put()
				return nil, e
			}
		}
	}
	var f *File
	if kind == linux.S_IFREG {
		e = i.breakLeases(c, flags&linux.O_ACCMODE != linux.O_RDONLY, flags&linux.O_NONBLOCK == 0)
	}
	if e == 0 && flags&linux.O_TRUNC != 0 && kind == linux.S_IFREG && !created {
		if e = truncateInode(c, i, 0); e == 0 {
			notifyPath(p, linux.IN_MODIFY)
		}
	}
	if e == 0 {
		f, e = openInode(c, p, flags)
	}
	if e != 0 {
		return nil, i.notOpened(writer, e)
	}
	return f.opened(p, flags, writer)
}

// opened tells of a new open file, unless it cannot be open with O_DIRECT.
func (f *File) opened(p Path, flags uint32, writer int32) (*File, linux.Errno) {
	i := p.Dentry.Inode
	if flags&linux.O_DIRECT != 0 && !i.direct() {
		f.Put()
		return nil, linux.EINVAL
	}
	f.countWriter(i, int8(writer))
	notifyOpened(p, linux.IN_OPEN)
	return f, 0
}

// notOpened gives back what openAt took of the inode.
func (i *Inode) notOpened(writer int32, e linux.Errno) linux.Errno {
	i.writers.Add(-writer)
	i.Put()
	return e
}

// access returns which access an open of a file of some kind needs, and the flags that
// mean something for it.
func (how *OpenHow) access(p Path, kind uint32) (want Access, flags uint32, e linux.Errno) {
	flags = how.Flags
	if flags&linux.O_SYNC&^linux.O_DSYNC != 0 {
		flags |= linux.O_SYNC
	}
	want = accessOf[flags&linux.O_ACCMODE]
	if flags&linux.O_TRUNC != 0 {
		want |= MayWrite
	}
	switch kind {
	case linux.S_IFDIR:
		if want&MayWrite != 0 || flags&linux.O_CREAT != 0 {
			return 0, 0, linux.EISDIR
		}
		if how.Exec {
			return 0, 0, linux.EACCES
		}
	case linux.S_IFLNK:
		return 0, 0, linux.ELOOP
	case linux.S_IFCHR, linux.S_IFBLK:
		if p.Mnt != nil && p.Mnt.flags.Load()&linux.MS_NODEV != 0 {
			return 0, 0, linux.EACCES
		}
		fallthrough
	case linux.S_IFIFO, linux.S_IFSOCK:
		flags &^= linux.O_TRUNC
		if how.Exec {
			return 0, 0, linux.EACCES
		}
	}
	if how.Exec {
		if p.Mnt != nil && p.Mnt.flags.Load()&linux.MS_NOEXEC != 0 {
			return 0, 0, linux.EACCES
		}
		want = MayExec
	}
	if want&MayWrite != 0 && (kind == linux.S_IFREG || kind == linux.S_IFDIR) && p.Mnt.ReadOnly() {
		return 0, 0, linux.EROFS
	}
	return want, flags, 0
}

// mayOpen checks what flags need, beside the permissions, to open a file that was there
// already.
func mayOpen(c *caller.Ctx, i *Inode, flags uint32) linux.Errno {
	if i.attrs.Load()&AppendOnly != 0 &&
		(flags&linux.O_ACCMODE != linux.O_RDONLY && flags&linux.O_APPEND == 0 || flags&linux.O_TRUNC != 0) {
		return linux.EPERM
	}
	if flags&linux.O_NOATIME != 0 && !IsOwner(c.Cred(), i) {
		return linux.EPERM
	}
	return 0
}

// direct reports whether the inode can be open with O_DIRECT.
func (i *Inode) direct() bool {
	return i.Type() == linux.S_IFBLK || i.Type() == linux.S_IFREG && i.FS.Flags&FSDirect != 0
}

// Direct reports whether F_SETFL may set O_DIRECT; of a pipe it makes packets.
func (f *File) Direct() bool {
	i := f.PathOf().Inode()
	return i.direct() || i.Type() == linux.S_IFIFO
}

// countWriter notes what an open file is to its inode, which counted it already,
// and to the file system.
func (f *File) countWriter(i *Inode, writer int8) {
	f.writer = writer
	if writer > 0 {
		i.FS.writers.Add(1)
		if f.Path.Mnt != nil {
			f.Path.Mnt.writers.Add(1)
		}
	}
}

// openInode asks device, FIFO or file system for the operations. The caller
// holds a reference of the inode, which the file takes over. ENOENT: the mount has ended.
func openInode(c *caller.Ctx, p Path, flags uint32) (*File, linux.Errno) {
	if !p.tryHold() {
		return nil, linux.ENOENT
	}
	i := p.Dentry.Inode
	var ops Ops
	var e linux.Errno
	switch i.Type() {
	case linux.S_IFCHR, linux.S_IFBLK:
		if _, anon := i.Node.(*anonNode); anon {
			ops, e = i.Node.Open(c, p, flags)
		} else {
			ops, e = openDevice(c, i, flags)
		}
	case linux.S_IFIFO:
		if _, anon := i.Node.(*anonNode); anon {
			ops, e = i.Node.Open(c, p, flags)
		} else if OpenFIFO.Call == nil {
			e = linux.ENXIO
		} else {
			ops, e = OpenFIFO.Call(c, i, flags)
		}
	case linux.S_IFSOCK:
		e = linux.ENXIO
	default:
		ops, e = i.Node.Open(c, p, flags)
	}
	if e != 0 {
		p.unhold()
		return nil, e
	}
	f := NewFile(ops, flags&^(linux.O_CREAT|linux.O_EXCL|linux.O_NOCTTY|linux.O_TRUNC|linux.O_CLOEXEC)|linux.O_LARGEFILE)
	f.setPath(p)
	return f, 0
}

// setPath gives a new file its place, which the caller holds as it does the inode.
func (f *File) setPath(p Path) {
	f.Path = p
	f.holds = true
	f.synced.Store(p.Inode().FS.WriteErrors.Sample())
}

// OpenGranted opens a place for which another right than its permissions speaks: the
// slave of a pseudo-terminal for whoever has its master.
func OpenGranted(c *caller.Ctx, p Path, flags uint32) (*File, linux.Errno) {
	i := p.Dentry.Inode
	if !i.TryGet() {
		return nil, linux.ENOENT
	}
	f, e := openInode(c, p, flags)
	if e != 0 {
		i.Put()
		return nil, e
	}
	notifyPath(p, linux.IN_OPEN)
	return f, 0
}

// openTemp is O_TMPFILE: a file without a name in the directory path.
func (w *walk) openTemp(fs *FSContext, path string, how *OpenHow) (*File, linux.Errno) {
	if accessOf[how.Flags&linux.O_ACCMODE]&MayWrite == 0 {
		return nil, linux.EINVAL
	}
	w.flags |= FollowLast
	p, e := w.resolve(path)
	if e != 0 {
		return nil, e
	}
	dir := p.Dentry.Inode
	if !dir.IsDir() {
		return nil, linux.ENOTDIR
	}
	if p.Mnt.ReadOnly() {
		return nil, linux.EROFS
	}
	if e := permission(w.cred, dir, MayWrite|MayExec); e != 0 {
		return nil, e
	}
	n := NewNode{Mode: linux.S_IFREG | how.Mode&0o7777}
	lists, e := newOwner(w.c, dir, &n, fs.Umask())
	if e != 0 {
		return nil, e
	}
	dir.Mu.Lock()
	i, e := dir.Node.Create(w.c, dir, "", n)
	dir.Mu.Unlock()
	if e != 0 {
		return nil, e
	}
	if e := i.setInherited(w.c.User(), lists); e != 0 {
		i.Put()
		return nil, e
	}
	f, e := openUnnamed(w.c, Path{p.Mnt, p.Dentry}, i, "#"+utoa(i.Ino), how.Flags, how.Flags&linux.O_EXCL == 0)
	if e == 0 {
		i.writers.Add(1) // nobody can run it yet
		f.countWriter(i, 1)
		notifyOpened(f.Path, linux.IN_OPEN)
	}
	return f, e
}

// OpenUnnamed opens a new inode that gets no name; label is what /proc shows
// (memfd_create). The inode's first reference goes to the file, which does not keep the
// inode from being run: programs are copied into such files.
func OpenUnnamed(c *caller.Ctx, dir Path, i *Inode, label string, flags uint32) (*File, linux.Errno) {
	return openUnnamed(c, dir, i, label, flags, false)
}

// openUnnamed opens an inode that has no name: O_TMPFILE, memfd. Only a
// linkable one can get a name later. The inode's first reference goes to the file.
func openUnnamed(c *caller.Ctx, dir Path, i *Inode, label string, flags uint32, linkable bool) (*File, linux.Errno) {
	d := newDentry(dir.Dentry, label, 0, i)
	d.gone.Store(true)
	i.nlink.Store(0)
	i.nameless.Store(true) // names' reference is the file's
	i.linkable.Store(linkable)
	f, e := openInode(c, Path{dir.Mnt, d}, flags)
	if e != 0 {
		i.Put()
		return nil, e
	}
	return f, 0
}

func utoa(v uint64) string {
	var b [20]byte
	k := len(b)
	for {
		k--
		b[k] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return string(b[k:])
		}
	}
}

// pathOps is what an O_PATH descriptor can do: nothing.
type pathOps struct{ BaseOps }

func (pathOps) Read(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno)  { return 0, linux.EBADF }
func (pathOps) Write(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno) { return 0, linux.EBADF }
func (pathOps) Ioctl(*caller.Ctx, *File, uint32, uint64) (uint64, linux.Errno) {
	return 0, linux.EBADF
}

// IsPath reports an O_PATH file, which most calls refuse with EBADF.
func (f *File) IsPath() bool { return f.Flags()&linux.O_PATH != 0 }
