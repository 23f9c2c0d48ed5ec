package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// move is one rename, with the state before it. All four inodes are locked; target is nil
// if the new name is free.
type move struct {
	fs             *FS
	from, to       *Inode
	source, target *Inode
	old, new       string
	flags          uint32
	oldAt, newAt   place // where the names are, or may go
	white          NewInode
}

// Rename moves a name atomically; flags are RENAME_NOREPLACE, RENAME_EXCHANGE
// and RENAME_WHITEOUT, as in renameat2(2).
func (fs *FS) Rename(from *Inode, old string, to *Inode, new string, flags uint32) error {
	return fs.RenameAs(from, old, to, new, flags, 0, 0)
}

// RenameAs is Rename with the owner of a whiteout.
func (fs *FS) RenameAs(from *Inode, old string, to *Inode, new string, flags, uid, gid uint32) error {
	if flags&^(linux.RENAME_NOREPLACE|linux.RENAME_EXCHANGE|linux.RENAME_WHITEOUT) != 0 ||
		flags&linux.RENAME_EXCHANGE != 0 && flags != linux.RENAME_EXCHANGE {
		return linux.EINVAL
	}
	for _, name := range [2]string{old, new} {
		if err := checkName(name); err != nil {
			if err == linux.EEXIST {
				return linux.EBUSY
			}
			return err
		}
	}
	aboveFrom, aboveTo, err := fs.lockDirs(from, to)
	if err != nil {
		return err
	}
	defer fs.unlockDirs(from, to)
	m := move{fs: fs, from: from, to: to, old: old, new: new, flags: flags,
		white: NewInode{Mode: linux.S_IFCHR, UID: uid, GID: gid}}
	if m.source, err = from.child(&m.oldAt, old, 0); err != nil {
		return err
	}
	if m.source == nil {
		return linux.ENOENT
	}
	defer fs.Put(m.source)
	if m.target, err = to.child(&m.newAt, new, entrySize(len(new))); err != nil {
		return err
	}
	if m.target != nil {
		defer fs.Put(m.target)
	}
	if done, err := m.places(aboveFrom, aboveTo); done || err != nil {
		return err
	}
	a, b := m.source, m.target
	if b != nil && b.ino < a.ino {
		a, b = b, a
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	if err := m.check(); err != nil {
		return err
	}
	return m.run()
}

// places checks whether the rename is possible; done is true if nothing needs to change.
func (m *move) places(aboveFrom, aboveTo map[uint32]bool) (done bool, err error) {
	switch {
	case m.target == nil && m.flags&linux.RENAME_EXCHANGE != 0:
		return false, linux.ENOENT
	case m.target != nil && m.flags&linux.RENAME_NOREPLACE != 0:
		return false, linux.EEXIST
	case m.source == m.target:
		return true, nil
	}
	if m.to.links() == 0 {
		return false, linux.ENOENT
	}
	// Neither may move into itself.
	switch {
	case aboveTo[m.source.ino], m.target != nil && aboveFrom[m.target.ino] && m.flags&linux.RENAME_EXCHANGE != 0:
		return false, linux.EINVAL
	case m.target != nil && aboveFrom[m.target.ino]:
		return false, linux.ENOTEMPTY
	}
	for _, in := range [2]*Inode{m.source, m.target} {
		if in != nil && (in == m.from || in == m.to) {
			return false, corrupt("directory %d lies in itself", in.ino)
		}
	}
	return false, nil
}

// child returns the inode of a name, with a reference; nil if there is none.
func (in *Inode) child(p *place, name string, need int) (*Inode, error) {
	if err := in.lookup(p, name, need); err != nil || p.ino == 0 {
		return nil, err
	}
	return in.fs.get(p.ino)
}

// lockDirs locks one or two directories, the one above first, and returns the
// numbers of the directories on the way from each up to the root, themselves among
// them (of two only). While renameMu is held that does not change.
func (fs *FS) lockDirs(a, b *Inode) (aboveA, aboveB map[uint32]bool, err error) {
	fs.renameMu.Lock()
	if a == b {
		a.mu.Lock()
		return nil, nil, nil
	}
	if aboveA, err = fs.above(a); err == nil {
		aboveB, err = fs.above(b)
	}
	if err != nil {
		fs.renameMu.Unlock()
		return nil, nil, err
	}
	first, second := a, b
	if aboveA[b.ino] || !aboveB[a.ino] && b.ino < a.ino {
		first, second = b, a
	}
	first.mu.Lock()
	second.mu.Lock()
	return aboveA, aboveB, nil
}

func (fs *FS) unlockDirs(a, b *Inode) {
	a.mu.Unlock()
	if a != b {
		b.mu.Unlock()
	}
	fs.renameMu.Unlock()
}

// above returns the numbers of a directory and of those above it. renameMu is held,
// and no inode's lock: they are taken from the root down, and this goes up.
func (fs *FS) above(dir *Inode) (map[uint32]bool, error) {
	way := map[uint32]bool{}
	at := dir
	fs.Hold(at)
	defer func() { fs.Put(at) }()
	for {
		if way[at.ino] {
			return nil, corrupt("directory %d lies in a circle", dir.ino)
		}
		way[at.ino] = true
		if at.ino == rootInode {
			return way, nil
		}
		var p place
		at.mu.RLock()
		err := at.lookup(&p, "..", 0)
		gone := at.links() == 0
		at.mu.RUnlock()
		if err == nil && p.ino == 0 {
			err = corrupt("directory %d has no ..", at.ino)
		}
		if gone {
			err = linux.ENOENT
		}
		if err != nil {
			return nil, err
		}
		up, err := fs.get(p.ino)
		if err != nil {
			return nil, err
		}
		fs.Put(at)
		at = up
	}
}

// check applies rename's rules about what may replace what.
func (m *move) check() error {
	if m.flags&linux.RENAME_EXCHANGE != 0 {
		return nil
	}
	if m.target == nil {
		if m.source.isDir() && m.from != m.to && m.to.links() >= maxLinks && m.fs.s.roCompat&roDirNlink == 0 {
			return linux.EMLINK
		}
		return nil
	}
	switch {
	case m.source.isDir() && !m.target.isDir():
		return linux.ENOTDIR
	case !m.source.isDir() && m.target.isDir():
		return linux.EISDIR
	case m.target.isDir():
		if empty, err := m.target.emptyDir(); err != nil {
			return err
		} else if !empty {
			return linux.ENOTEMPTY
		}
	}
	return nil
}

// run changes the directories in one handle.
func (m *move) run() error {
	fs := m.fs
	promised, err := fs.promiseGrowth(&m.newAt, 0)
	if err != nil {
		return err
	}
	var free account
	free.open(fs, promised)
	free.watch(m.to)
	if m.from != m.to {
		free.watch(m.from)
	}
	defer free.settle()
	grow, err := m.to.growCredits()
	if err != nil {
		return err
	}
	h, err := fs.begin(grow + 8 + orphanCredits + inodeCredits)
	if err != nil {
		return err
	}
	defer h.end()
	var white *Inode
	if m.flags&linux.RENAME_WHITEOUT != 0 {
		white, err = fs.newInode(h, m.from.ino, m.white)
		if err != nil {
			return err
		}
		defer fs.unref(white)
	}
	err = m.names(h, white)
	if Errno(err) == linux.ENOSPC { // the directory cannot grow; nothing else has changed
		if white != nil {
			if e := fs.undoCreate(h, white); e != nil {
				return fs.fail(e)
			}
		}
		fs.fail(m.to.store(h))
		return err
	}
	if err == nil {
		err = m.counts(h)
	}
	if err != nil {
		return fs.fail(err)
	}
	for i, in := range [4]*Inode{m.to, m.from, m.source, m.target} {
		if in == nil || i == 1 && m.from == m.to {
			continue
		}
		in.touch(h.now, i < 2)
		if err := in.store(h); err != nil {
			return fs.fail(err)
		}
	}
	return nil
}

// names changes the entries.
func (m *move) names(h *handle, white *Inode) error {
	ft := fileType(m.source.mode())
	if m.target != nil {
		if err := m.to.again(&m.newAt, m.new); err != nil {
			return err
		}
		m.to.replace(h, m.newAt.spot, m.source.ino, ft)
	} else {
		if err := m.to.add(h, &m.newAt, m.new, m.source.ino, ft); err != nil {
			return err
		}
		if m.from == m.to { // the old name may have moved
			m.oldAt.gen--
		}
	}
	if err := m.from.again(&m.oldAt, m.old); err != nil {
		return err
	}
	switch {
	case m.flags&linux.RENAME_EXCHANGE != 0:
		m.from.replace(h, m.oldAt.spot, m.target.ino, fileType(m.target.mode()))
	case white != nil:
		m.from.replace(h, m.oldAt.spot, white.ino, ftChr)
	default:
		m.from.remove(h, m.oldAt.spot)
	}
	return nil
}

// counts updates link counts and "..".
func (m *move) counts(h *handle) error {
	exchange := m.flags&linux.RENAME_EXCHANGE != 0
	if m.target != nil && !exchange {
		if err := m.fs.dropName(h, m.to, m.target); err != nil {
			return err
		}
	}
	if m.from == m.to {
		return nil
	}
	up := func(in, from, to *Inode) error {
		if in == nil || !in.isDir() {
			return nil
		}
		var p place
		if err := in.findDots(&p, ".."); err != nil {
			return err
		}
		if p.ino == 0 {
			return fmt.Errorf("directory %d has no ..: %w", in.ino, linux.EUCLEAN)
		}
		from.dropLink()
		to.addLink()
		in.replace(h, p.spot, to.ino, ftDir)
		return nil
	}
	if err := up(m.source, m.from, m.to); err != nil {
		return err
	}
	if exchange {
		return up(m.target, m.to, m.from)
	}
	return nil
}
