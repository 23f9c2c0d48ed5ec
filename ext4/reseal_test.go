package ext4

import (
	"bytes"
	"testing"
)

// Checksums of what files and the journal consist of, made right after a change.

// resealer reseals the blocks of one file; left bounds them, as a tree may lead anywhere.
type resealer struct {
	m    *memDisk
	fs   *FS
	in   *Inode
	left int
}

// resealFile reseals the blocks that an inode leads to: its tree, directory blocks, index,
// extended attributes, and those of the orphan file.
func resealFile(m *memDisk, fs *FS, ino uint32, raw []byte) {
	if !fs.s.metadataCsum {
		return
	}
	in := &Inode{fs: fs, ino: ino, raw: raw, seed: fs.s.inodeSeed(ino, le.Uint32(raw[inGeneration:]))}
	r := &resealer{m, fs, in, 400}
	if b, d := r.read(in.fileACL()); d != nil {
		le.PutUint32(d[xaChecksum:], fs.s.xattrSum(b, d))
		r.write(b, d)
	}
	r.tree(node(raw[inBlock:inBlock+inBlockLen]), 0)
}

func (r *resealer) read(blk uint64) (uint64, []byte) {
	if r.left--; blk == 0 || r.left < 0 {
		return 0, nil
	}
	b, err := r.fs.read(blk)
	if err != nil {
		return 0, nil
	}
	return blk, b.data
}

func (r *resealer) write(blk uint64, d []byte) {
	r.m.WriteAt([]Transfer{{r.fs.byteOf(blk), d}}, false)
}

func (r *resealer) tree(n node, level int) {
	for i := range min(n.count(), (len(n)-exHeader)/exEntry) {
		if n.depth() == 0 {
			x := n.extent(i)
			for j := range uint64(min(x.n, 64)) {
				r.block(x.phys+j, uint64(x.lblk)+j)
			}
			continue
		}
		b, d := r.read(n.child(i))
		if d == nil {
			continue
		}
		if c := node(d); level < 6 {
			r.tree(c, level+1)
			if tail := exHeader + c.room()*exEntry; tail+4 <= len(d) {
				le.PutUint32(d[tail:], crc32c(r.in.seed, d[:tail]))
			}
		}
		r.write(b, d)
	}
}

// block reseals a block of a directory or of the orphan file.
func (r *resealer) block(blk, lblk uint64) {
	s := r.fs.s
	orphans := s.compat&compatOrphanFile != 0 && r.in.ino == le.Uint32(s.raw[sbOrphanFile:])
	if !r.in.isDir() && !orphans {
		return
	}
	b, d := r.read(blk)
	if d == nil {
		return
	}
	end := len(d) - 8
	switch {
	case orphans:
		var n [8]byte
		le.PutUint64(n[:], b)
		le.PutUint32(d[end+4:], crc32c(crc32c(r.in.seed, n[:]), d[:end]))
	case d[len(d)-deTail+7] == deTailTyp:
		le.PutUint32(d[len(d)-4:], crc32c(r.in.seed, d[:len(d)-deTail]))
	default:
		off := dxNodeOff
		if lblk == 0 {
			off = dxRootOff
		}
		if off+8*int(le.Uint16(d[off+2:])) > end {
			return
		}
		s.sealDx(r.in.seed, d, off)
	}
	r.write(b, d)
}

// resealLog reseals the journal's super block, and all that looks like a part of the log.
func resealLog(m *memDisk, fs *FS) {
	in, err := fs.loadInode(fs.s.journal)
	if fs.s.journal == 0 || err != nil {
		return
	}
	at := journalStart(fs, in)
	raw := make([]byte, fs.s.blockSize)
	if at == superOffset || m.ReadAt([]Transfer{{at, raw}}) != nil {
		return
	}
	if be.Uint32(raw[jsIncompat:])&(jfCsumV2|jfCsumV3) == 0 {
		return
	}
	be.PutUint32(raw[jsChecksum:], 0)
	be.PutUint32(raw[jsChecksum:], crc32c(^uint32(0), raw[:jSuperSize]))
	m.WriteAt([]Transfer{{at, raw}}, false)
	l, err := fs.findLog()
	if err != nil {
		return
	}
	for i := range logBlocks(m, l) {
		b := make([]byte, l.blockSize)
		m.ReadAt([]Transfer{{l.phys(i), b}})
		switch be.Uint32(b[jhType:]) {
		case jDescriptor:
			resealTags(m, l, i, b)
			fallthrough
		case jRevoke:
			clear(b[len(b)-4:])
			l.seal(b)
		case jCommit:
			be.PutUint32(b[jCommitCsum:], 0)
			be.PutUint32(b[jCommitCsum:], crc32c(l.seed, b))
		}
		m.WriteAt([]Transfer{{l.phys(i), b}}, false)
	}
}

// resealTags makes the checksums of the blocks right that the descriptor at i of the log
// names; they follow it.
func resealTags(m *memDisk, l *logArea, i uint32, b []byte) {
	d := make([]byte, l.blockSize)
	at, data := jHeader, l.next(i)
	for _, t := range l.parseTags(b) {
		if m.ReadAt([]Transfer{{l.phys(data), d}}) != nil {
			return
		}
		c := l.dataChecksum(be.Uint32(b[jhSeq:]), d)
		if l.v3() {
			be.PutUint32(b[at+12:], c)
		} else {
			be.PutUint16(b[at+4:], uint16(c))
		}
		if at += l.tagSize(); t.flags&tagSameUUID == 0 {
			at += 16
		}
		data = l.next(data)
	}
}

// logBlocks yields the log's blocks with a header of the journal, among the first 2000.
func logBlocks(m *memDisk, l *logArea) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		var head [jHeader]byte
		for i := l.first; i < min(l.maxLen, 2000); i++ {
			p := make([]byte, 512)
			if m.ReadAt([]Transfer{{l.phys(i), p}}) != nil {
				return
			}
			if copy(head[:], p); be.Uint32(head[jhMagic:]) == jMagic && !yield(i) {
				return
			}
		}
	}
}

// TestReseal: a disk that is right stays as it is, so that only what was changed differs.
func TestReseal(t *testing.T) {
	for _, options := range dirtyKinds {
		m := dirtyDisk(t, options)
		if m == nil {
			continue
		}
		x := m.clone()
		reseal(x)
		a, b := make([]byte, 1024), make([]byte, 1024)
		for at := int64(0); at < m.size; at += 1024 {
			must(t, m.ReadAt([]Transfer{{at, a}}))
			must(t, x.ReadAt([]Transfer{{at, b}}))
			if !bytes.Equal(a, b) {
				t.Errorf("%s: the kilobyte at %#x differs", options, at)
			}
		}
	}
}
