package ext4

import "math/bits"

// The log on disk is jbd2's: the first block of the journal's inode is its super
// block, the others are a ring. A transaction in it is any number of descriptor
// blocks, each followed by the blocks that its tags name, any number of revoke
// blocks, and one commit block; all carry the transaction's number. Numbers are
// big-endian. A block that begins with jbd2's magic is stored without it and marked in
// its tag, so that no block in the ring is mistaken for a header.
const (
	jMagic = 0xc03b3998

	jDescriptor = 1 // types of blocks
	jCommit     = 2
	jSuperV1    = 3
	jSuperV2    = 4
	jRevoke     = 5

	// Header, and offsets in the journal's super block.
	jhMagic    = 0
	jhType     = 4
	jhSeq      = 8
	jHeader    = 12
	jsBlock    = 12
	jsMaxLen   = 16
	jsFirst    = 20
	jsSequence = 24
	jsStart    = 28 // 0: nothing to replay
	jsErrno    = 32
	jsCompat   = 36
	jsIncompat = 40
	jsRoCompat = 44
	jsUUID     = 48
	jsUsers    = 64
	jsCsumType = 80
	jsChecksum = 252
	jsUsersID  = 256
	jSuperSize = 1024

	jfRevoke = 1 // incompatible features
	jf64bit  = 2
	jfAsync  = 4
	jfCsumV2 = 8
	jfCsumV3 = 16
	jfFast   = 32

	tagEscaped  = 1
	tagSameUUID = 2
	tagDeleted  = 4
	tagLast     = 8

	minLog = 1023 // blocks of the ring, as Linux: any one operation fits

	jCommitCsum = 16 // offset of a commit block's checksum
	jCommitSec  = 48 // and of its time
)

// logArea is the ring and what is in it.
type logArea struct {
	blockSize int
	runs      []run // where the journal's inode lies, in order; immutable
	super     []byte
	first     uint32 // of the ring
	maxLen    uint32 // blocks of the inode in use, the super block's among them
	head      uint32 // next block to write
	tail      uint32 // first block in use
	nextSeq   uint32 // of the next transaction
	full      bool   // head == tail means full, not empty
	seed      uint32 // of checksums
	now       func() int64
}

func (l *logArea) length() uint32 { return l.maxLen - l.first }

func (l *logArea) used() uint32 {
	if l.full {
		return l.length()
	}
	return (l.head + l.length() - l.tail) % l.length()
}

func (l *logArea) incompat() uint32 { return be.Uint32(l.super[jsIncompat:]) }
func (l *logArea) v3() bool         { return l.incompat()&jfCsumV3 != 0 }
func (l *logArea) csums() bool      { return l.incompat()&(jfCsumV2|jfCsumV3) != 0 }

// tagSize is the length of a tag without the identifier that may follow it.
func (l *logArea) tagSize() int {
	f := l.incompat()
	if f&jfCsumV3 != 0 {
		return 16
	}
	n := 12
	if f&jfCsumV2 != 0 {
		n += 2
	}
	if f&jf64bit == 0 {
		n -= 4
	}
	return n
}

// recordSize is the length of a revoke record.
func (l *logArea) recordSize() int {
	if l.incompat()&jf64bit != 0 {
		return 8
	}
	return 4
}

// room is the space for tags or records in a block of the log.
func (l *logArea) room(header int) int {
	n := l.blockSize - header
	if l.csums() {
		n -= 4
	}
	return n
}

// phys is the place on disk, in bytes, of block i of the journal.
func (l *logArea) phys(i uint32) int64 {
	n := uint64(i)
	for _, r := range l.runs {
		if n < r.n {
			return int64(r.blk+n) * int64(l.blockSize)
		}
		n -= r.n
	}
	return -int64(l.blockSize) // beyond: the device refuses it
}

// next is the block after i in the ring.
func (l *logArea) next(i uint32) uint32 {
	if i++; i >= l.maxLen {
		i = l.first
	}
	return i
}

// take returns the next block to write.
func (l *logArea) take() uint32 {
	i := l.head
	l.head = l.next(i)
	l.full = l.head == l.tail
	return i
}

// writeSuper stores the super block durably.
func (l *logArea) writeSuper(dev BlockDevice) error {
	if l.csums() {
		be.PutUint32(l.super[jsChecksum:], 0)
		be.PutUint32(l.super[jsChecksum:], crc32c(^uint32(0), l.super[:jSuperSize]))
	}
	return dev.WriteAt([]Transfer{{l.phys(0), l.super}}, true)
}

// setStart declares that everything before block at of the ring has been written home;
// transaction seq begins there. The ring's blocks must not be reused until this is on disk.
func (l *logArea) setStart(dev BlockDevice, at, seq uint32) error {
	be.PutUint32(l.super[jsStart:], at)
	be.PutUint32(l.super[jsSequence:], seq)
	return l.writeSuper(dev)
}

// noted reports whether the log records damage (noteDamage).
func (l *logArea) noted() bool { return be.Uint32(l.super[jsErrno:]) != 0 }

// stop declares the journal empty at a clean unmount.
func (l *logArea) stop(dev BlockDevice) error {
	be.PutUint32(l.super[jsStart:], 0)
	be.PutUint32(l.super[jsSequence:], l.nextSeq)
	return l.writeSuper(dev)
}

func putLogHeader(b []byte, kind, seq uint32) {
	be.PutUint32(b[jhMagic:], jMagic)
	be.PutUint32(b[jhType:], kind)
	be.PutUint32(b[jhSeq:], seq)
}

// putRevokes fills a revoke block with as many records as fit.
func (l *logArea) putRevokes(b []byte, blks []uint64) int {
	at := jHeader + 4
	n := min(len(blks), l.room(at)/l.recordSize())
	for _, blk := range blks[:n] {
		if l.recordSize() == 8 {
			be.PutUint64(b[at:], blk)
		} else {
			be.PutUint32(b[at:], uint32(blk))
		}
		at += l.recordSize()
	}
	be.PutUint32(b[jHeader:], uint32(at))
	l.seal(b)
	return n
}

// seal stores the checksum at the end of a descriptor or revoke block.
func (l *logArea) seal(b []byte) {
	if l.csums() {
		be.PutUint32(b[len(b)-4:], crc32c(l.seed, b))
	}
}

func (l *logArea) sealed(b []byte) bool {
	if !l.csums() {
		return true
	}
	c := crc32cZeros(crc32c(l.seed, b[:len(b)-4]), 4)
	return c == be.Uint32(b[len(b)-4:])
}

// dataChecksum is a logged block's.
func (l *logArea) dataChecksum(seq uint32, d []byte) uint32 {
	return crc32c(crc32c32(l.seed, bits.ReverseBytes32(seq)), d)
}

// putTag stores a tag.
func (l *logArea) putTag(t []byte, blk uint64, flags, csum uint32) {
	be.PutUint32(t, uint32(blk))
	if l.v3() {
		be.PutUint32(t[4:], flags)
		be.PutUint32(t[8:], uint32(blk>>32))
		be.PutUint32(t[12:], csum)
		return
	}
	if l.incompat()&jfCsumV2 != 0 {
		be.PutUint16(t[4:], uint16(csum))
	}
	be.PutUint16(t[6:], uint16(flags))
	if l.incompat()&jf64bit != 0 {
		be.PutUint32(t[8:], uint32(blk>>32))
	}
}

// logBlock is a block to be logged.
type logBlock struct {
	blk  uint64
	data []byte
}
