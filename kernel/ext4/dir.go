package ext4

import (
	"slices"

	"hardtack/abi/linux"
)

// A directory is a file of blocks of entries: inode, length of the entry, length
// of the name, type, name. Entries fill a block; the room that an entry has
// beyond its name is free. With checksums the last 12 bytes of a block look like
// an entry without inode and hold the block's. Directories of more than a block
// have a tree of hashes besides (htree.go).
const (
	deHeader  = 8
	deTail    = 12
	deTailTyp = 0xde
	maxName   = 255
)

// Types of entries.
const (
	ftUnknown = iota
	ftReg
	ftDir
	ftChr
	ftBlk
	ftFifo
	ftSock
	ftLink
)

func fileType(mode uint32) uint8 {
	switch mode & linux.S_IFMT {
	case linux.S_IFREG:
		return ftReg
	case linux.S_IFDIR:
		return ftDir
	case linux.S_IFCHR:
		return ftChr
	case linux.S_IFBLK:
		return ftBlk
	case linux.S_IFIFO:
		return ftFifo
	case linux.S_IFSOCK:
		return ftSock
	case linux.S_IFLNK:
		return ftLink
	}
	return ftUnknown
}

// dtype is the type as readdir shows it.
func dtype(ft uint8) uint8 {
	return [8]uint8{0, linux.DT_REG, linux.DT_DIR, linux.DT_CHR, linux.DT_BLK, linux.DT_FIFO, linux.DT_SOCK, linux.DT_LNK}[ft&7]
}

// entry is one entry of a block, at offset off.
type entry struct {
	off, size int
	ino       uint32
	ftype     uint8
	name      []byte // in the block
}

func entrySize(name int) int { return (deHeader + name + 3) &^ 3 }

// used is how much of the entry is not free.
func (e entry) used() int {
	if e.ino == 0 {
		return 0
	}
	return entrySize(len(e.name))
}

// entryAt decodes the entry at off, which ends at limit or before.
func entryAt(d []byte, off, limit int) (entry, error) {
	if off+deHeader > limit {
		return entry{}, corrupt("directory entry at %d: beyond the end", off)
	}
	e := entry{off: off, ino: le.Uint32(d[off:]), size: int(le.Uint16(d[off+4:])), ftype: d[off+7]}
	n := int(d[off+6])
	if e.size < entrySize(n) || e.size%4 != 0 || e.size < 12 || e.size > limit-off {
		return entry{}, corrupt("directory entry at %d: length %d, name %d", off, e.size, n)
	}
	e.name = d[off+deHeader : off+deHeader+n]
	return e, nil
}

func putEntry(d []byte, off, size int, ino uint32, ft uint8, name string) {
	le.PutUint32(d[off:], ino)
	le.PutUint16(d[off+4:], uint16(size))
	d[off+6], d[off+7] = byte(len(name)), ft
	copy(d[off+deHeader:], name)
}

// dirLimit is where entries end in a block.
func (s *super) dirLimit() int {
	if s.metadataCsum {
		return int(s.blockSize) - deTail
	}
	return int(s.blockSize)
}

// sealDir stores the checksum of a block of entries.
func (in *Inode) sealDir(d []byte) {
	if in.fs.s.metadataCsum {
		t := d[len(d)-deTail:]
		clear(t)
		le.PutUint16(t[4:], deTail)
		t[7] = deTailTyp
		le.PutUint32(t[8:], crc32c(in.seed, d[:len(d)-deTail]))
	}
}

// dirBlocks is the number of a directory's blocks.
func (in *Inode) dirBlocks() uint32 {
	return uint32(min(in.size()>>(10+in.fs.s.logBlock), maxFileBlocks))
}

// dirPhys is where block lblk of a directory (or the text of a link) lies.
func (in *Inode) dirPhys(lblk uint32) (uint64, error) {
	m, err := in.mapBlock(lblk)
	if err != nil {
		return 0, err
	}
	if m.Phys == 0 || m.Unwritten {
		return 0, corrupt("directory %d: block %d is a hole", in.ino, lblk)
	}
	return m.Phys, nil
}

// dirBlock returns a block of entries, its checksum found right.
func (in *Inode) dirBlock(lblk uint32) (*buffer, error) {
	phys, err := in.dirPhys(lblk)
	if err != nil {
		return nil, err
	}
	b, err := in.fs.checked(phys, kindDir, func(d []byte) error {
		if !in.fs.s.metadataCsum {
			return nil
		}
		t := d[len(d)-deTail:]
		if le.Uint32(t) != 0 || le.Uint16(t[4:]) != deTail || t[6] != 0 || t[7] != deTailTyp {
			return corrupt("no checksum")
		}
		if crc32c(in.seed, d[:len(d)-deTail]) != le.Uint32(t[8:]) {
			return corrupt("bad checksum")
		}
		return nil
	})
	if err != nil {
		return nil, corruptDir(in, lblk, err)
	}
	return b, nil
}

func corruptDir(in *Inode, lblk uint32, err error) error {
	if Errno(err) != linux.EUCLEAN {
		return err
	}
	return corrupt("directory %d, block %d: %v", in.ino, lblk, err)
}

// findIn looks for a name in a block of entries. prev is the entry before, its
// size 0 if there is none.
func (in *Inode) findIn(d []byte, name string) (e, prev entry, err error) {
	limit := in.fs.s.dirLimit()
	for off := 0; off < limit; off += e.size {
		prev = e
		if e, err = entryAt(d, off, limit); err != nil {
			return entry{}, entry{}, err
		}
		if e.ino != 0 && string(e.name) == name {
			return e, prev, nil
		}
	}
	return entry{}, entry{}, nil
}

// place is where a name was found: its entry, the one before, the block.
type place struct {
	lblk    uint32
	e, prev entry
}

// find looks a name up; e.ino is 0 if it is not there.
func (in *Inode) find(name string) (place, error) {
	if in.indexed() {
		p, err := in.findIndexed(name)
		if err != errNoIndex {
			return p, err
		}
	}
	for lblk := range in.dirBlocks() {
		p, err := in.findAt(lblk, name)
		if err != nil || p.e.ino != 0 {
			return p, err
		}
	}
	return place{}, nil
}

func (in *Inode) findAt(lblk uint32, name string) (place, error) {
	if lblk == 0 && in.indexed() { // "." and "..", and the root of the index
		return in.findDots(name)
	}
	b, err := in.dirBlock(lblk)
	if err != nil {
		return place{}, err
	}
	e, prev, err := in.findIn(b.bytes(), name)
	return place{lblk, e, prev}, corruptDir(in, lblk, err)
}

// Lookup finds a name in a directory: the inode's number, 0 if it is not there.
func (fs *FS) Lookup(dir *Inode, name string) (uint32, error) {
	dir.mu.RLock()
	defer dir.mu.RUnlock()
	p, err := dir.lookup(name)
	return p.e.ino, err
}

// lookup is find with what Lookup checks.
func (in *Inode) lookup(name string) (place, error) {
	if !in.isDir() {
		return place{}, linux.ENOTDIR
	}
	if len(name) > maxName {
		return place{}, linux.ENAMETOOLONG
	}
	p, err := in.find(name)
	if err == nil && p.e.ino != 0 && (p.e.ino > in.fs.s.inodes || p.e.ino < in.fs.s.firstIno && p.e.ino != rootInode) {
		return place{}, corrupt("directory %d: %q leads to inode %d", in.ino, name, p.e.ino)
	}
	return p, err
}

// growCredits is what a directory may change when a name is added: up to four new
// blocks (a leaf and a node of the index at each level) with their places in the
// tree of extents, the blocks that are split, the inode.
func (in *Inode) growCredits() int {
	depth := node(in.raw[inBlock:]).depth()
	return 4*((depth+2)*4+3+1) + 4
}

// growPromise is how many blocks that may take.
const growPromise = 4 * (1 + extentPromise)

// addBlock appends a block to a directory; the promise is the caller's.
func (in *Inode) addBlock(h *handle, k kind) (uint32, *buffer, error) {
	fs := in.fs
	lblk := in.dirBlocks()
	r, err := fs.allocate(in.firstGoal([]piece{{extent: extent{lblk: lblk}}}), 1)
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
	return lblk, fs.fresh(h, r.blk, k), nil
}

// add enters a name that is not there. The caller has growCredits and growPromise,
// and stores the inode.
func (in *Inode) add(h *handle, name string, ino uint32, ft uint8) error {
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
	d := h.write(b)
	putEntry(d, 0, s.dirLimit(), ino, ft, name)
	in.sealDir(d)
	return nil
}

// addAt enters a name in a block, if it has room.
func (in *Inode) addAt(h *handle, lblk uint32, name string, ino uint32, ft uint8) (bool, error) {
	b, err := in.dirBlock(lblk)
	if err != nil {
		return false, err
	}
	limit, need := in.fs.s.dirLimit(), entrySize(len(name))
	d := b.bytes()
	for off := 0; off < limit; {
		e, err := entryAt(d, off, limit)
		if err != nil {
			return false, corruptDir(in, lblk, err)
		}
		if used := e.used(); e.size-used >= need {
			d = h.write(b)
			if used > 0 {
				le.PutUint16(d[off+4:], uint16(used))
			}
			putEntry(d, off+used, e.size-used, ino, ft, name)
			in.sealDir(d)
			return true, nil
		}
		off += e.size
	}
	return false, nil
}

// remove takes an entry away that find found; one changed block.
func (in *Inode) remove(h *handle, p place) error {
	b, err := in.dirBlock(p.lblk)
	if err != nil {
		return err
	}
	d := h.write(b)
	if p.prev.size > 0 {
		le.PutUint16(d[p.prev.off+4:], uint16(p.prev.size+p.e.size))
		clear(d[p.e.off:min(p.e.off+p.e.size, len(d))])
	} else {
		le.PutUint32(d[p.e.off:], 0)
	}
	in.sealDir(d)
	return nil
}

// replace makes an entry lead to another inode; one changed block.
func (in *Inode) replace(h *handle, p place, ino uint32, ft uint8) error {
	if p.lblk == 0 && in.indexed() {
		return in.replaceDot(h, p, ino)
	}
	b, err := in.dirBlock(p.lblk)
	if err != nil {
		return err
	}
	d := h.write(b)
	le.PutUint32(d[p.e.off:], ino)
	d[p.e.off+7] = ft
	in.sealDir(d)
	return nil
}

// emptyDir reports whether a directory has no names but "." and "..".
func (in *Inode) emptyDir() (bool, error) {
	empty := true
	err := in.eachEntry(func(_ uint32, e entry) bool {
		empty = string(e.name) == "." || string(e.name) == ".."
		return empty
	})
	return empty, err
}

// eachEntry calls do for the entries in use, in the order of blocks, until it says no.
func (in *Inode) eachEntry(do func(lblk uint32, e entry) bool) error {
	limit := in.fs.s.dirLimit()
	for lblk := range in.dirBlocks() {
		if in.indexed() {
			if lblk == 0 {
				for _, name := range []string{".", ".."} {
					p, err := in.findDots(name)
					if err != nil {
						return err
					}
					if p.e.ino != 0 && !do(0, p.e) {
						return nil
					}
				}
				continue
			}
			if index, err := in.isIndexBlock(lblk); err != nil {
				return err
			} else if index {
				continue
			}
		}
		b, err := in.dirBlock(lblk)
		if err != nil {
			return err
		}
		d := b.bytes()
		for off := 0; off < limit; {
			e, err := entryAt(d, off, limit)
			if err != nil {
				return corruptDir(in, lblk, err)
			}
			if e.ino != 0 && !do(lblk, e) {
				return nil
			}
			off += e.size
		}
	}
	return nil
}

// Dirent is one name of a directory. Next is the position to go on after it.
type Dirent struct {
	Ino  uint32
	Type uint8 // linux.DT_*
	Name string
	Next int64
}

// ReadDir calls emit for the names of a directory from position pos on (0: the
// beginning) until it returns false. Names that are there all the while between
// the first call and the last are given once, whatever is added or removed
// meanwhile: the order is that of the hashes, which do not change. "." and ".."
// come first. emit must not call back into the directory.
func (fs *FS) ReadDir(dir *Inode, pos int64, emit func(d Dirent) bool) error {
	dir.mu.RLock()
	defer dir.mu.RUnlock()
	if !dir.isDir() {
		return linux.ENOTDIR
	}
	if dir.indexed() || dir.dirBlocks() == 1 && fs.s.compat&compatDirIndex != 0 {
		err := dir.readHashed(pos, emit)
		if err != errNoIndex {
			return err
		}
	}
	bs := int64(fs.s.blockSize)
	return dir.eachEntry(func(lblk uint32, e entry) bool {
		at := int64(lblk)*bs + int64(e.off)
		if at < pos {
			return true
		}
		return emit(Dirent{e.ino, dtype(e.ftype), string(e.name), at + 1})
	})
}

// hashed is an entry with the position that its hash gives it.
type hashed struct {
	pos int64
	e   entry
}

// readHashed is ReadDir in the order of hashes. Position 0 is ".", 1 is "..",
// and a name has 2 plus its major hash (without the lowest bit) and minor hash.
func (in *Inode) readHashed(pos int64, emit func(d Dirent) bool) error {
	for i, name := range []string{".", ".."} {
		if pos > int64(i) {
			continue
		}
		p, err := in.findDots(name)
		if err != nil {
			return err
		}
		if p.e.ino != 0 && !emit(Dirent{p.e.ino, linux.DT_DIR, name, int64(i) + 1}) {
			return nil
		}
	}
	pos = max(pos, 2)
	version := in.fs.s.hashVersion
	var list []hashed
	for {
		x := &index{end: hashEnd} // of a directory of one block
		if in.indexed() {
			var err error
			if x, err = in.probe(uint32(uint64(pos-2)>>32) << 1); err != nil {
				return err
			}
			version = x.version
		}
		list = list[:0]
		for {
			var err error
			if list, err = in.hashLeaf(list, x.leaf, version, pos); err != nil {
				return err
			}
			if x.end&1 == 0 {
				break
			}
			if err := x.next(); err != nil { // names with the same hash go on there
				return err
			}
		}
		end := x.end
		slices.SortStableFunc(list, func(a, b hashed) int { return int(max(-1, min(1, a.pos-b.pos))) })
		for i, x := range list {
			next := x.pos + 1
			if i+1 < len(list) && list[i+1].pos == x.pos {
				next = x.pos // the same hash: given again rather than left out
			}
			if !emit(Dirent{x.e.ino, dtype(x.e.ftype), string(x.e.name), next}) {
				return nil
			}
		}
		if end >= hashEnd {
			return nil
		}
		pos = max(pos, 2+int64(end)>>1<<32)
	}
}

// hashLeaf appends the names of a leaf from pos on.
func (in *Inode) hashLeaf(list []hashed, lblk uint32, version uint8, pos int64) ([]hashed, error) {
	b, err := in.dirBlock(lblk)
	if err != nil {
		return nil, err
	}
	d, limit := b.bytes(), in.fs.s.dirLimit()
	for off := 0; off < limit; {
		e, err := entryAt(d, off, limit)
		if err != nil {
			return nil, corruptDir(in, lblk, err)
		}
		off += e.size
		if e.ino == 0 || string(e.name) == "." || string(e.name) == ".." {
			continue
		}
		major, minor, ok := in.fs.s.hashName(version, e.name)
		if !ok {
			return nil, errNoIndex
		}
		if at := 2 + (int64(major)>>1<<32 | int64(minor)); at >= pos {
			list = append(list, hashed{at, e})
		}
	}
	return list, nil
}
