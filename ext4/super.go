package ext4

import (
	"fmt"
	"strings"

	"hardtack/abi/linux"
)

// Super block: offsets of fields, little-endian.
const (
	sbInodes         = 0
	sbBlocks         = 4
	sbReserved       = 8
	sbFreeBlocks     = 12
	sbFreeInodes     = 16
	sbFirstBlock     = 20
	sbLogBlockSize   = 24
	sbLogClusterSize = 28
	sbBlocksPerGroup = 32
	sbClustersPerGrp = 36
	sbInodesPerGroup = 40
	sbMtime          = 44
	sbWtime          = 48
	sbMountCount     = 52 // 16 bits
	sbMaxMounts      = 54
	sbMagic          = 56
	sbState          = 58
	sbErrors         = 60
	sbLastCheck      = 64
	sbCreatorOS      = 72
	sbRevision       = 76
	sbFirstInode     = 84
	sbInodeSize      = 88 // 16 bits
	sbGroupNr        = 90 // 16 bits, of this copy
	sbCompat         = 92
	sbIncompat       = 96
	sbRoCompat       = 100
	sbUUID           = 104
	sbLabel          = 120
	sbReservedGDT    = 206 // 16 bits
	sbJournalInode   = 224
	sbLastOrphan     = 232
	sbHashSeed       = 236
	sbHashVersion    = 252 // 8 bits
	sbJnlBackupType  = 253
	sbDescSize       = 254 // 16 bits
	sbMountOpts      = 256
	sbMkfsTime       = 264
	sbJnlBlocks      = 268 // 17 words
	sbBlocksHi       = 336
	sbReservedHi     = 340
	sbFreeBlocksHi   = 344
	sbMinExtra       = 348
	sbWantExtra      = 350
	sbFlags          = 352
	sbLogFlex        = 372 // 8 bits
	sbCsumType       = 373 // 8 bits
	sbErrorCount     = 404
	sbBackups        = 588 // two words: groups with a copy, of sparse_super2
	sbCsumSeed       = 624
	sbOrphanFile     = 640
	sbChecksum       = 1020

	superOffset = 1024 // bytes from the start of the disk
	superSize   = 1024
	superMagic  = 0xef53

	stateClean = 1 // of sbState
	stateError = 2

	flagSignedHash   = 1 // of sbFlags
	flagUnsignedHash = 2

	minPerGroup = 256 // blocks; mke2fs makes no smaller groups

	rootInode    = 2
	resizeInode  = 7
	journalInode = 8
	firstInode   = 11
)

// Features that this package supports, or names when it refuses them.
const (
	compatHasJournal  = 0x4
	compatExtAttr     = 0x8
	compatResizeInode = 0x10
	compatDirIndex    = 0x20
	compatSparse2     = 0x200
	compatOrphanFile  = 0x1000

	incompatFiletype = 0x2
	incompatRecover  = 0x4
	incompatExtents  = 0x40
	incompat64bit    = 0x80
	incompatFlexBG   = 0x200
	incompatCsumSeed = 0x2000
	incompatLargeDir = 0x4000

	roSparseSuper   = 0x1
	roLargeFile     = 0x2
	roHugeFile      = 0x8
	roGdtCsum       = 0x10
	roDirNlink      = 0x20
	roExtraIsize    = 0x40
	roBigalloc      = 0x200
	roMetadataCsum  = 0x400
	roOrphanPresent = 0x10000

	knownIncompat = incompatFiletype | incompatRecover | incompatExtents | incompat64bit |
		incompatFlexBG | incompatCsumSeed | incompatLargeDir
	knownRoCompat = roSparseSuper | roLargeFile | roHugeFile | roGdtCsum | roDirNlink |
		roExtraIsize | roMetadataCsum
)

// Names of features, as tune2fs spells them.
var (
	incompatNames = map[uint32]string{
		0x1: "compression", 0x2: "filetype", 0x4: "needs_recovery", 0x8: "journal_dev",
		0x10: "meta_bg", 0x40: "extent", 0x80: "64bit", 0x100: "mmp", 0x200: "flex_bg",
		0x400: "ea_inode", 0x1000: "dirdata", 0x2000: "metadata_csum_seed", 0x4000: "large_dir",
		0x8000: "inline_data", 0x10000: "encrypt", 0x20000: "casefold",
	}
	roCompatNames = map[uint32]string{
		0x1: "sparse_super", 0x2: "large_file", 0x4: "btree_dir", 0x8: "huge_file", 0x10: "uninit_bg",
		0x20: "dir_nlink", 0x40: "extra_isize", 0x80: "has_snapshot", 0x100: "quota",
		0x200: "bigalloc", 0x400: "metadata_csum", 0x800: "replica", 0x1000: "read-only",
		0x2000: "project", 0x4000: "shared_blocks", 0x8000: "verity", 0x10000: "orphan_present",
	}
)

func featureNames(bits uint32, names map[uint32]string) string {
	var out []string
	for i := range 32 {
		if b := uint32(1) << i; bits&b != 0 {
			n := names[b]
			if n == "" {
				n = fmt.Sprintf("bit %#x", b)
			}
			out = append(out, n)
		}
	}
	return strings.Join(out, ", ")
}

// super is the super block, decoded; immutable once mounted but for raw, which
// is the block as last seen on disk (its live copy is a buffer).
type super struct {
	raw                         [superSize]byte
	compat, incompat, roCompat  uint32
	blockSize, logBlock         uint32
	blocks                      uint64 // of the file system
	firstBlock                  uint32 // 1 with blocks of 1 KiB, else 0
	blocksPerGroup              uint32
	inodesPerGroup              uint32
	inodes                      uint32
	inodeSize                   uint32
	descSize                    uint32
	groups                      uint32
	gdtBlocks                   uint32
	firstIno                    uint32
	metadataCsum                bool
	csumSeed                    uint32
	hashSeed                    [4]uint32
	hashVersion                 uint8
	hashUnsigned                bool
	wantExtra                   uint16
	journal                     uint32 // inode
	flexSize                    uint32
	reservedBlocks, reservedGDT uint64
}

// parseSuper decodes and verifies the super block of a device of devSize bytes. It refuses
// values that make reading impossible. torn is true if only the checksum is wrong.
func parseSuper(raw []byte, devSize int64) (s *super, torn bool, err error) {
	s, err = decodeSuper(raw, devSize)
	if err == nil && s.metadataCsum && crc32c(^uint32(0), raw[:sbChecksum]) != le.Uint32(raw[sbChecksum:]) {
		return s, true, corrupt("super block: bad checksum")
	}
	return s, false, err
}

func decodeSuper(raw []byte, devSize int64) (*super, error) {
	s := &super{}
	copy(s.raw[:], raw)
	if le.Uint16(raw[sbMagic:]) != superMagic {
		return nil, fmt.Errorf("no ext4 file system (magic %#x): %w", le.Uint16(raw[sbMagic:]), linux.EINVAL)
	}
	u32 := func(off int) uint32 { return le.Uint32(raw[off:]) }
	if u32(sbRevision) > 1 {
		return nil, fmt.Errorf("revision %d of ext4 is not known: %w", u32(sbRevision), linux.EINVAL)
	}
	s.compat, s.incompat, s.roCompat = u32(sbCompat), u32(sbIncompat), u32(sbRoCompat)
	s.metadataCsum = s.roCompat&roMetadataCsum != 0
	if s.metadataCsum {
		if raw[sbCsumType] != 1 {
			return nil, fmt.Errorf("checksum type %d is not known: %w", raw[sbCsumType], linux.EINVAL)
		}
		s.csumSeed = crc32c(^uint32(0), raw[sbUUID:sbUUID+16])
		if s.incompat&incompatCsumSeed != 0 {
			s.csumSeed = u32(sbCsumSeed)
		}
	}
	if err := s.supported(); err != nil {
		return nil, err
	}
	if s.logBlock = u32(sbLogBlockSize); s.logBlock > 2 {
		return nil, fmt.Errorf("blocks of 2^%d KiB are not supported: %w", s.logBlock, linux.EINVAL)
	}
	s.blockSize = 1024 << s.logBlock
	s.firstBlock, s.blocksPerGroup, s.inodesPerGroup = u32(sbFirstBlock), u32(sbBlocksPerGroup), u32(sbInodesPerGroup)
	s.blocks, s.reservedBlocks = uint64(u32(sbBlocks)), uint64(u32(sbReserved))
	s.descSize = 32
	if s.incompat&incompat64bit != 0 {
		s.blocks |= uint64(u32(sbBlocksHi)) << 32
		s.reservedBlocks |= uint64(u32(sbReservedHi)) << 32
		s.descSize = uint32(le.Uint16(raw[sbDescSize:]))
		if s.descSize < 64 || s.descSize > 1024 || s.descSize&(s.descSize-1) != 0 {
			return nil, corrupt("super block: descriptors of %d bytes", s.descSize)
		}
	}
	s.inodes, s.inodeSize, s.firstIno = u32(sbInodes), 128, firstInode
	if u32(sbRevision) == 1 {
		s.inodeSize, s.firstIno = uint32(le.Uint16(raw[sbInodeSize:])), u32(sbFirstInode)
	}
	if err := s.plausible(devSize); err != nil {
		return nil, err
	}
	s.decodeHints()
	return s, nil
}

// plausible checks the sizes against each other and the device, and counts the groups.
func (s *super) plausible(devSize int64) error {
	bits := 8 * s.blockSize
	first := uint32(0)
	if s.blockSize == 1024 {
		first = 1
	}
	switch {
	case s.inodeSize < 128 || s.inodeSize > s.blockSize || s.inodeSize&(s.inodeSize-1) != 0:
		return corrupt("super block: inodes of %d bytes", s.inodeSize)
	case s.firstIno < firstInode || s.firstIno > s.inodes:
		return corrupt("super block: first inode %d of %d", s.firstIno, s.inodes)
	case s.blocksPerGroup < minPerGroup || s.blocksPerGroup > bits || s.blocksPerGroup%8 != 0:
		return corrupt("super block: %d blocks a group", s.blocksPerGroup)
	case s.inodesPerGroup == 0 || s.inodesPerGroup > bits || s.inodesPerGroup%8 != 0 ||
		s.inodesPerGroup%(s.blockSize/s.inodeSize) != 0:
		return corrupt("super block: %d inodes a group", s.inodesPerGroup)
	case s.firstBlock != first:
		return corrupt("super block: first block %d", s.firstBlock)
	case s.blocks <= uint64(s.firstBlock) || s.blocks > uint64(devSize)/uint64(s.blockSize):
		return corrupt("super block: %d blocks of %d bytes on a device of %d bytes", s.blocks, s.blockSize, devSize)
	case s.reservedBlocks > s.blocks:
		return corrupt("super block: %d of %d blocks reserved", s.reservedBlocks, s.blocks)
	case le.Uint32(s.raw[sbLogClusterSize:]) != s.logBlock:
		return corrupt("super block: clusters of 2^%d KiB without bigalloc", le.Uint32(s.raw[sbLogClusterSize:]))
	}
	groups := (s.blocks - uint64(s.firstBlock) + uint64(s.blocksPerGroup) - 1) / uint64(s.blocksPerGroup)
	if groups*uint64(s.inodesPerGroup) != uint64(s.inodes) {
		return corrupt("super block: %d inodes in %d groups of %d", s.inodes, groups, s.inodesPerGroup)
	}
	s.groups = uint32(groups)
	perBlock := s.blockSize / s.descSize
	s.gdtBlocks = (s.groups + perBlock - 1) / perBlock
	if uint64(s.firstBlock)+1+uint64(s.gdtBlocks) > s.blocks {
		return corrupt("super block: no room for %d blocks of descriptors", s.gdtBlocks)
	}
	return nil
}

// decodeHints reads fields of which any value is valid.
func (s *super) decodeHints() {
	raw := s.raw[:]
	u32 := func(off int) uint32 { return le.Uint32(raw[off:]) }
	for i := range s.hashSeed {
		s.hashSeed[i] = u32(sbHashSeed + 4*i)
	}
	s.hashVersion = raw[sbHashVersion]
	s.hashUnsigned = u32(sbFlags)&flagUnsignedHash != 0
	s.wantExtra = le.Uint16(raw[sbWantExtra:])
	if s.inodeSize == 128 {
		s.wantExtra = 0
	} else if s.wantExtra < 32 || uint32(s.wantExtra) > s.inodeSize-128 || s.wantExtra%4 != 0 {
		s.wantExtra = 32
	}
	s.journal = u32(sbJournalInode)
	s.flexSize = 1
	if l := raw[sbLogFlex]; s.incompat&incompatFlexBG != 0 && l < 32 {
		s.flexSize = 1 << l
	}
	s.reservedGDT = uint64(le.Uint16(raw[sbReservedGDT:]))
}

// supported refuses a disk with unsupported features, and names them.
func (s *super) supported() error {
	if bad := s.incompat &^ knownIncompat; bad != 0 {
		return fmt.Errorf("the disk has features that are not supported: %s: %w",
			featureNames(bad, incompatNames), linux.EOPNOTSUPP)
	}
	if s.roCompat&roBigalloc != 0 { // says where things lie, whatever its kind
		return fmt.Errorf("the disk has features that are not supported: bigalloc: %w", linux.EOPNOTSUPP)
	}
	if s.incompat&(incompatFiletype|incompatExtents) != incompatFiletype|incompatExtents {
		return fmt.Errorf("the disk lacks the features filetype and extent (ext2 or ext3): %w", linux.EOPNOTSUPP)
	}
	return nil
}

// writable refuses a disk with features that only allow reading.
func (s *super) writable() error {
	if bad := s.roCompat &^ (knownRoCompat | roOrphanPresent); bad != 0 {
		return fmt.Errorf("the disk has features that allow only reading: %s: %w",
			featureNames(bad, roCompatNames), linux.EROFS)
	}
	return nil
}

func sealSuper(raw []byte) {
	if le.Uint32(raw[sbRoCompat:])&roMetadataCsum != 0 {
		le.PutUint32(raw[sbChecksum:], crc32c(^uint32(0), raw[:sbChecksum]))
	}
}

// groupOf returns the group of a block and its index there.
func (s *super) groupOf(blk uint64) (group, index uint32) {
	n := blk - uint64(s.firstBlock)
	return uint32(n / uint64(s.blocksPerGroup)), uint32(n % uint64(s.blocksPerGroup))
}

// groupStart is the first block of a group.
func (s *super) groupStart(g uint32) uint64 {
	return uint64(s.firstBlock) + uint64(g)*uint64(s.blocksPerGroup)
}

// groupBlocks is the number of blocks of a group; the last may be short.
func (s *super) groupBlocks(g uint32) uint32 {
	return uint32(min(uint64(s.blocksPerGroup), s.blocks-s.groupStart(g)))
}

// hasSuper reports whether group g begins with a copy of the super block and descriptors.
func (s *super) hasSuper(g uint32) bool {
	if g == 0 {
		return true
	}
	if s.compat&compatSparse2 != 0 {
		return g == le.Uint32(s.raw[sbBackups:]) || g == le.Uint32(s.raw[sbBackups+4:])
	}
	if g == 1 || s.roCompat&roSparseSuper == 0 {
		return true
	}
	for _, p := range []uint32{3, 5, 7} {
		n := g
		for n%p == 0 {
			n /= p
		}
		if n == 1 {
			return true
		}
	}
	return false
}

// overhead is the number of blocks at a group's start for the copies.
func (s *super) overhead(g uint32) uint32 {
	if !s.hasSuper(g) {
		return 0
	}
	return 1 + s.gdtBlocks + uint32(s.reservedGDT)
}

// inodeTableBlocks is the length of each group's inode table.
func (s *super) inodeTableBlocks() uint32 { return s.inodesPerGroup * s.inodeSize / s.blockSize }

// valid reports whether blocks blk … blk+n-1 are in the file system.
func (s *super) valid(blk, n uint64) bool {
	return blk > uint64(s.firstBlock) && n <= s.blocks && blk <= s.blocks-n
}
