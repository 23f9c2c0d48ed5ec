package ext4

import (
	"cmp"
	"fmt"
	"slices"

	"hardtack/abi/linux"
)

// insert adds an entry after the one taken.
func (f *dxFrame) insert(hash, block uint32) {
	i, n := f.at+1, f.count()
	copy(f.d[f.off+8*(i+1):f.off+8*(n+1)], f.d[f.off+8*i:f.off+8*n])
	le.PutUint32(f.d[f.off+8*i:], hash)
	le.PutUint32(f.d[f.off+8*i+4:], block)
	f.setCount(n + 1)
}

// makeIndex turns a directory of one full block into a tree with one leaf.
func (in *Inode) makeIndex(h *handle) error {
	s := in.fs.s
	root, old, err := in.dirBlock(0)
	if err != nil {
		return err
	}
	old = slices.Clone(old)
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
	le.PutUint16(d[dxRootOff:], uint16(s.dxLimit(dxRootOff)))
	le.PutUint16(d[dxRootOff+2:], 1)
	le.PutUint32(d[dxRootOff+4:], lblk)
	root.mu.Lock()
	root.kind = kindRoot
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
	return n, nil
}

// addIndexed adds a name by the tree.
func (in *Inode) addIndexed(h *handle, name string, ino uint32, ft uint8) error {
	var x index
	for range maxSameTry {
		err := x.open(in)
		var hash uint32
		if err == nil {
			hash, err = x.hash(name)
		}
		if err == errNoIndex {
			return fmt.Errorf("directory %d: %v: %w", in.ino, err, linux.EOPNOTSUPP)
		}
		if err == nil {
			err = x.descend(hash)
		}
		if err != nil {
			return err
		}
		done, err := in.addAt(h, x.leaf, name, ino, ft)
		if err != nil || done {
			return err
		}
		// The highest full node whose parent has room is split first.
		i := x.n - 1
		for i >= 0 && x.frames[i].full() {
			i--
		}
		switch {
		case i == x.n-1:
			err = in.splitLeaf(h, &x)
		case i >= 0:
			err = in.splitIndex(h, &x.frames[i+1], &x.frames[i])
		default:
			err = in.deepen(h, &x.frames[0])
		}
		if err != nil {
			return err
		}
	}
	return linux.ENOSPC
}

// splitLeaf moves the upper half of a leaf's names, by hash, to a new one.
func (in *Inode) splitLeaf(h *handle, x *index) error {
	b, old, err := in.dirBlock(x.leaf)
	if err != nil {
		return err
	}
	old = slices.Clone(old)
	all, total, err := in.hashedNames(x, old)
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return corrupt("directory %d: block %d is full with %d names", in.ino, x.leaf, len(all))
	}
	cut, key := halves(all, total)
	moves := make([]bool, len(old)/4)
	for _, e := range all[cut:] {
		moves[e.off/4] = true
	}
	lblk, fresh, err := in.addBlock(h, kindDir)
	if err != nil {
		return err
	}
	if _, err := in.fill(h.write(fresh), old, 0, func(e entry) bool { return moves[e.off/4] }); err != nil {
		return err
	}
	if _, err := in.fill(h.write(b), old, 0, func(e entry) bool { return !moves[e.off/4] }); err != nil {
		return err
	}
	if all[cut-1].hash == key {
		key |= 1
	}
	f := &x.frames[x.n-1]
	f.d = h.write(f.b)
	f.insert(key, lblk)
	return nil
}

// hashedName is a name in a leaf.
type hashedName struct {
	hash      uint32
	off, size int
}

// hashedNames returns a leaf's names in the order of their hashes, and the sum of their
// sizes.
func (in *Inode) hashedNames(x *index, leaf []byte) (all []hashedName, total int, err error) {
	all = make([]hashedName, 0, len(leaf)/16)
	for off, limit := 0, in.fs.s.dirLimit(); off < limit; {
		e, err := entryAt(leaf, off, limit)
		if err != nil {
			return nil, 0, corruptDir(in, x.leaf, err)
		}
		if e.ino != 0 {
			major, _, _ := in.fs.s.hash(x.version, e.name)
			all = append(all, hashedName{major, off, e.used()})
			total += e.used()
		}
		off += e.size
	}
	slices.SortFunc(all, func(a, b hashedName) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Compare(a.off, b.off)
	})
	return all, total, nil
}

// halves returns where the upper half of a leaf's names begins, and its hash for the
// index. Names with the same hash stay together if possible.
func halves(all []hashedName, total int) (cut int, key uint32) {
	cut, sum := 1, all[0].size
	for cut < len(all)-1 && sum+all[cut].size <= total/2 {
		sum += all[cut].size
		cut++
	}
	key = all[cut].hash
	if all[cut-1].hash != key {
		return cut, key
	}
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
	return cut, key
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
	parent.d = h.write(parent.b)
	parent.insert(key, lblk)
	return nil
}

// newDxNode makes a block a node with another node's entries, from entry from on.
func (in *Inode) newDxNode(h *handle, b *buffer, of *dxFrame, from int) {
	d := h.write(b)
	le.PutUint16(d[4:], uint16(len(d)))
	copy(d[dxNodeOff:], of.d[of.off+8*from:of.off+8*of.count()])
	le.PutUint16(d[dxNodeOff:], uint16(in.fs.s.dxLimit(dxNodeOff)))
	le.PutUint16(d[dxNodeOff+2:], uint16(of.count()-from))
}

// deepen moves the root's entries to a new node.
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
	return nil
}
