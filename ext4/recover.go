package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// openLog reads and checks the journal's super block; runs is where its inode lies.
func openLog(dev BlockDevice, s *super, runs []run) (*logArea, error) {
	l := &logArea{blockSize: int(s.blockSize), runs: runs, super: make([]byte, s.blockSize)}
	var have uint64
	for _, r := range runs {
		if !s.valid(r.blk, r.n) {
			return nil, corrupt("journal: blocks %d+%d", r.blk, r.n)
		}
		have += r.n
	}
	if have == 0 {
		return nil, corrupt("journal: empty inode")
	}
	if err := dev.ReadAt([]Transfer{{l.phys(0), l.super}}); err != nil {
		return nil, ioError(err)
	}
	b := l.super
	if be.Uint32(b[jhMagic:]) != jMagic || be.Uint32(b[jhType:]) != jSuperV2 {
		return nil, corrupt("journal: no super block of version 2")
	}
	l.first, l.maxLen = be.Uint32(b[jsFirst:]), be.Uint32(b[jsMaxLen:])
	bad := l.incompat() &^ (jfRevoke | jf64bit | jfCsumV2 | jfCsumV3)
	switch {
	case bad != 0 || be.Uint32(b[jsRoCompat:]) != 0:
		return nil, fmt.Errorf("the journal has features that are not supported: %s: %w", featureNames(bad,
			map[uint32]string{jfAsync: "async_commit", jfFast: "fast_commit"}), linux.EOPNOTSUPP)
	case l.incompat()&(jfCsumV2|jfCsumV3) == jfCsumV2|jfCsumV3:
		return nil, corrupt("journal: two kinds of checksums")
	case be.Uint32(b[jsBlock:]) != s.blockSize:
		return nil, corrupt("journal: blocks of %d bytes", be.Uint32(b[jsBlock:]))
	case uint64(l.maxLen) > have || l.first == 0 || l.first >= l.maxLen || l.maxLen-l.first < minLog:
		return nil, corrupt("journal: blocks %d to %d of %d", l.first, l.maxLen, have)
	}
	if l.csums() {
		if b[jsCsumType] != 4 {
			return nil, corrupt("journal: checksum type %d", b[jsCsumType])
		}
		c := crc32c(^uint32(0), b[:jsChecksum])
		c = crc32cZeros(c, 4)
		if crc32c(c, b[jsChecksum+4:jSuperSize]) != be.Uint32(b[jsChecksum:]) {
			return nil, corrupt("journal: bad checksum of the super block")
		}
	}
	l.seed = crc32c(^uint32(0), b[jsUUID:jsUUID+16])
	l.nextSeq = be.Uint32(b[jsSequence:])
	start := be.Uint32(b[jsStart:])
	if start != 0 && (start < l.first || start >= l.maxLen) {
		return nil, corrupt("journal: starts at block %d", start)
	}
	l.head, l.tail = l.first, l.first
	return l, nil
}

// dirty reports whether the log holds transactions to replay.
func (l *logArea) dirty() bool { return be.Uint32(l.super[jsStart:]) != 0 }

// replay is what the log's transactions say.
type replay struct {
	end     uint32            // the first sequence number that is not complete
	revoked map[uint64]uint32 // block: the last transaction that revoked it
	blocks  map[uint64]uint32 // block on disk: block of the log with its newest content
	escaped map[uint64]bool
}

// tag is one decoded tag of a descriptor block.
type tag struct {
	blk   uint64
	flags uint32
	csum  uint32
}

// parseTags decodes a descriptor block.
func (l *logArea) parseTags(b []byte) []tag {
	end := jHeader + l.room(jHeader)
	size := l.tagSize()
	var tags []tag
	for at := jHeader; at+size <= end; {
		t := b[at:]
		x := tag{blk: uint64(be.Uint32(t))}
		if l.v3() {
			x.flags, x.csum = be.Uint32(t[4:]), be.Uint32(t[12:])
			if l.incompat()&jf64bit != 0 {
				x.blk |= uint64(be.Uint32(t[8:])) << 32
			}
		} else {
			x.csum, x.flags = uint32(be.Uint16(t[4:])), uint32(be.Uint16(t[6:]))
			if l.incompat()&jf64bit != 0 {
				x.blk |= uint64(be.Uint32(t[8:])) << 32
			}
		}
		tags = append(tags, x)
		at += size
		if x.flags&tagSameUUID == 0 {
			at += 16
		}
		if x.flags&tagLast != 0 {
			break
		}
	}
	return tags // a full block need not mark its last one
}

// parseRevokes decodes a revoke block.
func (l *logArea) parseRevokes(b []byte) ([]uint64, error) {
	n := be.Uint32(b[jHeader:])
	size := uint32(l.recordSize())
	if n < jHeader+4 || n > uint32(jHeader+4+l.room(jHeader+4)) || (n-jHeader-4)%size != 0 {
		return nil, corrupt("journal: a revoke block of %d bytes", n)
	}
	var blks []uint64
	for at := uint32(jHeader + 4); at < n; at += size {
		if size == 8 {
			blks = append(blks, be.Uint64(b[at:]))
		} else {
			blks = append(blks, uint64(be.Uint32(b[at:])))
		}
	}
	return blks, nil
}

// scan reads the log from its start to the end of the last complete transaction.
//
// A transaction counts if its commit block is valid. The device was flushed before the
// commit block was written, so the transaction must be valid too; if it is not, the disk
// is damaged and nothing is replayed.
func (l *logArea) scan(dev BlockDevice, blocks uint64) (*replay, error) {
	x := &scanner{logArea: l, dev: dev, blocks: blocks, data: make([]byte, l.blockSize),
		replay: &replay{end: be.Uint32(l.super[jsSequence:]), revoked: map[uint64]uint32{},
			blocks: map[uint64]uint32{}, escaped: map[uint64]bool{}}}
	b := make([]byte, l.blockSize)
	x.at = be.Uint32(l.super[jsStart:])
	for x.left = int64(l.length()); x.left > 0; x.left-- {
		if err := x.read(x.at, b); err != nil {
			return nil, err
		}
		if be.Uint32(b[jhMagic:]) != jMagic || be.Uint32(b[jhSeq:]) != x.end {
			break
		}
		x.at = l.next(x.at)
		more, err := false, error(nil)
		switch be.Uint32(b[jhType:]) {
		case jDescriptor:
			more, err = x.descriptor(b)
		case jRevoke:
			if more = l.sealed(b); more {
				var blks []uint64
				blks, err = l.parseRevokes(b)
				x.revokes = append(x.revokes, blks...)
			}
		case jCommit:
			more, err = x.commit(b)
		}
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	return x.replay, nil
}

// scanner is the state of a scan.
type scanner struct {
	*logArea
	*replay
	dev    BlockDevice
	blocks uint64 // of the file system
	at     uint32
	left   int64
	data   []byte // room for a block

	// Of the transaction being read.
	copies  []copyOf
	revokes []uint64
	damage  error // counts when the transaction turns out to be committed
}

type copyOf struct {
	tag
	at uint32
}

func (x *scanner) read(i uint32, p []byte) error {
	return ioError(x.dev.ReadAt([]Transfer{{x.phys(i), p}}))
}

// descriptor records the copies that follow a descriptor; false if the log ends before it.
func (x *scanner) descriptor(b []byte) (more bool, err error) {
	if !x.sealed(b) {
		return false, nil
	}
	tags := x.parseTags(b)
	if x.left -= int64(len(tags)); x.left <= 0 {
		return false, nil
	}
	for _, t := range tags {
		if t.blk >= x.blocks && x.damage == nil {
			x.damage = corrupt("journal: transaction %d changes block %d of %d", x.end, t.blk, x.blocks)
		}
		if x.csums() && x.damage == nil {
			if err := x.read(x.at, x.data); err != nil {
				return false, err
			}
			c := x.dataChecksum(x.end, x.data)
			if !x.v3() {
				c &= 0xffff
			}
			if c != t.csum {
				x.damage = corrupt("journal: transaction %d: bad checksum of block %d", x.end, t.blk)
			}
		}
		x.copies = append(x.copies, copyOf{t, x.at})
		x.at = x.next(x.at)
	}
	return true, nil
}

// commit adds the transaction to the result; false if it was not committed.
func (x *scanner) commit(b []byte) (more bool, err error) {
	if x.csums() {
		c := be.Uint32(b[jCommitCsum:])
		be.PutUint32(b[jCommitCsum:], 0)
		if crc32c(x.seed, b) != c {
			return false, nil
		}
	}
	if x.damage != nil {
		return false, x.damage
	}
	r := x.replay
	for _, c := range x.copies {
		if c.flags&tagDeleted == 0 {
			r.blocks[c.blk], r.escaped[c.blk] = c.at, c.flags&tagEscaped != 0
		}
	}
	// A revoke voids copies up to its own transaction; later ones enter the map again.
	for _, blk := range x.revokes {
		r.revoked[blk] = r.end
		delete(r.blocks, blk)
	}
	x.copies, x.revokes = x.copies[:0], x.revokes[:0]
	r.end++
	return true, nil
}

// recover replays the log and leaves it empty.
func (l *logArea) recover(dev BlockDevice, s *super) error {
	r, err := l.scan(dev, s.blocks)
	if err != nil {
		return err
	}
	d := make([]byte, l.blockSize)
	for blk, at := range r.blocks {
		if err := dev.ReadAt([]Transfer{{l.phys(at), d}}); err != nil {
			return ioError(err)
		}
		if r.escaped[blk] {
			be.PutUint32(d, jMagic)
		}
		if err := dev.WriteAt([]Transfer{{int64(blk) * int64(l.blockSize), d}}, false); err != nil {
			return ioError(err)
		}
	}
	if err := dev.Flush(); err != nil {
		return ioError(err)
	}
	// One number is left out, so that what was written of the transaction
	// that did not complete never looks like the next one.
	l.nextSeq = r.end + 1
	return ioError(l.stop(dev))
}

// open prepares an empty log for use: it writes the log's features and marks it as in use.
func (l *logArea) open(dev BlockDevice, s *super) error {
	f := l.incompat() | jfRevoke
	if s.incompat&incompat64bit != 0 {
		f |= jf64bit
	}
	f &^= jfCsumV2 | jfCsumV3
	if s.metadataCsum {
		f |= jfCsumV3
		l.super[jsCsumType] = 4
		be.PutUint32(l.super[jsCompat:], be.Uint32(l.super[jsCompat:])&^1)
	}
	be.PutUint32(l.super[jsIncompat:], f)
	return ioError(l.setStart(dev, l.head, l.nextSeq))
}
