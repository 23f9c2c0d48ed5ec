package ext4

import "hardtack/abi/linux"

// promise reserves n free blocks for the caller, who allocates them later or gives them
// back. Unprivileged callers cannot use the reserved blocks. If freed blocks only wait
// for a commit, promise commits first, so no handle may be open.
func (fs *FS) promise(n int64) error { return fs.promiseAbove(n, 0) }

// promiseAbove is promise that leaves margin blocks free.
func (fs *FS) promiseAbove(n, margin int64) error {
	for try := 0; ; try++ {
		if v := fs.free.Add(-n); v >= margin {
			return nil
		}
		fs.free.Add(n)
		if try > 0 || fs.j == nil {
			return linux.ENOSPC
		}
		if err := fs.j.commitAll(); err != nil {
			return err
		}
		fs.j.settle()
	}
}

// Reserve reserves blocks for data that is written to disk later (dirty pages of a page
// cache), or returns ENOSPC. Unreserve gives back what WritePages did not use. Some blocks
// stay free for the extent trees that the data will need, and so that files can be
// truncated and removed.
func (fs *FS) Reserve(blocks int64) error {
	late := fs.late.Add(blocks)
	err := fs.promiseAbove(blocks, fs.keep(fs.margin(), late))
	if err != nil {
		fs.late.Add(-blocks)
	}
	return err
}

// Unreserve gives back what Reserve set aside.
func (fs *FS) Unreserve(blocks int64) {
	fs.late.Add(-blocks)
	fs.free.Add(blocks)
}

// margin is how many blocks new data leaves free: a 50th, as on Linux.
func (fs *FS) margin() int64 { return min(int64(fs.s.blocks/50), 4096) }

// keep is how many blocks must stay free while late blocks wait to be written, for the
// nodes of their extents; it is at least the margin. In the worst case, each late block
// becomes an extent of its own, every full leaf of the disk splits at once, and new leaves
// stay half full.
func (fs *FS) keep(margin, late int64) int64 {
	room := int64(fs.s.nodeRoom())
	return max(margin, min(late, int64(fs.s.blocks)/room)) + late/(room/2-2)
}

// Crowded reports whether the disk is nearly full. Writing late blocks may make room,
// because each of them keeps others free.
func (fs *FS) Crowded() bool {
	return fs.free.Load() < 4*fs.keep(fs.margin(), fs.late.Load())
}

// Holes counts the blocks of bytes off … off+n-1 that have no place on disk.
func (fs *FS) Holes(in *Inode, off, n int64) (holes int64, err error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	bs := int64(fs.s.blockSize)
	if off < 0 || (off+n-1)/bs >= maxFileBlocks {
		return 0, linux.EFBIG
	}
	for at, last := uint32(off/bs), uint32((off+n-1)/bs); at <= last; {
		m, err := in.mapBlock(at)
		if err != nil {
			return 0, err
		}
		k := min(m.N, last-at+1)
		if m.Phys == 0 {
			holes += int64(k)
		}
		at += k
	}
	return holes, nil
}

// allocate takes up to want blocks in one run, near goal if possible, out of the caller's
// promise. On disk they stay free until markUsed.
func (fs *FS) allocate(goal uint64, want uint32) (run, error) {
	r, err := fs.allocateIn(goal, want)
	if r.n > 0 || !fs.dropWindows() {
		return r, err
	}
	return fs.allocateIn(goal, want) // what was promised may have lain in windows
}

func (fs *FS) allocateIn(goal uint64, want uint32) (run, error) {
	if goal <= uint64(fs.s.firstBlock) || goal >= fs.s.blocks {
		goal = uint64(fs.s.firstBlock) + 1
	}
	first, index := fs.s.groupOf(goal)
	var damage error
	// First a group with a run as long as wanted, then any run; a group
	// that is nearly full is passed over at first.
	for pass := range 2 {
		for i := range fs.s.groups {
			n := (first + i) % fs.s.groups
			g := &fs.groups[n]
			g.mu.Lock()
			skip := g.free == 0 || pass == 0 && i > 0 && g.free < want
			g.mu.Unlock()
			if skip {
				continue
			}
			if err := fs.loadBusy(n); err != nil {
				damage = err
				continue
			}
			from := uint32(0)
			if i == 0 {
				from = index
			}
			if at, count := g.take(from, want, pass == 0 && i > 0, fs.s.groupBlocks(n)); count > 0 {
				return run{fs.s.groupStart(n) + uint64(at), uint64(count)}, nil
			}
		}
	}
	if damage != nil {
		return run{}, damage
	}
	return run{}, linux.ENOSPC
}

// take finds and marks a run: at from if that is free, else the first as long as
// wanted after it, else before it; else, unless whole, the longest there is.
func (g *group) take(from, want uint32, whole bool, size uint32) (at, n uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from < size && !bit(g.busy, from) {
		at, n = from, g.runAt(from, want, size)
	} else {
		at, n = g.search(from, size, want)
		if n < want {
			if a, m := g.search(0, min(from+want, size), want); m > n {
				at, n = a, m
			}
		}
		if whole && n < want {
			return 0, 0
		}
	}
	setBits(g.busy, at, n)
	g.free -= n
	return at, n
}

// runAt is the length of the free run at i, up to want.
func (g *group) runAt(i, want, size uint32) uint32 {
	return nextSet(g.busy, i, min(i+want, size)) - i
}

// search returns the first free run of want blocks in from … to-1, or the longest.
func (g *group) search(from, to, want uint32) (at, n uint32) {
	for n < want {
		i := nextZero(g.busy, from, to)
		if i >= to {
			break
		}
		m := g.runAt(i, want, to)
		if m > n {
			at, n = i, m
		}
		from = i + m
	}
	return at, n
}

// release makes blocks free for allocation, and counts them as free.
func (fs *FS) release(runs []run) {
	for _, r := range runs {
		if fs.o.Discard {
			fs.dev.Discard(fs.byteOf(r.blk), fs.byteOf(r.n)) // a hint; errors do not matter
		}
		fs.unbusy(r)
		fs.free.Add(int64(r.n))
	}
}

// unbusy gives back blocks that were taken but not linked. They count as promised again.
func (fs *FS) unbusy(r run) {
	fs.eachGroup(r, func(n, at, count uint32) error {
		g := &fs.groups[n]
		g.mu.Lock()
		if g.busy != nil {
			clearBits(g.busy, at, count)
		}
		g.free += count
		g.mu.Unlock()
		return nil
	})
}

// markCredits is what markUsed or markFree of one run may change: bitmap and
// descriptor of two groups (a run is at most a group long).
const markCredits = 4

// markUsed sets the bits of blocks that allocate gave.
func (fs *FS) markUsed(h *handle, r run) error {
	return fs.eachGroup(r, func(n, at, count uint32) error { return fs.mark(h, n, at, count, true) })
}

// markFree clears the bits of blocks of a file; they may be allocated again once
// the transaction is durable.
func (fs *FS) markFree(h *handle, r run) error {
	if !fs.s.valid(r.blk, r.n) {
		return corrupt("freeing blocks %d+%d of %d", r.blk, r.n, fs.s.blocks)
	}
	err := fs.eachGroup(r, func(n, at, count uint32) error {
		if err := fs.loadBusy(n); err != nil { // or it would be loaded with the bits free
			return err
		}
		return fs.mark(h, n, at, count, false)
	})
	if err == nil {
		h.freeLater(r)
	}
	return err
}

func (fs *FS) mark(h *handle, n, at, count uint32, used bool) error {
	b, err := fs.bitmapBuffer(n)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := h.writeLocked(b)
	var wrong uint32
	if used {
		wrong = nextSet(d, at, at+count)
	} else {
		wrong = nextZero(d, at, at+count)
	}
	if wrong < at+count {
		return corrupt("block %d is marked wrongly in its bitmap", fs.s.groupStart(n)+uint64(wrong))
	}
	gb := fs.groups[n].desc
	gb.mu.Lock()
	defer gb.mu.Unlock()
	g := fs.writeDesc(h, n)
	free := g.freeBlocks()
	if used {
		setBits(d, at, count)
		free -= count
	} else {
		clearBits(d, at, count)
		free += count
	}
	g.setPair(gdFreeBlocks, gdFreeBlocksHi, free)
	le.PutUint16(g[gdFlags:], g.flags()&^bgBlockUninit)
	return nil
}

// newMeta allocates and marks one block for metadata of an inode; the caller was
// promised it. Three changed blocks with its own.
func (fs *FS) newMeta(h *handle, in *Inode, goal uint64, k kind) (*buffer, error) {
	r, err := fs.allocate(goal, 1)
	if err != nil {
		return nil, err
	}
	if err := fs.markUsed(h, r); err != nil {
		return nil, err
	}
	in.addBlocks(1)
	of := in.owner()
	if k == kindXattr { // several files may have it
		of = 0
	}
	return fs.fresh(h, r.blk, k, of)
}

// freeMeta frees a block of metadata of an inode.
func (fs *FS) freeMeta(h *handle, in *Inode, blk uint64, k kind, of uint64) error {
	if err := fs.markFree(h, run{blk, 1}); err != nil {
		return err
	}
	in.addBlocks(-1)
	return h.forget(blk, k, of)
}
