package vfs_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// A name that is replaced over and over is found by every look-up, and so is
// one that stays while its directory's table grows, shrinks and moves.
func TestLookupsDuringRenames(t *testing.T) {
	c, ctx := newTree(t)
	touch := func(c *caller.Ctx, path string) {
		f, e := vfs.Open(c, ctx, nil, path, linux.O_CREAT|linux.O_RDWR, 0o644)
		if e != 0 {
			t.Error(path, e)
			return
		}
		f.Put()
	}
	for _, d := range []string{"/d", "/d/sub", "/e"} {
		vfs.MkdirAt(c, ctx, nil, d, 0o755)
	}
	touch(c, "/d/always")
	touch(c, "/d/sub/deep")
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			c := caller.NewKernelCtx()
			for !stop.Load() {
				for _, p := range []string{"/d/always", "/d/sub/deep", "/d/sub/../always", "/d"} {
					got, e := vfs.Lookup(c, ctx, nil, p, 0)
					if e != 0 {
						t.Error(p, e)
						return
					}
					if f, e := vfs.OpenPath(c, got, linux.O_RDONLY); e == 0 {
						f.Put()
					} else if e != linux.ENOENT { // replaced between the two steps
						t.Error(p, e)
					}
				}
				f, e := vfs.Open(c, ctx, nil, "/d/always", linux.O_RDWR, 0)
				if e == 0 {
					f.Put()
				} else if e != linux.ENOENT {
					t.Error("open", e)
				}
			}
		})
	}
	const rounds = 400
	writers.Go(func() { // replaces the name
		c := caller.NewKernelCtx()
		for range rounds {
			touch(c, "/d/new")
			if e := vfs.RenameAt(c, ctx, nil, "/d/new", nil, "/d/always", 0); e != 0 {
				t.Error(e)
			}
		}
	})
	writers.Go(func() { // makes the table grow, with hash chains of all lengths
		c := caller.NewKernelCtx()
		for i := range rounds {
			p := "/d/x" + string(rune('a'+i%26)) + string(rune('a'+i/26))
			touch(c, p)
			if i%3 == 0 {
				vfs.UnlinkAt(c, ctx, nil, p)
			}
		}
	})
	writers.Go(func() { // moves across directories, both ways, and exchanges
		c := caller.NewKernelCtx()
		touch(c, "/e/m")
		vfs.MkdirAt(c, ctx, nil, "/e/dir", 0o755)
		for range rounds {
			for _, m := range [][2]string{{"/e/m", "/d/m"}, {"/e/dir", "/d/sub/dir"}, {"/d/m", "/e/m"}, {"/d/sub/dir", "/e/dir"}} {
				if e := vfs.RenameAt(c, ctx, nil, m[0], nil, m[1], 0); e != 0 {
					t.Error(m, e)
				}
			}
			vfs.RenameAt(c, ctx, nil, "/e/m", nil, "/e/dir", linux.RENAME_EXCHANGE)
			vfs.RenameAt(c, ctx, nil, "/e/m", nil, "/e/dir", linux.RENAME_EXCHANGE)
		}
	})
	writers.Go(func() { // directories come and go
		c := caller.NewKernelCtx()
		for range rounds {
			vfs.MkdirAt(c, ctx, nil, "/e/t", 0o755)
			vfs.RmdirAt(c, ctx, nil, "/e/t")
		}
	})
	writers.Wait()
	stop.Store(true)
	readers.Wait()
}

// Two directories must not become each other's parents.
func TestNoLoops(t *testing.T) {
	c, ctx := newTree(t)
	vfs.MkdirAt(c, ctx, nil, "/a", 0o755)
	vfs.MkdirAt(c, ctx, nil, "/b", 0o755)
	for range 100 {
		var wg sync.WaitGroup
		for _, m := range [][2]string{{"/a", "/b/a"}, {"/b", "/a/b"}} {
			wg.Go(func() { vfs.RenameAt(caller.NewKernelCtx(), ctx, nil, m[0], nil, m[1], 0) })
		}
		wg.Wait()
		n := 0
		for _, m := range [][2]string{{"/b/a", "/a"}, {"/a/b", "/b"}} {
			if vfs.RenameAt(c, ctx, nil, m[0], nil, m[1], 0) == 0 {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d of the two moves worked", n)
		}
	}
}
