package ext4

import (
	"hardtack/abi/linux"
)

// Fallocate is fallocate(2): mode 0 and FALLOC_FL_KEEP_SIZE allocate,
// FALLOC_FL_PUNCH_HOLE (with KEEP_SIZE) frees, FALLOC_FL_ZERO_RANGE does both;
// FALLOC_FL_COLLAPSE_RANGE and FALLOC_FL_INSERT_RANGE move what follows; EOPNOTSUPP for
// others.
func (fs *FS) Fallocate(in *Inode, mode uint32, off, n int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if off < 0 || n <= 0 {
		return linux.EINVAL
	}
	if err := fs.writable(in, off, n); err != nil {
		return err
	}
	keep := mode&linux.FALLOC_FL_KEEP_SIZE != 0
	switch mode &^ linux.FALLOC_FL_KEEP_SIZE {
	case linux.FALLOC_FL_PUNCH_HOLE:
		if !keep {
			return linux.EOPNOTSUPP
		}
		return fs.punch(in, off, n)
	case linux.FALLOC_FL_ZERO_RANGE:
		if err := fs.zeroEdges(in, off, n); err != nil {
			return err
		}
		if first, last := fs.wholeBlocks(off, n); first < last {
			if err := in.zeroRange(uint32(first), uint32(last)); err != nil {
				return err
			}
		}
	case linux.FALLOC_FL_COLLAPSE_RANGE:
		return fs.collapse(in, off, n)
	case linux.FALLOC_FL_INSERT_RANGE:
		return fs.insert(in, off, n)
	case 0:
	default:
		return linux.EOPNOTSUPP
	}
	return fs.preallocate(in, off, n, keep)
}

// wholeBlocks returns the blocks first … last-1 that lie wholly within a range.
func (fs *FS) wholeBlocks(off, n int64) (first, last int64) {
	bs := int64(fs.s.blockSize)
	return (off + bs - 1) / bs, (off + n) / bs
}

// zeroEdges zeroes a range's parts of blocks that are not wholly within it.
func (fs *FS) zeroEdges(in *Inode, off, n int64) error {
	bs := int64(fs.s.blockSize)
	end := off + n
	first, last := fs.wholeBlocks(off, n)
	zero := func(from, to int64) error { // within one block
		m, err := in.mapBlock(uint32(from / bs))
		if err != nil || m.Phys == 0 || m.Unwritten || from >= to {
			return err
		}
		base := from / bs * bs
		return in.zeroIn(m.Phys, from-base, to-base)
	}
	if first > last {
		return zero(off, end)
	}
	if off < first*bs {
		if err := zero(off, first*bs); err != nil {
			return err
		}
	}
	if last*bs < end {
		return zero(last*bs, end)
	}
	return nil
}

// punch zeroes a range and frees the whole blocks in it.
func (fs *FS) punch(in *Inode, off, n int64) error {
	if err := fs.zeroEdges(in, off, n); err != nil {
		return err
	}
	if first, last := fs.wholeBlocks(off, n); first < last {
		if err := fs.cutAll(in, uint64(first), uint64(last), nil, 0); err != nil {
			return err
		}
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	in.touch(h.now, true)
	return in.store(h)
}

// preallocate fills the holes of a range with unwritten blocks.
func (fs *FS) preallocate(in *Inode, off, n int64, keep bool) error {
	bs := int64(fs.s.blockSize)
	end := off + n
	if !keep && end > in.size() {
		if err := in.zeroTail(); err != nil {
			return err
		}
	}
	first, last := uint32(off/bs), uint32((end-1)/bs)
	at, full := first, error(nil)
	for at <= last {
		m, err := in.mapBlock(at)
		if err != nil {
			return err
		}
		count := min(m.N, last-at+1)
		if m.Phys == 0 {
			count = min(count, exMaxLen-1)
			if err := fs.preallocateRun(in, at, &count); Errno(err) == linux.ENOSPC {
				full = err
				break
			} else if err != nil {
				return err
			}
		}
		at += count
	}
	if at == first {
		return full
	}
	// On a full disk the file keeps what it got so far, as on Linux.
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	if end = min(end, int64(at)*bs); !keep && end > in.size() {
		in.setSize(end)
	}
	in.touch(h.now, true)
	if err := in.store(h); err != nil {
		return err
	}
	return full
}

// preallocateRun fills part of a hole and sets count to the number of blocks filled.
func (fs *FS) preallocateRun(in *Inode, at uint32, count *uint32) error {
	promised := int64(*count) + extentPromise
	for {
		err := fs.promiseAbove(promised, fs.keep(fs.margin(), fs.late.Load()))
		if err == nil {
			break
		}
		if *count == 1 || Errno(err) != linux.ENOSPC {
			return err
		}
		*count /= 2 // as much as there is room for
		promised = int64(*count) + extentPromise
	}
	r, err := fs.allocate(in.goalFor(at), *count)
	if err != nil {
		fs.free.Add(promised)
		return err
	}
	h, err := fs.begin(extentCredits + markCredits + 1)
	if err != nil {
		fs.unbusy(r)
		fs.free.Add(promised)
		return err
	}
	defer h.end()
	*count = uint32(r.n)
	if err := fs.markUsed(h, r); err != nil {
		return fs.fail(err)
	}
	in.addBlocks(int64(r.n))
	used, err := in.insertExtent(h, extent{at, uint32(r.n), r.blk, true})
	if err != nil {
		return fs.fail(err)
	}
	fs.free.Add(promised - int64(r.n) - used)
	return fs.fail(in.store(h))
}
