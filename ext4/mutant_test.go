package ext4

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"hardtack/abi/linux"
)

// Disks of mke2fs, with the features that it can give them, changed where their
// structures lie.

// mkfsKinds are options of mke2fs that mount here, at least for reading.
var mkfsKinds = []string{
	"-t ext4 -b 1024",
	"-t ext4 -b 4096 -I 256",
	"-t ext4 -b 2048 -I 128",
	"-t ext4 -b 1024 -O ^metadata_csum,^64bit",
	"-t ext4 -b 1024 -O ^metadata_csum,uninit_bg,^64bit",
	"-t ext4 -b 1024 -O ^metadata_csum,^uninit_bg,^resize_inode",
	"-t ext4 -b 1024 -g 1024 -N 512 -O ^flex_bg",
	"-t ext4 -b 1024 -g 2048 -O sparse_super2,^resize_inode",
	"-t ext4 -b 1024 -O large_dir,metadata_csum_seed,^dir_nlink",
	"-t ext4 -b 1024 -O quota,project",
	"-t ext4 -b 1024 -O orphan_file",
	"-t ext4 -b 1024 -O ^has_journal",
}

// dirtyKinds are options for disks whose journal is full.
var dirtyKinds = []string{
	"-t ext4 -b 1024",
	"-t ext4 -b 4096 -I 256",
	"-t ext4 -b 1024 -O ^metadata_csum,^64bit",
	"-t ext4 -b 1024 -O orphan_file",
}

// refusedKinds are options of mke2fs for disks that no mount takes.
var refusedKinds = []string{
	"-t ext2 -b 1024", "-t ext3 -b 1024", "-t ext4 -b 1024 -O bigalloc", "-t ext4 -b 1024 -O meta_bg,^resize_inode",
	"-t ext4 -b 1024 -O ea_inode", "-t ext4 -b 1024 -O inline_data", "-t ext4 -b 1024 -O casefold", "-t ext4 -b 1024 -O encrypt",
	"-t ext4 -b 1024 -O mmp",
}

// mkfsDisk is a disk of mke2fs with some files.
func mkfsDisk(t testing.TB, options string) *memDisk {
	from := t.TempDir()
	for i := range 60 {
		name := filepath.Join(from, "d", fmt.Sprintf("%s-%d", strings.Repeat("name", 1+i%20), i))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, make([]byte, i*i*3), 0o644))
	}
	must(t, os.Symlink(strings.Repeat("t", 100), filepath.Join(from, "long")))
	must(t, os.Symlink("short", filepath.Join(from, "fast")))
	name := filepath.Join(t.TempDir(), "disk")
	args := append([]string{"-q", "-F", "-d", from}, strings.Fields(options)...)
	if out, err := exec.Command(tool(t, "mke2fs"), append(args, name, "16m")...).CombinedOutput(); err != nil {
		t.Logf("mke2fs %s: %v: %s", options, err, out)
		return nil // an older mke2fs
	}
	m := loadDisk(t, name)
	fs, err := Mount(m, Options{})
	if err != nil {
		t.Logf("%s: %v", options, err)
		return m
	}
	fillSome(t, fs)
	must(t, fs.Unmount())
	wantClean(t, m)
	return m
}

// dirtyDisk is mkfsDisk's with transactions that nobody has replayed, and orphans: of the
// list, and in the orphan file where there is one.
func dirtyDisk(t testing.TB, options string) *memDisk {
	m := mkfsDisk(t, options)
	if m == nil {
		return nil
	}
	fs, err := Mount(m, Options{})
	if err != nil {
		return nil
	}
	root, err := fs.Root()
	must(t, err)
	for i := range 5 {
		name := fmt.Sprint("orphan", i)
		in, err := fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644})
		must(t, err)
		_, err = fs.WriteAt(in, make([]byte, 20000), 0)
		must(t, err)
		must(t, fs.Unlink(root, name, in)) // which stays open
	}
	must(t, fs.Sync())
	for i := range 20 {
		in, err := fs.Create(root, fmt.Sprint("late", i), NewInode{Mode: linux.S_IFREG | 0o644})
		must(t, err)
		must(t, fs.Setxattr(in, "user.late", make([]byte, 500), 0))
		must(t, fs.Put(in))
	}
	must(t, fs.Sync())
	return m.clone()
}

// fillOrphans writes numbers of inodes into the orphan file.
func fillOrphans(t testing.TB, m *memDisk) {
	fs, err := Mount(m, Options{ReadOnly: true, NoLoad: true})
	must(t, err)
	in, err := fs.loadInode(le.Uint32(fs.s.raw[sbOrphanFile:]))
	must(t, err)
	x, err := in.mapBlock(0)
	must(t, err)
	d := make([]byte, fs.s.blockSize)
	must(t, m.ReadAt([]Transfer{{fs.byteOf(x.Phys), d}}))
	for i := range 10 {
		le.PutUint32(d[8*i:], uint32(20+3*i))
	}
	must(t, m.WriteAt([]Transfer{{fs.byteOf(x.Phys), d}}, false))
	raw := make([]byte, 1024)
	must(t, m.ReadAt([]Transfer{{superOffset, raw}}))
	le.PutUint32(raw[sbRoCompat:], le.Uint32(raw[sbRoCompat:])|roOrphanPresent)
	sealSuper(raw)
	must(t, m.WriteAt([]Transfer{{superOffset, raw}}, false))
	reseal(m)
}

// TestMkfsRefused: what cannot be used is refused with a reason, never half used.
func TestMkfsRefused(t *testing.T) {
	for _, options := range refusedKinds {
		m := mkfsDisk(t, options)
		if m == nil {
			continue
		}
		for _, o := range []Options{{}, {ReadOnly: true}, {ReadOnly: true, NoLoad: true}} {
			if _, err := Mount(m, o); err == nil || Errno(err) != linux.EOPNOTSUPP {
				t.Errorf("%s, %+v: %v", options, o, err)
			}
		}
	}
}

// target is bytes of a disk that mean something.
type target struct {
	at int64
	n  int
}

// targets finds the structures of a disk: the super block twice as often.
func targets(t testing.TB, m *memDisk) (list []target) {
	list = append(list, target{superOffset, 1024}, target{superOffset, 400})
	fs, err := Mount(m, Options{ReadOnly: true, NoLoad: true})
	must(t, err)
	s := fs.s
	for n := range s.groups {
		list = append(list, target{fs.byteOf(uint64(s.firstBlock)+1) + int64(n*s.descSize), int(s.descSize)},
			target{fs.byteOf(fs.groups[n].blockBitmap), int(s.blocksPerGroup / 8)},
			target{fs.byteOf(fs.groups[n].inodeBitmap), int(s.inodesPerGroup / 8)})
	}
	for ino := uint32(1); ino <= s.inodes; ino++ {
		in, err := fs.loadInode(ino)
		if err != nil || allZero(in.raw) {
			continue
		}
		list = append(list, target{fs.byteOf(in.blk) + int64(in.off), int(s.inodeSize)})
		if ino == s.journal {
			list = append(list, logTargets(t, m, fs, in)...)
		}
		if s.compat&compatOrphanFile != 0 && ino == le.Uint32(s.raw[sbOrphanFile:]) {
			x, err := in.mapBlock(0)
			must(t, err)
			for range 10 {
				list = append(list, target{fs.byteOf(x.Phys), 64})
			}
		}
		if b := in.fileACL(); b != 0 {
			list = append(list, target{fs.byteOf(b), int(s.blockSize)})
		}
		root := node(in.raw[inBlock : inBlock+inBlockLen])
		if in.flags()&flagExtents != 0 && root.depth() > 0 {
			for i := range root.count() {
				list = append(list, target{fs.byteOf(root.child(i)), 60})
			}
		}
		if in.isDir() {
			for i := range in.dirBlocks() {
				if phys, err := in.dirPhys(i); err == nil && phys != 0 {
					list = append(list, target{fs.byteOf(phys), int(s.blockSize)}, target{fs.byteOf(phys), 64})
				}
			}
		}
	}
	return list
}

// logTargets are the journal's super block and what is in the log, several times where
// there is much else.
func logTargets(t testing.TB, m *memDisk, fs *FS, in *Inode) (list []target) {
	l, err := fs.findLog()
	must(t, err)
	at := journalStart(fs, in)
	list = append(list, target{at, 100}, target{at, 1024})
	if !l.dirty() {
		return list
	}
	for i := range logBlocks(m, l) {
		for range 5 {
			list = append(list, target{l.phys(i), 64}, target{l.phys(i), l.blockSize}, target{l.phys(l.next(i)), l.blockSize})
		}
	}
	return list
}

func journalStart(fs *FS, in *Inode) int64 {
	x, err := in.mapBlock(0)
	if err != nil {
		return superOffset
	}
	return fs.byteOf(x.Phys)
}

// mutate changes some bytes within a target.
func mutate(m *memDisk, rng *rand.Rand, x target) {
	p := make([]byte, 4096+512)
	base := x.at &^ 511
	p = p[:min(int64(len(p)), m.size-base)]
	m.ReadAt([]Transfer{{base, p}})
	d := p[x.at-base:]
	d = d[:min(x.n, len(d))]
	at := rng.IntN(len(d))
	words := []uint32{0, 1, 2, 3, 7, 8, 11, 255, 0xffffffff, 0x7fffffff, 0x80000000, 0x8000, 0xffff, 0x10000, 1 << 20, rng.Uint32(), rng.Uint32N(20000)}
	v := words[rng.IntN(len(words))]
	switch rng.IntN(8) {
	case 0:
		d[at] ^= 1 << rng.IntN(8)
	case 1:
		d[at] = byte(v)
	case 2, 3:
		if at &^= 1; at+2 <= len(d) {
			le.PutUint16(d[at:], uint16(v))
		}
	case 4, 5:
		if at &^= 3; at+4 <= len(d) {
			le.PutUint32(d[at:], v)
		}
	case 6:
		if at &^= 3; at+4 <= len(d) {
			be.PutUint32(d[at:], v)
		}
	case 7: // one part over another
		from := rng.IntN(len(d)) &^ 3
		copy(d[at&^3:], append([]byte(nil), d[from:min(from+4+rng.IntN(60), len(d))]...))
	}
	m.WriteAt([]Transfer{{base, p}}, false)
}

// TestMutants uses disks of mke2fs after changes to their structures, with checksums
// made right. HARDTACK_DAMAGE sets how many, HARDTACK_SEED the first.
func TestMutants(t *testing.T) {
	n, seed0 := 200, 0
	if s := os.Getenv("HARDTACK_DAMAGE"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("HARDTACK_SEED"); s != "" {
		seed0, _ = strconv.Atoi(s)
	}
	strictCredits = false
	defer func() { strictCredits = true }()
	type base struct {
		m    *memDisk
		list []target
		name string
	}
	var bases []base
	for _, options := range mkfsKinds {
		if m := mkfsDisk(t, options); m != nil {
			bases = append(bases, base{m, targets(t, m), options})
		}
	}
	for _, options := range dirtyKinds {
		if m := dirtyDisk(t, options); m != nil {
			if strings.Contains(options, "orphan_file") {
				fillOrphans(t, m)
			}
			bases = append(bases, base{m, targets(t, m), options + ", dirty"})
		}
	}
	for i := range n {
		seed := uint64(seed0 + i)
		rng := rand.New(rand.NewPCG(seed, 12))
		b := bases[rng.IntN(len(bases))]
		m := b.m.clone()
		m.damaged = true
		for range 1 + rng.IntN(3) {
			mutate(m, rng, b.list[rng.IntN(len(b.list))])
		}
		if rng.IntN(8) != 0 {
			reseal(m)
		}
		mutant(t, m, seed, b.name)
	}
}

// mutant uses a damaged disk within limits of time and memory.
func mutant(t *testing.T, m *memDisk, seed uint64, name string) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	done := make(chan bool)
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("seed %d (%s): %v\n%s", seed, name, p, debug.Stack())
			}
		}()
		if seed%2 == 0 {
			useDamaged(t, m)
		} else {
			useRandom(t, m, rand.New(rand.NewPCG(seed, 13)))
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		buf := make([]byte, 1<<20)
		t.Fatalf("seed %d (%s) does not end:\n%s", seed, name, buf[:runtime.Stack(buf, true)])
	}
	runtime.ReadMemStats(&after)
	if d := after.TotalAlloc - before.TotalAlloc; d > 1<<30 {
		t.Errorf("seed %d (%s): %d MiB allocated in %v", seed, name, d>>20, time.Since(began))
	}
	if os.Getenv("HARDTACK_SLOW") != "" && time.Since(began) > 2*time.Second {
		t.Logf("seed %d (%s): %v, %d MiB", seed, name, time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// useRandom does random operations on a damaged disk, mounts it again and goes on.
func useRandom(t testing.TB, m *memDisk, rng *rand.Rand) {
	for range 2 {
		fs, err := Mount(strictDisk{m, t}, Options{CacheBlocks: 64 + rng.IntN(500)})
		if err != nil {
			return
		}
		root, err := fs.Root()
		if err != nil {
			return
		}
		have := []*Inode{root}
		for range 150 {
			have = randomOp(fs, have, rng)
		}
		for _, in := range have {
			fs.Put(in)
		}
		if rng.IntN(3) != 0 {
			fs.Unmount()
		}
	}
}

// randomOp does something to one of the inodes, and returns those in use after it.
func randomOp(fs *FS, have []*Inode, rng *rand.Rand) []*Inode {
	pick := func() *Inode { return have[rng.IntN(len(have))] }
	in, dir := pick(), pick()
	var name string
	for range rng.IntN(3) {
		fs.ReadDir(dir, 0, func(d Dirent) bool {
			name = d.Name
			return rng.IntN(20) != 0
		})
		if ino, err := fs.Lookup(dir, name); err == nil && ino != 0 {
			if in, err := fs.Get(ino); err == nil {
				have = append(have, in)
			}
		}
		dir = pick()
	}
	off, n := rng.Int64N(1<<uint(1+rng.IntN(44))), rng.Int64N(1<<uint(1+rng.IntN(18)))
	long := strings.Repeat("n", 1+rng.IntN(255))
	page := make([]byte, 4096)
	add := func(in *Inode, err error) {
		if err == nil {
			have = append(have, in)
		}
	}
	switch rng.IntN(22) {
	case 20:
		fs.Fallocate(in, linux.FALLOC_FL_COLLAPSE_RANGE, off&^4095, (n+4095)&^4095)
	case 21:
		fs.Fallocate(in, linux.FALLOC_FL_INSERT_RANGE, off&^4095, (n+4095)&^4095)
	case 0:
		fs.Fallocate(in, 0, off, n)
	case 1:
		fs.Fallocate(in, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, off, n)
	case 2:
		fs.Fallocate(in, linux.FALLOC_FL_ZERO_RANGE, off, n)
	case 3:
		fs.WriteAt(in, page, off)
	case 4:
		fs.WritePages(in, &Out{Pages: [][]byte{page}, Off: off &^ 4095, Size: off, Direct: true})
	case 5:
		fs.Overwrite(in, [][]byte{page}, off&^4095)
	case 6:
		fs.Truncate(in, off)
	case 7:
		add(fs.Create(dir, long, NewInode{Mode: linux.S_IFDIR | 0o755}))
	case 8:
		add(fs.Create(dir, long, NewInode{Mode: linux.S_IFREG | 0o644}))
	case 9:
		add(fs.Create(dir, long, NewInode{Mode: linux.S_IFLNK | 0o777, Target: strings.Repeat("t", 1+rng.IntN(300))}))
	case 10:
		add(fs.Tmpfile(dir, NewInode{Mode: linux.S_IFREG | 0o644}))
	case 11:
		fs.Link(dir, long, in)
	case 12:
		fs.Unlink(dir, name, in)
	case 13:
		fs.Rename(dir, name, pick(), long, uint32(rng.IntN(5)))
	case 14:
		fs.Rename(dir, name, dir, long, 0)
	case 15:
		fs.Setxattr(in, "user."+long, page[:rng.IntN(1000)], 0)
	case 16:
		fs.Removexattr(in, "user.long")
		fs.Getxattr(in, "user.x")
		fs.Listxattr(in)
	case 17:
		fs.Seek(in, off, linux.SEEK_DATA)
		fs.Readlink(in)
		fs.Holes(in, off, n+1)
	case 18:
		fs.Fsync(in, rng.IntN(2) == 0)
	case 19:
		fs.ReadPages(in, [][]byte{page, make([]byte, 4096)}, off&^4095)
	}
	for len(have) > 12 { // the root stays
		i := 1 + rng.IntN(len(have)-1)
		fs.Put(have[i])
		have[i] = have[len(have)-1]
		have = have[:len(have)-1]
	}
	return have
}
