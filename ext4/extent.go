package ext4

import (
	"hardtack/abi/linux"
)

// A file's blocks are found through a tree of extents. Its root, in the inode,
// has room for 4 entries; the other nodes are blocks. A node is a header and
// sorted entries of 12 bytes: in leaves extents, above them the first file block
// and the block of each child.
const (
	exMagic   = 0xf30a
	exHeader  = 12
	exEntry   = 12
	exMaxLen  = 32768 // of a written extent; longer numbers mean unwritten ones
	exMaxDeep = 5

	maxFileBlocks = 1<<32 - 1
)

// extent is one run of a file: n blocks from file block lblk are at phys.
// Unwritten ones read as zeros.
type extent struct {
	lblk, n   uint32
	phys      uint64
	unwritten bool
}

func (e extent) end() uint32 { return e.lblk + e.n }

// node is the bytes of a node of the tree.
type node []byte

func (d node) count() int { return int(le.Uint16(d[2:])) }
func (d node) room() int  { return int(le.Uint16(d[4:])) }
func (d node) depth() int { return int(le.Uint16(d[6:])) }

func (d node) setCount(n int) { le.PutUint16(d[2:], uint16(n)) }
func (d node) entry(i int) []byte {
	return d[exHeader+i*exEntry : exHeader+(i+1)*exEntry]
}
func (d node) key(i int) uint32 { return le.Uint32(d.entry(i)) }

func (d node) child(i int) uint64 {
	e := d.entry(i)
	return uint64(le.Uint32(e[4:])) | uint64(le.Uint16(e[8:]))<<32
}

func (d node) extent(i int) extent {
	e := d.entry(i)
	x := extent{lblk: le.Uint32(e), n: uint32(le.Uint16(e[4:])),
		phys: uint64(le.Uint16(e[6:]))<<32 | uint64(le.Uint32(e[8:]))}
	if x.n > exMaxLen {
		x.n, x.unwritten = x.n-exMaxLen, true
	}
	return x
}

func (d node) putExtent(i int, x extent) {
	e := d.entry(i)
	le.PutUint32(e, x.lblk)
	n := x.n
	if x.unwritten {
		n += exMaxLen
	}
	le.PutUint16(e[4:], uint16(n))
	le.PutUint16(e[6:], uint16(x.phys>>32))
	le.PutUint32(e[8:], uint32(x.phys))
}

func (d node) putChild(i int, lblk uint32, blk uint64) {
	e := d.entry(i)
	le.PutUint32(e, lblk)
	le.PutUint32(e[4:], uint32(blk))
	le.PutUint32(e[8:], uint32(blk>>32)&0xffff)
}

// insert makes room for entry i.
func (d node) insert(i int) {
	n := d.count()
	copy(d[exHeader+(i+1)*exEntry:exHeader+(n+1)*exEntry], d[exHeader+i*exEntry:exHeader+n*exEntry])
	d.setCount(n + 1)
}

func (d node) remove(i int) {
	n := d.count()
	copy(d[exHeader+i*exEntry:], d[exHeader+(i+1)*exEntry:exHeader+n*exEntry])
	d.setCount(n - 1)
}

func initNode(d node, depth, room int) {
	le.PutUint16(d, exMagic)
	le.PutUint16(d[2:], 0)
	le.PutUint16(d[4:], uint16(room))
	le.PutUint16(d[6:], uint16(depth))
	le.PutUint32(d[8:], 0)
}

// nodeRoom is the number of entries of a node that is a block.
func (s *super) nodeRoom() int { return int(s.blockSize-exHeader) / exEntry }

// check verifies a node of an inode's tree at the given depth (-1: a root). Its keys
// must be in lo … hi-1.
func (in *Inode) check(d node, depth int, lo, hi uint64) error {
	if len(d) < exHeader || le.Uint16(d) != exMagic {
		return corrupt("extent node: bad magic")
	}
	n, room, most := d.count(), d.room(), (len(d)-exHeader)/exEntry
	if n > room || room > most || room < most-2 || depth >= 0 && d.depth() != depth || d.depth() > exMaxDeep {
		return corrupt("extent node: %d of %d entries at depth %d", n, room, d.depth())
	}
	if n == 0 && d.depth() > 0 {
		return corrupt("extent node: empty")
	}
	for i := range n {
		next := lo
		if d.depth() == 0 {
			x := d.extent(i)
			next = uint64(x.lblk) + uint64(x.n)
			if x.n == 0 || next > maxFileBlocks || uint64(x.lblk) < lo || !in.mayHave(x.phys, uint64(x.n)) {
				return corrupt("extent of %d blocks from %d at %d", x.n, x.lblk, x.phys)
			}
		} else {
			if k := uint64(d.key(i)); k < lo || !in.mayHave(d.child(i), 1) {
				return corrupt("extent node: child %d from %d at %d", i, k, d.child(i))
			}
			next = uint64(d.key(i)) + 1
		}
		lo = next
	}
	if lo > hi {
		return corrupt("extent node: goes beyond its parent's entry")
	}
	return nil
}

// find returns the last entry whose key is at most lblk, -1 if there is none.
func (d node) find(lblk uint32) int {
	lo, hi := 0, d.count()
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if d.key(m) <= lblk {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// level is one step of a path from the root of a tree to a leaf.
type level struct {
	b   *buffer // nil: the root
	d   node
	pos int // the entry that the path takes; in a leaf -1 means before the first
}

// path leads from the root to the leaf where a file block belongs.
type path struct {
	n int // levels
	l [exMaxDeep + 1]level
}

func (p *path) leaf() *level { return &p.l[p.n-1] }

// fits checks what must hold each time a node is reached, even if its content has been
// verified: its depth is right, and its keys are in lo … hi-1.
func (d node) fits(depth int, lo, hi uint64) bool {
	n := d.count()
	if d.depth() != depth || n > d.room() {
		return false
	}
	if n == 0 {
		return depth == 0
	}
	end := uint64(d.key(n-1)) + 1
	if depth == 0 {
		end = uint64(d.extent(n - 1).end())
	}
	return uint64(d.key(0)) >= lo && end <= hi
}

// readNode returns a block of the tree whose keys must be in lo … hi-1. The whole block
// is verified once, when it comes from the disk.
func (in *Inode) readNode(blk uint64, depth int, lo, hi uint64) (*buffer, node, error) {
	b, d, err := in.fs.checked(blk, kindExtent, in.owner(), func(d []byte) error {
		n := node(d)
		if le.Uint16(d) != exMagic || exHeader+n.room()*exEntry+4 > len(d) && in.fs.s.metadataCsum {
			return corrupt("extent node: bad header")
		}
		if in.fs.s.metadataCsum {
			tail := exHeader + n.room()*exEntry
			if crc32c(in.seed, d[:tail]) != le.Uint32(d[tail:]) {
				return corrupt("extent node: bad checksum")
			}
		}
		return in.check(n, depth, lo, hi)
	})
	if err == nil && !node(d).fits(depth, lo, hi) {
		err = corrupt("extent node %d is not where it belongs", blk)
	}
	return b, node(d), err
}

// root returns the tree's root, which is verified once.
func (in *Inode) root() (node, error) {
	d := node(in.raw[inBlock : inBlock+inBlockLen])
	if !in.rootOK.Load() {
		if in.flags()&flagExtents == 0 {
			return nil, linux.EOPNOTSUPP
		}
		if err := in.check(d, -1, 0, maxFileBlocks+1); err != nil {
			return nil, in.blame(err)
		}
		in.rootOK.Store(true)
	}
	return d, nil
}

// findPath walks to the leaf for lblk. It verifies each node before it follows it.
func (in *Inode) findPath(p *path, lblk uint32) error {
	root, err := in.root()
	if err != nil {
		return err
	}
	p.n = 1
	p.l[0] = level{nil, root, root.find(lblk)}
	for depth := root.depth(); depth > 0; depth-- {
		l := p.leaf()
		l.pos = max(l.pos, 0)
		lo, hi := uint64(l.d.key(l.pos)), uint64(maxFileBlocks+1)
		if l.pos+1 < l.d.count() {
			hi = uint64(l.d.key(l.pos + 1))
		}
		b, d, err := in.readNode(l.d.child(l.pos), depth-1, lo, hi)
		if err != nil {
			return in.blame(err)
		}
		p.l[p.n] = level{b, d, d.find(lblk)}
		p.n++
	}
	return nil
}

// blame adds the damaged inode's number to an error.
func (in *Inode) blame(err error) error {
	if Errno(err) != linux.EUCLEAN {
		return err
	}
	return corrupt("inode %d: %v", in.ino, err)
}

// nextKey is the first file block after the leaf entry of p that is mapped, or
// maxFileBlocks+1.
func (p *path) nextKey() uint64 {
	for i := p.n - 1; i >= 0; i-- {
		if l := &p.l[i]; l.pos+1 < l.d.count() {
			return uint64(l.d.key(l.pos + 1))
		}
	}
	return maxFileBlocks + 1
}

// Map says where n blocks of a file are, from file block Block on: at block Phys of the
// device, or nowhere if Phys is 0. Unwritten blocks are allocated and read as zeros.
type Map struct {
	Block, N  uint32
	Phys      uint64
	Unwritten bool
}

// mapBlock returns the run that holds file block lblk, from lblk on; in.mu is held.
func (in *Inode) mapBlock(lblk uint32) (Map, error) {
	if in.flags()&flagExtents == 0 {
		return in.mapIndirect(lblk)
	}
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return Map{}, err
	}
	l := p.leaf()
	if l.pos >= 0 {
		if x := l.d.extent(l.pos); lblk < x.end() {
			d := lblk - x.lblk
			return Map{lblk, x.n - d, x.phys + uint64(d), x.unwritten}, nil
		}
	}
	return Map{Block: lblk, N: uint32(min(p.nextKey()-uint64(lblk), maxFileBlocks))}, nil
}

// MapBlock returns where a run of a file is, from file block lblk on: for page caches
// that read by themselves, FIEMAP and the like.
func (fs *FS) MapBlock(in *Inode, lblk uint32) (Map, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.mapBlock(lblk)
}

// mapIndirect finds a block of a file in ext2's format: 12 block numbers in the inode,
// then single, double and triple indirect blocks. Such files are read-only.
func (in *Inode) mapIndirect(lblk uint32) (Map, error) {
	per := uint64(in.fs.s.blockSize / 4)
	n, at := uint64(lblk), uint64(0)
	hole := func(n uint64) (Map, error) { return Map{Block: lblk, N: uint32(n)}, nil }
	if n < 12 {
		if at = uint64(in.u32(inBlock + 4*int(n))); at == 0 {
			return hole(1)
		}
	} else {
		n -= 12
		span, deep := per, 1
		for n >= span {
			if deep == 3 { // beyond what numbers reach
				return hole(maxFileBlocks - uint64(lblk))
			}
			n -= span
			span, deep = span*per, deep+1
		}
		at = uint64(in.u32(inBlock + 4*(11+deep)))
		for ; deep > 0; deep-- {
			if at == 0 { // with all below
				return hole(span - n)
			}
			if !in.mayHave(at, 1) {
				break
			}
			b, err := in.fs.read(at)
			if err != nil {
				return Map{}, err
			}
			span /= per
			at = uint64(le.Uint32(b.bytes()[4*(n/span):]))
			n %= span
		}
		if at == 0 {
			return hole(1)
		}
	}
	if !in.mayHave(at, 1) {
		return Map{}, corrupt("inode %d: block %d at %d", in.ino, lblk, at)
	}
	return Map{Block: lblk, N: 1, Phys: at}, nil
}

// allRuns lists the runs of a whole file, which must have no holes.
func (fs *FS) allRuns(in *Inode) ([]run, error) {
	if !in.isReg() {
		return nil, corrupt("inode %d is not a file", in.ino)
	}
	var runs []run
	n := uint64(in.size()) >> (10 + fs.s.logBlock)
	if n > maxFileBlocks || n > fs.s.blocks {
		return nil, corrupt("inode %d: %d blocks long", in.ino, n)
	}
	for at := uint64(0); at < n; {
		m, err := in.mapBlock(uint32(at))
		if err != nil {
			return nil, err
		}
		if m.Phys == 0 || m.N == 0 {
			return nil, corrupt("inode %d: a hole at block %d", in.ino, at)
		}
		if k := len(runs) - 1; k >= 0 && runs[k].blk+runs[k].n == m.Phys {
			runs[k].n += uint64(m.N)
		} else {
			runs = append(runs, run{m.Phys, uint64(m.N)})
		}
		at += uint64(m.N)
	}
	return runs, nil
}
