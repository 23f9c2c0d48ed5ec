package tmpfs

import (
	"bytes"
	"slices"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Lent pages are never written to, and never given back: a file that is opened for writing or cut has
// copies.
func TestLent(t *testing.T) {
	mem.InitHost(8192)
	const n = 20
	var archive []mem.Frame
	for len(archive) < n { // frames in a row
		f, ok := mem.Alloc()
		if !ok {
			t.Fatal("no memory")
		}
		if len(archive) > 0 && f != archive[len(archive)-1]+1 && f+1 != archive[len(archive)-1] {
			archive = nil
		}
		archive = append(archive, f)
	}
	slices.Sort(archive)
	fill := func(f mem.Frame, i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, mem.PageSize) }
	for i, f := range archive {
		copy(f.Bytes(), fill(f, i))
	}
	defer func() { lent = frames{} }()
	for name, change := range map[string]func(c *caller.Ctx, i *vfs.Inode) linux.Errno{
		"open": func(c *caller.Ctx, i *vfs.Inode) linux.Errno {
			f := i.Node.(*file)
			if _, e := f.Open(c, vfs.Path{}, linux.O_RDWR); e != 0 {
				return e
			}
			of := vfs.NewFile(f, linux.O_RDWR)
			_, e := f.Write(c, of, uio.Bytes(make([]byte, 2*mem.PageSize)), 3*mem.PageSize+100)
			return e
		},
		"cut": func(c *caller.Ctx, i *vfs.Inode) linux.Errno {
			f := i.Node.(*file)
			f.Mu.Lock()
			defer f.Mu.Unlock()
			return f.truncate(5*mem.PageSize + 1)
		},
		"empty": func(c *caller.Ctx, i *vfs.Inode) linux.Errno {
			f := i.Node.(*file)
			f.Mu.Lock()
			defer f.Mu.Unlock()
			return f.truncate(0)
		},
	} {
		fs := New(Options{})
		fs.Lend(archive[0], n)
		i, e := fs.Make(&vfs.NewNode{Mode: linux.S_IFREG | 0o644})
		if e != 0 {
			t.Fatal(e)
		}
		fs.Adopt(i, archive[0], n)
		f := i.Node.(*file)
		if f.pages.get(7) != archive[7] || f.Seals()&sealLent != 0 {
			t.Error("the file has not the lent pages, or shows that it has")
		}
		if e := change(caller.NewKernelCtx(), i); e != 0 {
			t.Fatalf("%s: %v", name, e)
		}
		for k, a := range archive {
			if !bytes.Equal(a.Bytes(), fill(a, k)) || a.Refs() != 1 {
				t.Errorf("%s: lent page %d has changed, or %d references", name, k, a.Refs())
			}
			if g := f.pages.get(uint64(k)); g != 0 && (lent.has(g) || k < 3 && !bytes.Equal(g.Bytes(), fill(g, k))) {
				t.Errorf("%s: page %d", name, k)
			}
		}
		f.Evict(i)
	}
}
