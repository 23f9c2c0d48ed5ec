package ext4

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hardtack/abi/linux"
)

func TestDirectories(t *testing.T) {
	n := 20000
	if testing.Short() {
		n = 3000
	}
	if s := os.Getenv("HARDTACK_NAMES"); s != "" { // a million takes minutes
		n, _ = strconv.Atoi(s)
	}
	for _, bs := range []int{1024, 4096} {
		t.Run(fmt.Sprint(bs), func(t *testing.T) {
			if bs == 1024 {
				n = min(n, 100_000) // an index of two levels of such blocks holds no more
			}
			m := newMemDisk(max(64<<20, int64(n)*120))
			must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, BytesPerInode: 4096}))
			fs := mount(t, m)
			root, err := fs.Root()
			must(t, err)
			dir := create(t, fs, "/d", NewInode{Mode: linux.S_IFDIR | 0o755})
			one := newFile(t, fs, "/one")
			another := func() { // before one has too many links
				if one.links() > 60000 {
					must(t, fs.Put(one))
					one = newFile(t, fs, fmt.Sprint("/one", fs.o.Now()))
				}
			}
			name := func(i int) string { return fmt.Sprintf("%d-%s", i, strings.Repeat("n", i%40)) }
			files := min(n, 10000)
			for i := range n {
				another()
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
					another()
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

// On a damaged disk two directories are in each other, and one in the root: whoever
// removes or renames them at the same time gets an error or is done, and does not wait
// for ever.
func TestCircle(t *testing.T) {
	fs := mount(t, mkfsMem(t, 16<<20, 1024))
	root, err := fs.Root()
	must(t, err)
	isDir := NewInode{Mode: linux.S_IFDIR | 0o755}
	a, b := create(t, fs, "/a", isDir), create(t, fs, "/a/b", isDir)
	must(t, fs.Put(create(t, fs, "/a/b/a", isDir)))
	h, err := fs.begin(4)
	must(t, err)
	var p place
	must(t, b.lookup(&p, "a", 0))
	b.replace(h, p.spot, a.ino, ftDir)
	must(t, a.findDots(&p, ".."))
	a.replace(h, p.spot, b.ino, ftDir)
	h.end()
	var wg sync.WaitGroup
	for _, do := range []func() error{
		func() error { return fs.Unlink(a, "b", b) },
		func() error { return fs.Unlink(b, "a", a) },
		func() error { return fs.Rename(a, "b", a, "b", 0) },
		func() error { return fs.Rename(b, "a", b, "b", 0) },
		func() error { return fs.Rename(b, "b", b, "a", 0) },
		func() error { return fs.Rename(a, "b", b, "c", 0) },
		func() error { return fs.Rename(root, "a", b, "c", 0) },
		func() error { return fs.Link(a, "c", b) },
		func() error { return fs.Link(b, "c", a) },
	} {
		wg.Go(func() {
			for range 1000 {
				switch err := do(); Errno(err) {
				case 0, linux.ENOTEMPTY, linux.ENOENT, linux.EUCLEAN, linux.EPERM:
				default:
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
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
