package ext4

import "hardtack/abi/linux"

// Ranges are removed from a file, or inserted, by renumbering the extents that follow:
// their blocks stay in place. If the tree has few leaves, all of it is one handle.
// Otherwise a crash between two handles leaves the file with some of the extents moved, as
// on Linux; no extent is lost or duplicated.

// moveCredits is how many blocks may change when one leaf's extents move: a path, and
// those for splitting an extent and inserting its second part.
const moveCredits = exMaxDeep + 1 + cutCredits + extentCredits

// collapse takes n bytes at off out of the file: both are whole blocks, and something
// follows them.
func (fs *FS) collapse(in *Inode, off, n int64) error {
	bs := int64(fs.s.blockSize)
	if (off|n)%bs != 0 || off+n >= in.size() {
		return linux.EINVAL
	}
	fs.forgetAhead(in)
	first, last := uint32(off/bs), uint32((off+n)/bs)
	var p path
	if err := in.findPath(&p, first); err != nil {
		return err
	}
	promised := int64(0)
	if l := p.leaf(); l.pos >= 0 && l.d.key(l.pos) < first && l.d.extent(l.pos).end() > last { // one becomes two
		var err error
		if promised, err = in.promiseNodes(first); err != nil {
			return err
		}
	}
	defer func() { fs.free.Add(promised) }()
	next, cutting := uint64(last), true
	return in.steps(cutCredits, func(h *handle) (bool, error) {
		if cutting {
			gone, used, err := in.cut(h, uint64(first), uint64(last), true)
			promised -= used
			cutting = gone.n > 0
			return false, err
		}
		if more, err := in.moveDown(h, &next, last-first); more || err != nil {
			return false, err
		}
		in.setSize(in.size() - n)
		in.touch(h.now, true)
		return true, in.joinAt(h, first)
	})
}

// insert puts a hole of n bytes into the file at off: both are whole blocks, and off lies
// within the file.
func (fs *FS) insert(in *Inode, off, n int64) error {
	bs := int64(fs.s.blockSize)
	if (off|n)%bs != 0 {
		return linux.EINVAL
	}
	if err := fs.writable(in, in.size(), n); err != nil {
		return err
	}
	if off >= in.size() {
		return linux.EINVAL
	}
	var p path
	if err := in.findPath(&p, maxFileBlocks); err != nil {
		return err
	}
	// Blocks that lie beyond the end move too.
	if l := p.leaf(); l.pos >= 0 && int64(l.d.extent(l.pos).end())+n/bs > maxFileBlocks {
		return linux.EINVAL
	}
	fs.forgetAhead(in)
	from := uint32(off / bs)
	promised, err := in.promiseNodes(from)
	if err != nil {
		return err
	}
	defer func() { fs.free.Add(promised) }()
	hi, grown := uint64(maxFileBlocks+1), false
	return in.steps(moveCredits, func(h *handle) (bool, error) {
		if !grown { // first, so that no data lies beyond the end
			in.setSize(in.size() + n)
			in.touch(h.now, true)
			grown = true
		}
		more, used, err := in.moveUp(h, from, &hi, uint32(n/bs))
		promised -= used
		return !more, err
	})
}

// steps runs step until it is done, in as few handles as possible. Each step may change
// credits blocks.
func (in *Inode) steps(credits int, step func(h *handle) (done bool, err error)) error {
	fs := in.fs
	for done := false; !done; {
		h, err := fs.begin(credits + 1)
		if err != nil {
			return err
		}
		for {
			if done, err = step(h); done || err != nil {
				break
			}
			if lack := credits + 1 - h.credits; lack > 0 && !h.extend(lack) {
				break
			}
		}
		if err == nil {
			err = in.store(h)
		}
		h.end()
		if err != nil {
			return fs.fail(err)
		}
	}
	return nil
}

// moveDown moves the extents of one leaf that begin at *next or later d blocks down, and
// sets *next behind them; more is false where there was none.
func (in *Inode) moveDown(h *handle, next *uint64, d uint32) (more bool, err error) {
	if *next > maxFileBlocks {
		return false, nil
	}
	var p path
	if err := in.findPath(&p, uint32(*next)); err != nil {
		return false, err
	}
	l := p.leaf()
	i := max(l.pos, 0)
	if i < l.d.count() && uint64(l.d.extent(i).lblk) < *next {
		i++
	}
	if i == l.d.count() {
		*next = p.nextKey()
		if *next > maxFileBlocks {
			return false, nil
		}
		if err := in.findPath(&p, uint32(*next)); err != nil {
			return false, err
		}
		l, i = p.leaf(), 0
	}
	in.change(h, l)
	first := i == 0
	for ; i < l.d.count(); i++ {
		x := l.d.extent(i)
		*next = uint64(x.lblk) + 1
		x.lblk -= d
		l.d.putExtent(i, x)
	}
	if first {
		l.pos = 0
		in.fixKeys(h, &p)
	}
	return true, nil
}

// moveUp moves the last extents below *hi d blocks up, those of one leaf and from block
// from on, and sets *hi to where they began; more is false when there can be no others.
func (in *Inode) moveUp(h *handle, from uint32, hi *uint64, d uint32) (more bool, used int64, err error) {
	var p path
	if *hi == 0 {
		return false, 0, nil
	}
	if err := in.findPath(&p, uint32(*hi-1)); err != nil {
		return false, 0, err
	}
	l := p.leaf()
	if l.pos < 0 || l.d.extent(l.pos).end() <= from {
		return false, 0, nil
	}
	in.change(h, l)
	for ; l.pos >= 0; l.pos-- {
		x := l.d.extent(l.pos)
		if x.lblk < from {
			if x.end() <= from {
				return false, 0, nil
			}
			tail, _, err := in.cut(h, uint64(from), uint64(x.end()), false)
			if err != nil {
				return false, 0, err
			}
			tail.lblk += d
			used, err = in.insertExtent(h, tail)
			return false, used, err
		}
		*hi = uint64(x.lblk)
		x.lblk += d
		l.d.putExtent(l.pos, x)
	}
	in.fixKeys(h, &p)
	return true, 0, nil
}

// joinAt merges two extents that meet at block lblk.
func (in *Inode) joinAt(h *handle, lblk uint32) error {
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return err
	}
	if l := p.leaf(); l.pos > 0 && l.d.extent(l.pos-1).joins(l.d.extent(l.pos)) {
		in.change(h, l)
		l.pos--
		in.joinNext(l)
	}
	return nil
}
