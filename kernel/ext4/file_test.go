package ext4

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
// disk was mounted anew, and the disk is clean.
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
			switch rapid.IntRange(0, 7).Draw(r, "op") {
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

func TestDirectories(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 3000
	}
	for _, bs := range []int{1024, 4096} {
		t.Run(fmt.Sprint(bs), func(t *testing.T) {
			m := newMemDisk(64 << 20)
			must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, BytesPerInode: 4096}))
			fs := mount(t, m)
			root, err := fs.Root()
			must(t, err)
			dir := create(t, fs, "/d", NewInode{Mode: linux.S_IFDIR | 0o755})
			one := newFile(t, fs, "/one")
			name := func(i int) string { return fmt.Sprintf("%d-%s", i, strings.Repeat("n", i%40)) }
			files := min(n, 10000)
			for i := range n {
				if i%(n/files) == 0 && i < 60000 && i%2 == 0 {
					in, err := fs.Create(dir, name(i), NewInode{Mode: linux.S_IFREG | 0o600})
					must(t, err)
					must(t, fs.Put(in))
				} else {
					must(t, fs.Link(dir, name(i), one))
				}
			}
			// While it is read names come and go; those that stay are seen once.
			rng := rand.New(rand.NewPCG(1, 1))
			seen := map[string]int{}
			gone := map[string]bool{}
			for pos, more := int64(0), true; more; {
				more = false
				left := 100
				must(t, fs.ReadDir(dir, pos, func(d Dirent) bool {
					seen[d.Name]++
					pos = d.Next
					left--
					more = left == 0
					return left > 0
				}))
				for range 3 {
					x := name(rng.IntN(n))
					if ino, err := fs.Lookup(dir, x); err == nil && ino != 0 {
						in, err := fs.Get(ino)
						must(t, err)
						must(t, fs.Unlink(dir, x, in))
						must(t, fs.Put(in))
						gone[x] = true
					}
					must(t, fs.Link(dir, fmt.Sprint("new", len(gone), rng.Uint32()), one))
				}
			}
			for i := range n {
				if x := name(i); !gone[x] && seen[x] != 1 {
					t.Fatalf("%s was seen %d times", x, seen[x])
				}
				ino, err := fs.Lookup(dir, name(i))
				must(t, err)
				if (ino != 0) == gone[name(i)] {
					t.Fatalf("%s leads to inode %d", name(i), ino)
				}
			}
			must(t, fs.Put(dir))
			must(t, fs.Put(one))
			must(t, fs.Put(root))
			must(t, fs.Unmount())
			wantClean(t, m)
		})
	}
}

func TestRenameFlags(t *testing.T) {
	m := mkfsMem(t, 16<<20, 4096)
	fs := mount(t, m)
	root, err := fs.Root()
	must(t, err)
	a := create(t, fs, "/a", NewInode{Mode: linux.S_IFDIR | 0o755})
	b := create(t, fs, "/a/b", NewInode{Mode: linux.S_IFDIR | 0o755})
	f := newFile(t, fs, "/f")
	want := func(err error, e linux.Errno) {
		t.Helper()
		if Errno(err) != e {
			t.Fatalf("%v, want %v", err, e)
		}
	}
	want(fs.Rename(root, "a", b, "x", 0), linux.EINVAL)
	want(fs.Rename(a, "b", root, "a", 0), linux.ENOTEMPTY)
	want(fs.Rename(root, "f", root, "a", 0), linux.EISDIR)
	want(fs.Rename(root, "a", root, "f", 0), linux.ENOTDIR)
	want(fs.Rename(root, "f", root, "a", linux.RENAME_NOREPLACE), linux.EEXIST)
	want(fs.Rename(root, "none", root, "x", 0), linux.ENOENT)
	want(fs.Rename(root, "f", root, "none", linux.RENAME_EXCHANGE), linux.ENOENT)
	want(fs.Rename(root, "a", b, "x", linux.RENAME_EXCHANGE), linux.ENOENT)
	want(fs.Rename(root, "f", b, strings.Repeat("x", 256), 0), linux.ENAMETOOLONG)
	want(fs.Rename(a, "b", root, "f", linux.RENAME_EXCHANGE), 0)
	if in, err := fs.resolve("/a/b"); err != nil || in != f {
		t.Fatalf("after the exchange: %v", err)
	}
	want(fs.Rename(a, "b", root, "g", linux.RENAME_WHITEOUT), 0)
	in, err := fs.resolve("/a/b")
	must(t, err)
	if in.Mode() != linux.S_IFCHR || in.rdev() != 0 {
		t.Fatalf("the whiteout is %#o, device %d", in.Mode(), in.rdev())
	}
	tmp, err := fs.Tmpfile(a, NewInode{Mode: linux.S_IFREG | 0o600})
	must(t, err)
	_, err = fs.WriteAt(tmp, []byte("hello"), 0)
	must(t, err)
	must(t, fs.Link(a, "named", tmp))
	tmp2, err := fs.Tmpfile(a, NewInode{Mode: linux.S_IFREG | 0o600})
	must(t, err)
	_, err = fs.WriteAt(tmp2, []byte("hello"), 0)
	must(t, err)
	for _, x := range []*Inode{in, tmp, tmp2, f, f, a, b, root} {
		must(t, fs.Put(x))
	}
	must(t, fs.Unmount())
	wantClean(t, m)
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

// Many goroutines at once: every operation works, and the disk is clean.
func TestConcurrent(t *testing.T) {
	m := newMemDisk(48 << 20)
	must(t, Mkfs(m, MkfsOptions{BlockSize: 1024, Zeroed: true, BytesPerInode: 4096}))
	fs, err := Mount(m, Options{CacheBlocks: 100})
	must(t, err)
	root, err := fs.Root()
	must(t, err)
	shared := create(t, fs, "/shared", NewInode{Mode: linux.S_IFDIR | 0o777})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			mine, err := fs.Create(root, fmt.Sprint("dir", g), NewInode{Mode: linux.S_IFDIR | 0o755})
			if err != nil {
				t.Error(err)
				return
			}
			defer fs.Put(mine)
			for i := range 150 {
				if err := concurrentStep(fs, rng, g, i, mine, shared); err != nil {
					t.Errorf("worker %d, step %d: %v", g, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	must(t, fs.Put(shared))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
}

func concurrentStep(fs *FS, rng *rand.Rand, g, i int, mine, shared *Inode) error {
	name := fmt.Sprintf("%d-%d-%s", g, i, strings.Repeat("y", i%30))
	in, err := fs.Create(mine, name, NewInode{Mode: linux.S_IFREG | 0o644})
	if err != nil {
		return err
	}
	defer fs.Put(in)
	data := bytes.Repeat([]byte{byte(g + 1)}, 1+rng.IntN(5000))
	if _, err := fs.WriteAt(in, data, int64(rng.IntN(3000))); err != nil {
		return err
	}
	switch rng.IntN(5) {
	case 0:
		err = fs.Fsync(in, false)
	case 1:
		err = fs.Rename(mine, name, shared, name, 0)
	case 2:
		if err = fs.Rename(mine, name, shared, "contested", 0); err == nil {
			var ino uint32
			if ino, err = fs.Lookup(shared, "contested"); err == nil && ino == 0 {
				err = errors.New("the contested name is not there")
			}
		}
	case 3:
		err = fs.Unlink(mine, name, in)
	case 4:
		err = fs.Truncate(in, int64(rng.IntN(6000)))
	}
	return err
}

// A full disk gives ENOSPC, loses nothing else, and works again with room.
func TestFull(t *testing.T) {
	m := mkfsMem(t, 4<<20, 1024)
	fs := mount(t, m)
	root, err := fs.Root()
	must(t, err)
	kept := newFile(t, fs, "/kept")
	_, err = fs.WriteAt(kept, bytes.Repeat([]byte{9}, 5000), 0)
	must(t, err)
	for round := range 3 {
		var names []string
		full := 0
		for i := 0; full < 3; i++ {
			name := fmt.Sprint("fill", i)
			in, err := fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644})
			if Errno(err) == linux.ENOSPC {
				full++
				continue
			}
			must(t, err)
			names = append(names, name)
			if _, err := fs.WriteAt(in, make([]byte, 70000), 0); Errno(err) == linux.ENOSPC {
				full++
			} else {
				must(t, err)
			}
			must(t, fs.Put(in))
		}
		for _, name := range names {
			ino, err := fs.Lookup(root, name)
			must(t, err)
			in, err := fs.Get(ino)
			must(t, err)
			must(t, fs.Unlink(root, name, in))
			must(t, fs.Put(in))
		}
		if round == 1 {
			must(t, fs.Sync())
		}
	}
	got := make([]byte, 5000)
	_, err = fs.ReadAt(kept, got, 0)
	must(t, err)
	if !bytes.Equal(got, bytes.Repeat([]byte{9}, 5000)) {
		t.Fatal("another file changed")
	}
	must(t, fs.Put(kept))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
}

// The Nth request fails: an error, and after a new mount a disk that is right.
func TestErrors(t *testing.T) {
	base := mkfsMem(t, 12<<20, 1024)
	for n := 1; n < 400; n += 7 {
		m := base.clone()
		count := 0
		var mu sync.Mutex
		m.fail = func(write bool) error {
			mu.Lock()
			defer mu.Unlock()
			if count++; count >= n && write {
				return fmt.Errorf("request %d: %w", count, linux.EIO)
			}
			return nil
		}
		fs, err := Mount(m, Options{})
		if err == nil {
			err = func() error {
				root, err := fs.Root()
				if err != nil {
					return err
				}
				for i := range 100 {
					in, err := fs.Create(root, fmt.Sprint("f", i), NewInode{Mode: linux.S_IFREG | 0o644})
					if err != nil {
						return err
					}
					if _, err := fs.WriteAt(in, make([]byte, 3000), 0); err != nil {
						return err
					}
					if err := fs.Fsync(in, false); err != nil {
						return err
					}
					fs.Put(in)
				}
				return nil
			}()
			if err == nil {
				err = fs.Unmount()
			}
		}
		if e := Errno(err); err != nil && e != linux.EIO && e != linux.EROFS {
			t.Fatalf("request %d failed: %v", n, err)
		}
		m.fail = nil
		fs, err = Mount(m, Options{})
		if err != nil {
			t.Fatalf("after request %d failed: %v", n, err)
		}
		must(t, fs.Unmount())
		if p, err := Check(m, func(p string) { t.Log(p) }); p != 0 || err != nil {
			t.Fatalf("after request %d failed: %d problems, %v", n, p, err)
		}
	}
}

// A disk by mke2fs -d is read like the directory that it was made from.
func TestInterop(t *testing.T) {
	dir := scratch(t)
	src := filepath.Join(dir, "src")
	must(t, os.MkdirAll(src+"/a/b/c", 0o755))
	rng := rand.New(rand.NewPCG(8, 8))
	want := map[string][]byte{}
	for i := range 400 {
		p := fmt.Sprintf("/%s/f%d", []string{"a", "a/b", "a/b/c"}[i%3], i)
		data := make([]byte, rng.IntN(30000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		must(t, os.WriteFile(src+p, data, 0o640))
		want[p] = data
	}
	must(t, os.Symlink(strings.Repeat("long/", 30), src+"/a/long"))
	must(t, os.Symlink("short", src+"/a/short"))
	m := mke2fs(t, "64M", "-d", src)
	fs := mount(t, m)
	got := map[string]found{}
	root, err := fs.Root()
	must(t, err)
	must(t, walkTree(fs, root, "/", got))
	for p, data := range want {
		if !bytes.Equal(got[p].data, data) {
			t.Fatalf("%s differs", p)
		}
	}
	if got["/a/long"].target != strings.Repeat("long/", 30) || got["/a/short"].target != "short" {
		t.Fatal("a symbolic link differs")
	}
	// And the other way: what we write, debugfs reads.
	mine := map[string][]byte{}
	for i := range 40 {
		p := fmt.Sprintf("/a/new%d", i)
		data := bytes.Repeat([]byte{byte(i + 1)}, rng.IntN(100000))
		in := newFile(t, fs, p)
		_, err := fs.WriteAt(in, data, 0)
		must(t, err)
		must(t, fs.Setxattr(in, "user.number", []byte(fmt.Sprint(i)), 0))
		must(t, fs.Put(in))
		mine[p] = data
	}
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
	file := filepath.Join(dir, "disk")
	m.save(t, file)
	out := filepath.Join(dir, "out")
	must(t, os.Mkdir(out, 0o755))
	if b, err := exec.Command(tool(t, "debugfs"), "-R", "rdump /a "+out, file).CombinedOutput(); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, b)
	}
	for _, all := range []map[string][]byte{want, mine} {
		for p, data := range all {
			if b, err := os.ReadFile(out + p); err != nil || !bytes.Equal(b, data) {
				t.Fatalf("debugfs reads %s otherwise (%v)", p, err)
			}
		}
	}
	b, err := exec.Command(tool(t, "debugfs"), "-R", "ea_get /a/new7 user.number", file).CombinedOutput()
	if err != nil || !strings.Contains(string(b), `"7"`) && !strings.Contains(string(b), "7\n") {
		t.Fatalf("debugfs: %v\n%s", err, b)
	}
}

func TestFeatures(t *testing.T) {
	for _, x := range []struct {
		feature, name string
		readable      bool
	}{{"meta_bg,^resize_inode", "meta_bg", false}, {"inline_data", "inline_data", false}, {"casefold", "casefold", false},
		{"quota", "quota", true}, {"project", "project", true}, {"bigalloc", "bigalloc", false}, {"mmp", "mmp", false},
		{"ea_inode", "ea_inode", false}, {"encrypt", "encrypt", false}, {"verity", "verity", true}} {
		m := mke2fs(t, "32M", "-O", x.feature)
		_, err := Mount(m, Options{})
		if err == nil || !strings.Contains(err.Error(), x.name) {
			t.Errorf("%s: %v", x.name, err)
		}
		_, err = Mount(m, Options{ReadOnly: true})
		if (err == nil) != x.readable {
			t.Errorf("%s, to be read: %v", x.name, err)
		}
	}
	if _, err := Mount(mke2fs(t, "32M", "-O", "^has_journal"), Options{}); Errno(err) != linux.EROFS {
		t.Errorf("without a journal: %v", err)
	}
	if _, err := Mount(newMemDisk(1<<20), Options{}); Errno(err) != linux.EINVAL {
		t.Errorf("an empty disk: %v", err)
	}
}

// The hashes are Linux's: debugfs computes the same.
func TestHashes(t *testing.T) {
	debugfs := tool(t, "debugfs")
	s := &super{}
	for i := range s.hashSeed {
		s.hashSeed[i] = le.Uint32([]byte("\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0")[4*i:])
	}
	for v, alg := range []string{"legacy", "half_md4", "tea"} {
		for _, n := range []int{1, 3, 4, 15, 16, 17, 31, 32, 33, 63, 64, 100, 255} {
			name := slices.Repeat([]byte("name-with.sömething"), 20)[:n]
			major, minor, _ := s.hashName(uint8(v), name)
			out, err := exec.Command(debugfs, "-R", fmt.Sprintf("dx_hash -h %s -s 12345678-9abc-def0-1234-56789abcdef0 %s", alg, name)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if want := fmt.Sprintf("is 0x%x (minor 0x%x)", major, minor); !strings.Contains(string(out), want) &&
				!strings.Contains(string(out), fmt.Sprintf("is 0x%08x (minor 0x%08x)", major, minor)) {
				t.Fatalf("%s of %q: %s; debugfs says %s", alg, name, want, out)
			}
		}
	}
}

// Directories move about, one into another, while others come and go: no deadlock,
// no circle.
func TestRenameTree(t *testing.T) {
	m := mkfsMem(t, 16<<20, 1024)
	fs := mount(t, m)
	paths := []string{"/a", "/a/b", "/a/b/c", "/d", "/d/e", "/f"}
	for _, p := range paths {
		must(t, fs.Put(create(t, fs, p, NewInode{Mode: linux.S_IFDIR | 0o755})))
	}
	var wg sync.WaitGroup
	for g := range 5 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 9))
			for range 300 {
				if err := renameStep(fs, rng, paths); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	must(t, fs.Unmount())
	wantClean(t, m)
}

// renameStep moves, exchanges, removes or makes a directory; that it cannot is no error.
func renameStep(fs *FS, rng *rand.Rand, paths []string) error {
	pick := func() (*Inode, string) {
		p := paths[rng.IntN(len(paths))]
		if rng.IntN(2) == 0 {
			p += paths[rng.IntN(len(paths))]
		}
		dir, name := split(p)
		d, _ := fs.resolve(dir)
		return d, name
	}
	a, on := pick()
	if a == nil {
		return nil
	}
	defer fs.Put(a)
	b, nn := pick()
	if b == nil {
		return nil
	}
	defer fs.Put(b)
	var err error
	switch rng.IntN(6) {
	case 0, 1, 2:
		err = fs.Rename(a, on, b, nn, 0)
	case 3:
		err = fs.Rename(a, on, b, nn, linux.RENAME_EXCHANGE)
	case 4:
		var ino uint32
		if ino, err = fs.Lookup(a, on); err == nil && ino != 0 {
			var in *Inode
			if in, err = fs.Get(ino); err == nil {
				err = fs.Unlink(a, on, in)
				fs.Put(in)
			}
		}
	case 5:
		var in *Inode
		if in, err = fs.Create(a, on, NewInode{Mode: linux.S_IFDIR | 0o755}); err == nil {
			fs.Put(in)
		}
	}
	switch Errno(err) {
	case 0, linux.EINVAL, linux.ENOENT, linux.ENOTEMPTY, linux.EEXIST, linux.ENOTDIR:
		return nil
	}
	return err
}

// slowDisk is a disk whose flush takes a while.
type slowDisk struct {
	*memDisk
	flushes atomic.Int64
}

func (d *slowDisk) wait() error {
	d.flushes.Add(1)
	time.Sleep(500 * time.Microsecond)
	return nil
}

func (d *slowDisk) Flush() error { return d.wait() }
func (d *slowDisk) WriteAt(batch []Transfer, fua bool) error {
	if fua {
		d.wait()
	}
	return d.memDisk.WriteAt(batch, fua)
}

// Fsyncs of independent files share commits: eight at once take far fewer flushes
// than eight in turn.
func TestGroupCommit(t *testing.T) {
	flushes := func(workers int) float64 {
		d := &slowDisk{memDisk: mkfsMem(t, 32<<20, 4096)}
		fs := mount(t, d)
		start := d.flushes.Load()
		const each = 40
		var wg sync.WaitGroup
		for g := range workers {
			in := newFile(t, fs, fmt.Sprint("/f", g))
			wg.Go(func() {
				defer fs.Put(in)
				for i := range each {
					if _, err := fs.WriteAt(in, make([]byte, 100), int64(i)*100); err != nil {
						t.Error(err)
					}
					if err := fs.Fsync(in, false); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		n := float64(d.flushes.Load()-start) / float64(workers*each)
		must(t, fs.Unmount())
		return n
	}
	one, eight := flushes(1), flushes(8)
	t.Logf("flushes a fsync: %.2f alone, %.2f with eight writers", one, eight)
	if eight > one*0.7 {
		t.Errorf("eight writers do not share commits: %.2f flushes a fsync, alone %.2f", eight, one)
	}
}

// BenchmarkCreateWriteSync is CMailbench's core: make, write 1 KiB, fsync, unlink.
func BenchmarkCreateWriteSync(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			m := newMemDisk(256 << 20)
			must(b, Mkfs(m, MkfsOptions{Zeroed: true}))
			fs := mount(b, m)
			root, err := fs.Root()
			must(b, err)
			data := make([]byte, 1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				in, err := fs.Create(root, fmt.Sprint("f", i%1000), NewInode{Mode: linux.S_IFREG | 0o644})
				must(b, err)
				if _, err := fs.WriteAt(in, data, 0); err != nil {
					b.Fatal(err)
				}
				if sync {
					must(b, fs.Fsync(in, false))
				}
				must(b, fs.Unlink(root, fmt.Sprint("f", i%1000), in))
				must(b, fs.Put(in))
			}
			must(b, fs.Unmount())
		})
	}
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

func BenchmarkLookup(b *testing.B) {
	m := newMemDisk(256 << 20)
	must(b, Mkfs(m, MkfsOptions{Zeroed: true}))
	fs := mount(b, m)
	root, err := fs.Root()
	must(b, err)
	one := newFile(b, fs, "/one")
	for i := range 60000 {
		must(b, fs.Link(root, fmt.Sprint("name", i), one))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if ino, err := fs.Lookup(root, fmt.Sprint("name", i%60000)); err != nil || ino == 0 {
			b.Fatal(ino, err)
		}
	}
}
