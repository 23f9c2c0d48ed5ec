package ext4

import "hardtack/abi/linux"

// What a tree of extents does where no block is free for its nodes.

// nodesPromise is what replacing one run by three in a tree may need.
const nodesPromise = 2 * extentPromise

// promiseNodes sets blocks aside for nodes of the tree, which the run at lblk may
// need: nodesPromise of them or, on a full disk, exactly as many.
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

// nodesFor is how many nodes two more entries at lblk make necessary: as many as are
// full on the way there, and a new root.
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

// unsplit readies an unwritten extent for data in a part x of it, where no block is
// free to split it; the file will be size bytes long. What the extent has behind that
// end gives blocks for nodes, and promised is how many it gave. Else the extent gets
// zeros besides x, and becomes written as a whole.
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

// freeEnd frees blocks from … to-1, where an extent ends: its tree needs no block for that.
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

// extentAt returns the extent that has lblk.
func (in *Inode) extentAt(lblk uint32) (extent, error) {
	var p path
	if err := in.findPath(&p, lblk); err != nil {
		return extent{}, err
	}
	return p.leaf().d.extent(p.leaf().pos), nil
}

// writeZeros writes zeros to what an unwritten extent has besides x, a part of it.
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

// markWritten makes the whole unwritten extent that has lblk a written one.
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

// zeroRange makes the whole blocks first … last-1 of a file read as zeros where they
// lie: the space stays the file's, however full the disk is.
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

// makeUnwritten turns a run of written blocks into an unwritten one; where the tree
// has no room for that they get zeros.
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
