package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// inodeCredits is how many blocks allocInode or freeInode may change: bitmap, descriptor,
// table.
const inodeCredits = 3

// allocInode allocates an inode number: in the parent's group, or in a spacious group for
// a directory in the root.
func (fs *FS) allocInode(h *handle, parent uint32, dir bool) (uint32, error) {
	first := (parent - 1) / fs.s.inodesPerGroup
	if dir && parent == rootInode {
		best := uint32(0)
		for n := range fs.s.groups {
			if free := fs.freeInodes(n); free > best {
				first, best = n, free
			}
		}
	}
	for i := range fs.s.groups {
		n := (first + i) % fs.s.groups
		if fs.freeInodes(n) == 0 {
			continue
		}
		ino, err := fs.inodeIn(h, n, dir)
		if err != nil {
			return 0, err
		}
		if ino != 0 {
			fs.freeIno.Add(-1)
			return ino, nil
		}
	}
	return 0, fmt.Errorf("no inode is free: %w", linux.ENOSPC)
}

// freeInodes is how many free inodes group n has.
func (fs *FS) freeInodes(n uint32) uint32 {
	gb := fs.groups[n].desc
	gb.mu.Lock()
	defer gb.mu.Unlock()
	return fs.descIn(gb.data, n).freeInodes()
}

// inodeIn allocates an inode in group n, 0 if there is none.
func (fs *FS) inodeIn(h *handle, n uint32, dir bool) (uint32, error) {
	b, err := fs.inodeBitmapBuffer(n)
	if err != nil {
		return 0, err
	}
	per := fs.s.inodesPerGroup
	g := &fs.groups[n]
	b.mu.Lock()
	defer b.mu.Unlock()
	from := g.nextIno
	if n == 0 {
		from = max(from, fs.s.firstIno-1)
	}
	first := true
	for i := nextZero(b.data, from, per); i < per; i = nextZero(b.data, i+1, per) {
		ino := n*per + i + 1
		fs.inodesMu.Lock()
		_, inUse := fs.inodes[ino] // being destroyed just now
		fs.inodesMu.Unlock()
		if first {
			g.nextIno = i
		}
		if inUse {
			first = false
			continue
		}
		if first {
			g.nextIno = i + 1
		}
		setBit(h.writeLocked(b), i)
		g.desc.mu.Lock()
		d := fs.writeDesc(h, n)
		unused := min(d.unusedInodes(), per)
		if d.flags()&bgInodeUninit != 0 {
			unused = per
		}
		d.setPair(gdUnusedInodes, gdUnusedInodesHi, min(unused, per-i-1))
		le.PutUint16(d[gdFlags:], d.flags()&^bgInodeUninit)
		d.countInode(-1, dir)
		g.desc.mu.Unlock()
		return ino, nil
	}
	return 0, nil
}

// countInode changes the counts of a descriptor after a bit of the bitmap changed.
func (g groupDesc) countInode(d int, dir bool) {
	g.setPair(gdFreeInodes, gdFreeInodesHi, uint32(int(g.freeInodes())+d))
	if dir {
		g.setPair(gdUsedDirs, gdUsedDirsHi, uint32(int(g.usedDirs())-d))
	}
}

// freeInode frees an inode's number. The caller stores the inode itself.
func (fs *FS) freeInode(h *handle, ino uint32, dir bool) error {
	n, i := (ino-1)/fs.s.inodesPerGroup, (ino-1)%fs.s.inodesPerGroup
	b, err := fs.inodeBitmapBuffer(n)
	if err != nil {
		return err
	}
	g := &fs.groups[n]
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bit(b.data, i) {
		return corrupt("inode %d is marked free in its bitmap", ino)
	}
	clearBit(h.writeLocked(b), i)
	g.nextIno = min(g.nextIno, i)
	g.desc.mu.Lock()
	defer g.desc.mu.Unlock()
	fs.writeDesc(h, n).countInode(1, dir)
	fs.freeIno.Add(1)
	return nil
}
