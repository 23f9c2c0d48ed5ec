package ext4

import "math/bits"

// Checksums of metadata are stored once per commit, for all changes of a block together,
// when all handles have ended and the bytes no longer change. Until then the block in
// memory has a stale checksum, which nobody reads: a block is verified only once.

// staleRecord notes that a record's checksum must be stored; b.mu is held.
func (b *buffer) staleRecord(i uint32) { b.stale[i>>6] |= 1 << (i & 63) }

// seal stores the checksums of a transaction's blocks; no handle is open.
func (fs *FS) seal(buffers []*buffer) {
	if fs.s.roCompat&(roMetadataCsum|roGdtCsum) == 0 {
		return
	}
	// A bitmap's is in its descriptor, which is part of the same transaction.
	for _, b := range buffers {
		fs.sealBitmap(b)
	}
	for _, b := range buffers {
		b.mu.Lock()
		if b.stale != [2]uint64{} && !b.gone {
			fs.sealBlock(b)
		}
		b.stale = [2]uint64{}
		b.mu.Unlock()
	}
}

func (fs *FS) sealBitmap(b *buffer) {
	s := fs.s
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kind != kindBlockBitmap && b.kind != kindInodeBitmap {
		return
	}
	n := uint32(b.of)
	gb := fs.groups[n].desc
	gb.mu.Lock()
	defer gb.mu.Unlock()
	g := fs.descIn(gb.data, n)
	if b.kind == kindBlockBitmap {
		s.sealBitmap(g, gdBlockBmCsum, gdBlockBmCsumHi, b.data[:s.blocksPerGroup/8])
	} else {
		s.sealBitmap(g, gdInodeBmCsum, gdInodeBmCsumHi, b.data[:s.inodesPerGroup/8])
	}
	gb.staleRecord(fs.descIndex(n))
}

// sealBlock stores the checksums that are within the block itself; b.mu is held.
func (fs *FS) sealBlock(b *buffer) {
	s, d, of := fs.s, b.data, uint32(b.of)
	if b.kind == kindDesc {
		b.eachStale(func(i uint32) {
			n := of + i
			s.sealGroup(n, fs.descIn(d, n))
		})
		return
	}
	if !s.metadataCsum {
		return
	}
	switch b.kind {
	case kindTable:
		b.eachStale(func(i uint32) {
			s.sealInode(of+i, d[i*s.inodeSize:(i+1)*s.inodeSize])
		})
	case kindDir:
		sealDir(of, d)
	case kindExtent:
		sealNode(of, d)
	case kindRoot:
		s.sealDx(of, d, dxRootOff)
	case kindIndex:
		s.sealDx(of, d, dxNodeOff)
	case kindXattr:
		le.PutUint32(d[xaChecksum:], s.xattrSum(b.blk, d))
	case kindSuper:
		sealSuper(fs.superBytes(d))
	}
}

func (b *buffer) eachStale(do func(i uint32)) {
	for w, set := range b.stale {
		for ; set != 0; set &= set - 1 {
			do(uint32(w*64 + bits.TrailingZeros64(set)))
		}
	}
}
