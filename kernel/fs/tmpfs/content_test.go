package tmpfs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

func newTree(t testing.TB) (*tmpfs.FS, *caller.Ctx, *vfs.FSContext) {
	mem.InitHost(8192)
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755})
	_, root := vfs.NewNamespace(fs.FileSystem, "test")
	return fs, caller.NewKernelCtx(), vfs.NewFSContext(root)
}

func open(t rapid.TB, c *caller.Ctx, ctx *vfs.FSContext, path string, flags, mode uint32) *vfs.File {
	f, e := vfs.Open(c, ctx, nil, path, flags, mode)
	if e != 0 {
		t.Fatalf("open %s: %v", path, e)
	}
	return f
}

// sparse is the slow reference: a file is its bytes, and which pages exist: false for
// those that nothing has touched since fallocate reserved them.
type sparse struct {
	data  []byte
	pages map[int]bool
}

func (s *sparse) grow(n int) {
	if n > len(s.data) {
		s.data = append(s.data, make([]byte, n-len(s.data))...)
	}
}

func (s *sparse) touch(from, to int) {
	for p := from / mem.PageSize; p*mem.PageSize < to; p++ {
		s.pages[p] = true
	}
}

const far = 3 << 20 // beyond the first leaves

// Random operations on one file against the reference, and no frame is lost.
func TestContent(t *testing.T) {
	fs, c, ctx := newTree(t)
	rapid.Check(t, func(t *rapid.T) {
		before := mem.Available()
		f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
		closed := false
		clean := func() {
			if !closed {
				closed = true
				vfs.UnlinkAt(c, ctx, nil, "/f")
				f.Put()
			}
		}
		defer clean()
		m := sparse{pages: map[int]bool{}}
		offset := func(label string) int {
			base := rapid.SampledFrom([]int{0, 0, mem.PageSize, 8 * mem.PageSize, 70 * mem.PageSize, far}).Draw(t, label+"base")
			return base + rapid.IntRange(0, 3*mem.PageSize).Draw(t, label)
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				off := offset("off")
				b := bytes.Repeat([]byte{byte(rapid.IntRange(1, 255).Draw(t, "byte"))}, rapid.IntRange(1, 3*mem.PageSize).Draw(t, "n"))
				if n, e := f.Ops.Write(c, f, uio.Bytes(b), int64(off)); n != len(b) || e != 0 {
					t.Fatal(n, e)
				}
				m.grow(off + len(b))
				copy(m.data[off:], b)
				m.touch(off, off+len(b))
			},
			"truncate": func(t *rapid.T) {
				n := offset("size")
				if e := f.FTruncate(c, int64(n)); e != 0 {
					t.Fatal(e)
				}
				shrink := n <= len(m.data)
				m.grow(n)
				m.data = m.data[:n:n]
				for p := range m.pages {
					if shrink && p*mem.PageSize >= n {
						delete(m.pages, p)
					}
				}
			},
			"punch": func(t *rapid.T) {
				off, n := offset("off"), rapid.IntRange(1, 5*mem.PageSize).Draw(t, "n")
				e := f.Ops.(vfs.Allocator).Allocate(c, f, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, int64(off), int64(n))
				if e != 0 {
					t.Fatal(e)
				}
				for i := off; i < min(off+n, len(m.data)); i++ {
					m.data[i] = 0
				}
				for p := range m.pages {
					if p*mem.PageSize >= off && (p+1)*mem.PageSize <= off+n {
						delete(m.pages, p)
					}
				}
			},
			"allocate": func(t *rapid.T) {
				off, n := offset("off"), rapid.IntRange(1, 5*mem.PageSize).Draw(t, "n")
				keep := rapid.Bool().Draw(t, "keep")
				mode := uint32(0)
				if keep {
					mode = linux.FALLOC_FL_KEEP_SIZE
				}
				if e := f.Ops.(vfs.Allocator).Allocate(c, f, mode, int64(off), int64(n)); e != 0 {
					t.Fatal(e)
				}
				for p := off / mem.PageSize; p*mem.PageSize < off+n; p++ {
					_, m.pages[p] = m.pages[p]
				}
				if !keep {
					m.grow(off + n)
				}
			},
			"map": func(t *rapid.T) {
				off := offset("off")
				o, _ := f.Ops.(vfs.Mapper).Map(c, f)
				fr, e := o.Page(uint64(off/mem.PageSize), true)
				if off/mem.PageSize*mem.PageSize >= len(m.data) {
					if e != linux.EFAULT {
						t.Fatal("a page beyond the end:", e)
					}
					return
				}
				if e != 0 {
					t.Fatal(e)
				}
				m.touch(off, off+1)
				if off < len(m.data) {
					fr.Bytes()[off%mem.PageSize] = 77
					m.data[off] = 77
				}
				fr.Put()
			},
			"cached": func(t *rapid.T) {
				off := offset("off")
				o, _ := f.Ops.(vfs.Mapper).Map(c, f)
				fr, ok := o.(mem.Cacher).Cached(uint64(off / mem.PageSize))
				inside := off/mem.PageSize*mem.PageSize < len(m.data)
				if ok != (inside && m.pages[off/mem.PageSize]) {
					t.Fatalf("page at %d of %d: there %v", off, len(m.data), ok)
				}
				if ok {
					fr.Put()
				}
			},
			"seek": func(t *rapid.T) {
				off := offset("off")
				whence := rapid.SampledFrom([]int{linux.SEEK_DATA, linux.SEEK_HOLE}).Draw(t, "whence")
				got, e := f.Ops.(vfs.Seeker).Seek(c, f, int64(off), whence)
				want, we := m.seek(off, whence == linux.SEEK_DATA)
				if e != we || e == 0 && got != int64(want) {
					t.Fatalf("seek %d %d: %d %v, want %d %v", off, whence, got, e, want, we)
				}
			},
			"": func(t *rapid.T) {
				var st linux.Stat
				f.StatFile(c, &st)
				if st.Size != int64(len(m.data)) || st.Blocks != int64(8*len(m.pages)) {
					t.Fatalf("size %d blocks %d, want %d %d", st.Size, st.Blocks, len(m.data), 8*len(m.pages))
				}
			},
			"read": func(t *rapid.T) { readAll(t, c, f, m.data) },
		})
		readAll(t, c, f, m.data)
		clean()
		if n := mem.Available(); n != before || fs.Used() != 0 {
			t.Fatalf("%d frames before, %d after; %d charged", before, n, fs.Used())
		}
	})
}

// readAll compares the whole content, read with one byte more than there is.
func readAll(t *rapid.T, c *caller.Ctx, f *vfs.File, want []byte) {
	got := make([]byte, len(want)+1)
	n, e := f.Ops.Read(c, f, uio.Bytes(got), 0)
	if e != 0 || !bytes.Equal(got[:n], want) {
		t.Fatalf("content differs (%d bytes, %v)", n, e)
	}
}

// seek is the reference of SEEK_DATA and SEEK_HOLE.
func (s *sparse) seek(off int, data bool) (int, linux.Errno) {
	if off >= len(s.data) {
		return 0, linux.ENXIO
	}
	for i := off; i < len(s.data); i = (i/mem.PageSize + 1) * mem.PageSize {
		if s.pages[i/mem.PageSize] == data {
			return i, 0
		}
	}
	if data {
		return 0, linux.ENXIO
	}
	return len(s.data), 0
}

func TestSizeLimits(t *testing.T) {
	mem.InitHost(8192)
	fs := tmpfs.New(tmpfs.Options{MaxPages: 4, MaxInodes: 3})
	_, root := vfs.NewNamespace(fs.FileSystem, "test")
	c, ctx := caller.NewKernelCtx(), vfs.NewFSContext(root)
	f := open(t, c, ctx, "/a", linux.O_CREAT|linux.O_RDWR, 0o644)
	b := make([]byte, 6*mem.PageSize)
	if n, e := f.Ops.Write(c, f, uio.Bytes(b), 0); n != 4*mem.PageSize || e != 0 {
		t.Fatal(n, e)
	}
	if _, e := f.Ops.Write(c, f, uio.Bytes(b), 4*mem.PageSize); e != linux.ENOSPC {
		t.Fatal(e)
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/d", 0o755); e != 0 {
		t.Fatal(e)
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/e", 0o755); e != linux.ENOSPC {
		t.Fatal(e)
	}
	vfs.UnlinkAt(c, ctx, nil, "/a")
	if _, e := f.Ops.Write(c, f, uio.Bytes(b[:1]), 0); e != 0 {
		t.Fatal("an open file without a name:", e)
	}
	f.Put()
	if fs.Used() != 0 {
		t.Fatal("pages left:", fs.Used())
	}
	c.FileSizeLimit.Store(100)
	f = open(t, c, ctx, "/b", linux.O_CREAT|linux.O_RDWR, 0o644)
	if n, e := f.Ops.Write(c, f, uio.Bytes(b), 90); n != 10 || e != 0 {
		t.Fatal(n, e)
	}
	if _, e := f.Ops.Write(c, f, uio.Bytes(b), 100); e != linux.EFBIG {
		t.Fatal(e)
	}
	if e := f.FTruncate(c, 101); e != linux.EFBIG {
		t.Fatal(e)
	}
	f.Put()
}

// Reads, writes, opens of an existing file: what may be allocated.
func TestHotPathsDoNotAllocate(t *testing.T) {
	_, c, ctx := newTree(t)
	f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	b := make([]byte, mem.PageSize)
	f.Ops.Write(c, f, uio.Bytes(b), 0)
	if n := testing.AllocsPerRun(100, func() {
		c.Vec.InitBytes(b)
		f.Ops.Write(c, f, &c.Vec, 0)
		c.Vec.InitBytes(b)
		f.Ops.Read(c, f, &c.Vec, 0)
	}); n != 0 {
		t.Error(n, "allocations a write and read")
	}
	if n := testing.AllocsPerRun(100, func() {
		g, _ := vfs.Open(c, ctx, nil, "/f", linux.O_RDONLY, 0)
		g.Put()
	}); n > 1 {
		t.Error(n, "allocations an open")
	}
	if n := testing.AllocsPerRun(100, func() {
		g, _ := vfs.Open(c, ctx, nil, "/new", linux.O_WRONLY|linux.O_CREAT|linux.O_EXCL, 0o644)
		vfs.UnlinkAt(c, ctx, nil, "/new")
		g.Put()
	}); n > 4 {
		t.Error(n, "allocations a creation")
	}
}

func TestSeals(t *testing.T) {
	_, c, _ := newTree(t)
	f, e := tmpfs.MemFD(c, "x", true)
	if e != 0 {
		t.Fatal(e)
	}
	defer f.Put()
	s := f.Ops.(tmpfs.Sealer)
	f.Ops.Write(c, f, uio.Bytes([]byte("hello")), 0)
	if e := s.AddSeals(linux.F_SEAL_GROW | linux.F_SEAL_SHRINK); e != 0 {
		t.Fatal(e)
	}
	if e := f.FTruncate(c, 3); e != linux.EPERM {
		t.Fatal(e)
	}
	if e := f.FTruncate(c, 30); e != linux.EPERM {
		t.Fatal(e)
	}
	if _, e := f.Ops.Write(c, f, uio.Bytes([]byte("world!")), 0); e != linux.EPERM {
		t.Fatal(e)
	}
	if _, e := f.Ops.Write(c, f, uio.Bytes([]byte("world")), 0); e != 0 {
		t.Fatal(e)
	}
	s.AddSeals(linux.F_SEAL_WRITE | linux.F_SEAL_SEAL)
	if _, e := f.Ops.Write(c, f, uio.Bytes([]byte("again")), 0); e != linux.EPERM {
		t.Fatal(e)
	}
	if e := s.AddSeals(linux.F_SEAL_GROW); e != linux.EPERM {
		t.Fatal(e)
	}
	g, _ := tmpfs.MemFD(c, "y", false)
	defer g.Put()
	if e := g.Ops.(tmpfs.Sealer).AddSeals(linux.F_SEAL_GROW); e != linux.EPERM {
		t.Fatal("a file that may not be sealed:", e)
	}
}

// An unmounted file system gives everything back.
func TestUnmountFrees(t *testing.T) {
	_, c, ctx := newTree(t)
	before := mem.Available()
	fs := tmpfs.New(tmpfs.Options{})
	if e := vfs.KernelMount(c, ctx, fs.FileSystem, "tmpfs", "/m", 0); e != 0 {
		t.Fatal(e)
	}
	vfs.MkdirAt(c, ctx, nil, "/m/d", 0o755)
	f := open(t, c, ctx, "/m/d/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	f.Ops.Write(c, f, uio.Bytes(make([]byte, 9*mem.PageSize)), 0)
	if e := vfs.LinkAt(c, ctx, nil, "/m/d/f", nil, "/m/g", 0); e != 0 {
		t.Fatal(e)
	}
	p, _ := vfs.Lookup(c, ctx, nil, "/m", vfs.FollowLast)
	if e := p.Namespace().Umount(p.Mnt, false); e != linux.EBUSY {
		t.Fatal("a busy mount:", e)
	}
	if e := p.Namespace().Umount(p.Mnt, true); e != 0 {
		t.Fatal(e)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/m/g", 0); e != linux.ENOENT {
		t.Fatal(e)
	}
	f.Put()
	if n := mem.Available(); n != before {
		t.Fatalf("%d frames before, %d after", before, n)
	}
}

func TestLongLinks(t *testing.T) {
	fs, c, ctx := newTree(t)
	before := mem.Available()
	for _, n := range []int{1, 128, 129, 4095} {
		text := strings.Repeat("x", n)
		if e := vfs.SymlinkAt(c, ctx, text, nil, "/l"); e != 0 {
			t.Fatal(e)
		}
		p, _ := vfs.Lookup(c, ctx, nil, "/l", 0)
		if got, e := vfs.ReadLink(c, ctx, p); e != 0 || got != text {
			t.Fatalf("%d bytes: %d, %v", n, len(got), e)
		}
		vfs.UnlinkAt(c, ctx, nil, "/l")
		if _, e := vfs.ReadLink(c, ctx, p); e != 0 && e != linux.ENOENT {
			t.Fatal(e)
		}
	}
	if mem.Available() != before || fs.Used() != 0 {
		t.Fatal("pages are lost")
	}
}

func TestXattrs(t *testing.T) {
	_, c, ctx := newTree(t)
	open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644).Put()
	p, _ := vfs.Lookup(c, ctx, nil, "/f", 0)
	for _, x := range []struct {
		name  string
		value string
		flags uint32
		want  linux.Errno
	}{
		{"user.a", "1", linux.XATTR_REPLACE, linux.ENODATA},
		{"user.a", "1", 0, 0},
		{"user.a", "2", linux.XATTR_CREATE, linux.EEXIST},
		{"user.a", "three", linux.XATTR_REPLACE, 0},
		{"trusted.b", "", 0, 0},
		{"other.c", "", 0, linux.EOPNOTSUPP},
		{"user.", "", 0, linux.EINVAL},
	} {
		if e := vfs.SetXattr(c, p, x.name, []byte(x.value), x.flags); e != x.want {
			t.Errorf("set %s: %v", x.name, e)
		}
	}
	if v, e := vfs.GetXattr(c, p, "user.a"); e != 0 || string(v) != "three" {
		t.Error(string(v), e)
	}
	if l, _ := vfs.ListXattr(c, p); string(l) != "trusted.b\x00user.a\x00" {
		t.Errorf("%q", l)
	}
	if e := vfs.RemoveXattr(c, p, "user.a"); e != 0 {
		t.Error(e)
	}
	if _, e := vfs.GetXattr(c, p, "user.a"); e != linux.ENODATA {
		t.Error(e)
	}
	big := make([]byte, linux.XATTR_SIZE_MAX)
	n := 0
	for e := linux.Errno(0); e == 0; n++ {
		e = vfs.SetXattr(c, p, fmt.Sprint("user.", n), big, 0)
		if n > 100 {
			t.Fatal("no bound")
		}
	}
	vfs.UnlinkAt(c, ctx, nil, "/f")
	if e := vfs.SetXattr(c, p, "user.z", big, 0); e == 0 {
		t.Error("attributes of a file that is gone")
	}
}
