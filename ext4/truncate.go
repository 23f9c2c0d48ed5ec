package ext4

import (
	"hardtack/abi/linux"
)

// zeroTail zeroes the part of the last block beyond the end of the file, before the file
// grows over it.
func (in *Inode) zeroTail() error {
	bs := int64(in.fs.s.blockSize)
	size := in.size()
	if size%bs == 0 {
		return nil
	}
	m, err := in.mapBlock(uint32(size / bs))
	if err != nil || m.Phys == 0 || m.Unwritten {
		return err
	}
	return in.zeroIn(m.Phys, size%bs, bs)
}

// zeroIn writes zeros to bytes from … to-1 of a block, in place.
func (in *Inode) zeroIn(phys uint64, from, to int64) error {
	fs := in.fs
	b := make([]byte, fs.s.blockSize)
	t := []Transfer{{fs.byteOf(phys), b}}
	if err := fs.dev.ReadAt(t); err != nil {
		return ioError(err)
	}
	if allZero(b[from:to]) {
		return nil
	}
	clear(b[from:to])
	return ioError(fs.dev.WriteAt(t, false))
}

// Truncate sets a file's size. A crash leaves either the old file or the new one: the
// block in which a shorter file ends is written to a new place.
func (fs *FS) Truncate(in *Inode, size int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if size < 0 {
		return linux.EINVAL
	}
	if err := fs.writable(in, size, 0); err != nil {
		return err
	}
	if size > in.size() {
		return in.lengthen(size)
	}
	return fs.shorten(in, size)
}

// lengthen makes a file longer; called with mu held.
func (in *Inode) lengthen(size int64) error {
	if err := in.zeroTail(); err != nil {
		return err
	}
	h, err := in.fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	in.setSize(size)
	in.touch(h.now, true)
	return in.store(h)
}

// shorten cuts a file, or keeps its size; called with its mu held.
func (fs *FS) shorten(in *Inode, size int64) error {
	fs.forgetAhead(in)
	tail, err := in.copyTail(size)
	if err != nil {
		return err
	}
	bs := int64(fs.s.blockSize)
	first := uint64((size + bs - 1) / bs)
	promised := int64(nodesPromise)
	if err := fs.promise(promised); err != nil {
		// A cut needs no block, except for the copy of the block where it ends.
		in.undo(tail, freshBlocks(tail))
		promised, tail = 0, nil
		if err := in.zeroBehind(size); err != nil {
			return err
		}
	}
	h, err := fs.begin(orphanCredits + 1 + cutCredits + extentCredits + markCredits)
	if err != nil {
		fs.free.Add(promised)
		in.undo(tail, freshBlocks(tail))
		return err
	}
	var used int64
	err = fs.addOrphan(h, in)
	for _, x := range tail {
		if err == nil {
			var n int64
			_, n, err = in.cut(h, uint64(x.lblk), uint64(x.end()), true)
			used += n
		}
		if err == nil {
			var n int64
			n, err = in.linkOne(h, x)
			used += n
		}
	}
	in.setSize(size)
	in.touch(h.now, true)
	if err == nil {
		err = in.store(h)
	}
	h.end()
	fs.free.Add(promised - used)
	if err != nil {
		return fs.fail(err)
	}
	return fs.cutAll(in, first, maxFileBlocks, func(h *handle) error {
		if in.links() == 0 { // it stays an orphan
			return nil
		}
		return fs.removeOrphan(h, in)
	}, orphanCredits)
}

// zeroBehind zeroes the rest of the block after size, in place.
func (in *Inode) zeroBehind(size int64) error {
	bs := int64(in.fs.s.blockSize)
	if size%bs == 0 || size == in.size() {
		return nil
	}
	m, err := in.mapBlock(uint32(size / bs))
	if err != nil || m.Phys == 0 || m.Unwritten {
		return err
	}
	return in.zeroIn(m.Phys, size%bs, bs)
}

// copyTail writes the block in which a file of size bytes ends, with zeros after the end,
// to a new place. The handle that sets the size links it. On a full disk the block is
// changed in place instead.
func (in *Inode) copyTail(size int64) ([]piece, error) {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	if size%bs == 0 || size == in.size() {
		return nil, nil
	}
	lblk := uint32(size / bs)
	m, err := in.mapBlock(lblk)
	if err != nil || m.Phys == 0 || m.Unwritten {
		return nil, err
	}
	if fs.promise(1) != nil {
		return nil, in.zeroBehind(size)
	}
	r, err := fs.allocate(m.Phys, 1)
	if err != nil {
		fs.free.Add(1)
		return nil, err
	}
	tail := []piece{{extent: extent{lblk, 1, r.blk, false}, fresh: true}}
	b := make([]byte, bs)
	if err = fs.dev.ReadAt([]Transfer{{fs.byteOf(m.Phys), b}}); err == nil {
		clear(b[size%bs:])
		err = fs.dev.WriteAt([]Transfer{{fs.byteOf(r.blk), b}}, false)
	}
	if err != nil {
		in.undo(tail, 1)
		return nil, ioError(err)
	}
	return tail, nil
}
