package ext4

import (
	"fmt"
	"testing"
	"time"

	"hardtack/abi/linux"
)

// Disks that somebody has made on purpose: all checksums are right, the content is not.

// hostile is a disk of 8 MiB with files, not mounted, whose parts can be replaced.
type hostile struct {
	t  *testing.T
	m  *memDisk
	fs *FS // to find things with
}

func newHostile(t *testing.T) *hostile {
	strictCredits = false
	t.Cleanup(func() { strictCredits = true })
	m := damageBase(t, false)
	m.damaged = true
	fs, err := Mount(m.clone(), Options{ReadOnly: true})
	must(t, err)
	return &hostile{t, m, fs}
}

// inode changes an inode and makes its checksum right.
func (h *hostile) inode(path string, change func(raw []byte)) {
	h.t.Helper()
	in, err := h.fs.resolve(path)
	must(h.t, err)
	change(in.raw)
	h.fs.s.sealInode(in.ino, in.raw)
	h.patch(h.fs.byteOf(in.blk)+int64(in.off), in.raw)
}

// patch writes bytes to the disk.
func (h *hostile) patch(at int64, p []byte) {
	d := make([]byte, 1024)
	must(h.t, h.m.ReadAt([]Transfer{{at &^ 1023, d}}))
	copy(d[at&1023:], p)
	must(h.t, h.m.WriteAt([]Transfer{{at &^ 1023, d}}, false))
}

// group changes a group's descriptor.
func (h *hostile) group(n uint32, change func(g groupDesc)) {
	d := h.fs.descIn(h.fs.groups[n].desc.bytes(), n)
	change(d)
	h.fs.s.sealGroup(n, d)
	s := h.fs.s
	h.patch(h.fs.byteOf(uint64(s.firstBlock)+1)+int64(n*s.descSize), d)
}

// soon fails the test if do does not end.
func soon(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
}

// An empty directory's tree may claim any depth: nothing has looked at it yet.
func TestHostileDepth(t *testing.T) {
	h := newHostile(t)
	h.inode("/dir", func(raw []byte) {
		initNode(raw[inBlock:inBlock+inBlockLen], 400, 4)
		le.PutUint32(raw[inSize:], 0)
		le.PutUint32(raw[inFlags:], flagExtents)
	})
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	dir, err := fs.resolve("/dir")
	must(t, err)
	if _, err := fs.Create(dir, "x", NewInode{Mode: linux.S_IFREG | 0o644}); Errno(err) != linux.EUCLEAN {
		t.Errorf("create: %v", err)
	}
	in, err := fs.resolve("/deep")
	must(t, err)
	if err := fs.Link(dir, "y", in); Errno(err) != linux.EUCLEAN {
		t.Errorf("link: %v", err)
	}
	root, err := fs.Root()
	must(t, err)
	if err := fs.Rename(root, "deep", dir, "z", 0); Errno(err) != linux.EUCLEAN {
		t.Errorf("rename: %v", err)
	}
}

// A handle that no journal takes is an error, whoever asks for it.
func TestHostileHandle(t *testing.T) {
	h := newHostile(t)
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	if _, err := fs.begin(fs.j.maxBlocks + 1); Errno(err) != linux.EUCLEAN {
		t.Errorf("begin: %v", err)
	}
}

// What is at fixed places belongs to nobody else: to no other group, and to no file.
func TestHostilePlaces(t *testing.T) {
	for name, change := range map[string]func(h *hostile, at groupDesc){
		"table over the descriptors": func(h *hostile, g groupDesc) { g.setWide(gdInodeTable, gdInodeTableHi, 2) },
		"two bitmaps in one block": func(h *hostile, g groupDesc) {
			g.setWide(gdInodeBitmap, gdInodeBitmapHi, g.blockBitmap())
		},
		"bitmap in a table": func(h *hostile, g groupDesc) {
			g.setWide(gdBlockBitmap, gdBlockBitmapHi, h.fs.groups[0].table+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t)
			if h.fs.s.groups > 1 {
				t.Fatal("want one group")
			}
			h.group(0, func(g groupDesc) { change(h, g) })
			if _, err := Mount(strictDisk{h.m, t}, Options{}); Errno(err) != linux.EUCLEAN {
				t.Errorf("mount: %v", err)
			}
		})
	}
	t.Run("a file in the table", func(t *testing.T) {
		h := newHostile(t)
		at := h.fs.groups[0].table
		h.inode("/deep", func(raw []byte) {
			root := node(raw[inBlock : inBlock+inBlockLen])
			initNode(root, 0, 4)
			root.setCount(1)
			root.putExtent(0, extent{0, 8, at, false})
		})
		fs, err := Mount(strictDisk{h.m, t}, Options{})
		must(t, err)
		in, err := fs.resolve("/deep")
		must(t, err)
		if _, err := fs.WriteAt(in, make([]byte, 1024), 0); Errno(err) != linux.EUCLEAN {
			t.Errorf("write: %v", err)
		}
		if _, err := fs.ReadAt(in, make([]byte, 1024), 0); Errno(err) != linux.EUCLEAN {
			t.Errorf("read: %v", err)
		}
	})
	t.Run("the bitmap calls the table free", func(t *testing.T) {
		h := newHostile(t)
		g := &h.fs.groups[0]
		b, err := h.fs.bitmapBuffer(0)
		must(t, err)
		_, at := h.fs.s.groupOf(g.table)
		clearBits(b.data, at, 4)
		h.patch(h.fs.byteOf(g.blockBitmap), b.data)
		h.group(0, func(d groupDesc) {
			d.setPair(gdFreeBlocks, gdFreeBlocksHi, d.freeBlocks()+4)
			h.fs.s.sealBitmap(d, gdBlockBmCsum, gdBlockBmCsumHi, b.data[:h.fs.s.blocksPerGroup/8])
		})
		fs, err := Mount(strictDisk{h.m, t}, Options{})
		must(t, err)
		in, err := fs.resolve("/deep")
		must(t, err)
		if _, err := fs.WriteAt(in, make([]byte, 64<<10), 1<<20); Errno(err) != linux.EUCLEAN {
			t.Errorf("write: %v", err)
		}
	})
}

// A node without room for entries, and a log without room for a change.
func TestHostileRoom(t *testing.T) {
	h := newHostile(t)
	h.inode("/deep", func(raw []byte) {
		initNode(raw[inBlock:inBlock+inBlockLen], 0, 0)
	})
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	in, err := fs.resolve("/deep")
	must(t, err)
	for i := range 12 {
		if _, err := fs.WriteAt(in, make([]byte, 1024), int64(i)*4096); Errno(err) != linux.EUCLEAN {
			t.Errorf("write %d: %v", i, err)
		}
	}
	h = newHostile(t)
	l, err := h.fs.findLog()
	must(t, err)
	be.PutUint32(l.super[jsMaxLen:], 100)
	must(t, l.writeSuper(h.m))
	if _, err := Mount(strictDisk{h.m, t}, Options{}); Errno(err) != linux.EUCLEAN {
		t.Errorf("a log of 100 blocks: %v", err)
	}
}

// Two inodes lead to one block: the second who comes is refused.
func TestHostileShared(t *testing.T) {
	h := newHostile(t)
	dir, err := h.fs.resolve("/dir")
	must(t, err)
	leaf, err := dir.dirPhys(1)
	must(t, err)
	h.inode("/deep", func(raw []byte) { // its attributes lie in a leaf of the directory
		le.PutUint32(raw[inFileACL:], uint32(leaf))
	})
	d := make([]byte, 1024)
	must(t, h.m.ReadAt([]Transfer{{h.fs.byteOf(leaf), d}}))
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	dir, err = fs.resolve("/dir")
	must(t, err)
	_, _, err = dir.dirBlock(1)
	must(t, err)
	if _, _, err := fs.checked(leaf, kindXattr, 0, anyBytes); Errno(err) != linux.EUCLEAN {
		t.Errorf("attributes in a block of names: %v", err)
	}
	if _, _, err := fs.checked(leaf, kindDir, dir.owner()+1<<32, anyBytes); Errno(err) != linux.EUCLEAN {
		t.Errorf("a block of another directory: %v", err)
	}
}

// index makes /dir's root of hashes again: entries are hash and block.
func (h *hostile) index(levels byte, entries ...[2]uint32) {
	h.t.Helper()
	dir, err := h.fs.resolve("/dir")
	must(h.t, err)
	phys, err := dir.dirPhys(0)
	must(h.t, err)
	d := make([]byte, 1024)
	must(h.t, h.m.ReadAt([]Transfer{{h.fs.byteOf(phys), d}}))
	d[dxLevels] = levels
	le.PutUint16(d[dxRootOff+2:], uint16(len(entries)))
	for i, e := range entries {
		if i > 0 {
			le.PutUint32(d[dxRootOff+8*i:], e[0])
		}
		le.PutUint32(d[dxRootOff+8*i+4:], e[1])
	}
	h.fs.s.sealDx(dir.seed, d, dxRootOff)
	h.patch(h.fs.byteOf(phys), d)
}

// Trees of hashes whose ways do not end: listing, looking up and adding do.
func TestHostileIndex(t *testing.T) {
	var chain [][2]uint32 // all leaves are one, and go on in the next
	for i := range uint32(100) {
		chain = append(chain, [2]uint32{2<<20 + 1, 1 + i%2})
	}
	for name, entries := range map[string][][2]uint32{
		"backwards":      {{0, 1}, {0x7ffffffe, 2}, {4, 1}, {0x70000000, 2}, {2, 1}},
		"chain":          chain,
		"back":           {{0, 1}, {200, 1}, {301, 1}, {100, 1}},
		"to its root":    {{0, 0}, {0x40000000, 0}},
		"beyond the end": {{0, 1 << 20}},
	} {
		for levels := range byte(3) {
			t.Run(fmt.Sprint(name, levels), func(t *testing.T) {
				h := newHostile(t)
				h.index(levels, entries...)
				fs, err := Mount(strictDisk{h.m, t}, Options{})
				must(t, err)
				dir, err := fs.resolve("/dir")
				must(t, err)
				soon(t, func() {
					n := 0
					err := fs.ReadDir(dir, 0, func(Dirent) bool { n++; return n < 10000 })
					if n == 10000 {
						t.Errorf("%d names: %v", n, err)
					}
					for i := range 200 {
						fs.Lookup(dir, fmt.Sprint("nobody", i))
						fs.Create(dir, fmt.Sprintf("%0200d", i), NewInode{Mode: linux.S_IFREG | 0o644})
					}
				})
			})
		}
	}
}

// A root that is a file, or a file of no type, is damage to whoever asks for it.
func TestHostileTypes(t *testing.T) {
	for mode, path := range map[uint16]string{linux.S_IFREG | 0o755: "/", 0o644: "/deep", 0xf000 | 0o644: "/deep"} {
		h := newHostile(t)
		h.inode(path, func(raw []byte) { le.PutUint16(raw[inMode:], mode) })
		fs, err := Mount(strictDisk{h.m, t}, Options{})
		must(t, err)
		if _, err := fs.resolve(path); Errno(err) != linux.EUCLEAN {
			t.Errorf("%s with mode %#o: %v", path, mode, err)
		}
	}
}

// A file's tree of extents leads to one of its own nodes as content.
func TestHostileOwnNode(t *testing.T) {
	h := newHostile(t)
	in, err := h.fs.resolve("/deep")
	must(t, err)
	root, err := in.root()
	must(t, err)
	if root.depth() != 1 {
		t.Fatalf("a tree of depth %d", root.depth())
	}
	leaf := root.child(root.count() - 1)
	d := make([]byte, 1024)
	must(t, h.m.ReadAt([]Transfer{{h.fs.byteOf(leaf), d}}))
	n := node(d)
	x := n.extent(n.count() - 1)
	x.phys = leaf
	n.putExtent(n.count()-1, x)
	tail := exHeader + n.room()*exEntry
	le.PutUint32(d[tail:], crc32c(in.seed, d[:tail]))
	h.patch(h.fs.byteOf(leaf), d)
	// Content of links is in the log, as that of directories.
	h.inode("/deep", func(raw []byte) { le.PutUint16(raw[inMode:], linux.S_IFLNK|0o777) })
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	top, err := fs.Root()
	must(t, err)
	in, err = fs.resolve("/deep")
	must(t, err)
	fs.Unlink(top, "deep", in)
	if err := fs.Put(in); Errno(err) != linux.EUCLEAN {
		t.Errorf("removal: %v", err)
	}
}

// An inner node in the inode without entries leads nowhere, though it has bytes behind
// its header that would.
func TestHostileEmptyRoot(t *testing.T) {
	h := newHostile(t)
	h.inode("/deep", func(raw []byte) { node(raw[inBlock : inBlock+inBlockLen]).setCount(0) })
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	in, err := fs.resolve("/deep")
	must(t, err)
	if _, err := fs.ReadAt(in, make([]byte, 1024), 0); Errno(err) != linux.EUCLEAN {
		t.Errorf("read: %v", err)
	}
	if err := fs.Truncate(in, 0); Errno(err) != linux.EUCLEAN {
		t.Errorf("truncate: %v", err)
	}
}

// A file of ext2's kind as large as can be, without a block: who looks for data in it
// passes over what is not there as a whole.
func TestHostileSparse(t *testing.T) {
	h := newHostile(t)
	h.inode("/deep", func(raw []byte) {
		le.PutUint32(raw[inFlags:], 0)
		clear(raw[inBlock : inBlock+inBlockLen])
		le.PutUint32(raw[inSize:], 0)
		le.PutUint32(raw[inSizeHi:], 1<<(10-2)) // 2 to the 30th blocks
	})
	fs, err := Mount(strictDisk{h.m, t}, Options{})
	must(t, err)
	in, err := fs.resolve("/deep")
	must(t, err)
	steps := 0
	for at := uint32(0); at < 1<<30; steps++ {
		m, err := fs.MapBlock(in, at)
		if err != nil || m.N == 0 || m.Phys != 0 {
			t.Fatalf("block %d: %+v, %v", at, m, err)
		}
		at += m.N
	}
	if steps > 100 {
		t.Errorf("%d steps", steps)
	}
	if _, err := fs.Seek(in, 0, linux.SEEK_DATA); Errno(err) != linux.ENXIO {
		t.Errorf("SEEK_DATA: %v", err)
	}
}
