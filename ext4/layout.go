package ext4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"hardtack/abi/linux"
)

// Numbers on disk are little-endian; those of the journal are big-endian.
var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// castagnoli is made for the first disk: that takes as long as a tenth of a boot.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// crc32c continues a checksum as ext4 does it: no inversion at either end.
func crc32c(seed uint32, p []byte) uint32 { return ^crc32.Update(^seed, castagnoli(), p) }

// crc32c32 continues it with a little-endian number.
func crc32c32(c, v uint32) uint32 {
	table := castagnoli()
	for range 4 {
		c = table[byte(c^v)] ^ c>>8
		v >>= 8
	}
	return c
}

// crc32cZeros continues it with n zeros.
func crc32cZeros(c uint32, n int) uint32 {
	table := castagnoli()
	for range n {
		c = table[byte(c)] ^ c>>8
	}
	return c
}

// crc16 is the checksum of group descriptors before metadata_csum (CRC-16/ARC).
func crc16(crc uint16, p []byte) uint16 {
	for _, c := range p {
		crc ^= uint16(c)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0xa001
			} else {
				crc >>= 1
			}
		}
	}
	return crc
}

// Errno returns the error number that a call of this package failed with: EIO
// where the error has none, 0 for nil.
func Errno(err error) linux.Errno {
	if err == nil {
		return 0
	}
	var e linux.Errno
	if errors.As(err, &e) {
		return e
	}
	return linux.EIO
}

// corrupt is an error about damaged metadata: EUCLEAN, as Linux gives it.
func corrupt(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, linux.EUCLEAN)...)
}

// Group descriptor: offsets of fields.
const (
	gdBlockBitmap  = 0
	gdInodeBitmap  = 4
	gdInodeTable   = 8
	gdFreeBlocks   = 12 // 16 bits
	gdFreeInodes   = 14
	gdUsedDirs     = 16
	gdFlags        = 18
	gdBlockBmCsum  = 24
	gdInodeBmCsum  = 26
	gdUnusedInodes = 28
	gdChecksum     = 30
	// The upper halves; only in descriptors of 64 bytes.
	gdBlockBitmapHi  = 32
	gdInodeBitmapHi  = 36
	gdInodeTableHi   = 40
	gdFreeBlocksHi   = 44
	gdFreeInodesHi   = 46
	gdUsedDirsHi     = 48
	gdUnusedInodesHi = 50
	gdBlockBmCsumHi  = 56
	gdInodeBmCsumHi  = 58
)

// Flags of a group.
const (
	bgInodeUninit = 1 // the inode bitmap is all zero and was not written
	bgBlockUninit = 2 // the block bitmap follows from the layout and was not written
	bgInodeZeroed = 4 // the inode table was zeroed
)

// groupDesc is the raw descriptor, 32 or 64 bytes.
type groupDesc []byte

func (g groupDesc) wide(lo, hi int) uint64 {
	v := uint64(le.Uint32(g[lo:]))
	if len(g) >= 64 {
		v |= uint64(le.Uint32(g[hi:])) << 32
	}
	return v
}

func (g groupDesc) pair(lo, hi int) uint32 {
	v := uint32(le.Uint16(g[lo:]))
	if len(g) >= 64 {
		v |= uint32(le.Uint16(g[hi:])) << 16
	}
	return v
}

func (g groupDesc) setWide(lo, hi int, v uint64) {
	le.PutUint32(g[lo:], uint32(v))
	if len(g) >= 64 {
		le.PutUint32(g[hi:], uint32(v>>32))
	}
}

func (g groupDesc) setPair(lo, hi int, v uint32) {
	le.PutUint16(g[lo:], uint16(v))
	if len(g) >= 64 {
		le.PutUint16(g[hi:], uint16(v>>16))
	}
}

func (g groupDesc) blockBitmap() uint64  { return g.wide(gdBlockBitmap, gdBlockBitmapHi) }
func (g groupDesc) inodeBitmap() uint64  { return g.wide(gdInodeBitmap, gdInodeBitmapHi) }
func (g groupDesc) inodeTable() uint64   { return g.wide(gdInodeTable, gdInodeTableHi) }
func (g groupDesc) freeBlocks() uint32   { return g.pair(gdFreeBlocks, gdFreeBlocksHi) }
func (g groupDesc) freeInodes() uint32   { return g.pair(gdFreeInodes, gdFreeInodesHi) }
func (g groupDesc) usedDirs() uint32     { return g.pair(gdUsedDirs, gdUsedDirsHi) }
func (g groupDesc) unusedInodes() uint32 { return g.pair(gdUnusedInodes, gdUnusedInodesHi) }
func (g groupDesc) flags() uint16        { return le.Uint16(g[gdFlags:]) }

// checksum of the descriptor of group n, by whichever rule the disk has.
func (s *super) groupChecksum(n uint32, g groupDesc) uint16 {
	switch {
	case s.metadataCsum:
		c := crc32c32(s.csumSeed, n)
		c = crc32c(c, g[:gdChecksum])
		c = crc32cZeros(c, 2)
		return uint16(crc32c(c, g[gdChecksum+2:]))
	case s.roCompat&roGdtCsum != 0:
		var num [4]byte
		le.PutUint32(num[:], n)
		c := crc16(0xffff, s.raw[sbUUID:sbUUID+16])
		c = crc16(c, num[:])
		c = crc16(c, g[:gdChecksum])
		return crc16(c, g[gdChecksum+2:])
	}
	return 0
}

func (s *super) sealGroup(n uint32, g groupDesc) {
	le.PutUint16(g[gdChecksum:], s.groupChecksum(n, g))
}

// sealBitmap stores a bitmap's checksum in its descriptor (which must be sealed after).
func (s *super) sealBitmap(g groupDesc, lo, hi int, bitmap []byte) {
	if s.metadataCsum {
		g.setPair(lo, hi, crc32c(s.csumSeed, bitmap))
	}
}

func (s *super) bitmapOK(g groupDesc, lo, hi int, bitmap []byte) bool {
	if !s.metadataCsum {
		return true
	}
	c := crc32c(s.csumSeed, bitmap)
	if len(g) < 64 {
		c &= 0xffff
	}
	return g.pair(lo, hi) == c
}
