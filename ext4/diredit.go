package ext4

import "hardtack/abi/linux"

// growCredits is how many blocks may change when a name is added to a directory: up to
// four new ones (a leaf and an index node at each level) with their places in the extent
// tree, the blocks that are split, and the inode.
func (in *Inode) growCredits() (int, error) {
	root, err := in.root()
	if err != nil {
		return 0, err
	}
	return 4*((root.depth()+2)*4+3+1) + 4, nil
}

// growPromise is how many blocks that may allocate.
const growPromise = 4 * (1 + extentPromise)

// promiseGrowth reserves blocks for a name to be added at p, and more blocks for the
// name's inode. A directory with space for the name need not grow: a name can then be
// added, or replaced, on a full disk.
func (fs *FS) promiseGrowth(p *place, more int64) (int64, error) {
	n := more
	if p.room.b == nil && p.ino == 0 {
		n += growPromise
	}
	if n == 0 {
		return 0, nil
	}
	return n, fs.promiseAbove(n, fs.keep(fs.margin()/2, fs.late.Load()))
}

// addBlock appends a block to a directory. The caller holds the promise.
func (in *Inode) addBlock(h *handle, k kind) (uint32, *buffer, error) {
	fs := in.fs
	lblk := in.dirBlocks()
	if m, err := in.mapBlock(lblk); err != nil {
		return 0, nil, err
	} else if m.Phys != 0 {
		return 0, nil, corrupt("directory %d: block %d lies beyond the end", in.ino, lblk)
	}
	r, err := fs.allocate(in.goalFor(lblk), 1)
	if err != nil {
		return 0, nil, err
	}
	if err := fs.markUsed(h, r); err != nil {
		return 0, nil, err
	}
	in.addBlocks(1)
	if _, err := in.insertExtent(h, extent{lblk, 1, r.blk, false}); err != nil {
		return 0, nil, err
	}
	in.setSize(in.size() + int64(fs.s.blockSize))
	b, err := fs.fresh(h, r.blk, k, in.owner())
	return lblk, b, err
}

// add adds a name that does not exist; p is the result of a search for it with need.
// The caller has growCredits and growPromise, and stores the inode.
func (in *Inode) add(h *handle, p *place, name string, ino uint32, ft uint8) error {
	if p.room.b != nil && p.holds(in.fs) {
		enter(h.write(p.room.b), p.room.off, name, ino, ft)
		return nil
	}
	s := in.fs.s
	if in.indexed() {
		return in.addIndexed(h, name, ino, ft)
	}
	n := in.dirBlocks()
	for lblk := range n {
		done, err := in.addAt(h, lblk, name, ino, ft)
		if err != nil || done {
			return err
		}
	}
	if n == 1 && s.compat&compatDirIndex != 0 {
		if err := in.makeIndex(h); err != nil {
			return err
		}
		return in.addIndexed(h, name, ino, ft)
	}
	if int64(n+1)<<(10+s.logBlock) > 1<<31-1 {
		return linux.ENOSPC
	}
	_, b, err := in.addBlock(h, kindDir)
	if err != nil {
		return err
	}
	putEntry(h.write(b), 0, s.dirLimit(), ino, ft, name)
	return nil
}

// addAt adds a name to a block, if there is space.
func (in *Inode) addAt(h *handle, lblk uint32, name string, ino uint32, ft uint8) (bool, error) {
	b, d, err := in.dirBlock(lblk)
	if err != nil {
		return false, err
	}
	at, _, room, err := scanDir(d, in.fs.s.dirLimit(), name, entrySize(len(name)))
	if err == nil && at >= 0 {
		err = corrupt("%q is there already", name)
	}
	if err != nil || room < 0 {
		return false, corruptDir(in, lblk, err)
	}
	enter(h.write(b), room, name, ino, ft)
	return true, nil
}

// enter puts a name after (or in place of) the entry at off, which has the space.
func enter(d []byte, off int, name string, ino uint32, ft uint8) {
	size, used := int(le.Uint16(d[off+4:])), 0
	if le.Uint32(d[off:]) != 0 {
		used = entrySize(int(d[off+6]))
		le.PutUint16(d[off+4:], uint16(used))
	}
	putEntry(d, off+used, size-used, ino, ft, name)
}

// remove removes an entry that find found in this handle. It changes one block.
func (in *Inode) remove(h *handle, s spot) {
	d := h.write(s.b)
	if s.prev >= 0 {
		size := int(le.Uint16(d[s.off+4:]))
		le.PutUint16(d[s.prev+4:], le.Uint16(d[s.prev+4:])+uint16(size))
		clear(d[s.off : s.off+size])
	} else {
		le.PutUint32(d[s.off:], 0)
	}
}

// replace points an entry to another inode. It changes one block.
func (in *Inode) replace(h *handle, s spot, ino uint32, ft uint8) {
	d := h.write(s.b)
	le.PutUint32(d[s.off:], ino)
	d[s.off+7] = ft
}
