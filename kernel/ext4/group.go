package ext4

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"hardtack/abi/linux"
)

// group is a block group in memory.
//
// A block may be allocated when no bit of busy is set for it. Busy covers more
// than the bitmap on disk: blocks taken whose data is still on its way, and
// blocks freed by a transaction that is not durable yet. So the bitmap on disk
// changes within the handle that links or unlinks blocks, and a crash at any
// time leaves nothing allocated twice or to nobody.
type group struct {
	blockBitmap, inodeBitmap, table uint64 // immutable

	mu   sync.Mutex // after buffer.mu
	busy []byte     // nil: not loaded; guarded by mu
	free uint32     // zero bits in busy, or what the descriptor says; guarded by mu
	bad  error      // the bitmap is damaged: nothing is allocated here
}

// loadGroups reads the descriptors.
func (fs *FS) loadGroups() error {
	s := fs.s
	fs.groups = make([]group, s.groups)
	var free, freeIno int64
	for n := range s.groups {
		b, d, err := fs.desc(n)
		if err != nil {
			return err
		}
		b.mu.Lock()
		g := &fs.groups[n]
		g.blockBitmap, g.inodeBitmap, g.table, g.free = d.blockBitmap(), d.inodeBitmap(), d.inodeTable(), d.freeBlocks()
		freeI, sum := d.freeInodes(), s.groupChecksum(n, d) == le.Uint16(d[gdChecksum:])
		b.mu.Unlock()
		switch {
		case !sum:
			return corrupt("group %d: bad checksum of the descriptor", n)
		case !s.valid(g.blockBitmap, 1) || !s.valid(g.inodeBitmap, 1) || !s.valid(g.table, uint64(s.inodeTableBlocks())):
			return corrupt("group %d: bitmaps at %d and %d, table at %d", n, g.blockBitmap, g.inodeBitmap, g.table)
		case g.free > s.groupBlocks(n) || freeI > s.inodesPerGroup:
			return corrupt("group %d: %d blocks and %d inodes free", n, g.free, freeI)
		}
		free += int64(g.free)
		freeIno += int64(freeI)
	}
	fs.free.Store(free)
	fs.freeIno.Store(freeIno)
	return nil
}

// desc returns the buffer with group n's descriptor, and the descriptor in it, to
// be looked at under the buffer's mu (and fetched anew after writeLocked).
func (fs *FS) desc(n uint32) (*buffer, groupDesc, error) {
	per := fs.s.blockSize / fs.s.descSize
	b, err := fs.read(uint64(fs.s.firstBlock) + 1 + uint64(n/per))
	if err != nil {
		return nil, nil, err
	}
	return b, fs.descIn(b.bytes(), n), nil
}

func (fs *FS) descIn(d []byte, n uint32) groupDesc {
	off := n % (fs.s.blockSize / fs.s.descSize) * fs.s.descSize
	return groupDesc(d[off : off+fs.s.descSize])
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

// bitmapBuffer returns a group's block bitmap, made or checked.
func (fs *FS) bitmapBuffer(n uint32) (*buffer, error) {
	g := &fs.groups[n]
	return fs.bitmap(n, g.blockBitmap, bgBlockUninit, gdBlockBmCsum, gdBlockBmCsumHi, fs.s.blocksPerGroup, func(d []byte) {
		fs.layoutBitmap(n, d)
	})
}

// inodeBitmapBuffer returns a group's inode bitmap, made or checked.
func (fs *FS) inodeBitmapBuffer(n uint32) (*buffer, error) {
	return fs.bitmap(n, fs.groups[n].inodeBitmap, bgInodeUninit, gdInodeBmCsum, gdInodeBmCsumHi, fs.s.inodesPerGroup, func(d []byte) {
		for i := fs.s.inodesPerGroup / 8; i < fs.s.blockSize; i++ {
			d[i] = 0xff
		}
	})
}

func (fs *FS) bitmap(n uint32, blk uint64, uninit uint16, lo, hi int, count uint32, build func(d []byte)) (*buffer, error) {
	gb, d, err := fs.desc(n)
	if err != nil {
		return nil, err
	}
	gb.mu.Lock()
	desc := groupDesc(slices.Clone(d))
	gb.mu.Unlock()
	b, err := fs.read(blk)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kind == kindBitmap {
		return b, nil
	}
	if fs.s.roCompat&(roMetadataCsum|roGdtCsum) != 0 && desc.flags()&uninit != 0 {
		if b.tx != nil || b.shared {
			return nil, corrupt("group %d: its bitmap at %d is used for something else", n, blk)
		}
		clear(b.data)
		build(b.data)
	} else if !fs.s.bitmapOK(desc, lo, hi, b.data[:count/8]) {
		return nil, corrupt("group %d: bad checksum of a bitmap", n)
	}
	b.kind = kindBitmap
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
	for i := s.groupBlocks(n); i < 8*s.blockSize; i++ {
		setBit(d, i)
	}
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
	for i := fs.s.groupBlocks(n); i < 8*fs.s.blockSize; i++ {
		setBit(busy, i)
	}
	free := uint32(0)
	for _, x := range busy {
		free += uint32(8 - bits.OnesCount8(x))
	}
	if free != g.free {
		g.bad = corrupt("group %d: %d free blocks in the bitmap, %d in the descriptor", n, free, g.free)
		return g.bad
	}
	g.busy = busy
	return nil
}

// promise sets n free blocks aside for the caller, who allocates them later or
// gives them back. Without privilege the reserved blocks stay. Where freed
// blocks only wait for a commit, that is done first; so no handle may be open.
func (fs *FS) promise(n int64) error {
	for try := 0; ; try++ {
		if v := fs.free.Add(-n); v >= 0 {
			return nil
		}
		fs.free.Add(n)
		if try > 0 || fs.j == nil {
			return linux.ENOSPC
		}
		if err := fs.j.commitAll(); err != nil {
			return err
		}
	}
}

// Reserve sets blocks aside for data that is written to disk later (a page
// cache's dirty pages), ENOSPC if there are not as many; Unreserve gives back
// what WriteOut did not use.
func (fs *FS) Reserve(blocks int64) error { return fs.promise(blocks) }

// Unreserve gives back what Reserve set aside.
func (fs *FS) Unreserve(blocks int64) { fs.free.Add(blocks) }

// allocate takes up to want blocks in one run, near goal if it can; the caller
// was promised them. They are nobody's on disk until markUsed.
func (fs *FS) allocate(goal uint64, want uint32) (run, error) {
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
	for i := at; i < at+n; i++ {
		setBit(g.busy, i)
	}
	g.free -= n
	return at, n
}

// runAt is the length of the free run at i, up to want.
func (g *group) runAt(i, want, size uint32) uint32 {
	n := uint32(0)
	for n < want && i+n < size && !bit(g.busy, i+n) {
		n++
	}
	return n
}

// search returns the first free run of want blocks in from … to-1, or the longest.
func (g *group) search(from, to, want uint32) (at, n uint32) {
	for i := from; i < to && n < want; {
		if i&7 == 0 && g.busy[i>>3] == 0xff {
			i += 8
			continue
		}
		if bit(g.busy, i) {
			i++
			continue
		}
		m := g.runAt(i, want, to)
		if m > n {
			at, n = i, m
		}
		i += m
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

// unbusy gives back blocks that were taken and not linked; the promise stays.
func (fs *FS) unbusy(r run) {
	fs.eachGroup(r, func(n, at, count uint32) error {
		g := &fs.groups[n]
		g.mu.Lock()
		if g.busy != nil {
			for i := at; i < at+count; i++ {
				clearBit(g.busy, i)
			}
		}
		g.free += count
		g.mu.Unlock()
		return nil
	})
}

// eachGroup cuts a run at the borders of groups.
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
	gb, _, err := fs.desc(n)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := h.writeLocked(b)
	for i := at; i < at+count; i++ {
		if bit(d, i) == used {
			return corrupt("block %d is marked wrongly in its bitmap", fs.s.groupStart(n)+uint64(i))
		}
	}
	for i := at; i < at+count; i++ {
		if used {
			setBit(d, i)
		} else {
			clearBit(d, i)
		}
	}
	gb.mu.Lock()
	defer gb.mu.Unlock()
	g := fs.descIn(h.writeLocked(gb), n)
	free := g.freeBlocks()
	if used {
		free -= count
	} else {
		free += count
	}
	g.setPair(gdFreeBlocks, gdFreeBlocksHi, free)
	le.PutUint16(g[gdFlags:], g.flags()&^bgBlockUninit)
	fs.s.sealBitmap(g, gdBlockBmCsum, gdBlockBmCsumHi, d[:fs.s.blocksPerGroup/8])
	fs.s.sealGroup(n, g)
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
	return fs.fresh(h, r.blk, k), nil
}

// freeMeta frees a block of metadata of an inode.
func (fs *FS) freeMeta(h *handle, in *Inode, blk uint64) error {
	if err := fs.markFree(h, run{blk, 1}); err != nil {
		return err
	}
	h.forget(blk)
	in.addBlocks(-1)
	return nil
}

// inodeCredits is what allocInode or freeInode may change: bitmap, descriptor, table.
const inodeCredits = 3

// allocInode takes a free inode's number: in the parent's group, or a spacious one
// for a directory of the root.
func (fs *FS) allocInode(h *handle, parent uint32, dir bool) (uint32, error) {
	first := (parent - 1) / fs.s.inodesPerGroup
	if dir && parent == rootInode {
		best := uint32(0)
		for n := range fs.s.groups {
			gb, _, err := fs.desc(n)
			if err != nil {
				return 0, err
			}
			gb.mu.Lock()
			free := fs.descIn(gb.data, n).freeInodes()
			gb.mu.Unlock()
			if free > best {
				first, best = n, free
			}
		}
	}
	for i := range fs.s.groups {
		n := (first + i) % fs.s.groups
		ino, err := fs.inodeIn(h, n, dir)
		if err != nil {
			return 0, err
		}
		if ino != 0 {
			fs.freeIno.Add(-1)
			return ino, nil
		}
	}
	return 0, fmt.Errorf("no inode is free: %w", linux.ENOSPC)
}

// inodeIn takes an inode of group n, 0 if it has none.
func (fs *FS) inodeIn(h *handle, n uint32, dir bool) (uint32, error) {
	gb, _, err := fs.desc(n)
	if err != nil {
		return 0, err
	}
	gb.mu.Lock()
	free := fs.descIn(gb.data, n).freeInodes()
	gb.mu.Unlock()
	if free == 0 {
		return 0, nil
	}
	b, err := fs.inodeBitmapBuffer(n)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	from := uint32(0)
	if n == 0 {
		from = fs.s.firstIno - 1
	}
	for i := from; i < fs.s.inodesPerGroup; i++ {
		if bit(b.data, i) {
			continue
		}
		ino := n*fs.s.inodesPerGroup + i + 1
		fs.inodesMu.Lock()
		_, inUse := fs.inodes[ino] // being destroyed just now
		fs.inodesMu.Unlock()
		if inUse {
			continue
		}
		d := h.writeLocked(b)
		setBit(d, i)
		gb.mu.Lock()
		g := fs.descIn(h.writeLocked(gb), n)
		unused := min(g.unusedInodes(), fs.s.inodesPerGroup)
		if g.flags()&bgInodeUninit != 0 {
			unused = fs.s.inodesPerGroup
		}
		g.setPair(gdUnusedInodes, gdUnusedInodesHi, min(unused, fs.s.inodesPerGroup-i-1))
		le.PutUint16(g[gdFlags:], g.flags()&^bgInodeUninit)
		fs.countInode(n, g, d, -1, dir)
		gb.mu.Unlock()
		return ino, nil
	}
	return 0, nil
}

// countInode changes the counts of a descriptor after a bit of the bitmap changed.
func (fs *FS) countInode(n uint32, g groupDesc, bitmap []byte, d int, dir bool) {
	g.setPair(gdFreeInodes, gdFreeInodesHi, uint32(int(g.freeInodes())+d))
	if dir {
		g.setPair(gdUsedDirs, gdUsedDirsHi, uint32(int(g.usedDirs())-d))
	}
	fs.s.sealBitmap(g, gdInodeBmCsum, gdInodeBmCsumHi, bitmap[:fs.s.inodesPerGroup/8])
	fs.s.sealGroup(n, g)
}

// freeInode gives an inode's number back; the inode itself is the caller's to store.
func (fs *FS) freeInode(h *handle, ino uint32, dir bool) error {
	n, i := (ino-1)/fs.s.inodesPerGroup, (ino-1)%fs.s.inodesPerGroup
	b, err := fs.inodeBitmapBuffer(n)
	if err != nil {
		return err
	}
	gb, _, err := fs.desc(n)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bit(b.data, i) {
		return corrupt("inode %d is marked free in its bitmap", ino)
	}
	d := h.writeLocked(b)
	clearBit(d, i)
	gb.mu.Lock()
	defer gb.mu.Unlock()
	fs.countInode(n, fs.descIn(h.writeLocked(gb), n), d, 1, dir)
	fs.freeIno.Add(1)
	return nil
}

// countInto sets the super block's counts, which only a clean disk has right.
func (fs *FS) countInto(raw []byte) {
	var blocks, inodes uint64
	for n := range fs.s.groups {
		if _, d, err := fs.desc(n); err == nil {
			blocks += uint64(d.freeBlocks())
			inodes += uint64(d.freeInodes())
		}
	}
	le.PutUint32(raw[sbFreeBlocks:], uint32(blocks))
	if fs.s.incompat&incompat64bit != 0 {
		le.PutUint32(raw[sbFreeBlocksHi:], uint32(blocks>>32))
	}
	le.PutUint32(raw[sbFreeInodes:], uint32(inodes))
}
