package ext4

// Changes to the tree. Every function here leaves a consistent tree, in h's transaction.
// The caller stores the inode, which holds the root.

// extentCredits is how many blocks insertExtent may change for one run: a path, as many
// new nodes, and their bitmaps and descriptors.
const extentCredits = (exMaxDeep + 1) * 4

// extentPromise is how many blocks insertExtent may need for nodes.
const extentPromise = exMaxDeep

// change makes a level of a path part of the transaction.
func (in *Inode) change(h *handle, l *level) {
	if l.b != nil {
		l.d = h.write(l.b)
	}
}

// sealNode stores a node's checksum.
func sealNode(seed uint32, d node) {
	tail := exHeader + d.room()*exEntry
	le.PutUint32(d[tail:], crc32c(seed, d[:tail]))
}

// joins reports whether b continues a.
func (a extent) joins(b extent) bool {
	limit := uint32(exMaxLen)
	if a.unwritten {
		limit--
	}
	return a.unwritten == b.unwritten && a.lblk+a.n == b.lblk && a.phys+uint64(a.n) == b.phys && a.n+b.n <= limit
}

// insertExtent adds a run where there was none. New nodes come from the caller's
// promise; used is how many there were.
func (in *Inode) insertExtent(h *handle, x extent) (used int64, err error) {
	var p path
	for {
		if err := in.findPath(&p, x.lblk); err != nil {
			return used, err
		}
		l := p.leaf()
		if l.pos >= 0 {
			if e := l.d.extent(l.pos); e.joins(x) {
				in.change(h, l)
				e.n += x.n
				l.d.putExtent(l.pos, e)
				in.joinNext(l)
				return used, nil
			}
		}
		if l.pos+1 < l.d.count() {
			if e := l.d.extent(l.pos + 1); x.joins(e) {
				in.change(h, l)
				e.lblk, e.phys, e.n = x.lblk, x.phys, e.n+x.n
				l.d.putExtent(l.pos+1, e)
				l.pos++
				in.fixKeys(h, &p)
				return used, nil
			}
		}
		if l.d.count() < l.d.room() {
			in.change(h, l)
			l.pos++
			l.d.insert(l.pos)
			l.d.putExtent(l.pos, x)
			in.fixKeys(h, &p)
			return used, nil
		}
		if err := in.split(h, &p); err != nil {
			return used, err
		}
		used++
	}
}

// joinNext merges the entry at l.pos with the next one if they are contiguous.
func (in *Inode) joinNext(l *level) {
	if l.pos+1 < l.d.count() {
		a, b := l.d.extent(l.pos), l.d.extent(l.pos+1)
		if a.joins(b) {
			a.n += b.n
			l.d.putExtent(l.pos, a)
			l.d.remove(l.pos + 1)
		}
	}
}

// fixKeys gives the entries above the first entry of a leaf its key.
func (in *Inode) fixKeys(h *handle, p *path) {
	for i := p.n - 1; i > 0 && p.l[i].pos <= 0 && p.l[i].d.count() > 0; i-- {
		up := &p.l[i-1]
		if k := p.l[i].d.key(0); up.d.key(up.pos) != k {
			in.change(h, up)
			le.PutUint32(up.d.entry(up.pos), k)
		}
	}
}

// split splits the highest full node of a path whose parent has space. If there is none,
// it adds a level to the tree. Either takes one block.
func (in *Inode) split(h *handle, p *path) error {
	i := p.n - 1
	for i > 0 && p.l[i-1].d.count() == p.l[i-1].d.room() {
		i--
	}
	if i == 0 {
		return in.grow(h, p)
	}
	old, up := &p.l[i], &p.l[i-1]
	b, err := in.fs.newMeta(h, in, old.b.blk, kindExtent)
	if err != nil {
		return err
	}
	in.change(h, old)
	in.change(h, up)
	fresh := level{b: b, d: h.write(b)}
	initNode(fresh.d, old.d.depth(), in.fs.s.nodeRoom())
	n := old.d.count()
	from := n / 2
	if old.pos == n-1 {
		from = n - 1 // growing at the end: leave a full node behind
	}
	copy(fresh.d[exHeader:], old.d[exHeader+from*exEntry:exHeader+n*exEntry])
	fresh.d.setCount(n - from)
	old.d.setCount(from)
	up.d.insert(up.pos + 1)
	up.d.putChild(up.pos+1, fresh.d.key(0), b.blk)
	return nil
}

// grow moves the root's entries to a new block.
func (in *Inode) grow(h *handle, p *path) error {
	root := p.l[0].d
	if root.depth() == exMaxDeep {
		return corrupt("inode %d: the extent tree is too deep", in.ino)
	}
	b, err := in.fs.newMeta(h, in, in.goal, kindExtent)
	if err != nil {
		return err
	}
	l := level{b: b, d: h.write(b)}
	initNode(l.d, root.depth(), in.fs.s.nodeRoom())
	copy(l.d[exHeader:], root[exHeader:exHeader+root.count()*exEntry])
	l.d.setCount(root.count())
	key := root.key(0)
	initNode(root, root.depth()+1, root.room())
	root.setCount(1)
	root.putChild(0, key, b.blk)
	return nil
}

// cutCredits is how many blocks cut may change for one extent: a path, the bitmaps of
// its blocks and of nodes that become empty, and a split.
const cutCredits = extentCredits + exMaxDeep*3 + markCredits

// maxRevokes limits how many blocks of a directory one cut frees.
const maxRevokes = 128

// cut removes the last extent's part of from … to-1 from the tree and returns it; n is 0
// if there was none. With free set, it also frees the blocks.
func (in *Inode) cut(h *handle, from, to uint64, free bool) (gone extent, used int64, err error) {
	var p path
	if err := in.findPath(&p, uint32(to-1)); err != nil {
		return extent{}, 0, err
	}
	l := p.leaf()
	if l.pos < 0 {
		return extent{}, 0, nil
	}
	x := l.d.extent(l.pos)
	end := uint64(x.lblk) + uint64(x.n)
	lo, hi := max(from, uint64(x.lblk)), min(to, end)
	if lo >= hi {
		return extent{}, 0, nil
	}
	if free && !in.isReg() { // each block may be in the log, and is revoked
		lo = max(lo, hi-min(hi, maxRevokes))
	}
	if free { // in two groups at most
		lo = max(lo, hi-min(hi, uint64(in.fs.s.blocksPerGroup)))
	}
	gone = extent{uint32(lo), uint32(hi - lo), x.phys + lo - uint64(x.lblk), x.unwritten}
	if free {
		if err := in.fs.markFree(h, run{gone.phys, uint64(gone.n)}); err != nil {
			return extent{}, 0, err
		}
		in.addBlocks(-int64(gone.n))
		if !in.isReg() {
			for i := range uint64(gone.n) {
				if err := h.forget(gone.phys+i, kindDir, in.owner()); err != nil {
					return extent{}, 0, err
				}
			}
		}
	}
	in.change(h, l)
	rest := extent{uint32(hi), uint32(end - hi), x.phys + hi - uint64(x.lblk), x.unwritten}
	switch {
	case lo > uint64(x.lblk): // the front stays
		x.n = uint32(lo - uint64(x.lblk))
		l.d.putExtent(l.pos, x)
		if rest.n > 0 {
			used, err = in.insertExtent(h, rest)
		}
		return gone, used, err
	case rest.n > 0:
		l.d.putExtent(l.pos, rest)
		in.fixKeys(h, &p)
		return gone, 0, nil
	}
	l.d.remove(l.pos)
	for i := p.n - 1; i > 0 && p.l[i].d.count() == 0; i-- {
		if err := in.fs.freeMeta(h, in, p.l[i].b.blk, kindExtent, in.owner()); err != nil {
			return gone, 0, err
		}
		up := &p.l[i-1]
		in.change(h, up)
		up.d.remove(up.pos)
		p.n = i
	}
	if p.n == 1 && p.l[0].d.count() == 0 {
		initNode(p.l[0].d, 0, p.l[0].d.room())
		return gone, 0, nil
	}
	in.fixKeys(h, &p)
	return gone, 0, nil
}
