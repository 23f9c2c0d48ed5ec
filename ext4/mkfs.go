package ext4

import (
	"crypto/rand"
	"fmt"
	"time"

	"hardtack/abi/linux"
)

// MkfsOptions describe a new file system; zero values are mke2fs's defaults.
type MkfsOptions struct {
	BlockSize     int      // bytes: 1024, 2048 or 4096 (the default)
	Size          int64    // bytes of the device to use; 0 is all
	BytesPerInode int64    // 0 is 16384
	JournalBlocks uint32   // 0 is by size
	Reserved      int      // per cent of the blocks for the superuser; 0 is 5, below 0 none
	Label         string   // at most 16 bytes
	UUID          [16]byte // zero: a random one
	HashSeed      [16]byte // zero: a random one
	Now           func() int64
	// Zeroed promises that the device reads as zeros (a new file), so that
	// inode tables need not be written.
	Zeroed bool
}

// mkfs is a file system in the making.
type mkfs struct {
	dev   BlockDevice
	o     MkfsOptions
	s     *super
	used  []byte // a bit for each block
	descs []groupDesc
	now   uint32
	batch []Transfer
	err   error
}

// Mkfs writes an empty file system: what mke2fs 1.47 makes, without the inode that
// is reserved for growing the disk (resize_inode).
func Mkfs(dev BlockDevice, o MkfsOptions) error {
	if o.BlockSize == 0 {
		o.BlockSize = 4096
	}
	if o.Size == 0 {
		o.Size = dev.Size()
	}
	if o.BytesPerInode == 0 {
		o.BytesPerInode = 16384
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	for _, p := range []*[16]byte{&o.UUID, &o.HashSeed} {
		if *p == [16]byte{} {
			if _, err := rand.Read(p[:]); err != nil {
				return err
			}
		}
	}
	switch {
	case o.BlockSize != 1024 && o.BlockSize != 2048 && o.BlockSize != 4096 || o.BlockSize < dev.BlockSize():
		return fmt.Errorf("blocks of %d bytes: %w", o.BlockSize, linux.EINVAL)
	case o.Size > dev.Size() || len(o.Label) > 16 || o.BytesPerInode < int64(o.BlockSize) || o.Reserved > 50:
		return fmt.Errorf("a file system of %d bytes, label %q, %d bytes an inode, %d%% reserved: %w",
			o.Size, o.Label, o.BytesPerInode, o.Reserved, linux.EINVAL)
	}
	m := &mkfs{dev: dev, o: o, now: uint32(o.Now() / 1e9)}
	if err := m.plan(); err != nil {
		return err
	}
	return m.write()
}

// journalSize is mke2fs's choice.
func journalSize(blocks uint64) uint32 {
	for _, x := range []struct {
		below uint64
		n     uint32
	}{{32768, 1024}, {256 << 10, 4096}, {512 << 10, 8192}, {4 << 20, 16384}, {8 << 20, 32768}, {16 << 20, 65536}} {
		if blocks < x.below {
			return x.n
		}
	}
	return 131072
}

// plan chooses the sizes of the file system.
func (m *mkfs) plan() error {
	bs := int64(m.o.BlockSize)
	blocks := uint64(m.o.Size / bs)
	if blocks < 2048 {
		return fmt.Errorf("%d blocks are too few for a file system with a journal: %w", blocks, linux.ENOSPC)
	}
	if m.o.JournalBlocks == 0 {
		m.o.JournalBlocks = journalSize(blocks)
	}
	if m.o.JournalBlocks < 1024 || uint64(m.o.JournalBlocks) > blocks/2 {
		return fmt.Errorf("a journal of %d blocks on a disk of %d: %w", m.o.JournalBlocks, blocks, linux.EINVAL)
	}
	first := uint64(0)
	if bs == 1024 {
		first = 1
	}
	perGroup := uint64(8 * bs)
	groups := (blocks - first + perGroup - 1) / perGroup
	inodes := max(uint64(m.o.Size/m.o.BytesPerInode), 16*groups)
	perBlock := uint64(bs / 256)
	ipg := min((inodes+groups-1)/groups, 8*uint64(bs)-perBlock)
	ipg = max((ipg+perBlock-1)/perBlock*perBlock, 16)
	if ipg%8 != 0 {
		ipg += 8 - ipg%8
	}
	// A last group too short for its own copies is left out.
	if rest := (blocks - first) % perGroup; rest > 0 && rest < 50+(groups*64+uint64(bs)-1)/uint64(bs) && groups > 1 {
		blocks -= rest
		groups--
	}
	var err error
	m.s, err = decodeSuper(m.superBlock(blocks, first, perGroup, groups, ipg), m.dev.Size())
	return err
}

// superBlock writes the super block: of how many blocks, the first group's first one,
// blocks a group, how many groups, and inodes a group.
func (m *mkfs) superBlock(blocks, first, perGroup, groups, ipg uint64) []byte {
	reserved := uint64(5)
	if m.o.Reserved != 0 {
		reserved = uint64(max(m.o.Reserved, 0))
	}
	bs := int64(m.o.BlockSize)
	raw := make([]byte, superSize)
	p32 := func(off int, v uint64) { le.PutUint32(raw[off:], uint32(v)) }
	p16 := func(off int, v uint16) { le.PutUint16(raw[off:], v) }
	p32(sbInodes, ipg*groups)
	p32(sbBlocks, blocks)
	p32(sbBlocksHi, blocks>>32)
	p32(sbReserved, blocks*reserved/100)
	p32(sbReservedHi, (blocks*reserved/100)>>32)
	p32(sbFirstBlock, first)
	log := uint64(0)
	for 1024<<log < bs {
		log++
	}
	p32(sbLogBlockSize, log)
	p32(sbLogClusterSize, log)
	p32(sbBlocksPerGroup, perGroup)
	p32(sbClustersPerGrp, perGroup)
	p32(sbInodesPerGroup, ipg)
	p32(sbWtime, uint64(m.now))
	p16(sbMaxMounts, 0xffff)
	p16(sbMagic, superMagic)
	p16(sbState, stateClean)
	p16(sbErrors, 1) // continue
	p32(sbLastCheck, uint64(m.now))
	p32(sbRevision, 1)
	p32(sbFirstInode, firstInode)
	p16(sbInodeSize, 256)
	p32(sbCompat, compatHasJournal|compatExtAttr|compatDirIndex)
	p32(sbIncompat, incompatFiletype|incompatExtents|incompat64bit|incompatFlexBG)
	p32(sbRoCompat, roSparseSuper|roLargeFile|roHugeFile|roDirNlink|roExtraIsize|roMetadataCsum)
	copy(raw[sbUUID:], m.o.UUID[:])
	copy(raw[sbLabel:], m.o.Label)
	p32(sbJournalInode, journalInode)
	copy(raw[sbHashSeed:], m.o.HashSeed[:])
	raw[sbHashVersion] = hashHalfMD4
	raw[sbJnlBackupType] = 1
	p16(sbDescSize, 64)
	p32(sbMountOpts, 0xc) // user_xattr, acl
	p32(sbMkfsTime, uint64(m.now))
	p16(sbMinExtra, 32)
	p16(sbWantExtra, 32)
	p32(sbFlags, flagSignedHash)
	raw[sbLogFlex] = 4
	raw[sbCsumType] = 1
	sealSuper(raw)
	return raw
}

// take marks n blocks in one run, at from or later, and returns the first; 0 if
// there is no such run.
func (m *mkfs) take(from uint64, n uint64) uint64 {
	for at := from; at+n <= m.s.blocks; {
		i := uint64(0)
		for i < n && m.used[(at+i)>>3]>>((at+i)&7)&1 == 0 {
			i++
		}
		if i == n {
			for i := range n {
				m.used[(at+i)>>3] |= 1 << ((at + i) & 7)
			}
			return at
		}
		at += i + 1
	}
	return 0
}

// put queues a block.
func (m *mkfs) put(blk uint64, d []byte) {
	m.batch = append(m.batch, Transfer{int64(blk) * int64(m.o.BlockSize), d})
	if len(m.batch) >= maxBatch {
		m.flush()
	}
}

func (m *mkfs) flush() {
	if m.err == nil && len(m.batch) > 0 {
		m.err = ioError(m.dev.WriteAt(m.batch, false))
	}
	m.batch = m.batch[:0]
}

func (m *mkfs) write() error {
	s := m.s
	m.used = make([]byte, s.blocks/8+1)
	for i := range uint64(s.firstBlock) {
		setBit(m.used, uint32(i))
	}
	for g := range s.groups {
		m.take(s.groupStart(g), uint64(s.overhead(g)))
	}
	m.descs = make([]groupDesc, s.groups)
	for g := range m.descs {
		m.descs[g] = make(groupDesc, s.descSize)
	}
	// The bitmaps and tables of 16 groups lie together, at the first one's beginning.
	table := uint64(s.inodeTableBlocks())
	for flex := uint32(0); flex < s.groups; flex += s.flexSize {
		at := s.groupStart(flex)
		last := min(flex+s.flexSize, s.groups)
		for _, f := range []struct {
			lo, hi int
			n      uint64
		}{{gdBlockBitmap, gdBlockBitmapHi, 1}, {gdInodeBitmap, gdInodeBitmapHi, 1}, {gdInodeTable, gdInodeTableHi, table}} {
			for g := flex; g < last; g++ {
				blk := m.take(at, f.n)
				if blk == 0 {
					return fmt.Errorf("no room for the tables of group %d: %w", g, linux.ENOSPC)
				}
				m.descs[g].setWide(f.lo, f.hi, blk)
			}
		}
	}
	if !m.o.Zeroed {
		zero := make([]byte, s.blockSize)
		for _, g := range m.descs {
			for i := range table {
				m.put(g.inodeTable()+i, zero)
			}
		}
	}
	inodes := make([]byte, s.blockSize*((firstInode*s.inodeSize+s.blockSize-1)/s.blockSize))
	if err := m.files(inodes); err != nil {
		return err
	}
	for i := 0; i < len(inodes); i += int(s.blockSize) {
		m.put(m.descs[0].inodeTable()+uint64(i)/uint64(s.blockSize), inodes[i:i+int(s.blockSize)])
	}
	m.bitmaps()
	m.supers()
	m.flush()
	if m.err != nil {
		return m.err
	}
	return ioError(m.dev.Flush())
}

// inode encodes an inode whose content is in the given runs.
func (m *mkfs) inode(table []byte, ino uint32, mode uint16, links uint16, size uint64, runs []run) {
	in := &Inode{fs: &FS{s: m.s, o: Options{Now: m.o.Now}}, ino: ino,
		raw: table[(ino-1)*m.s.inodeSize : ino*m.s.inodeSize]}
	in.put16(inMode, mode)
	in.put16(inLinks, links)
	in.put16(inExtra, 32)
	in.setSize(int64(size))
	now := m.o.Now()
	in.setTime(inAtime, inAtimeX, now)
	in.setTime(inCrtime, inCrtimeX, now)
	in.touch(now, true)
	in.initExtents()
	root, at := node(in.raw[inBlock:]), uint32(0)
	for i, r := range runs {
		root.putExtent(i, extent{at, uint32(r.n), r.blk, false})
		at += uint32(r.n)
		in.addBlocks(int64(r.n))
	}
	root.setCount(len(runs))
	m.s.sealInode(ino, in.raw)
}

// files makes the root directory, lost+found and the journal.
func (m *mkfs) files(inodes []byte) error {
	s := m.s
	bs := uint64(s.blockSize)
	start := s.groupStart(0)
	root := m.take(start, 1)
	lostBlocks := max(16384/bs, 1)
	lost := m.take(start, lostBlocks)
	if root == 0 || lost == 0 {
		return fmt.Errorf("no room for the root directory: %w", linux.ENOSPC)
	}
	block := func(ino uint32, put func(d []byte)) []byte {
		d := make([]byte, bs)
		put(d)
		sealDir(s.inodeSeed(ino, 0), d)
		return d
	}
	limit := s.dirLimit()
	m.put(root, block(rootInode, func(d []byte) {
		putEntry(d, 0, 12, rootInode, ftDir, ".")
		putEntry(d, 12, 12, rootInode, ftDir, "..")
		putEntry(d, 24, limit-24, firstInode, ftDir, "lost+found")
	}))
	m.put(lost, block(firstInode, func(d []byte) {
		putEntry(d, 0, 12, firstInode, ftDir, ".")
		putEntry(d, 12, limit-12, rootInode, ftDir, "..")
	}))
	for i := uint64(1); i < lostBlocks; i++ {
		m.put(lost+i, block(firstInode, func(d []byte) { putEntry(d, 0, limit, 0, 0, "") }))
	}
	m.inode(inodes, rootInode, linux.S_IFDIR|0o755, 3, bs, []run{{root, 1}})
	m.inode(inodes, firstInode, linux.S_IFDIR|0o700, 2, bs*lostBlocks, []run{{lost, lostBlocks}})

	var runs []run
	for left := uint64(m.o.JournalBlocks); left > 0; {
		n := min(left, exMaxLen)
		blk := m.take(start, n)
		for blk == 0 && n > 64 { // in smaller pieces, where copies of descriptors are in the way
			n /= 2
			blk = m.take(start, n)
		}
		if blk == 0 || len(runs) == 4 {
			return fmt.Errorf("no room for a journal of %d blocks: %w", m.o.JournalBlocks, linux.ENOSPC)
		}
		runs = append(runs, run{blk, n})
		left -= n
	}
	m.inode(inodes, journalInode, linux.S_IFREG|0o600, 1, uint64(m.o.JournalBlocks)*bs, runs)
	j := make([]byte, bs)
	be.PutUint32(j[jhMagic:], jMagic)
	be.PutUint32(j[jhType:], jSuperV2)
	be.PutUint32(j[jsBlock:], s.blockSize)
	be.PutUint32(j[jsMaxLen:], m.o.JournalBlocks)
	be.PutUint32(j[jsFirst:], 1)
	be.PutUint32(j[jsSequence:], 1)
	be.PutUint32(j[jsUsers:], 1)
	copy(j[jsUUID:], s.raw[sbUUID:sbUUID+16])
	m.put(runs[0].blk, j)
	// The super block has a copy of where the journal lies.
	in := inodes[(journalInode-1)*s.inodeSize:]
	copy(s.raw[sbJnlBlocks:], in[inBlock:inBlock+inBlockLen])
	copy(s.raw[sbJnlBlocks+60:], in[inSizeHi:inSizeHi+4])
	copy(s.raw[sbJnlBlocks+64:], in[inSize:inSize+4])
	return nil
}

// bitmaps writes the bitmaps and completes the descriptors.
func (m *mkfs) bitmaps() {
	s := m.s
	var free, freeIno uint64
	for n, g := range m.descs {
		n := uint32(n)
		b, count := make([]byte, s.blockSize), uint32(0)
		for i := range 8 * s.blockSize {
			blk := s.groupStart(n) + uint64(i)
			if i >= s.groupBlocks(n) || m.used[blk>>3]>>(blk&7)&1 != 0 {
				setBit(b, i)
			} else {
				count++
			}
		}
		ib, inUse := make([]byte, s.blockSize), uint32(0)
		if n == 0 {
			inUse = firstInode
		}
		for i := range 8 * s.blockSize {
			if i < inUse || i >= s.inodesPerGroup {
				setBit(ib, i)
			}
		}
		g.setPair(gdFreeBlocks, gdFreeBlocksHi, count)
		g.setPair(gdFreeInodes, gdFreeInodesHi, s.inodesPerGroup-inUse)
		g.setPair(gdUnusedInodes, gdUnusedInodesHi, s.inodesPerGroup-inUse)
		if n == 0 {
			g.setPair(gdUsedDirs, gdUsedDirsHi, 2)
		}
		le.PutUint16(g[gdFlags:], bgInodeZeroed)
		s.sealBitmap(g, gdBlockBmCsum, gdBlockBmCsumHi, b[:s.blocksPerGroup/8])
		s.sealBitmap(g, gdInodeBmCsum, gdInodeBmCsumHi, ib[:s.inodesPerGroup/8])
		s.sealGroup(n, g)
		m.put(g.blockBitmap(), b)
		m.put(g.inodeBitmap(), ib)
		free += uint64(count)
		freeIno += uint64(s.inodesPerGroup - inUse)
	}
	le.PutUint32(s.raw[sbFreeBlocks:], uint32(free))
	le.PutUint32(s.raw[sbFreeBlocksHi:], uint32(free>>32))
	le.PutUint32(s.raw[sbFreeInodes:], uint32(freeIno))
}

// supers writes the super block, the descriptors, and their copies; the first
// super block last.
func (m *mkfs) supers() {
	s := m.s
	gdt := make([]byte, s.gdtBlocks*s.blockSize)
	for n, g := range m.descs {
		copy(gdt[n*int(s.descSize):], g)
	}
	for n := int(s.groups) - 1; n >= 0; n-- {
		if !s.hasSuper(uint32(n)) {
			continue
		}
		at := s.groupStart(uint32(n))
		for i := range s.gdtBlocks {
			m.put(at+1+uint64(i), gdt[i*s.blockSize:(i+1)*s.blockSize])
		}
		d := make([]byte, s.blockSize)
		off := 0
		if n == 0 {
			off = int(superOffset % s.blockSize)
		}
		copy(d[off:], s.raw[:])
		le.PutUint16(d[off+sbGroupNr:], uint16(n))
		sealSuper(d[off : off+superSize])
		m.put(at, d)
	}
}
