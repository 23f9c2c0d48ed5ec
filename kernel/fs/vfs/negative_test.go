package vfs_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// askFS is a file system on a disk, with any directories and files.
type askFS struct {
	vfs.BaseNode
	vfs.Inode
	fs *vfs.FileSystem
}

func (a *askFS) make(n vfs.NewNode) *vfs.Inode {
	i := &askFS{fs: a.fs}
	i.Init(a.fs, i, &n)
	return &i.Inode
}

func (a *askFS) Lookup(*caller.Ctx, *vfs.Inode, string) (*vfs.Inode, linux.Errno) {
	return nil, linux.ENOENT
}

func (a *askFS) Create(_ *caller.Ctx, _ *vfs.Inode, _ string, n vfs.NewNode) (*vfs.Inode, linux.Errno) {
	return a.make(n), 0
}

func (a *askFS) Unlink(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

func (a *askFS) Rename(*caller.Ctx, *vfs.Inode, string, *vfs.Inode, string, uint32) linux.Errno {
	return 0
}

func newAskFS() *vfs.FileSystem {
	fs := vfs.NewFileSystem("ask", 1, 0)
	a := &askFS{fs: fs}
	a.Init(fs, a, &vfs.NewNode{Mode: linux.S_IFDIR | 0o755})
	fs.Root = vfs.NewRoot(&a.Inode)
	return fs
}

// collected reports whether nothing keeps any of the objects.
func collected[T any](list []weak.Pointer[T]) bool {
	for range 100 {
		runtime.GC()
		left := 0
		for _, w := range list {
			if w.Value() != nil {
				left++
			}
		}
		if left == 0 {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func must(t *testing.T, e linux.Errno) {
	t.Helper()
	if e != 0 {
		t.Fatal(e)
	}
}

// What is known not to exist keeps no file, directory or file system in memory.
func TestAbsencesKeepNothing(t *testing.T) {
	c := caller.NewKernelCtx()
	ns, root := vfs.NewNamespace(newAskFS(), "ask")
	ctx := vfs.NewFSContext(root)
	absent := func(path string) {
		t.Helper()
		if _, e := vfs.Lookup(c, ctx, nil, path, 0); e != linux.ENOENT {
			t.Fatal(path, e)
		}
	}
	place := func(path string) weak.Pointer[vfs.Dentry] {
		t.Helper()
		p, e := vfs.Lookup(c, ctx, nil, path, 0)
		must(t, e)
		return weak.Make(p.Dentry)
	}
	var list []weak.Pointer[vfs.Dentry]
	for i := range 20 {
		dir := fmt.Sprint("/dir", i)
		must(t, vfs.MkdirAt(c, ctx, nil, dir, 0o755))
		for k := range 20 { // the table grows
			absent(fmt.Sprint(dir, "/no", k))
		}
		list = append(list, place(dir))
		// A name that was known not to exist, made and removed.
		must(t, vfs.MknodAt(c, ctx, nil, dir+"/no3", linux.S_IFREG|0o644, 0))
		list = append(list, place(dir+"/no3"))
		must(t, vfs.UnlinkAt(c, ctx, nil, dir+"/no3"))
		absent("/file")
		must(t, vfs.MknodAt(c, ctx, nil, "/file", linux.S_IFREG|0o644, 0))
		list = append(list, place("/file"))
		must(t, vfs.RenameAt(c, ctx, nil, "/file", nil, "/other", 0))
		must(t, vfs.UnlinkAt(c, ctx, nil, "/other"))
		if i%2 == 0 {
			must(t, vfs.RmdirAt(c, ctx, nil, dir))
			continue
		}
		must(t, vfs.MkdirAt(c, ctx, nil, "/over", 0o755))
		must(t, vfs.RenameAt(c, ctx, nil, "/over", nil, dir, 0))
		must(t, vfs.RmdirAt(c, ctx, nil, dir))
	}
	if !collected(list) {
		t.Error("a file or directory that was removed stays in memory")
	}

	must(t, vfs.MkdirAt(c, ctx, nil, "/mnt", 0o755))
	var dead []weak.Pointer[vfs.FileSystem]
	for range 5 {
		fs := newAskFS()
		at, e := vfs.Lookup(c, ctx, nil, "/mnt", 0)
		must(t, e)
		_, e = ns.Mount(fs, fs.Root, "ask", at, 0)
		must(t, e)
		must(t, vfs.MkdirAt(c, ctx, nil, "/mnt/dir", 0o755))
		absent("/mnt/no")
		absent("/mnt/dir/no")
		dead = append(dead, weak.Make(fs))
		at, e = vfs.Lookup(c, ctx, nil, "/mnt", 0)
		must(t, e)
		m, e := at.MountPath()
		must(t, e)
		must(t, ns.Umount(m, false))
	}
	if !collected(dead) {
		t.Error("a file system that was unmounted stays in memory")
	}
	absent("/no") // the tree itself is as it was
}

// Whoever works in a directory that was removed does not bring it back into the ring.
func TestAbsencesInRemovedDirectory(t *testing.T) {
	c := caller.NewKernelCtx()
	_, root := vfs.NewNamespace(newAskFS(), "ask")
	ctx := vfs.NewFSContext(root)
	var list []weak.Pointer[vfs.Dentry]
	for range 5 {
		must(t, vfs.MkdirAt(c, ctx, nil, "/dir", 0o755))
		inside := ctx.Clone()
		p, e := vfs.Lookup(c, ctx, nil, "/dir", 0)
		must(t, e)
		must(t, inside.Chdir(c, p))
		must(t, vfs.RmdirAt(c, ctx, nil, "/dir"))
		if _, e := vfs.Lookup(c, inside, nil, "no", 0); e != linux.ENOENT {
			t.Fatal(e)
		}
		list = append(list, weak.Make(inside.Cwd().Dentry))
		inside.Release()
	}
	if !collected(list) {
		t.Error("a removed directory in which a name was looked up stays in memory")
	}
}
