package vfs_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

// slowFS is a file system that must be asked for names: those that begin with
// "is" exist. It counts the questions.
type slowFS struct {
	vfs.BaseNode
	vfs.Inode
	fs    *vfs.FileSystem
	asked *int
}

func (s *slowFS) Lookup(_ *caller.Ctx, _ *vfs.Inode, name string) (*vfs.Inode, linux.Errno) {
	*s.asked++
	if name[:2] != "is" {
		return nil, linux.ENOENT
	}
	n := &slowFS{fs: s.fs, asked: s.asked}
	n.Init(s.fs, n, &vfs.NewNode{Mode: linux.S_IFREG | 0o644})
	return &n.Inode, 0
}

func (s *slowFS) Create(c *caller.Ctx, dir *vfs.Inode, name string, n vfs.NewNode) (*vfs.Inode, linux.Errno) {
	i := &slowFS{fs: s.fs, asked: s.asked}
	i.Init(s.fs, i, &n)
	return &i.Inode, 0
}

func (s *slowFS) Unlink(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

func TestNameCache(t *testing.T) {
	c := caller.NewKernelCtx()
	asked := 0
	fs := vfs.NewFileSystem("slow", 1, 0)
	d := &slowFS{fs: fs, asked: &asked}
	d.Init(fs, d, &vfs.NewNode{Mode: linux.S_IFDIR | 0o755})
	fs.Root = vfs.NewRoot(&d.Inode)
	_, root := vfs.NewNamespace(fs, "slow")
	ctx := vfs.NewFSContext(root)
	for range 3 {
		if _, e := vfs.Lookup(c, ctx, nil, "/is1", 0); e != 0 {
			t.Fatal(e)
		}
		if _, e := vfs.Lookup(c, ctx, nil, "/no1", 0); e != linux.ENOENT {
			t.Fatal(e)
		}
	}
	if asked != 2 {
		t.Fatal("asked", asked, "times for two names")
	}
	// A name that was known not to exist is made and removed again.
	if e := vfs.MknodAt(c, ctx, nil, "/no1", linux.S_IFREG|0o644, 0); e != 0 {
		t.Fatal(e)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/no1", 0); e != 0 {
		t.Fatal(e)
	}
	if e := vfs.UnlinkAt(c, ctx, nil, "/no1"); e != 0 {
		t.Fatal(e)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/no1", 0); e != linux.ENOENT {
		t.Fatal(e)
	}
	// Absences are forgotten, oldest first, beyond the bound.
	for i := range 5000 {
		vfs.Lookup(c, ctx, nil, fmt.Sprint("/no", i), 0)
	}
	asked = 0
	vfs.Lookup(c, ctx, nil, "/no4999", 0)
	vfs.Lookup(c, ctx, nil, "/no10", 0)
	if asked != 1 {
		t.Fatal("asked", asked, "times: one of two is still known")
	}
}

// fickle is a file system whose files are replaced at the moment when somebody opens
// them for the first time.
type fickle struct {
	slowFS
	replace func()
}

func (s *fickle) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) {
	if replace := s.replace; replace != nil {
		s.replace = nil
		replace()
		return nil, linux.ENOENT // as if the last reference had gone
	}
	return vfs.BaseOps{}, 0
}

// A file that is replaced or removed between the walk and the open is looked for again.
func TestOpenDuringReplace(t *testing.T) {
	c := caller.NewKernelCtx()
	asked := 0
	fs := vfs.NewFileSystem("fickle", 1, vfs.FSInTree)
	root := &slowFS{fs: fs, asked: &asked}
	root.Init(fs, root, &vfs.NewNode{Mode: linux.S_IFDIR | 0o755})
	fs.Root = vfs.NewRoot(&root.Inode)
	_, at := vfs.NewNamespace(fs, "fickle")
	ctx := vfs.NewFSContext(at)
	file := func(replace func()) *vfs.Inode {
		f := &fickle{slowFS: slowFS{fs: fs, asked: &asked}, replace: replace}
		f.Init(fs, f, &vfs.NewNode{Mode: linux.S_IFREG | 0o644})
		return &f.Inode
	}
	next := file(nil)
	fs.Root.AddChild("conf", file(func() {
		fs.Root.RemoveChild("conf")
		fs.Root.AddChild("conf", next)
	}))
	f, e := vfs.Open(c, ctx, nil, "/conf", linux.O_RDONLY, 0)
	if e != 0 || f.Path.Inode() != next {
		t.Fatal("opened while it was replaced:", e)
	}
	f.Put()
	fs.Root.AddChild("gone", file(func() { fs.Root.RemoveChild("gone") }))
	if _, e := vfs.Open(c, ctx, nil, "gone", linux.O_RDONLY, 0); e != linux.ENOENT {
		t.Fatal("opened while it was removed:", e)
	}
}

func TestInotify(t *testing.T) {
	c, ctx := newTree(t)
	vfs.MkdirAt(c, ctx, nil, "/d", 0o755)
	f, _ := vfs.NewInotify(&creds.RootCred, linux.O_NONBLOCK)
	defer f.Put()
	in := f.Ops.(*vfs.Inotify)
	p, _ := vfs.Lookup(c, ctx, nil, "/d", 0)
	wd, _ := in.AddWatch(p, linux.IN_ALL_EVENTS)
	expect := func(what string, want ...string) {
		t.Helper()
		b := make([]byte, 4096)
		c.Vec.InitBytes(b)
		n, e := f.Ops.Read(c, f, &c.Vec, 0)
		if e != 0 && len(want) > 0 {
			t.Fatal(what, e)
		}
		var got []string
		for b = b[:n]; len(b) > 0; {
			k := binary.LittleEndian.Uint32(b[12:])
			name := b[16 : 16+k]
			for len(name) > 0 && name[len(name)-1] == 0 {
				name = name[:len(name)-1]
			}
			got = append(got, fmt.Sprintf("%x %s", binary.LittleEndian.Uint32(b[4:]), name))
			b = b[16+k:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	g, _ := vfs.Open(c, ctx, nil, "/d/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	expect("create", "100 f", "20 f")
	g.NotifyWrite(1)
	g.NotifyWrite(1)
	g.Put()
	expect("write, close", "2 f", "8 f")
	vfs.RenameAt(c, ctx, nil, "/d/f", nil, "/d/g", 0)
	expect("rename", "40 f", "80 g")
	vfs.MkdirAt(c, ctx, nil, "/d/sub", 0o755)
	vfs.UnlinkAt(c, ctx, nil, "/d/g")
	vfs.RmdirAt(c, ctx, nil, "/d/sub")
	expect("mkdir, unlink, rmdir", "40000100 sub", "200 g", "40000200 sub")
	vfs.RmdirAt(c, ctx, nil, "/d")
	expect("the directory itself", "400 ", "8000 ") // Linux leaves IN_ISDIR out here
	expect("nothing more")
	if e := in.RemoveWatch(wd); e != linux.EINVAL {
		t.Error(e)
	}
}
