package ext4

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
)

func create(t testing.TB, fs *FS, path string, n NewInode) *Inode {
	t.Helper()
	dir, name := split(path)
	d, err := fs.resolve(dir)
	must(t, err)
	defer fs.Put(d)
	in, err := fs.Create(d, name, n)
	must(t, err)
	return in
}

func newFile(t testing.TB, fs *FS, path string) *Inode {
	return create(t, fs, path, NewInode{Mode: linux.S_IFREG | 0o644})
}

// A file under random operations is the bytes that a model says, also after the
// disk was mounted again, and the disk is clean.
func TestFileModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bs := rapid.SampledFrom([]int{1024, 4096}).Draw(r, "block")
		m := newMemDisk(12 << 20)
		must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, JournalBlocks: 1024}))
		fs := mount(t, m)
		in := newFile(t, fs, "/f")
		var model []byte
		ops := rapid.IntRange(1, 60).Draw(r, "ops")
		for i := range ops {
			off := rapid.IntRange(0, 100_000).Draw(r, "off")
			n := rapid.IntRange(1, 40_000).Draw(r, "n")
			switch rapid.IntRange(0, 9).Draw(r, "op") {
			case 8, 9:
				insert := rapid.Bool().Draw(r, "insert")
				off, n := off/bs*bs, max(n/bs, 1)*bs
				mode, refused := uint32(linux.FALLOC_FL_COLLAPSE_RANGE), off+n >= len(model)
				if insert {
					mode, refused = linux.FALLOC_FL_INSERT_RANGE, off >= len(model)
				}
				if err := fs.Fallocate(in, mode, int64(off), int64(n)); (Errno(err) == linux.EINVAL) != refused || !refused && err != nil {
					r.Fatalf("mode %#x at %d, %d of %d: %v", mode, off, n, len(model), err)
				}
				switch {
				case refused:
				case insert:
					model = slices.Insert(model, off, make([]byte, n)...)
				default:
					model = slices.Delete(model, off, off+n)
				}
			case 0, 1, 2:
				p := bytes.Repeat([]byte{byte(i + 1)}, n)
				if _, err := fs.WriteAt(in, p, int64(off)); err != nil {
					r.Fatal(err)
				}
				model = append(model, make([]byte, max(0, off+n-len(model)))...)
				copy(model[off:], p)
			case 3:
				must(t, fs.Truncate(in, int64(off)))
				model = append(model, make([]byte, max(0, off-len(model)))...)[:off]
			case 4:
				must(t, fs.Fallocate(in, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, int64(off), int64(n)))
				if off < len(model) {
					clear(model[off:min(off+n, len(model))])
				}
			case 5:
				keep := rapid.Bool().Draw(r, "keep")
				mode := uint32(0)
				if keep {
					mode = linux.FALLOC_FL_KEEP_SIZE
				} else {
					model = append(model, make([]byte, max(0, off+n-len(model)))...)
				}
				must(t, fs.Fallocate(in, mode, int64(off), int64(n)))
			case 6:
				must(t, fs.Fallocate(in, linux.FALLOC_FL_ZERO_RANGE, int64(off), int64(n)))
				model = append(model, make([]byte, max(0, off+n-len(model)))...)
				clear(model[off : off+n])
			case 7:
				must(t, fs.Put(in))
				must(t, fs.Unmount())
				fs = mount(t, m)
				var err error
				in, err = fs.resolve("/f")
				must(t, err)
			}
			if in.Size() != int64(len(model)) {
				r.Fatalf("%d bytes, want %d", in.Size(), len(model))
			}
			got := make([]byte, len(model)+1)
			n, err := fs.ReadAt(in, got, 0)
			if err != nil || !bytes.Equal(got[:n], model) {
				r.Fatalf("content differs after %d operations (%v)", i+1, err)
			}
			for _, off := range []int64{0, int64(len(model) / 2)} {
				if at, err := fs.Seek(in, off, linux.SEEK_DATA); err == nil && bytes.Trim(model[off:at], "\x00") != nil && len(bytes.Trim(model[off:at], "\x00")) > 0 {
					r.Fatalf("SEEK_DATA passed over data from %d to %d", off, at)
				}
			}
		}
		must(t, fs.Put(in))
		must(t, fs.Unmount())
		if n, err := Check(m, func(p string) { r.Log(p) }); n != 0 || err != nil {
			r.Fatalf("%d problems, %v", n, err)
		}
	})
}

func TestSparse(t *testing.T) {
	m := mkfsMem(t, 64<<20, 4096)
	fs := mount(t, m)
	in := newFile(t, fs, "/big")
	places := []int64{0, 5 << 30, 1 << 40, 12<<40 + 123}
	for i, off := range places {
		_, err := fs.WriteAt(in, []byte{byte(i + 1)}, off)
		must(t, err)
	}
	if _, err := fs.WriteAt(in, []byte{1}, 17<<40); Errno(err) != linux.EFBIG {
		t.Fatalf("a write at 17 TiB: %v", err)
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
	fs = mount(t, m)
	in, err := fs.resolve("/big")
	must(t, err)
	if in.Size() != places[3]+1 {
		t.Fatalf("size %d", in.Size())
	}
	at := int64(0)
	for i, off := range places {
		var p [1]byte
		_, err := fs.ReadAt(in, p[:], off)
		must(t, err)
		if p[0] != byte(i+1) {
			t.Fatalf("at %d: %d", off, p[0])
		}
		data, err := fs.Seek(in, at, linux.SEEK_DATA)
		must(t, err)
		if data != max(at, off&^4095) {
			t.Fatalf("data from %d at %d, want %d", at, data, off&^4095)
		}
		if at, err = fs.Seek(in, data, linux.SEEK_HOLE); err != nil {
			t.Fatal(err)
		}
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
}

// A file of single blocks has a tree of extents; holes cut into it keep it right.
func TestDeepExtents(t *testing.T) {
	m := mkfsMem(t, 64<<20, 1024)
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	rng := rand.New(rand.NewPCG(5, 5))
	const n = 8000
	for _, i := range rng.Perm(n) {
		_, err := fs.WriteAt(in, bytes.Repeat([]byte{byte(i) | 1}, 1024), int64(i)*2048)
		must(t, err)
	}
	if d := node(in.raw[inBlock:]).depth(); d < 2 {
		t.Fatalf("the tree has only %d levels", d)
	}
	holes := map[int]bool{}
	for range 2000 {
		i := rng.IntN(n)
		must(t, fs.Fallocate(in, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, int64(i)*2048, 4096))
		holes[i], holes[i+1] = true, true
	}
	for i := range n {
		var p [1]byte
		_, err := fs.ReadAt(in, p[:], int64(i)*2048)
		must(t, err)
		if want := byte(i) | 1; !holes[i] && p[0] != want || holes[i] && p[0] != 0 {
			t.Fatalf("block %d: %d", i, p[0])
		}
	}
	must(t, fs.Sync())
	must(t, fs.Truncate(in, 4000*2048+1))
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
	fs = mount(t, m)
	in, err := fs.resolve("/f")
	must(t, err)
	root, err := fs.Root()
	must(t, err)
	must(t, fs.Unlink(root, "f", in))
	must(t, fs.Put(in))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
}

// What lies beyond a shorter file's end is zeros on disk, as other systems expect.
func TestTruncateTail(t *testing.T) {
	m := mkfsMem(t, 16<<20, 4096)
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	_, err := fs.WriteAt(in, bytes.Repeat([]byte{7}, 10000), 0)
	must(t, err)
	must(t, fs.Truncate(in, 5000))
	x, err := fs.MapBlock(in, 1)
	must(t, err)
	p := make([]byte, 4096)
	must(t, m.ReadAt([]Transfer{{int64(x.Phys) * 4096, p}}))
	if !bytes.Equal(p, append(bytes.Repeat([]byte{7}, 904), make([]byte, 4096-904)...)) {
		t.Fatal("the last block is not its bytes and zeros")
	}
}

func TestXattrs(t *testing.T) {
	m := mkfsMem(t, 16<<20, 1024)
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	model := map[string][]byte{}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		name := fmt.Sprint([]string{"user.", "trusted.", "security."}[rng.IntN(3)], rng.IntN(8))
		if rng.IntN(3) == 0 {
			err := fs.Removexattr(in, name)
			if _, ok := model[name]; (err == nil) != ok {
				t.Fatalf("removing %s: %v", name, err)
			}
			delete(model, name)
		} else {
			v := bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(120))
			err := fs.Setxattr(in, name, v, 0)
			if Errno(err) == linux.ENOSPC {
				continue
			}
			must(t, err)
			model[name] = v
		}
		names, err := fs.Listxattr(in)
		must(t, err)
		if len(names) != len(model) {
			t.Fatalf("%v, want %d", names, len(model))
		}
		for n, v := range model {
			got, err := fs.Getxattr(in, n)
			if err != nil || !bytes.Equal(got, v) {
				t.Fatalf("%s is %q, %v", n, got, err)
			}
		}
	}
	if err := fs.Setxattr(in, "user.big", make([]byte, 2000), 0); Errno(err) != linux.ENOSPC {
		t.Fatalf("2000 bytes: %v", err)
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
}

func BenchmarkWrite4K(b *testing.B) {
	m := newMemDisk(64 << 20)
	must(b, Mkfs(m, MkfsOptions{Zeroed: true}))
	fs := mount(b, m)
	in := newFile(b, fs, "/f")
	data := make([]byte, 4096)
	b.SetBytes(4096)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := fs.WriteAt(in, data, int64(i%4096)*4096); err != nil {
			b.Fatal(err)
		}
	}
}

// A page cache's way in and out: pages of several blocks, space set aside before.
func TestPages(t *testing.T) {
	m := mkfsMem(t, 32<<20, 1024)
	fs := mount(t, m)
	before := fs.free.Load()
	in := newFile(t, fs, "/f")
	_, err := fs.WriteAt(in, []byte("old"), 9000)
	must(t, err)
	var pages [][]byte
	for i := range 300 {
		pages = append(pages, bytes.Repeat([]byte{byte(i + 1)}, 4096))
	}
	holes := int64(300*4 - 1) // one block is there
	must(t, fs.Reserve(holes))
	must(t, fs.WriteOut(in, pages, 0, 300*4096-5))
	if in.Size() != 300*4096-5 {
		t.Fatalf("size %d", in.Size())
	}
	got := make([][]byte, 301)
	for i := range got {
		got[i] = bytes.Repeat([]byte{255}, 4096)
	}
	must(t, fs.ReadPages(in, got, 0))
	clear(pages[299][4091:])
	for i, p := range append(pages, make([]byte, 4096)) {
		if !bytes.Equal(got[i], p) {
			t.Fatalf("page %d differs", i)
		}
	}
	if used := before - fs.free.Load(); used < 1200 || used > 1210 {
		t.Fatalf("%d blocks are gone", used)
	}
	if err := fs.Reserve(1 << 20); Errno(err) != linux.ENOSPC {
		t.Fatalf("a million blocks: %v", err)
	}
	must(t, fs.Truncate(in, 0))
	must(t, fs.Sync())
	if left := fs.free.Load(); left < before-2 {
		t.Fatalf("%d blocks are free, %d before", left, before)
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
}
