package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
)

// NoID in Chown leaves owner or group as it is.
const NoID = ^uint32(0)

// Writable is EROFS where the mount may not be changed.
func (p Path) Writable() linux.Errno {
	if p.Mnt.ReadOnly() {
		return linux.EROFS
	}
	return 0
}

// Chmod changes permissions.
func Chmod(c *caller.Ctx, p Path, mode uint32) linux.Errno {
	if e := p.Writable(); e != 0 {
		return e
	}
	i := p.Dentry.Inode
	i.Mu.Lock()
	defer i.Mu.Unlock()
	cred := c.Cred()
	if !IsOwner(cred, i) {
		return linux.EPERM
	}
	if i.fixed() {
		return linux.EPERM
	}
	if i.Type() == linux.S_IFLNK {
		return linux.EOPNOTSUPP
	}
	mode &= 0o7777
	if mode&linux.S_ISGID != 0 && !maySetGID(cred, i.GID()) {
		mode &^= linux.S_ISGID
	}
	e := i.Node.SetAttr(c, i, &Attr{Mask: AttrMode | AttrCtime, Mode: mode, Ctime: clocks.Realtime()})
	if e == 0 {
		e = i.chmodACL(c.User(), mode)
	}
	if e == 0 {
		notifyPath(p, linux.IN_ATTRIB)
	}
	return e
}

// Chown changes owner and group; NoID leaves one alone.
func Chown(c *caller.Ctx, p Path, uid, gid uint32) linux.Errno {
	if e := p.Writable(); e != 0 {
		return e
	}
	i := p.Dentry.Inode
	i.Mu.Lock()
	defer i.Mu.Unlock()
	cred := c.Cred()
	if (uid != NoID || gid != NoID) && i.fixed() {
		return linux.EPERM
	}
	if !cred.Has(creds.CapChown) {
		mine := cred.FSUID == i.UID()
		if uid != NoID && !(mine && uid == i.UID()) {
			return linux.EPERM
		}
		if gid != NoID && !(mine && (gid == i.GID() || cred.InGroup(gid))) {
			return linux.EPERM
		}
	}
	a := Attr{Mask: AttrCtime, Ctime: clocks.Realtime()}
	if uid != NoID {
		a.Mask, a.UID = a.Mask|AttrUID, uid
	}
	if gid != NoID {
		a.Mask, a.GID = a.Mask|AttrGID, gid
	}
	if !i.IsDir() {
		if e := clearSetID(cred, i, &a); e != 0 {
			return e
		}
	}
	e := i.Node.SetAttr(c, i, &a)
	if e == 0 {
		if !i.IsDir() {
			i.dropCaps()
		}
		if a.Mask&^AttrCtime != 0 {
			notifyPath(p, linux.IN_ATTRIB)
		}
	}
	return e
}

// clearSetID adds to a change of owner that the set-id bits go. That is a change of the
// mode, which needs the owner even where no id is changed.
func clearSetID(cred *creds.Cred, i *Inode, a *Attr) linux.Errno {
	mode := i.Mode()
	n := withoutSetID(cred, mode, i.GID())
	if n == mode {
		return 0
	}
	if !IsOwner(cred, i) {
		return linux.EPERM
	}
	if a.Mask&AttrGID != 0 && !maySetGID(cred, a.GID) {
		n &^= linux.S_ISGID
	}
	a.Mask, a.Mode = a.Mask|AttrMode, n&0o7777
	return 0
}

// Times is what utimensat sets: nanoseconds since 1970.
type Times struct {
	Atime, Mtime       int64
	SetAtime, SetMtime bool
	AtimeNow, MtimeNow bool // the present time instead of the field's
	Bad                bool // no times at all: EINVAL
}

// Utimens sets access and modification time.
func Utimens(c *caller.Ctx, p Path, t *Times) linux.Errno {
	if t.Bad {
		return linux.EINVAL
	}
	if e := p.Writable(); e != 0 {
		return e
	}
	i := p.Dentry.Inode
	i.Mu.Lock()
	defer i.Mu.Unlock()
	cred := c.Cred()
	touch := t.SetAtime && t.AtimeNow && t.SetMtime && t.MtimeNow
	if attrs := i.attrs.Load(); attrs&Immutable != 0 || attrs&AppendOnly != 0 && !touch {
		return linux.EPERM
	}
	if !IsOwner(cred, i) {
		if !touch {
			return linux.EPERM
		}
		if e := permission(cred, i, MayWrite); e != 0 {
			return e
		}
	}
	now := clocks.Realtime()
	a := Attr{Mask: AttrCtime, Ctime: now, Atime: t.Atime, Mtime: t.Mtime}
	if t.SetAtime {
		a.Mask |= AttrAtime
		if t.AtimeNow {
			a.Atime = now
		}
	}
	if t.SetMtime {
		a.Mask |= AttrMtime
		if t.MtimeNow {
			a.Mtime = now
		}
	}
	e := i.Node.SetAttr(c, i, &a)
	if e == 0 {
		notifyPath(p, timesEvent(t))
	}
	return e
}

// timesEvent is what a change of times looks like: of one alone, like the use of the
// file that it pretends.
func timesEvent(t *Times) uint32 {
	switch {
	case !t.SetMtime:
		return linux.IN_ACCESS
	case !t.SetAtime:
		return linux.IN_MODIFY
	}
	return linux.IN_ATTRIB
}

// Truncate sets the length of the file at p.
func Truncate(c *caller.Ctx, p Path, size int64) linux.Errno {
	i := p.Dentry.Inode
	switch i.Type() {
	case linux.S_IFDIR:
		return linux.EISDIR
	case linux.S_IFREG:
	default:
		return linux.EINVAL
	}
	if e := p.Writable(); e != 0 {
		return e
	}
	if e := Permission(c, i, MayWrite); e != 0 {
		return e
	}
	if i.attrs.Load()&AppendOnly != 0 {
		return linux.EPERM
	}
	if !i.TryGet() {
		return linux.ENOENT
	}
	defer i.Put()
	if e := i.getWriter(); e != 0 {
		return e
	}
	e := i.breakLeases(c, true, true)
	if e == 0 {
		e = truncateInode(c, i, size)
	}
	i.writers.Add(-1)
	if e == 0 {
		notifyPath(p, linux.IN_MODIFY)
	}
	return e
}

// FTruncate is ftruncate(2).
func (f *File) FTruncate(c *caller.Ctx, size int64) linux.Errno {
	if f.Path.Zero() || f.Path.Dentry.Inode.Type() != linux.S_IFREG || !f.Writable() || f.IsPath() {
		return linux.EINVAL
	}
	if f.Path.Dentry.Inode.attrs.Load()&AppendOnly != 0 {
		return linux.EPERM
	}
	e := truncateInode(c, f.Path.Dentry.Inode, size)
	if e == 0 {
		notifyPath(f.Path, linux.IN_MODIFY)
	}
	return e
}

func truncateInode(c *caller.Ctx, i *Inode, size int64) linux.Errno {
	if uint64(size) > c.FileSizeLimit.Load() && size > i.Size() {
		caller.SignalSelf(c, int(linux.SIGXFSZ))
		return linux.EFBIG
	}
	if size > i.FS.MaxBytes && size > i.Size() {
		return linux.EFBIG
	}
	i.Mu.Lock()
	for i.RestWaits() {
		i.Mu.Unlock()
		if e := i.AwaitRest(c); e != 0 {
			return e
		}
		i.Mu.Lock()
	}
	defer i.Mu.Unlock()
	now := clocks.Realtime()
	e := i.Node.SetAttr(c, i, &Attr{Mask: AttrSize | AttrMtime | AttrCtime, Size: size, Mtime: now, Ctime: now})
	if e == 0 {
		e = i.RemovePrivs(c)
	}
	return e
}

// CheckAccess is access(2): with the real ids unless effective is asked for.
func CheckAccess(c *caller.Ctx, p Path, want Access, effective bool) linux.Errno {
	cred := c.Cred()
	if !effective {
		real := *cred
		real.FSUID, real.FSGID = cred.UID, cred.GID
		switch {
		case cred.Secure(creds.SecureNoSetuidFixup):
		case cred.UID != 0:
			real.Effective = 0
		default:
			real.Effective = cred.Permitted
		}
		cred = &real
	}
	i := p.Dentry.Inode
	if want&MayWrite != 0 && p.Mnt.ReadOnly() && (i.Type() == linux.S_IFREG || i.IsDir()) {
		return linux.EROFS
	}
	if want&MayExec != 0 && i.Type() == linux.S_IFREG && p.Mnt != nil && p.Mnt.Flags()&linux.MS_NOEXEC != 0 {
		return linux.EACCES
	}
	return permission(cred, i, want)
}

// ReadLink returns the text of the symbolic link at p.
func ReadLink(c *caller.Ctx, fs *FSContext, p Path) (string, linux.Errno) {
	i := p.Dentry.Inode
	if i.Type() != linux.S_IFLNK {
		return "", linux.EINVAL
	}
	p.Accessed()
	return i.Node.ReadLink(c, i)
}

// StatFile is fstat.
func (f *File) StatFile(c *caller.Ctx, st *linux.Stat) linux.Errno {
	if s, ok := f.Ops.(Stater); ok {
		return s.Stat(c, f, st)
	}
	if f.Path.Zero() {
		*st = linux.Stat{Dev: anonFS.Dev, Ino: 1, Nlink: 1, Mode: 0o600, Blksize: 4096}
		anonAttr.Overlay(st)
		return 0
	}
	f.Path.Dentry.Inode.FillStat(st)
	return 0
}

// StatFS fills in statfs for the file system at p.
func StatFS(p Path) linux.Statfs {
	fs := p.Dentry.Inode.FS
	st := linux.Statfs{Type: fs.Magic, Bsize: 4096, Namelen: linux.NAME_MAX, Frsize: 4096}
	if fs.Stat != nil {
		fs.Stat(&st)
	}
	if fs == anonFS {
		switch p.Dentry.Inode.Type() {
		case linux.S_IFIFO:
			st.Type = linux.PIPEFS_MAGIC
		case linux.S_IFSOCK:
			st.Type = linux.SOCKFS_MAGIC
		}
		st.Flags = linux.ST_VALID
	}
	st.Fsid = [2]int32{int32(fs.Dev), int32(fs.Dev >> 32)}
	if p.Mnt != nil {
		st.Flags = linux.ST_VALID | int64(p.Mnt.Flags()&(linux.MS_NOSUID|linux.MS_NODEV|linux.MS_NOEXEC|linux.MS_NOATIME|linux.MS_NODIRATIME))
		if p.Mnt.ReadOnly() {
			st.Flags |= linux.MS_RDONLY
		}
		if p.Mnt.Flags()&linux.MS_NOSYMFOLLOW != 0 {
			st.Flags |= 0x2000 // ST_NOSYMFOLLOW
		}
		if p.Mnt.Relatime() {
			st.Flags |= 0x1000 // ST_RELATIME
		}
	}
	return st
}
