package ext4

import (
	"errors"
)

// A large directory's blocks are leaves of a tree ordered by the hashes of names. The
// root is block 0, disguised as a block that holds "." and ".."; a node further down looks
// like one free entry. An entry of the tree is a hash and a block: the leaf (or node) with
// the names from that hash on. The first entry has no hash; the entries' count and limit
// are in its place. The lowest bit of a hash says that names with the same hash continue
// from the previous leaf.
const (
	dxRootOff  = 32 // of the entries in the root
	dxNodeOff  = 8  // and in other nodes
	dxVersion  = 28 // fields of the root
	dxInfoLen  = 29
	dxLevels   = 30
	dxDotDot   = 12 // the entry ".."
	dxMaxDeep  = 1  // levels of nodes below the root; one more with large_dir
	dxTail     = 8  // bytes for the checksum
	maxSameTry = 16 // splits for one name before the directory counts as full
)

// errNoIndex says that a tree cannot be used because its hash is unknown. The directory
// can still be read block by block.
var errNoIndex = errors.New("the directory's hash is not known")

// indexed reports whether the directory has a tree.
func (in *Inode) indexed() bool {
	return in.flags()&flagIndex != 0 && in.fs.s.compat&compatDirIndex != 0
}

// dxFrame is a node on the way down.
type dxFrame struct {
	b   *buffer
	d   []byte
	off int // of its entries
	at  int // the entry taken
}

func (f *dxFrame) limit() int { return int(le.Uint16(f.d[f.off:])) }
func (f *dxFrame) count() int { return int(le.Uint16(f.d[f.off+2:])) }
func (f *dxFrame) hash(i int) uint32 {
	if i == 0 {
		return 0
	}
	return le.Uint32(f.d[f.off+8*i:])
}
func (f *dxFrame) block(i int) uint32 { return le.Uint32(f.d[f.off+8*i+4:]) & 0x0fffffff }
func (f *dxFrame) setCount(n int)     { le.PutUint16(f.d[f.off+2:], uint16(n)) }
func (f *dxFrame) full() bool         { return f.count() >= f.limit() }

// dxLimit is how many entries fit into a node whose entries begin at off.
func (s *super) dxLimit(off int) int {
	n := int(s.blockSize) - off
	if s.metadataCsum {
		n -= dxTail
	}
	return n / 8
}

// dxSum is the checksum of a node.
func (s *super) dxSum(seed uint32, d []byte, off int) uint32 {
	tail := off + s.dxLimit(off)*8
	n := off + int(le.Uint16(d[off+2:]))*8
	c := crc32c(seed, d[:n])
	c = crc32c(c, d[tail:tail+4])
	return crc32cZeros(c, 4)
}

func (s *super) sealDx(seed uint32, d []byte, off int) {
	tail := off + s.dxLimit(off)*8
	le.PutUint32(d[tail+4:], s.dxSum(seed, d, off))
}

// checkCounts checks what must hold each time a node is reached.
func (in *Inode) checkCounts(d []byte, off int) error {
	limit, count := int(le.Uint16(d[off:])), int(le.Uint16(d[off+2:]))
	if limit != in.fs.s.dxLimit(off) || count < 1 || count > limit {
		return corrupt("index: %d of %d entries", count, limit)
	}
	return nil
}

// checkDx verifies a node that comes from the disk.
func (in *Inode) checkDx(d []byte, off int) error {
	if err := in.checkCounts(d, off); err != nil {
		return err
	}
	if off == dxRootOff {
		if d[dxInfoLen] != 8 || le.Uint16(d[4:]) != dxDotDot || d[6] != 1 || d[8] != '.' ||
			int(le.Uint16(d[dxDotDot+4:])) != len(d)-dxDotDot || d[dxDotDot+6] != 2 || string(d[dxDotDot+8:dxDotDot+10]) != ".." {
			return corrupt("index: bad root")
		}
	} else if le.Uint32(d) != 0 || int(le.Uint16(d[4:])) != len(d) {
		return corrupt("index: bad node")
	}
	for f, i := (dxFrame{d: d, off: off}), 1; i < f.count(); i++ {
		if f.hash(i) < f.hash(i-1) {
			return corrupt("index: entry %d is not in order", i)
		}
	}
	s := in.fs.s
	tail := off + s.dxLimit(off)*8
	if s.metadataCsum && s.dxSum(in.seed, d, off) != le.Uint32(d[tail+4:]) {
		return corrupt("index: bad checksum")
	}
	return nil
}

func (in *Inode) checkRoot(d []byte) error { return in.checkDx(d, dxRootOff) }
func (in *Inode) checkNode(d []byte) error { return in.checkDx(d, dxNodeOff) }

// dxBlock makes f a node of the tree: the root, if lblk is 0.
func (in *Inode) dxBlock(f *dxFrame, lblk uint32) error {
	phys, err := in.dirPhys(lblk)
	if err != nil {
		return err
	}
	if lblk == 0 {
		f.off = dxRootOff
		f.b, f.d, err = in.fs.checked(phys, kindRoot, in.owner(), in.checkRoot)
	} else {
		f.off = dxNodeOff
		f.b, f.d, err = in.fs.checked(phys, kindIndex, in.owner(), in.checkNode)
	}
	if err == nil {
		err = in.checkCounts(f.d, f.off)
	}
	return corruptDir(in, lblk, err)
}

// isIndexBlock tells a node of the tree from a leaf: one free entry fills the block, with
// count and limit after it. (A leaf with a checksum ends before the block does.)
func (in *Inode) isIndexBlock(lblk uint32) (bool, error) {
	phys, err := in.dirPhys(lblk)
	if err != nil {
		return false, err
	}
	if !in.fs.s.valid(phys, 1) {
		return false, corrupt("directory %d: block %d at %d", in.ino, lblk, phys)
	}
	b, err := in.fs.read(phys)
	if err != nil {
		return false, err
	}
	d := b.bytes()
	return le.Uint32(d) == 0 && int(le.Uint16(d[4:])) == len(d) && d[6] == 0 &&
		int(le.Uint16(d[dxNodeOff:])) == in.fs.s.dxLimit(dxNodeOff), nil
}

// index is a path from the root to a leaf.
type index struct {
	in      *Inode
	n       int // frames
	frames  [dxMaxDeep + 2]dxFrame
	version uint8
	leaf    uint32
	leaves  uint32 // that next came by
	end     uint32 // the hash where the next leaf begins, hashEnd if there is none
}

// open begins a path at the root.
func (x *index) open(in *Inode) error {
	x.in, x.n, x.leaves = in, 1, 0
	root := &x.frames[0]
	if err := in.dxBlock(root, 0); err != nil {
		return err
	}
	if levels := root.d[dxLevels]; levels > dxMaxDeep+1 {
		return corrupt("directory %d: an index of %d levels", in.ino, levels)
	}
	if x.version = root.d[dxVersion]; x.version > hashTEA {
		return errNoIndex
	}
	return nil
}

// hash hashes a name the way the tree does.
func (x *index) hash(name string) (uint32, error) {
	h, _, ok := hashName(x.in.fs.s, x.version, name)
	if !ok {
		return 0, errNoIndex
	}
	return h, nil
}

// descend goes from the root to the leaf where a hash belongs.
func (x *index) descend(hash uint32) error {
	levels := int(x.frames[0].d[dxLevels])
	for i := 0; ; i++ {
		f := &x.frames[i]
		lo, hi := 1, f.count()
		for lo < hi {
			m := int(uint(lo+hi) >> 1)
			if f.hash(m) > hash {
				hi = m
			} else {
				lo = m + 1
			}
		}
		f.at = lo - 1
		if i == levels {
			break
		}
		if err := x.enter(i+1, f.block(f.at)); err != nil {
			return err
		}
		x.n = i + 2
	}
	x.settle()
	return nil
}

// enter makes frame i a node. A node already on the path would be a cycle.
func (x *index) enter(i int, lblk uint32) error {
	f := &x.frames[i]
	if err := x.in.dxBlock(f, lblk); err != nil {
		return err
	}
	for k := range i {
		if x.frames[k].b.blk == f.b.blk {
			return corrupt("directory %d: the index leads to itself in block %d", x.in.ino, lblk)
		}
	}
	return nil
}

// settle derives leaf and end from the frames.
func (x *index) settle() {
	f := &x.frames[x.n-1]
	x.leaf, x.end = f.block(f.at), hashEnd
	for i := x.n - 1; i >= 0; i-- {
		if f := &x.frames[i]; f.at+1 < f.count() {
			x.end = f.hash(f.at + 1)
			return
		}
	}
}

// next moves to the next leaf; there must be one.
func (x *index) next() error {
	if x.leaves++; x.leaves > x.in.dirBlocks() {
		return corrupt("directory %d: the index has more leaves than the directory blocks", x.in.ino)
	}
	i := x.n - 1
	for i >= 0 && x.frames[i].at+1 >= x.frames[i].count() {
		i--
	}
	if i < 0 {
		return corrupt("directory %d: the index ends", x.in.ino)
	}
	x.frames[i].at++
	for ; i+1 < x.n; i++ {
		if err := x.enter(i+1, x.frames[i].block(x.frames[i].at)); err != nil {
			return err
		}
		x.frames[i+1].at = 0
	}
	x.settle()
	return nil
}

// findDots finds "." or "..", which are at the beginning of block 0.
func (in *Inode) findDots(p *place, name string) (err error) {
	if name != "." && name != ".." {
		return nil
	}
	var b *buffer
	var d []byte
	if in.indexed() {
		var f dxFrame
		if err := in.dxBlock(&f, 0); err != nil {
			return err
		}
		b, d = f.b, f.d
	} else if b, d, err = in.dirBlock(0); err != nil {
		return err
	}
	e, err := entryAt(d, 0, len(d))
	prev := -1
	if err == nil && string(e.name) != name {
		prev = 0
		e, err = entryAt(d, e.size, len(d))
	}
	if err == nil && string(e.name) == name {
		p.spot = spot{0, b, e.off, prev, e.ino}
	}
	return corruptDir(in, 0, err)
}

// findIndexed looks up a name in the tree.
func (in *Inode) findIndexed(p *place, name string, need int) error {
	if name == "." || name == ".." {
		return in.findDots(p, name)
	}
	var x index
	if err := x.open(in); err != nil {
		return err
	}
	hash, err := x.hash(name)
	if err == nil {
		err = x.descend(hash)
	}
	if err != nil {
		return err
	}
	for {
		if x.leaf == 0 {
			return corrupt("directory %d: the index leads to its root", in.ino)
		}
		if err := in.findAt(p, x.leaf, name, need); err != nil || p.ino != 0 || x.end != hash|1 {
			return err
		}
		need = 0 // a new name goes to the first leaf of its hash
		if err := x.next(); err != nil {
			return err
		}
	}
}
