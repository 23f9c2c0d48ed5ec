package vfs

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// RenameAt moves a name; flags are RENAME_NOREPLACE, RENAME_EXCHANGE and RENAME_WHITEOUT.
func RenameAt(c *caller.Ctx, fs *FSContext, oldAt *File, old string, newAt *File, path string, flags uint32) linux.Errno {
	if e := CheckRename(flags); e != 0 {
		return e
	}
	var from, to walk
	if e := from.parentOf(c, fs, oldAt, old); e != 0 {
		return e
	}
	if e := to.parentOf(c, fs, newAt, path); e != 0 {
		return e
	}
	if from.cur.Mnt != to.cur.Mnt {
		return linux.EXDEV
	}
	if from.last == "" || isDots(from.last) {
		return linux.EBUSY
	}
	if to.last == "" || isDots(to.last) {
		if flags&linux.RENAME_NOREPLACE != 0 {
			return linux.EEXIST
		}
		return linux.EBUSY
	}
	if e := from.cur.Writable(); e != 0 {
		return e
	}
	renameMu.Lock()
	defer renameMu.Unlock()
	return rename(&from, &to, flags)
}

// rename does the work under renameMu.
func rename(from, to *walk, flags uint32) linux.Errno {
	c := from.c
	a, b := from.cur.Dentry, to.cur.Dentry
	lockTwo(a, b)
	m := move{from: a, to: b, flags: flags}
	e := m.check(c, from, to)
	if e == 0 && !m.same {
		e = m.do(c, to)
	}
	unlockTwo(a, b)
	if e == 0 && !m.same {
		m.announce(from.last, to.last)
		if m.target != nil && flags&linux.RENAME_EXCHANGE == 0 {
			n := uint32(1)
			if m.target.Inode.IsDir() {
				n = 2
			}
			m.target.Inode.dropLink(n)
		}
	}
	return e
}

// lockTwo locks two directories, an ancestor first.
func lockTwo(a, b *Dentry) {
	switch {
	case a == b:
		a.Inode.Mu.Lock()
		return
	case b.isAncestor(a) || !a.isAncestor(b) && b.Inode.Ino < a.Inode.Ino:
		a, b = b, a
	}
	a.Inode.Mu.Lock()
	b.Inode.Mu.Lock()
}

func unlockTwo(a, b *Dentry) {
	a.Inode.Mu.Unlock()
	if a != b {
		b.Inode.Mu.Unlock()
	}
}

// move is one rename: source goes from a directory to another, where target may be.
type move struct {
	from, to       *Dentry
	source, target *Dentry
	flags          uint32
	same           bool // both names are of one file: nothing to do
}

// check finds source and target and decides whether the move may be done.
func (m *move) check(c *caller.Ctx, from, to *walk) (e linux.Errno) {
	if m.from.gone.Load() || m.to.gone.Load() {
		return linux.ENOENT
	}
	if m.source, e = m.from.lookupLocked(c, from.lastHash, from.last); e != 0 {
		return e
	}
	if m.source == nil {
		return linux.ENOENT
	}
	if m.target, e = m.to.lookupLocked(c, to.lastHash, to.last); e != 0 {
		return e
	}
	exchange := m.flags&linux.RENAME_EXCHANGE != 0
	switch {
	case exchange && m.target == nil:
		return linux.ENOENT
	case m.target != nil && m.flags&linux.RENAME_NOREPLACE != 0:
		return linux.EEXIST
	}
	isDir := m.source.Inode.IsDir()
	targetDir := m.target != nil && m.target.Inode.IsDir()
	switch {
	case !isDir && from.lastDir, !exchange && !isDir && to.lastDir, exchange && !targetDir && to.lastDir:
		return linux.ENOTDIR
	case m.source.isAncestor(m.to):
		return linux.EINVAL
	case m.target != nil && m.target.isAncestor(m.from):
		if exchange {
			return linux.EINVAL
		}
		return linux.ENOTEMPTY
	case m.target != nil && m.source.Inode == m.target.Inode:
		m.same = true
		return 0
	case from.cur.Mnt.ReadOnly():
		return linux.EROFS
	}
	return m.permitted(from, to)
}

// permitted says why the caller may not do it, or somebody else's mount is in the way.
func (m *move) permitted(from, to *walk) (e linux.Errno) {
	exchange := m.flags&linux.RENAME_EXCHANGE != 0
	isDir := m.source.Inode.IsDir()
	targetDir := m.target != nil && m.target.Inode.IsDir()
	if e := mayRemove(from.cred, m.from.Inode, m.source.Inode); e != 0 {
		return e
	}
	if m.target == nil {
		e = permission(to.cred, m.to.Inode, MayWrite|MayExec)
	} else {
		e = mayRemove(to.cred, m.to.Inode, m.target.Inode)
	}
	if e != 0 {
		return e
	}
	if m.target != nil && !exchange && isDir != targetDir {
		if isDir {
			return linux.ENOTDIR
		}
		return linux.EISDIR
	}
	if m.from != m.to { // the directory's ".." changes
		if isDir {
			e = permission(from.cred, m.source.Inode, MayWrite)
		}
		if e == 0 && exchange && targetDir {
			e = permission(from.cred, m.target.Inode, MayWrite)
		}
		if e != 0 {
			return e
		}
	}
	if m.source.mounted.Load() != 0 || m.target != nil && m.target.mounted.Load() != 0 {
		return linux.EBUSY
	}
	return 0
}

// do changes the tree.
func (m *move) do(c *caller.Ctx, to *walk) linux.Errno {
	isDir := m.source.Inode.IsDir()
	exchange := m.flags&linux.RENAME_EXCHANGE != 0
	if m.target != nil && !exchange && (m.target.Inode.IsDir() || m.target.Inode.FS.Flags&FSAttrs != 0) {
		m.target.Inode.Mu.Lock()
		defer m.target.Inode.Mu.Unlock()
		if m.target.Inode.IsDir() && !m.target.empty() && !m.target.Inode.asks() {
			return linux.ENOTEMPTY
		}
	}
	//maxlive:len 255 because a name has at most NAME_MAX bytes
	name := strings.Clone(to.last)
	white, e := m.whiteout(c)
	if e != 0 {
		return e
	}
	oldName, oldHash := m.source.Name(), m.source.at.Load().hash
	if e := m.rename(c, name); e != 0 {
		if white != nil {
			m.from.unmake(c, oldName, white)
		}
		return e
	}
	was := m.source.at.Load()
	m.from.kids.unlist(m.source)
	switch {
	case exchange:
		is := m.target.at.Load()
		m.to.kids.unlist(m.target)
		is.d.Store(m.source)
		was.d.Store(m.target)
		m.source.at.Store(is)
		m.target.at.Store(was)
		m.from.kids.list(m.target)
	case m.target != nil:
		is := m.target.at.Load()
		m.target.gone.Store(true)
		if m.target.kids != nil {
			m.target.forgetAbsent()
		}
		m.to.kids.unlist(m.target)
		is.d.Store(m.source)
		m.source.at.Store(is)
		m.from.kids.remove(was.hash, was.name)
	default:
		is := m.to.kids.find(to.lastHash, to.last)
		if is == nil {
			is = &entry{parent: m.to, name: name, hash: to.lastHash}
			m.to.kids.insert(is)
			// The table may have grown, with new entries.
			was = m.source.at.Load()
		}
		is.d.Store(m.source)
		m.source.at.Store(is)
		m.from.kids.remove(was.hash, was.name)
	}
	m.to.kids.list(m.source)
	if white != nil {
		newDentry(m.from, oldName, oldHash, white).attach()
	}
	m.countLinks(isDir, exchange)
	m.source.Inode.Changed()
	m.from.Inode.Modified()
	m.to.Inode.Modified()
	return 0
}

// Whiteout describes the device that RENAME_WHITEOUT leaves behind in dir: with it, a
// name of a lower layer is hidden in an overlay.
func Whiteout(c *caller.Ctx, dir *Inode) NewNode {
	n := NewNode{Mode: linux.S_IFCHR, UID: c.Cred().FSUID, GID: c.Cred().FSGID}
	if dir.mode.Load()&linux.S_ISGID != 0 {
		n.GID = dir.gid.Load()
	}
	return n
}

// whiteout makes what is left behind, if that is asked for. A file system on a disk
// makes it itself, in one step with the move.
func (m *move) whiteout(c *caller.Ctx) (*Inode, linux.Errno) {
	dir := m.from.Inode
	if m.flags&linux.RENAME_WHITEOUT == 0 || dir.FS.Flags&FSAttrs != 0 {
		return nil, 0
	}
	return dir.Node.Create(c, dir, m.source.Name(), Whiteout(c, dir))
}

// rename asks the file system.
func (m *move) rename(c *caller.Ctx, name string) linux.Errno {
	node := m.from.Inode.Node
	if r, ok := node.(InodeRenamer); ok {
		var target *Inode
		if m.target != nil {
			target = m.target.Inode
		}
		return r.RenameInodes(c, m.from.Inode, m.source.Name(), m.to.Inode, name, m.flags, m.source.Inode, target)
	}
	return node.Rename(c, m.from.Inode, m.source.Name(), m.to.Inode, name, m.flags)
}

// countLinks keeps the link counts of the directories.
func (m *move) countLinks(isDir, exchange bool) {
	targetDir := m.target != nil && m.target.Inode.IsDir()
	delta := func(d *Dentry, n int32) { d.Inode.countLink(n) }
	if isDir {
		delta(m.from, -1)
		delta(m.to, 1)
	}
	if targetDir {
		delta(m.to, -1)
		if exchange {
			delta(m.from, 1)
		}
	}
	if m.target != nil {
		m.target.Inode.Changed()
	}
}

func (m *move) announce(oldName, newName string) {
	if watching.Load() == 0 {
		return
	}
	exchange := m.flags&linux.RENAME_EXCHANGE != 0
	var replaced *Inode
	if m.target != nil && !exchange {
		replaced = m.target.Inode
	}
	announceMove(m.from, oldName, m.to, newName, m.source.Inode, replaced)
	if exchange {
		announceMove(m.to, newName, m.from, oldName, m.target.Inode, nil)
	}
}

// announceMove tells both directories and the file of a move, and the file that it
// replaced.
func announceMove(from *Dentry, oldName string, to *Dentry, newName string, moved, replaced *Inode) {
	ev := isDirEvent(moved)
	cookie := nextCookie()
	notifyName(from.Inode, linux.IN_MOVED_FROM|ev, oldName, cookie)
	notifyName(to.Inode, linux.IN_MOVED_TO|ev, newName, cookie)
	if replaced != nil {
		notifyInode(replaced, linux.IN_ATTRIB)
	}
	notifyInode(moved, linux.IN_MOVE_SELF)
}

// CheckRename looks at the flags of RenameAt, which the caller does before it looks at the
// names.
func CheckRename(flags uint32) linux.Errno {
	if flags&^(linux.RENAME_NOREPLACE|linux.RENAME_EXCHANGE|linux.RENAME_WHITEOUT) != 0 ||
		flags&linux.RENAME_EXCHANGE != 0 && flags != linux.RENAME_EXCHANGE {
		return linux.EINVAL
	}
	return 0
}
