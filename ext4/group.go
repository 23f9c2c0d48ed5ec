package ext4

import (
	"math/bits"
	"slices"
	"sync"

	"hardtack/abi/linux"
)

// group is a block group in memory.
//
// A block may be allocated if its bit in busy is clear. Busy covers more than the bitmap
// on disk: allocated blocks whose data is still being written, blocks in a window
// (window.go), and blocks freed by a transaction that is not yet durable. The bitmap on
// disk therefore changes within the handle that links or unlinks blocks, and no crash
// leaves a block allocated twice or leaked.
type group struct {
	blockBitmap, inodeBitmap, table uint64  // immutable
	desc                            *buffer // holds the descriptor; immutable

	mu   sync.Mutex // after buffer.mu
	busy []byte     // nil: not loaded; guarded by mu
	free uint32     // zero bits in busy, or what the descriptor says; guarded by mu
	bad  error      // the bitmap is damaged: nothing is allocated here

	nextIno uint32 // no inode before it is free; guarded by the inode bitmap's buffer.mu
}

// loadGroups reads the descriptors.
func (fs *FS) loadGroups() error {
	s := fs.s
	fs.groups = nil // grows with what is found right
	per := s.blockSize / s.descSize
	var free, freeIno int64
	for n := range s.groups {
		fs.groups = append(fs.groups, group{})
		g := &fs.groups[n]
		if n%per != 0 {
			g.desc = fs.groups[n-1].desc
		} else {
			b, err := fs.pin(uint64(s.firstBlock)+1+uint64(n/per), kindDesc, uint64(n))
			if err != nil {
				return err
			}
			g.desc = b
		}
		d := fs.descIn(g.desc.bytes(), n)
		g.blockBitmap, g.inodeBitmap, g.table, g.free = d.blockBitmap(), d.inodeBitmap(), d.inodeTable(), d.freeBlocks()
		switch freeI := d.freeInodes(); {
		case s.groupChecksum(n, d) != le.Uint16(d[gdChecksum:]):
			return corrupt("group %d: bad checksum of the descriptor", n)
		case !s.valid(g.blockBitmap, 1) || !s.valid(g.inodeBitmap, 1) || !s.valid(g.table, uint64(s.inodeTableBlocks())):
			return corrupt("group %d: bitmaps at %d and %d, table at %d", n, g.blockBitmap, g.inodeBitmap, g.table)
		case g.free > s.groupBlocks(n) || freeI > s.inodesPerGroup:
			return corrupt("group %d: %d blocks and %d inodes free", n, g.free, freeI)
		default:
			free += int64(g.free)
			freeIno += int64(freeI)
		}
	}
	fs.free.Store(free)
	fs.freeIno.Store(freeIno)
	return nil
}

// desc returns the buffer with group n's descriptor, and the descriptor in it. It may be
// read under the buffer's mu and must be fetched again after writeLocked.
func (fs *FS) desc(n uint32) (*buffer, groupDesc, error) {
	if fs.groups != nil {
		b := fs.groups[n].desc
		return b, fs.descIn(b.bytes(), n), nil
	}
	b, err := fs.read(uint64(fs.s.firstBlock) + 1 + uint64(n/(fs.s.blockSize/fs.s.descSize)))
	if err != nil {
		return nil, nil, err
	}
	return b, fs.descIn(b.bytes(), n), nil
}

// descIndex is the index of group n's descriptor within its block.
func (fs *FS) descIndex(n uint32) uint32 { return n % (fs.s.blockSize / fs.s.descSize) }

func (fs *FS) descIn(d []byte, n uint32) groupDesc {
	off := fs.descIndex(n) * fs.s.descSize
	return groupDesc(d[off : off+fs.s.descSize])
}

// writeDesc makes group n's descriptor part of the transaction and returns it; its
// buffer's mu is held.
func (fs *FS) writeDesc(h *handle, n uint32) groupDesc {
	return fs.descIn(h.writeRecord(fs.groups[n].desc, fs.descIndex(n)), n)
}

// inodeTable is the first block of group n's table.
func (fs *FS) inodeTable(n uint32) (uint64, error) {
	if fs.groups != nil {
		return fs.groups[n].table, nil
	}
	// The journal's inode is looked for before the groups are loaded.
	_, d, err := fs.desc(n)
	if err != nil {
		return 0, err
	}
	if t := d.inodeTable(); fs.s.valid(t, uint64(fs.s.inodeTableBlocks())) {
		return t, nil
	}
	return 0, corrupt("group %d: inode table at %d", n, d.inodeTable())
}

// bitmapBuffer returns a group's block bitmap, newly made or verified.
func (fs *FS) bitmapBuffer(n uint32) (*buffer, error) {
	return fs.bitmap(n, fs.groups[n].blockBitmap, kindBlockBitmap)
}

// inodeBitmapBuffer returns a group's inode bitmap, newly made or verified.
func (fs *FS) inodeBitmapBuffer(n uint32) (*buffer, error) {
	return fs.bitmap(n, fs.groups[n].inodeBitmap, kindInodeBitmap)
}

func (fs *FS) bitmap(n uint32, blk uint64, k kind) (*buffer, error) {
	b := fs.cache.peek(blk)
	if b == nil {
		var err error
		if b, err = fs.read(blk); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.used.Load() {
		b.used.Store(true)
	}
	if b.data != nil && b.kind == k && b.of == uint64(n) {
		return b, nil
	}
	if b.data == nil {
		if err := fs.load(b); err != nil {
			return nil, err
		}
	}
	if b.tx != nil || b.kind != kindRaw || b.pinned {
		return nil, corrupt("group %d: its bitmap at %d is used for something else", n, blk)
	}
	gb := fs.groups[n].desc
	gb.mu.Lock()
	desc := groupDesc(slices.Clone(fs.descIn(gb.data, n)))
	gb.mu.Unlock()
	s := fs.s
	lo, hi, uninit, count := gdBlockBmCsum, gdBlockBmCsumHi, uint16(bgBlockUninit), s.blocksPerGroup
	if k == kindInodeBitmap {
		lo, hi, uninit, count = gdInodeBmCsum, gdInodeBmCsumHi, bgInodeUninit, s.inodesPerGroup
	}
	switch {
	case s.roCompat&(roMetadataCsum|roGdtCsum) != 0 && desc.flags()&uninit != 0:
		if b.shared {
			return nil, corrupt("group %d: its bitmap at %d is used for something else", n, blk)
		}
		clear(b.data)
		if k == kindBlockBitmap {
			fs.layoutBitmap(n, b.data)
		} else {
			setBits(b.data, s.inodesPerGroup, 8*s.blockSize-s.inodesPerGroup)
		}
	case !s.bitmapOK(desc, lo, hi, b.data[:count/8]):
		return nil, corrupt("group %d: bad checksum of a bitmap", n)
	}
	b.kind, b.of = k, uint64(n)
	return b, nil
}

// layoutBitmap fills in the block bitmap of a group that has no files yet.
func (fs *FS) layoutBitmap(n uint32, d []byte) {
	s, start := fs.s, fs.s.groupStart(n)
	mark := func(blk, count uint64) {
		for b := max(blk, start); b < blk+count && b < start+uint64(s.blocksPerGroup); b++ {
			setBit(d, uint32(b-start))
		}
	}
	mark(start, uint64(s.overhead(n)))
	g := &fs.groups[n]
	mark(g.blockBitmap, 1)
	mark(g.inodeBitmap, 1)
	mark(g.table, uint64(s.inodeTableBlocks()))
	used := s.groupBlocks(n)
	setBits(d, used, 8*s.blockSize-used)
}

// loadBusy fills in busy; g.mu is not held.
func (fs *FS) loadBusy(n uint32) error {
	g := &fs.groups[n]
	g.mu.Lock()
	done, bad := g.busy != nil, g.bad
	g.mu.Unlock()
	if done || bad != nil {
		return bad
	}
	b, err := fs.bitmapBuffer(n)
	if err != nil {
		if Errno(err) == linux.EUCLEAN {
			g.mu.Lock()
			g.bad = err
			g.mu.Unlock()
		}
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy != nil {
		return nil
	}
	busy := slices.Clone(b.data)
	used := fs.s.groupBlocks(n)
	setBits(busy, used, 8*fs.s.blockSize-used)
	free := uint32(0)
	for i := 0; i < len(busy); i += 8 {
		free += uint32(64 - bits.OnesCount64(le.Uint64(busy[i:])))
	}
	if err := fs.zone.marked(busy, fs.s.groupStart(n), used); err != nil {
		g.bad = err
		return err
	}
	if free != g.free {
		g.bad = corrupt("group %d: %d free blocks in the bitmap, %d in the descriptor", n, free, g.free)
		return g.bad
	}
	g.busy = busy
	return nil
}

// eachGroup splits a run at group boundaries.
func (fs *FS) eachGroup(r run, do func(group, at, count uint32) error) error {
	for r.n > 0 {
		n, at := fs.s.groupOf(r.blk)
		count := min(r.n, uint64(fs.s.groupBlocks(n)-at))
		if err := do(n, at, uint32(count)); err != nil {
			return err
		}
		r.blk += count
		r.n -= count
	}
	return nil
}

// countInto sets the super block's counts, which are correct only on a clean disk.
func (fs *FS) countInto(raw []byte) {
	var blocks, inodes uint64
	for n := range fs.s.groups {
		gb := fs.groups[n].desc
		gb.mu.Lock()
		d := fs.descIn(gb.data, n)
		blocks += uint64(d.freeBlocks())
		inodes += uint64(d.freeInodes())
		gb.mu.Unlock()
	}
	le.PutUint32(raw[sbFreeBlocks:], uint32(blocks))
	if fs.s.incompat&incompat64bit != 0 {
		le.PutUint32(raw[sbFreeBlocksHi:], uint32(blocks>>32))
	}
	le.PutUint32(raw[sbFreeInodes:], uint32(inodes))
}
