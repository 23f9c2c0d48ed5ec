package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// NewInode describes a file to create.
type NewInode struct {
	Mode     uint32 // type and permissions
	UID, GID uint32
	Rdev     uint64 // of device nodes
	Target   string // of a symbolic link
}

// Root returns the root directory, with a reference.
func (fs *FS) Root() (*Inode, error) {
	in, err := fs.Get(rootInode)
	if err == nil && (in.Mode()&linux.S_IFMT != linux.S_IFDIR || in.Size() == 0) {
		fs.Put(in)
		return nil, corrupt("the root is no directory")
	}
	return in, err
}

// createCredits is what making an inode with one block may change: the inode,
// its block, and the bitmaps.
const createCredits = inodeCredits + 1 + markCredits

// checkName refuses invalid names.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return linux.ENAMETOOLONG
	case name == "":
		return linux.ENOENT
	case name == "." || name == "..":
		return linux.EEXIST
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return linux.EINVAL
		}
	}
	return nil
}

// absent checks that a name can be added to a directory, and finds space for it.
func (in *Inode) absent(p *place, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := in.lookup(p, name, entrySize(len(name)))
	switch {
	case err != nil:
		return err
	case p.ino != 0:
		return linux.EEXIST
	case in.links() == 0:
		return linux.ENOENT
	case in.flags()&flagExtents == 0:
		return fmt.Errorf("directory %d has no extents: %w", in.ino, linux.EOPNOTSUPP)
	}
	return nil
}

// Create creates a file of any type under a new name and returns it with a reference.
// The caller chooses the group, which a directory with S_ISGID passes on.
func (fs *FS) Create(dir *Inode, name string, n NewInode) (*Inode, error) {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	var p place
	if err := dir.absent(&p, name); err != nil {
		return nil, err
	}
	isDir := n.Mode&linux.S_IFMT == linux.S_IFDIR
	if isDir && dir.links() >= maxLinks && fs.s.roCompat&roDirNlink == 0 {
		return nil, linux.EMLINK
	}
	if n.Mode&linux.S_IFMT == linux.S_IFLNK && (n.Target == "" || len(n.Target) >= int(fs.s.blockSize)) {
		return nil, linux.ENAMETOOLONG
	}
	own := int64(0)
	if isDir || n.Mode&linux.S_IFMT == linux.S_IFLNK && len(n.Target) >= inBlockLen {
		own = 1
	}
	promised, err := fs.promiseGrowth(&p, own)
	if err != nil {
		return nil, err
	}
	var free account
	free.open(fs, promised)
	free.watch(dir)
	grow, err := dir.growCredits()
	if err != nil {
		free.settle()
		return nil, err
	}
	h, err := fs.begin(grow + createCredits)
	if err != nil {
		free.settle()
		return nil, err
	}
	defer h.end()
	in, err := fs.newInode(h, dir.ino, n)
	if err != nil {
		free.settle()
		return nil, err
	}
	free.watchNew(in)
	err = dir.add(h, &p, name, in.ino, fileType(n.Mode))
	if err == nil {
		if isDir {
			dir.addLink()
		}
		dir.touch(h.now, true)
		err = dir.store(h)
	} else if Errno(err) == linux.ENOSPC { // a directory that cannot grow
		if e := fs.undoCreate(h, in); e == nil {
			e = dir.store(h)
			free.settle()
			fs.unref(in)
			if e == nil {
				return nil, err
			}
			err = e
		}
	}
	if err != nil {
		return nil, fs.fail(err)
	}
	free.settle()
	return in, nil
}

// undoCreate frees an inode made in the same handle.
func (fs *FS) undoCreate(h *handle, in *Inode) error {
	if in.isDir() || in.mode()&linux.S_IFMT == linux.S_IFLNK && !in.fastSymlink() {
		if _, _, err := in.cut(h, 0, 1, true); err != nil {
			return err
		}
	}
	in.put16(inLinks, 0)
	in.put32(inDtime, fs.s.deletedAt(h.now))
	if err := fs.freeInode(h, in.ino, in.isDir()); err != nil {
		return err
	}
	return in.store(h)
}

// account gives back the unused part of a promise, by the inodes' counts of blocks.
type account struct {
	fs      *FS
	promise int64
	n       int
	inodes  [2]*Inode
	before  [2]uint64
}

func (a *account) open(fs *FS, promise int64) { a.fs, a.promise, a.n = fs, promise, 0 }

// watch adds an inode.
func (a *account) watch(in *Inode) {
	a.inodes[a.n], a.before[a.n] = in, in.blocks()
	a.n++
}

// watchNew adds an inode that had no blocks.
func (a *account) watchNew(in *Inode) {
	a.inodes[a.n], a.before[a.n] = in, 0
	a.n++
}

func (a *account) settle() {
	left := a.promise
	for i, in := range a.inodes[:a.n] {
		if n := in.blocks(); n > a.before[i] {
			left -= int64(n-a.before[i]) >> (a.fs.s.logBlock + 1)
		}
	}
	a.fs.free.Add(left)
}

// Tmpfile creates a file without a name (O_TMPFILE). Link may give it one; otherwise it is
// deleted with the last reference.
func (fs *FS) Tmpfile(dir *Inode, n NewInode) (*Inode, error) {
	if t := n.Mode & linux.S_IFMT; t == linux.S_IFDIR || t == linux.S_IFLNK {
		return nil, linux.EINVAL
	}
	h, err := fs.begin(createCredits + orphanCredits)
	if err != nil {
		return nil, err
	}
	defer h.end()
	in, err := fs.newInode(h, dir.ino, n)
	if err != nil {
		return nil, err
	}
	in.put16(inLinks, 0)
	if err = fs.addOrphan(h, in); err == nil {
		err = in.store(h)
	}
	if err != nil {
		return nil, fs.fail(err)
	}
	return in, nil
}

// newInode makes an inode with one link (two for a directory) and, for a
// directory or a long symbolic link, its block, promised to the caller.
func (fs *FS) newInode(h *handle, parent uint32, n NewInode) (*Inode, error) {
	isDir := n.Mode&linux.S_IFMT == linux.S_IFDIR
	ino, err := fs.allocInode(h, parent, isDir)
	if err != nil {
		return nil, err
	}
	blk, off, err := fs.inodePlace(ino)
	if err != nil {
		return nil, fs.fail(err)
	}
	in := fs.makeInode(ino, blk, off)
	now := h.now
	in.put32(inGeneration, crc32c32(uint32(now), uint32(now>>32)^ino))
	in.seed = fs.s.inodeSeed(ino, in.u32(inGeneration))
	in.put16(inMode, uint16(n.Mode))
	in.setOwner(n.UID, n.GID)
	in.put16(inLinks, 1)
	if len(in.raw) > 128 {
		in.put16(inExtra, fs.s.wantExtra)
		in.putTime(inCrtime, inCrtimeX, stampOf(now))
	}
	in.putTime(inAtime, inAtimeX, stampOf(now))
	in.touch(now, true)
	switch n.Mode & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFDIR:
		in.initExtents()
	case linux.S_IFLNK:
		if len(n.Target) < inBlockLen {
			copy(in.raw[inBlock:], n.Target)
			in.setSize(int64(len(n.Target)))
		} else {
			in.initExtents()
		}
	case linux.S_IFCHR, linux.S_IFBLK:
		in.setRdev(n.Rdev)
	}
	if err := fs.firstBlock(h, in, parent, n); err != nil {
		return nil, fs.fail(err)
	}
	if err := in.store(h); err != nil {
		return nil, fs.fail(err)
	}
	fs.inodesMu.Lock()
	fs.inodes[ino] = in
	fs.inodesMu.Unlock()
	return in, nil
}

func (in *Inode) initExtents() {
	in.set(inFlags, true, flagExtents)
	initNode(in.raw[inBlock:inBlock+inBlockLen], 0, 4)
}

// firstBlock gives a directory its dots, a long symbolic link its text.
func (fs *FS) firstBlock(h *handle, in *Inode, parent uint32, n NewInode) error {
	switch {
	case in.isDir():
		_, b, err := in.addBlock(h, kindDir)
		if err != nil {
			return err
		}
		d := h.write(b)
		putEntry(d, 0, 12, in.ino, ftDir, ".")
		putEntry(d, 12, fs.s.dirLimit()-12, parent, ftDir, "..")
		in.put16(inLinks, 2)
	case n.Mode&linux.S_IFMT == linux.S_IFLNK && len(n.Target) >= inBlockLen:
		_, b, err := in.addBlock(h, kindRaw)
		if err != nil {
			return err
		}
		copy(h.write(b), n.Target)
		in.setSize(int64(len(n.Target)))
	}
	return nil
}

// addLink adds a link. A directory with too many subdirectories has a count of 1, which
// means that links are not counted.
func (in *Inode) addLink() {
	n := in.links()
	if in.isDir() && (n == 1 || n >= maxLinks) {
		in.put16(inLinks, 1)
		return
	}
	in.put16(inLinks, uint16(n+1))
}

// dropLink removes a link. A directory's count never drops below its own two.
func (in *Inode) dropLink() {
	if n := in.links(); !in.isDir() && n > 0 || n > 2 {
		in.put16(inLinks, uint16(n-1))
	}
}

// Link gives a file another name.
func (fs *FS) Link(dir *Inode, name string, in *Inode) error {
	dir.mu.Lock()
	defer dir.mu.Unlock()
	var p place
	if err := dir.absent(&p, name); err != nil {
		return err
	}
	if in.isDir() { // before it is locked: it may be above dir
		return linux.EPERM
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.links() >= maxLinks:
		return linux.EMLINK
	case in.links() == 0 && !in.orphan.Load():
		return linux.ENOENT
	}
	promised, err := fs.promiseGrowth(&p, 0)
	if err != nil {
		return err
	}
	var free account
	free.open(fs, promised)
	free.watch(dir)
	defer free.settle()
	grow, err := dir.growCredits()
	if err != nil {
		return err
	}
	h, err := fs.begin(grow + orphanCredits + 1)
	if err != nil {
		return err
	}
	defer h.end()
	if err := dir.add(h, &p, name, in.ino, fileType(in.mode())); err != nil {
		if Errno(err) == linux.ENOSPC {
			fs.fail(dir.store(h))
			return err
		}
		return fs.fail(err)
	}
	if in.links() == 0 {
		if err := fs.removeOrphan(h, in); err != nil {
			return fs.fail(err)
		}
	}
	in.addLink()
	in.touch(h.now, false)
	dir.touch(h.now, true)
	if err := in.store(h); err != nil {
		return fs.fail(err)
	}
	return fs.fail(dir.store(h))
}

// Unlink removes a name of in. A directory must be empty, as for rmdir. The file is
// deleted when the last name and the last reference are gone.
func (fs *FS) Unlink(dir *Inode, name string, in *Inode) error {
	if dir == in {
		return linux.EINVAL
	}
	if in.isDir() {
		fs.renameMu.Lock()
		defer fs.renameMu.Unlock()
	}
	dir.mu.Lock()
	defer dir.mu.Unlock()
	var p place
	if err := dir.present(&p, name, in.ino); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.isDir() {
		if empty, err := in.emptyDir(); err != nil {
			return err
		} else if !empty {
			return linux.ENOTEMPTY
		}
	}
	h, err := fs.begin(3 + orphanCredits)
	if err != nil {
		return err
	}
	defer h.end()
	if err = dir.again(&p, name); err == nil {
		dir.remove(h, p.spot)
		err = fs.dropName(h, dir, in)
	}
	if err == nil {
		err = in.store(h)
	}
	if err == nil {
		dir.touch(h.now, true)
		err = dir.store(h)
	}
	return fs.fail(err)
}

// present finds a name, which must lead to inode ino.
func (in *Inode) present(p *place, name string, ino uint32) error {
	if name == "." || name == ".." {
		return linux.EINVAL
	}
	err := in.lookup(p, name, 0)
	if err == nil && p.ino != ino {
		err = linux.ENOENT
	}
	return err
}

// dropName removes a link of in, whose name was in dir. The caller stores both.
func (fs *FS) dropName(h *handle, dir, in *Inode) error {
	if in.isDir() {
		in.put16(inLinks, 0)
		dir.dropLink()
	} else {
		in.dropLink()
	}
	in.touch(h.now, false)
	if in.links() == 0 {
		return fs.addOrphan(h, in)
	}
	return nil
}
