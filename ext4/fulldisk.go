package ext4

import "hardtack/abi/linux"

// Changes of the extent tree when no block is free for its nodes.

// nodesPromise is what replacing one run by three in a tree may need.
const nodesPromise = 2 * extentPromise

// promiseNodes reserves blocks for the nodes of the tree that a run at lblk may need:
// nodesPromise of them or, on a full disk, the exact number.
func (in *Inode) promiseNodes(lblk uint32) (int64, error) {
	err := in.fs.promise(nodesPromise)
	if Errno(err) != linux.ENOSPC {
		return nodesPromise, err
	}
	n, err := in.nodesFor(lblk)
	if err == nil {
		err = in.fs.promise(n)
	}
	return n, err
}

// nodesFor is how many new nodes two more entries at lblk need: one for each full node
// on the path, and a new root.
func (in *Inode) nodesFor(lblk uint32) (n int64, err error) {
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return 0, err
	}
	more := 2
	for i := p.n - 1; i >= 0; i-- {
		if d := p.l[i].d; d.count()+more <= d.room() {
			break
		}
		n, more = n+1, 1
	}
	return n, nil
}

// unsplit prepares an unwritten extent for data in a part x of it when no block is free
// to split it; the file will be size bytes long. The extent's blocks beyond that end
// become available for nodes; promised is how many there were. If there are none, the
// rest of the extent is zeroed and the whole extent becomes written.
func (in *Inode) unsplit(x extent, size int64) (promised int64, zeroed bool, err error) {
	bs := int64(in.fs.s.blockSize)
	limit := uint64((max(size, in.size()) + bs - 1) / bs)
	for {
		all, err := in.extentAt(x.lblk)
		if err != nil {
			return 0, false, err
		}
		if uint64(all.end()) <= limit {
			return 0, true, in.writeZeros(all, x)
		}
		from := max(limit, uint64(x.end()), uint64(all.end())-min(uint64(all.end()), nodesPromise))
		if from == uint64(all.end()) {
			return 0, false, linux.ENOSPC
		}
		if err := in.freeEnd(from, uint64(all.end())); err != nil {
			return 0, false, err
		}
		if promised, err = in.promiseNodes(x.lblk); Errno(err) != linux.ENOSPC {
			return promised, false, err
		}
	}
}

// freeEnd frees blocks from … to-1 at the end of an extent. The tree needs no new node.
func (in *Inode) freeEnd(from, to uint64) error {
	fs := in.fs
	h, err := fs.begin(cutCredits + 1)
	if err != nil {
		return err
	}
	defer h.end()
	if _, _, err := in.cut(h, from, to, true); err != nil {
		return fs.fail(err)
	}
	return fs.fail(in.store(h))
}

// extentAt returns the extent that contains lblk.
func (in *Inode) extentAt(lblk uint32) (extent, error) {
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return extent{}, err
	}
	return p.leaf().d.extent(p.leaf().pos), nil
}

// writeZeros zeroes an unwritten extent, except for its part x.
func (in *Inode) writeZeros(all, x extent) error {
	if err := in.zeroBlocks(all.phys, x.lblk-all.lblk); err != nil {
		return err
	}
	return in.zeroBlocks(x.phys+uint64(x.n), all.end()-x.end())
}

// zeroBlocks writes zeros to n blocks.
func (in *Inode) zeroBlocks(phys uint64, n uint32) error {
	const most = 64
	b := make([]byte, min(n, most)*in.fs.s.blockSize)
	for n > 0 {
		k := min(n, most)
		t := []Transfer{{in.fs.byteOf(phys), b[:k*in.fs.s.blockSize]}}
		if err := in.fs.dev.WriteAt(t, false); err != nil {
			return ioError(err)
		}
		phys, n = phys+uint64(k), n-k
	}
	return nil
}

// markWritten marks the whole unwritten extent that contains lblk as written.
func (in *Inode) markWritten(h *handle, lblk uint32) error {
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return err
	}
	l := p.leaf()
	in.change(h, l)
	x := l.d.extent(l.pos)
	x.unwritten = false
	l.d.putExtent(l.pos, x)
	return nil
}

// zeroRange makes the blocks first … last-1 of a file read as zeros in place: the file
// keeps its space, however full the disk is.
func (in *Inode) zeroRange(first, last uint32) error {
	for at := first; at < last; {
		m, err := in.mapBlock(at)
		if err != nil {
			return err
		}
		k := min(m.N, last-at)
		if m.Phys != 0 && !m.Unwritten {
			k = min(k, exMaxLen-1)
			if err := in.makeUnwritten(extent{at, k, m.Phys, true}); err != nil {
				return err
			}
		}
		at += k
	}
	return nil
}

// makeUnwritten makes a run of written blocks unwritten. If the tree has no space for
// that, it zeroes them.
func (in *Inode) makeUnwritten(x extent) error {
	fs := in.fs
	promised, err := in.promiseNodes(x.lblk)
	if Errno(err) == linux.ENOSPC {
		in.wroteOver()
		return in.zeroBlocks(x.phys, x.n)
	}
	if err != nil {
		return err
	}
	h, err := fs.begin(cutCredits + extentCredits + 1)
	if err != nil {
		fs.free.Add(promised)
		return err
	}
	defer h.end()
	_, used, err := in.cut(h, uint64(x.lblk), uint64(x.end()), false)
	if err == nil {
		var n int64
		n, err = in.insertExtent(h, x)
		used += n
	}
	fs.free.Add(promised - used)
	if err == nil {
		err = in.store(h)
	}
	return fs.fail(err)
}
