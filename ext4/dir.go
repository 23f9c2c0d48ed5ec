package ext4

import "hardtack/abi/linux"

// A directory is a file of blocks of entries: inode, length of the entry, length
// of the name, type, name. Entries fill a block; the space of an entry after its name
// is free. With checksums, the last 12 bytes of a block hold the block's checksum and
// look like an entry without an inode. Directories of more than one block also have a
// hash tree (htree.go).
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

// entryAt decodes the entry at off, which must end at limit or before.
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
func sealDir(seed uint32, d []byte) {
	t := d[len(d)-deTail:]
	clear(t)
	le.PutUint16(t[4:], deTail)
	t[7] = deTailTyp
	le.PutUint32(t[8:], crc32c(seed, d[:len(d)-deTail]))
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

// dirBlock returns a block of entries and its bytes. A block that comes from the disk
// has been verified: its checksum and every entry.
func (in *Inode) dirBlock(lblk uint32) (*buffer, []byte, error) {
	phys, err := in.dirPhys(lblk)
	if err != nil {
		return nil, nil, err
	}
	b, d, err := in.fs.checked(phys, kindDir, in.owner(), in.checkDir)
	return b, d, corruptDir(in, lblk, err)
}

func (in *Inode) checkDir(d []byte) error {
	if in.fs.s.metadataCsum {
		t := d[len(d)-deTail:]
		if le.Uint32(t) != 0 || le.Uint16(t[4:]) != deTail || t[6] != 0 || t[7] != deTailTyp {
			return corrupt("no checksum")
		}
		if crc32c(in.seed, d[:len(d)-deTail]) != le.Uint32(t[8:]) {
			return corrupt("bad checksum")
		}
	}
	for off, limit := 0, in.fs.s.dirLimit(); off < limit; {
		e, err := entryAt(d, off, limit)
		if err != nil {
			return err
		}
		if e.ino != 0 && len(e.name) == 0 { // what it spares would be too short an entry
			return corrupt("directory entry at %d: no name", off)
		}
		off += e.size
	}
	return nil
}

func corruptDir(in *Inode, lblk uint32, err error) error {
	if err == nil || Errno(err) != linux.EUCLEAN {
		return err
	}
	return corrupt("directory %d, block %d: %v", in.ino, lblk, err)
}

// spot is an entry's place.
type spot struct {
	lblk uint32
	b    *buffer
	off  int // of the entry in the block
	prev int // of the one before it, -1 if there is none
	ino  uint32
}

// place is what a search for a name found.
type place struct {
	spot      // the name's; ino is 0 if it is not there
	room spot // an entry where it would fit, in the block where it belongs; b is nil if there is none
	gen  uint64
}

// holds reports whether the buffers of a place still belong to their blocks. Within a
// handle that does not change.
func (p *place) holds(fs *FS) bool { return p.gen == fs.cache.gen.Load() }

// scanDir looks for a name in a block of entries, and for an entry with need bytes to
// spare; -1 stands for none. The block was verified when it was read. The checks here
// only confine damage that a race on a damaged disk may do to the block.
func scanDir(d []byte, limit int, name string, need int) (at, prev, room int, err error) {
	left, before, gap := limit, -1, -1 // counted from the limit
	prev, room = -1, -1
	for {
		left, before, gap = skimDir(d[limit-left:limit], before, gap, uint32(len(name)), name[len(name)-1], need)
		if gap >= 0 {
			room, need = limit-gap, 0
		}
		if left < 0 {
			if left == skimDamage {
				return -1, -1, -1, corrupt("directory entry behind the one at %d", limit-before)
			}
			return -1, -1, room, nil
		}
		at = limit - left
		if string(d[at+deHeader:at+deHeader+len(name)]) == name && le.Uint32(d[at:]) != 0 {
			if before >= 0 {
				prev = limit - before
			}
			return at, prev, room, nil
		}
		// Another name of the same length and last letter.
		if size := int(le.Uint16(d[at+4:])); need > 0 && spareIn(d[at:], size) >= need {
			gap, room, need = left, at, 0
		}
		before, left = left, left-int(le.Uint16(d[at+4:]))
	}
}

const (
	skimEnd    = -1
	skimDamage = -2
)

// skimDir is scanDir's inner loop, which calls nothing: it goes to the next entry
// whose name has a given length and last byte. Places are counted from the end.
func skimDir(rest []byte, before, gap int, want uint32, last byte, need int) (at, prev, room int) {
	for len(rest) >= 12 {
		size, n := int(le.Uint16(rest[4:])), uint32(rest[6])
		if size < 12 || size > len(rest) || n+deHeader > uint32(size) {
			return skimDamage, before, gap
		}
		if n == want && rest[deHeader-1+n] == last {
			return len(rest), before, gap
		}
		if need > 0 {
			spare := size
			if le.Uint32(rest) != 0 {
				spare -= int(n+deHeader+3) &^ 3
			}
			if spare >= need {
				gap, need = len(rest), 0
			}
		}
		before = len(rest)
		rest = rest[size:]
	}
	return skimEnd, before, gap
}

// spareIn is how much of an entry of size bytes is free.
func spareIn(d []byte, size int) int {
	if le.Uint32(d) == 0 {
		return size
	}
	return size - entrySize(int(d[6]))
}

// findAt looks for a name in block lblk.
func (in *Inode) findAt(p *place, lblk uint32, name string, need int) error {
	if lblk == 0 && in.indexed() { // "." and "..", and the root of the index
		return in.findDots(p, name)
	}
	b, d, err := in.dirBlock(lblk)
	if err != nil {
		return err
	}
	at, prev, room, err := scanDir(d, in.fs.s.dirLimit(), name, need)
	if err != nil {
		return corruptDir(in, lblk, err)
	}
	if at >= 0 {
		p.spot = spot{lblk, b, at, prev, le.Uint32(d[at:])}
	}
	if room >= 0 && p.room.b == nil {
		p.room = spot{lblk: lblk, b: b, off: room}
	}
	return nil
}

// find looks up a name; p.ino is 0 if it does not exist. need is the size of an entry
// for which to find space, or 0.
func (in *Inode) find(p *place, name string, need int) error {
	*p = place{gen: in.fs.cache.gen.Load()}
	if in.indexed() {
		if err := in.findIndexed(p, name, need); err != errNoIndex {
			return err
		}
		need = 0 // a name cannot be added
	}
	for lblk := range in.dirBlocks() {
		if err := in.findAt(p, lblk, name, need); err != nil || p.ino != 0 {
			return err
		}
	}
	return nil
}

// Lookup returns the inode number of a name in a directory, 0 if it does not exist.
func (fs *FS) Lookup(dir *Inode, name string) (uint32, error) {
	dir.mu.RLock()
	defer dir.mu.RUnlock()
	var p place
	err := dir.lookup(&p, name, 0)
	return p.ino, err
}

// lookup is find with Lookup's checks.
func (in *Inode) lookup(p *place, name string, need int) error {
	if !in.isDir() {
		return linux.ENOTDIR
	}
	if len(name) > maxName {
		return linux.ENAMETOOLONG
	}
	if name == "" {
		*p = place{}
		return nil
	}
	if err := in.find(p, name, need); err != nil {
		p.ino = 0
		return err
	}
	if p.ino != 0 && (p.ino > in.fs.s.inodes || p.ino < in.fs.s.firstIno && p.ino != rootInode ||
		p.ino == in.ino && name != "." && name != "..") {
		bad := p.ino
		p.ino = 0
		return corrupt("directory %d: %q leads to inode %d", in.ino, name, bad)
	}
	return nil
}

// again repeats the search for a name if buffers may have been evicted since; a handle
// is open.
func (in *Inode) again(p *place, name string) error {
	if p.holds(in.fs) {
		return nil
	}
	ino := p.ino
	if err := in.lookup(p, name, 0); err != nil {
		return err
	}
	if p.ino != ino {
		return corrupt("directory %d: %q has changed", in.ino, name)
	}
	return nil
}
