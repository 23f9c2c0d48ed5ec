package ext4

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
)

// Fuzz targets: one for each parser. None may panic, or write outside of the disk.

// patched is a disk with some bytes of one block replaced, checksums made right again
// if seal says so; nil if they do not fit there.
func patched(t testing.TB, base *memDisk, at int64, p []byte, seal bool) *memDisk {
	if len(p) == 0 || len(p) > 1024 {
		return nil
	}
	m := base.clone()
	d := make([]byte, 1024)
	must(t, m.ReadAt([]Transfer{{at &^ 1023, d}}))
	copy(d[at&1023:], p)
	must(t, m.WriteAt([]Transfer{{at &^ 1023, d}}, false))
	if seal {
		reseal(m)
	}
	return m
}

// looseCredits lets handles change more than they asked for, as those of damaged
// disks do.
func looseCredits(f *testing.F) {
	strictCredits = false
	f.Cleanup(func() { strictCredits = true })
}

// FuzzDescriptors changes group descriptors.
func FuzzDescriptors(f *testing.F) {
	looseCredits(f)
	base := damageBase(f, false)
	d := make([]byte, 1024)
	must(f, base.ReadAt([]Transfer{{2048, d}}))
	f.Add(d[:64], true)
	f.Add(d[4:20], false)
	f.Fuzz(func(t *testing.T, p []byte, seal bool) {
		if m := patched(t, base, 2048, p, seal); m != nil {
			useDamaged(t, m)
		}
	})
}

// FuzzInode changes one of the first inodes of a directory full of files.
func FuzzInode(f *testing.F) {
	looseCredits(f)
	base := damageBase(f, false)
	fs, err := Mount(base.clone(), Options{ReadOnly: true})
	must(f, err)
	for _, path := range []string{"/", "/dir", "/deep", "/link", "/dir/a-rather-long-name-10"} {
		in, err := fs.resolve(path)
		must(f, err)
		f.Add(in.raw, uint8(in.ino), true)
	}
	f.Fuzz(func(t *testing.T, p []byte, ino uint8, seal bool) {
		blk, off, err := fs.inodePlace(max(uint32(ino), 2))
		if err != nil || len(p) > 256 {
			return
		}
		if m := patched(t, base, fs.byteOf(blk)+int64(off), p, seal); m != nil {
			useDamaged(t, m)
		}
	})
}

// FuzzIndex changes the root of a directory's index, or one of its leaves.
func FuzzIndex(f *testing.F) {
	looseCredits(f)
	base := damageBase(f, false)
	fs, err := Mount(base.clone(), Options{ReadOnly: true})
	must(f, err)
	dir, err := fs.resolve("/dir")
	must(f, err)
	if !dir.indexed() {
		f.Fatal("the directory has no index")
	}
	for lblk := range min(dir.dirBlocks(), 3) {
		phys, err := dir.dirPhys(lblk)
		must(f, err)
		d := make([]byte, 1024)
		must(f, base.ReadAt([]Transfer{{fs.byteOf(phys), d}}))
		f.Add(d[:100], uint8(lblk), uint16(0), true)
	}
	f.Fuzz(func(t *testing.T, p []byte, lblk uint8, off uint16, seal bool) {
		if uint32(lblk) >= dir.dirBlocks() {
			return
		}
		phys, err := dir.dirPhys(uint32(lblk))
		must(t, err)
		if m := patched(t, base, fs.byteOf(phys)+int64(off&1023), p, seal); m != nil {
			useDamaged(t, m)
		}
	})
}

func FuzzSuper(f *testing.F) {
	m := damageBase(f, false)
	raw := make([]byte, superSize)
	m.ReadAt([]Transfer{{superOffset, raw}})
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) != superSize {
			return
		}
		if s, _, err := parseSuper(raw, 8<<20); err == nil {
			s.overhead(s.groups - 1)
			s.groupBlocks(s.groups - 1)
		}
	})
}

func FuzzExtents(f *testing.F) {
	seed := make([]byte, 60)
	initNode(seed, 0, 4)
	node(seed).setCount(2)
	node(seed).putExtent(0, extent{0, 3, 100, false})
	node(seed).putExtent(1, extent{7, 3, 200, true})
	f.Add(seed, uint32(8))
	m := damageBase(f, false)
	f.Fuzz(func(t *testing.T, raw []byte, lblk uint32) {
		if len(raw) != inBlockLen {
			return
		}
		fs, err := Mount(m, Options{ReadOnly: true})
		must(t, err)
		in := &Inode{fs: fs, raw: make([]byte, 256)}
		copy(in.raw[inBlock:], raw)
		in.set(inFlags, true, flagExtents)
		in.put16(inMode, linux.S_IFREG)
		in.setSize(1 << 30)
		x, err := in.mapBlock(lblk)
		if err == nil && (x.N == 0 || x.Block != lblk || x.Phys != 0 && !fs.s.valid(x.Phys, uint64(x.N))) {
			t.Fatalf("%+v", x)
		}
		in.readRange([][]byte{make([]byte, 3000)}, int64(lblk))
	})
}

func FuzzDirBlock(f *testing.F) {
	seed := make([]byte, 1024)
	putEntry(seed, 0, 12, 2, ftDir, ".")
	putEntry(seed, 12, 1000, 2, ftDir, "..")
	f.Add(seed, "..")
	s := &super{blockSize: 1024}
	f.Fuzz(func(t *testing.T, d []byte, name string) {
		if len(d) != 1024 || len(name) > maxName {
			return
		}
		d = bytes.Clone(d) // the fuzzer wants its own back
		in := &Inode{fs: &FS{s: s}, raw: make([]byte, 256)}
		if name == "" {
			return
		}
		at, prev, room, err := scanDir(d, 1024, name, entrySize(len(name)))
		if err == nil && at >= 0 && (string(d[at+deHeader:at+deHeader+int(d[at+6])]) != name || prev >= at) {
			t.Fatalf("found %q at %d behind %d", name, at, prev)
		}
		if room >= 0 && in.checkDir(d) == nil {
			enter(d, room, name, 7, ftReg)
			if at, _, _, err := scanDir(d, 1024, name, 0); at < 0 || err != nil || in.checkDir(d) != nil {
				t.Fatalf("%q is not there: %v", name, err)
			}
		}
		in.checkDx(d, dxRootOff)
		in.checkDx(d, dxNodeOff)
	})
}

func FuzzXattrs(f *testing.F) {
	area := make([]byte, 200)
	buildXattrs(area, 4, 4, []xattr{{1, "name", []byte("value")}, {6, "x", nil}})
	f.Add(area, uint8(4))
	f.Fuzz(func(t *testing.T, area []byte, base uint8) {
		if int(base) > len(area) {
			return
		}
		list, err := parseXattrs(area, int(base), int(base))
		if err != nil {
			return
		}
		for _, x := range list {
			x.full()
			x.hash()
		}
	})
}

func FuzzLog(f *testing.F) {
	l := &logArea{blockSize: 1024, super: make([]byte, 1024)}
	be.PutUint32(l.super[jsIncompat:], jfRevoke|jf64bit|jfCsumV3)
	b := make([]byte, l.blockSize)
	putLogHeader(b, jDescriptor, 1)
	l.putTag(b[jHeader:], 77, tagLast, 5)
	f.Add(b, uint32(jfRevoke|jf64bit|jfCsumV3))
	f.Add(b, uint32(jfRevoke))
	f.Fuzz(func(t *testing.T, b []byte, features uint32) {
		if len(b) != 1024 {
			return
		}
		l := &logArea{blockSize: 1024, super: make([]byte, 1024)}
		be.PutUint32(l.super[jsIncompat:], features)
		l.sealed(b)
		l.parseTags(b)
		l.parseRevokes(b)
	})
}

// FuzzJournal replays a log with one block that the fuzzer chose.
func FuzzJournal(f *testing.F) {
	base := damageBase(f, true)
	s, _, err := readSuper(base)
	must(f, err)
	fs := &FS{dev: base, s: s}
	fs.cache.init(fs, 100)
	l, err := fs.findLog()
	must(f, err)
	for i := range uint32(4) {
		d := make([]byte, 1024)
		base.ReadAt([]Transfer{{l.phys(i), d}})
		f.Add(d, uint8(i))
	}
	f.Fuzz(func(t *testing.T, d []byte, at uint8) {
		if len(d) != 1024 {
			return
		}
		m := base.clone()
		m.WriteAt([]Transfer{{l.phys(uint32(at) % l.maxLen), d}}, false)
		x, err := openLog(m, s, l.runs)
		if err == nil && x.dirty() {
			x.recover(strictDisk{m, t}, s)
		}
	})
}
