package ext4

import (
	"errors"
	"fmt"
	"slices"

	"hardtack/abi/linux"
)

// A large directory's blocks are leaves of a tree that is ordered by the hashes
// of names. The root is block 0, disguised as a block that holds "." and "..";
// a node further down looks like one free entry. An entry of the tree is a hash
// and a block: the leaf (or node) with the names from that hash on. The first
// entry's hash is left out; count and limit of the entries are in its place. The
// lowest bit of a hash says that names with the same hash go on from the leaf before.
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

// errNoIndex says that a tree cannot be used (its hash is not known) though the
// directory may be read block by block.
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

// insert adds an entry after the one taken.
func (f *dxFrame) insert(hash, block uint32) {
	i, n := f.at+1, f.count()
	copy(f.d[f.off+8*(i+1):f.off+8*(n+1)], f.d[f.off+8*i:f.off+8*n])
	le.PutUint32(f.d[f.off+8*i:], hash)
	le.PutUint32(f.d[f.off+8*i+4:], block)
	f.setCount(n + 1)
}

// dxLimit is how many entries a node with entries at off has room for.
func (s *super) dxLimit(off int) int {
	n := int(s.blockSize) - off
	if s.metadataCsum {
		n -= dxTail
	}
	return n / 8
}

// dxSum is the checksum of a node.
func (in *Inode) dxSum(d []byte, off int) uint32 {
	tail := off + in.fs.s.dxLimit(off)*8
	n := off + int(le.Uint16(d[off+2:]))*8
	var zero [4]byte
	c := crc32c(in.seed, d[:n])
	c = crc32c(c, d[tail:tail+4])
	return crc32c(c, zero[:])
}

func (in *Inode) sealDx(f *dxFrame) {
	if in.fs.s.metadataCsum {
		tail := f.off + in.fs.s.dxLimit(f.off)*8
		le.PutUint32(f.d[tail+4:], in.dxSum(f.d, f.off))
	}
}

// checkDx looks at a node.
func (in *Inode) checkDx(d []byte, off int) error {
	limit, count := int(le.Uint16(d[off:])), int(le.Uint16(d[off+2:]))
	if limit != in.fs.s.dxLimit(off) || count < 1 || count > limit {
		return corrupt("index: %d of %d entries", count, limit)
	}
	if off == dxRootOff {
		if d[dxInfoLen] != 8 || le.Uint16(d[4:]) != dxDotDot || d[6] != 1 || d[8] != '.' ||
			int(le.Uint16(d[dxDotDot+4:])) != len(d)-dxDotDot || d[dxDotDot+6] != 2 || string(d[dxDotDot+8:dxDotDot+10]) != ".." {
			return corrupt("index: bad root")
		}
	} else if le.Uint32(d) != 0 || int(le.Uint16(d[4:])) != len(d) {
		return corrupt("index: bad node")
	}
	return nil
}

// dxBlock returns a node of the tree, checked.
func (in *Inode) dxBlock(lblk uint32, off int) (*dxFrame, error) {
	phys, err := in.dirPhys(lblk)
	if err != nil {
		return nil, err
	}
	b, err := in.fs.checked(phys, kindIndex, func(d []byte) error {
		if err := in.checkDx(d, off); err != nil {
			return err
		}
		tail := off + in.fs.s.dxLimit(off)*8
		if in.fs.s.metadataCsum && in.dxSum(d, off) != le.Uint32(d[tail+4:]) {
			return corrupt("index: bad checksum")
		}
		return nil
	})
	if err != nil {
		return nil, corruptDir(in, lblk, err)
	}
	d := b.bytes()
	if err := in.checkDx(d, off); err != nil {
		return nil, corruptDir(in, lblk, err)
	}
	return &dxFrame{b: b, d: d, off: off}, nil
}

// isIndexBlock tells a node of the tree from a leaf: a block of one free entry that
// fills it, with count and limit behind. (A leaf with a checksum ends before the
// block does.)
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

// index is a way from the root to a leaf.
type index struct {
	in      *Inode
	frames  []*dxFrame
	version uint8
	leaf    uint32
	end     uint32 // the hash where the next leaf begins, hashEnd if there is none
}

// probe finds the leaf where a hash belongs.
func (in *Inode) probe(hash uint32) (*index, error) {
	root, err := in.dxBlock(0, dxRootOff)
	if err != nil {
		return nil, err
	}
	x := &index{in: in, version: root.d[dxVersion], frames: []*dxFrame{root}}
	levels := int(root.d[dxLevels])
	if levels > dxMaxDeep+1 {
		return nil, corrupt("directory %d: an index of %d levels", in.ino, levels)
	}
	if x.version > hashTEA {
		return nil, errNoIndex
	}
	for i := 0; ; i++ {
		f := x.frames[i]
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
		next, err := in.dxBlock(f.block(f.at), dxNodeOff)
		if err != nil {
			return nil, err
		}
		x.frames = append(x.frames, next)
	}
	x.settle()
	return x, nil
}

// settle derives leaf and end from the frames.
func (x *index) settle() {
	f := x.frames[len(x.frames)-1]
	x.leaf, x.end = f.block(f.at), hashEnd
	for i := len(x.frames) - 1; i >= 0; i-- {
		if f := x.frames[i]; f.at+1 < f.count() {
			x.end = f.hash(f.at + 1)
			return
		}
	}
}

// next goes on to the leaf after this one; there must be one.
func (x *index) next() error {
	i := len(x.frames) - 1
	for i >= 0 && x.frames[i].at+1 >= x.frames[i].count() {
		i--
	}
	if i < 0 {
		return corrupt("directory %d: the index ends", x.in.ino)
	}
	x.frames[i].at++
	for ; i+1 < len(x.frames); i++ {
		f, err := x.in.dxBlock(x.frames[i].block(x.frames[i].at), dxNodeOff)
		if err != nil {
			return err
		}
		x.frames[i+1] = f
	}
	x.settle()
	return nil
}

// hashFor hashes a name the way the directory's tree does.
func (in *Inode) hashFor(name string) (uint32, error) {
	root, err := in.dxBlock(0, dxRootOff)
	if err != nil {
		return 0, err
	}
	h, _, ok := in.fs.s.hashName(root.d[dxVersion], []byte(name))
	if !ok || root.d[dxVersion] > hashTEA {
		return 0, errNoIndex
	}
	return h, nil
}

// findDots finds "." or "..", which lie at the beginning of block 0.
func (in *Inode) findDots(name string) (place, error) {
	if name != "." && name != ".." {
		return place{}, nil
	}
	var d []byte
	if in.indexed() {
		f, err := in.dxBlock(0, dxRootOff)
		if err != nil {
			return place{}, err
		}
		d = f.d
	} else {
		b, err := in.dirBlock(0)
		if err != nil {
			return place{}, err
		}
		d = b.bytes()
	}
	e, prev, err := in.findDot(d, name)
	return place{0, e, prev}, corruptDir(in, 0, err)
}

func (in *Inode) findDot(d []byte, name string) (e, prev entry, err error) {
	if e, err = entryAt(d, 0, len(d)); err != nil || string(e.name) == name {
		return e, prev, err
	}
	prev = e
	if e, err = entryAt(d, e.size, len(d)); err != nil || string(e.name) == name {
		return e, prev, err
	}
	return entry{}, entry{}, nil
}

// replaceDot makes ".." of an indexed directory lead elsewhere.
func (in *Inode) replaceDot(h *handle, p place, ino uint32) error {
	f, err := in.dxBlock(0, dxRootOff)
	if err != nil {
		return err
	}
	f.d = h.write(f.b)
	le.PutUint32(f.d[p.e.off:], ino)
	in.sealDx(f)
	return nil
}

// findIndexed looks a name up through the tree.
func (in *Inode) findIndexed(name string) (place, error) {
	if name == "." || name == ".." {
		return in.findDots(name)
	}
	hash, err := in.hashFor(name)
	if err != nil {
		return place{}, err
	}
	x, err := in.probe(hash)
	if err != nil {
		return place{}, err
	}
	for {
		b, err := in.dirBlock(x.leaf)
		if err != nil {
			return place{}, err
		}
		e, prev, err := in.findIn(b.bytes(), name)
		if err != nil || e.ino != 0 {
			return place{x.leaf, e, prev}, corruptDir(in, x.leaf, err)
		}
		if x.end != hash|1 {
			return place{}, nil
		}
		if err := x.next(); err != nil {
			return place{}, err
		}
	}
}

// makeIndex turns a directory of one full block into a tree with one leaf.
func (in *Inode) makeIndex(h *handle) error {
	s := in.fs.s
	root, err := in.dirBlock(0)
	if err != nil {
		return err
	}
	old := slices.Clone(root.bytes())
	dots, err := entryAt(old, 0, s.dirLimit())
	if err != nil {
		return corruptDir(in, 0, err)
	}
	up, err := entryAt(old, dots.size, s.dirLimit())
	if err != nil || string(dots.name) != "." || string(up.name) != ".." {
		return corrupt("directory %d does not begin with . and ..", in.ino)
	}
	lblk, leaf, err := in.addBlock(h, kindDir)
	if err != nil {
		return err
	}
	if _, err := in.fill(h.write(leaf), old, up.off+up.size, nil); err != nil {
		return err
	}
	d := h.write(root)
	clear(d)
	putEntry(d, 0, dxDotDot, dots.ino, ftDir, ".")
	putEntry(d, dxDotDot, len(d)-dxDotDot, up.ino, ftDir, "..")
	d[dxVersion] = min(s.hashVersion%hashUnsigned, hashTEA)
	d[dxInfoLen] = 8
	f := &dxFrame{b: root, d: d, off: dxRootOff}
	le.PutUint16(d[dxRootOff:], uint16(s.dxLimit(dxRootOff)))
	f.setCount(1)
	le.PutUint32(d[dxRootOff+4:], lblk)
	in.sealDx(f)
	root.mu.Lock()
	root.kind = kindIndex
	root.mu.Unlock()
	in.set(inFlags, true, flagIndex)
	return nil
}

// fill packs the entries of block from (from offset off on, those that keep says)
// into block d, which becomes a leaf.
func (in *Inode) fill(d, from []byte, off int, keep func(e entry) bool) (int, error) {
	limit := in.fs.s.dirLimit()
	at, last, n := 0, 0, 0
	clear(d)
	for off < limit {
		e, err := entryAt(from, off, limit)
		if err != nil {
			return 0, err
		}
		off += e.size
		if e.ino == 0 || keep != nil && !keep(e) {
			continue
		}
		putEntry(d, at, e.used(), e.ino, e.ftype, string(e.name))
		last, at, n = at, at+e.used(), n+1
	}
	if n == 0 {
		putEntry(d, 0, limit, 0, 0, "")
	} else {
		le.PutUint16(d[last+4:], uint16(limit-last))
	}
	in.sealDir(d)
	return n, nil
}

// addIndexed enters a name through the tree.
func (in *Inode) addIndexed(h *handle, name string, ino uint32, ft uint8) error {
	hash, err := in.hashFor(name)
	if err != nil {
		if err == errNoIndex {
			return fmt.Errorf("directory %d: %v: %w", in.ino, err, linux.EOPNOTSUPP)
		}
		return err
	}
	for range maxSameTry {
		x, err := in.probe(hash)
		if err != nil {
			return err
		}
		done, err := in.addAt(h, x.leaf, name, ino, ft)
		if err != nil || done {
			return err
		}
		// The highest full node whose parent has room is split first.
		i := len(x.frames) - 1
		for i >= 0 && x.frames[i].full() {
			i--
		}
		switch {
		case i == len(x.frames)-1:
			err = in.splitLeaf(h, x)
		case i >= 0:
			err = in.splitIndex(h, x.frames[i+1], x.frames[i])
		default:
			err = in.deepen(h, x.frames[0])
		}
		if err != nil {
			return err
		}
	}
	return linux.ENOSPC
}

// splitLeaf moves the upper half of a leaf's names, by hash, to a new one.
func (in *Inode) splitLeaf(h *handle, x *index) error {
	b, err := in.dirBlock(x.leaf)
	if err != nil {
		return err
	}
	old := slices.Clone(b.bytes())
	type one struct {
		hash uint32
		size int
	}
	var all []one
	total := 0
	for off, limit := 0, in.fs.s.dirLimit(); off < limit; {
		e, err := entryAt(old, off, limit)
		if err != nil {
			return corruptDir(in, x.leaf, err)
		}
		if e.ino != 0 {
			major, _, _ := in.fs.s.hashName(x.version, e.name)
			all = append(all, one{major, e.used()})
			total += e.used()
		}
		off += e.size
	}
	if len(all) < 2 {
		return corrupt("directory %d: block %d is full with %d names", in.ino, x.leaf, len(all))
	}
	slices.SortFunc(all, func(a, b one) int { return int(int64(a.hash) - int64(b.hash)) })
	cut, sum := 1, all[0].size
	for cut < len(all)-1 && sum+all[cut].size <= total/2 {
		sum += all[cut].size
		cut++
	}
	// Names of one hash stay together where they can.
	key := all[cut].hash
	if all[cut-1].hash == key {
		lo, hi := cut, cut
		for lo > 0 && all[lo-1].hash == key {
			lo--
		}
		for hi < len(all) && all[hi].hash == key {
			hi++
		}
		switch {
		case lo > 0:
			cut = lo
		case hi < len(all):
			cut, key = hi, all[hi].hash
		}
	}
	seen := 0
	upper := func(e entry) bool { // in the order of the block
		major, _, _ := in.fs.s.hashName(x.version, e.name)
		if major != key {
			return major > key
		}
		seen++
		return all[cut-1].hash != key || seen > cut // all of one hash: by count
	}
	lblk, fresh, err := in.addBlock(h, kindDir)
	if err != nil {
		return err
	}
	if _, err := in.fill(h.write(fresh), old, 0, upper); err != nil {
		return err
	}
	seen = 0
	if _, err := in.fill(h.write(b), old, 0, func(e entry) bool { return !upper(e) }); err != nil {
		return err
	}
	if all[cut-1].hash == key {
		key |= 1
	}
	f := x.frames[len(x.frames)-1]
	f.d = h.write(f.b)
	f.insert(key, lblk)
	in.sealDx(f)
	return nil
}

// splitIndex moves the upper half of a full node to a new one.
func (in *Inode) splitIndex(h *handle, full, parent *dxFrame) error {
	lblk, b, err := in.addBlock(h, kindIndex)
	if err != nil {
		return err
	}
	half := full.count() / 2
	key := full.hash(half)
	in.newDxNode(h, b, full, half)
	full.d = h.write(full.b)
	full.setCount(half)
	in.sealDx(full)
	parent.d = h.write(parent.b)
	parent.insert(key, lblk)
	in.sealDx(parent)
	return nil
}

// newDxNode makes a block a node with the entries of another from entry from on.
func (in *Inode) newDxNode(h *handle, b *buffer, of *dxFrame, from int) {
	d := h.write(b)
	le.PutUint16(d[4:], uint16(len(d)))
	f := &dxFrame{b: b, d: d, off: dxNodeOff}
	copy(d[dxNodeOff:], of.d[of.off+8*from:of.off+8*of.count()])
	le.PutUint16(d[dxNodeOff:], uint16(in.fs.s.dxLimit(dxNodeOff)))
	f.setCount(of.count() - from)
	in.sealDx(f)
}

// deepen moves the root's entries to a node of their own.
func (in *Inode) deepen(h *handle, root *dxFrame) error {
	levels := int(root.d[dxLevels])
	most := dxMaxDeep
	if in.fs.s.incompat&incompatLargeDir != 0 {
		most++
	}
	if levels >= most {
		return fmt.Errorf("directory %d: the index is full: %w", in.ino, linux.ENOSPC)
	}
	lblk, b, err := in.addBlock(h, kindIndex)
	if err != nil {
		return err
	}
	in.newDxNode(h, b, root, 0)
	root.d = h.write(root.b)
	clear(root.d[dxRootOff+4 : dxRootOff+8*root.limit()])
	root.setCount(1)
	le.PutUint32(root.d[dxRootOff+4:], lblk)
	root.d[dxLevels] = byte(levels + 1)
	in.sealDx(root)
	return nil
}
