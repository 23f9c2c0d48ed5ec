package ext4

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"hardtack/abi/linux"
)

// strictDisk fails the test for a request outside of the disk.
type strictDisk struct {
	*memDisk
	t testing.TB
}

func (d strictDisk) WriteAt(batch []Transfer, fua bool) error {
	for _, x := range batch {
		if checkTransfer(x, d.size) != nil {
			d.t.Errorf("a write of %d bytes at %d, outside of the disk", len(x.Buf), x.Off)
		}
	}
	return d.memDisk.WriteAt(batch, fua)
}

// damageBase is a disk with some of everything; dirty has transactions to replay.
func damageBase(t testing.TB, dirty bool) *memDisk {
	m := newMemDisk(8 << 20)
	must(t, Mkfs(m, MkfsOptions{BlockSize: 1024, Zeroed: true, BytesPerInode: 8192}))
	fs := mount(t, m)
	fillSome(t, fs)
	if dirty {
		must(t, fs.Sync())
	} else {
		must(t, fs.Unmount())
	}
	return m
}

func fillSome(t testing.TB, fs *FS) {
	root, err := fs.Root()
	must(t, err)
	defer fs.Put(root)
	dir := create(t, fs, "/dir", NewInode{Mode: linux.S_IFDIR | 0o755})
	for i := range 120 {
		in, err := fs.Create(dir, fmt.Sprintf("a-rather-long-name-%d", i), NewInode{Mode: linux.S_IFREG | 0o644})
		must(t, err)
		for j := range i % 7 {
			_, err := fs.WriteAt(in, []byte("data"), int64(j)*3000)
			must(t, err)
		}
		if i%10 == 0 {
			must(t, fs.Setxattr(in, "user.long", make([]byte, 300), 0))
		}
		must(t, fs.Put(in))
	}
	must(t, fs.Put(create(t, fs, "/link", NewInode{Mode: linux.S_IFLNK | 0o777, Target: strings.Repeat("t", 100)})))
	deep := newFile(t, fs, "/deep")
	for i := range 200 {
		_, err := fs.WriteAt(deep, []byte("x"), int64(i)*2048)
		must(t, err)
	}
	must(t, fs.Put(deep))
	must(t, fs.Put(dir))
}

// useDamaged does everything to a damaged disk; only panics, hangs and writes
// outside of it are wrong.
func useDamaged(t testing.TB, m *memDisk) {
	Check(m, func(string) {})
	fs, err := Mount(strictDisk{m, t}, Options{CacheBlocks: 128})
	if err != nil {
		if _, err := Mount(strictDisk{m, t}, Options{ReadOnly: true, NoLoad: true}); err != nil {
			return
		}
		return
	}
	root, err := fs.Root()
	if err != nil {
		return
	}
	names := 0
	var visit func(dir *Inode, depth int)
	visit = func(dir *Inode, depth int) {
		var list []Dirent
		fs.ReadDir(dir, 0, func(d Dirent) bool { list = append(list, d); return len(list) < 300 })
		for _, d := range list {
			if names++; names > 600 || d.Name == "." || d.Name == ".." {
				continue
			}
			fs.Lookup(dir, d.Name)
			in, err := fs.Get(d.Ino)
			if err != nil {
				continue
			}
			p := make([]byte, 5000)
			fs.ReadAt(in, p, 0)
			fs.Readlink(in)
			fs.Listxattr(in)
			fs.Seek(in, 0, linux.SEEK_HOLE)
			if in.Mode()&linux.S_IFMT == linux.S_IFDIR && depth < 4 {
				visit(in, depth+1)
			}
			switch names % 5 {
			case 0:
				fs.WriteAt(in, p, 1000)
			case 1:
				fs.Truncate(in, 1500)
			case 2:
				fs.Unlink(dir, d.Name, in)
			case 3:
				fs.Rename(dir, d.Name, root, fmt.Sprint("moved", names), 0)
			case 4:
				fs.Setxattr(in, "user.x", p[:200], 0)
			}
			fs.Put(in)
		}
		for i := range 20 {
			if in, err := fs.Create(dir, fmt.Sprint("another-long-name-for-a-file", i), NewInode{Mode: linux.S_IFREG}); err == nil {
				fs.Put(in)
			}
		}
	}
	visit(root, 0)
	fs.Put(root)
	fs.Sync()
	fs.Unmount()
}

// reseal makes the checksums of a damaged structure right, so that the damage is
// seen by what reads it.
func reseal(m *memDisk) {
	s, _, err := readSuper(m)
	if s == nil || err != nil {
		raw := make([]byte, 1024)
		m.ReadAt([]Transfer{{superOffset, raw}})
		sealSuper(raw)
		m.WriteAt([]Transfer{{superOffset, raw}}, false)
		if s, _, _ = readSuper(m); s == nil {
			return
		}
	}
	fs := &FS{dev: m, s: s}
	fs.cache.init(fs, 1<<16)
	write := func(b *buffer) { m.WriteAt([]Transfer{{fs.byteOf(b.blk), b.data}}, false) }
	for g := range s.groups {
		b, d, err := fs.desc(g)
		if err != nil {
			return
		}
		if x, err := fs.read(d.blockBitmap()); err == nil {
			s.sealBitmap(d, gdBlockBmCsum, gdBlockBmCsumHi, x.data[:s.blocksPerGroup/8])
		}
		if x, err := fs.read(d.inodeBitmap()); err == nil {
			s.sealBitmap(d, gdInodeBmCsum, gdInodeBmCsumHi, x.data[:s.inodesPerGroup/8])
		}
		s.sealGroup(g, d)
		write(b)
		for i := range s.inodesPerGroup {
			per := s.blockSize / s.inodeSize
			x, err := fs.read(d.inodeTable() + uint64(i/per))
			if err != nil {
				break
			}
			raw := x.data[i%per*s.inodeSize : (i%per+1)*s.inodeSize]
			if !allZero(raw) {
				ino := g*s.inodesPerGroup + i + 1
				s.sealInode(ino, raw)
				resealFile(m, fs, ino, raw)
				write(x)
			}
		}
	}
	resealLog(m, fs)
}

// TestDamage mutates disks, at random and where structures lie, with checksums
// right and wrong. HARDTACK_DAMAGE sets how many; 10,000 take some minutes.
func TestDamage(t *testing.T) {
	n := 300
	if s := os.Getenv("HARDTACK_DAMAGE"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	strictCredits = false // a damaged disk may cost more
	defer func() { strictCredits = true }()
	bases := []*memDisk{damageBase(t, false), damageBase(t, true)}
	// Where something lies: everything that is not zero.
	var places [2][]int64
	for i, b := range bases {
		p := make([]byte, 512)
		for off := int64(0); off < b.size; off += 512 {
			b.ReadAt([]Transfer{{off, p}})
			if !allZero(p) {
				places[i] = append(places[i], off)
			}
		}
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 4))
		k := int(seed % 2)
		m := bases[k].clone()
		for range 1 + rng.IntN(4) {
			off := places[k][rng.IntN(len(places[k]))]
			switch rng.IntN(5) {
			case 0:
				off = superOffset
			case 1: // descriptors, bitmaps, tables are at the front
				off = places[k][rng.IntN(min(len(places[k]), 200))]
			}
			p := make([]byte, 512)
			m.ReadAt([]Transfer{{off, p}})
			at := rng.IntN(512)
			if rng.IntN(2) == 0 {
				at = at &^ 3 % 160
			}
			switch rng.IntN(5) {
			case 0:
				p[at] ^= 1 << rng.IntN(8)
			case 1:
				p[at] = byte(rng.Uint32())
			case 2:
				le.PutUint32(p[at&^3:], rng.Uint32())
			case 3:
				le.PutUint32(p[at&^3:], [5]uint32{0, 1, 0xffffffff, 0x7fffffff, 0x8000}[rng.IntN(5)])
			case 4:
				clear(p[at:min(at+64, 512)])
			}
			m.WriteAt([]Transfer{{off, p}}, false)
		}
		if rng.IntN(4) != 0 {
			reseal(m)
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("seed %d", seed)
					panic(p)
				}
			}()
			useDamaged(t, m)
		}()
	}
}
