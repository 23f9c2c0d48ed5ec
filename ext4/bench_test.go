package ext4

import (
	"fmt"
	"testing"

	"hardtack/abi/linux"
)

// What operations cost without a device: the disk is one slice of memory, so a
// transfer is a copy. Guest instructions beside Linux's are bench/os's.
//
//	go test -run '^$' -bench Op ./ext4

// flatDisk is a disk in one piece. It does not allocate.
type flatDisk []byte

func (d flatDisk) Size() int64                { return int64(len(d)) }
func (d flatDisk) BlockSize() int             { return 512 }
func (d flatDisk) Flush() error               { return nil }
func (d flatDisk) Discard(off, n int64) error { return nil }

func (d flatDisk) ReadAt(batch []Transfer) error {
	for _, t := range batch {
		copy(t.Buf, d[t.Off:])
	}
	return nil
}

func (d flatDisk) WriteAt(batch []Transfer, fua bool) error {
	for _, t := range batch {
		copy(d[t.Off:], t.Buf)
	}
	return nil
}

// benchFS is a new file system of 1 GiB with a directory /d of n names.
func benchFS(b *testing.B, n int) (fs *FS, dir *Inode) {
	b.Helper()
	d := make(flatDisk, 1<<30)
	fine(b, Mkfs(d, MkfsOptions{Zeroed: true, BytesPerInode: 4096}))
	fs = mount(b, d)
	root, err := fs.Root()
	fine(b, err)
	dir, err = fs.Create(root, "d", NewInode{Mode: linux.S_IFDIR | 0o755})
	fine(b, err)
	fine(b, fs.Put(root))
	for _, name := range benchNames(n) {
		in, err := fs.Create(dir, name, NewInode{Mode: linux.S_IFREG | 0o644})
		fine(b, err)
		fine(b, fs.Put(in))
	}
	fine(b, fs.Sync())
	strictCredits = false
	b.Cleanup(func() {
		strictCredits = true
		fine(b, fs.Put(dir))
		fine(b, fs.Unmount())
	})
	b.ReportAllocs()
	return fs, dir
}

func benchNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("name", i)
	}
	return names
}

var benchFile = NewInode{Mode: linux.S_IFREG | 0o644}

// A file made, given 1 KiB through a page cache, made durable, and removed.
func BenchmarkOpMailSync(b *testing.B)  { benchMail(b, true) }
func BenchmarkOpMailAsync(b *testing.B) { benchMail(b, false) }

func benchMail(b *testing.B, durable bool) {
	fs, dir := benchFS(b, 0)
	names := benchNames(1000)
	pages := [][]byte{make([]byte, 4096)}
	for i := 0; b.Loop(); i++ {
		name := names[i%len(names)]
		in, err := fs.Create(dir, name, benchFile)
		fine(b, err)
		fine(b, fs.Reserve(1))
		fine(b, fs.WriteOut(in, pages, 0, 1024))
		if durable {
			fine(b, fs.Fsync(in, false))
		}
		fine(b, fs.Unlink(dir, name, in))
		fine(b, fs.Put(in))
	}
}

// A file made and removed, in directories of 100 and 100,000 names.
func BenchmarkOpCreateUnlink(b *testing.B) {
	for _, n := range []int{100, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fs, dir := benchFS(b, n)
			names := benchNames(2 * n)[n:]
			for i := 0; b.Loop(); i++ {
				name := names[i%len(names)]
				in, err := fs.Create(dir, name, benchFile)
				fine(b, err)
				fine(b, fs.Unlink(dir, name, in))
				fine(b, fs.Put(in))
			}
		})
	}
}

func BenchmarkOpRename(b *testing.B) {
	for _, n := range []int{100, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fs, dir := benchFS(b, n)
			names := benchNames(2 * n)
			for i := 0; b.Loop(); i++ {
				fine(b, fs.Rename(dir, names[i%(2*n)], dir, names[(i+n)%(2*n)], 0))
			}
		})
	}
}

func BenchmarkOpLookup(b *testing.B) {
	for _, n := range []int{100, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fs, dir := benchFS(b, n)
			names := benchNames(n)
			for i := 0; b.Loop(); i++ {
				ino, err := fs.Lookup(dir, names[i*7919%n])
				if err != nil || ino == 0 {
					b.Fatal(ino, err)
				}
			}
		})
	}
}

// One name of a directory of 100,000, as readdir gives it.
func BenchmarkOpReadDir(b *testing.B) {
	const n = 100000
	fs, dir := benchFS(b, n)
	pos, got := int64(0), 0
	for b.Loop() {
		if got--; got >= 0 {
			continue
		}
		got = 0
		last := pos
		fine(b, fs.ReadDir(dir, pos, func(d Dirent) bool {
			last, got = d.Next, got+1
			return got < 1000
		}))
		if pos = last; got < 1000 {
			pos = 0
		}
	}
}

// An inode that nobody else has in use, from the cached table.
func BenchmarkOpGetPut(b *testing.B) {
	const n = 1000
	fs, dir := benchFS(b, n)
	inos := make([]uint32, n)
	for i, name := range benchNames(n) {
		ino, err := fs.Lookup(dir, name)
		fine(b, err)
		inos[i] = ino
	}
	var st linux.Stat
	for i := 0; b.Loop(); i++ {
		in, err := fs.Get(inos[i%n])
		fine(b, err)
		in.Stat(&st)
		fine(b, fs.Put(in))
	}
}

// A change of times, as a cached write or read makes it.
func BenchmarkOpSetTimes(b *testing.B) {
	fs, dir := benchFS(b, 1)
	ino, err := fs.Lookup(dir, "name0")
	fine(b, err)
	in, err := fs.Get(ino)
	fine(b, err)
	now := int64(1e18)
	for b.Loop() {
		now += 1e6
		fine(b, fs.SetAttr(in, Attr{Mtime: &now, Ctime: &now}))
	}
	fine(b, fs.Put(in))
}

// A page written over in place, and one appended.
func BenchmarkOpWriteOut(b *testing.B) {
	for _, grow := range []bool{false, true} {
		b.Run(fmt.Sprintf("grow=%v", grow), func(b *testing.B) {
			fs, dir := benchFS(b, 0)
			in, err := fs.Create(dir, "f", benchFile)
			fine(b, err)
			pages := [][]byte{make([]byte, 4096)}
			const n = 10000
			if !grow {
				for i := range int64(n) {
					fine(b, fs.Reserve(1))
					fine(b, fs.WriteOut(in, pages, i<<12, (i+1)<<12))
				}
			}
			for i := int64(0); b.Loop(); i++ {
				at := i % n
				if grow {
					if at == 0 {
						fine(b, fs.Truncate(in, 0))
					}
					fine(b, fs.Reserve(1))
				}
				fine(b, fs.WriteOut(in, pages, at<<12, (at+1)<<12))
			}
			fine(b, fs.Put(in))
		})
	}
}

// A page read, and where it lies.
func BenchmarkOpReadPage(b *testing.B) {
	fs, dir := benchFS(b, 0)
	in, err := fs.Create(dir, "f", benchFile)
	fine(b, err)
	pages := [][]byte{make([]byte, 4096)}
	const n = 1000
	for i := range int64(n) { // every other block, so that the tree is deep
		fine(b, fs.Reserve(1))
		fine(b, fs.WriteOut(in, pages, i<<13, (2*i+1)<<12))
	}
	for i := int64(0); b.Loop(); i++ {
		fine(b, fs.ReadPages(in, pages, i%n<<13))
	}
	fine(b, fs.Put(in))
}

// fine is must without the cost of Helper.
func fine(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
