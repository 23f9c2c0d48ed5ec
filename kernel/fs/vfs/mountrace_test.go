package vfs_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// mountAt puts a new tmpfs on a place.
func mountAt(p vfs.Path) (*vfs.Mount, linux.Errno) {
	fs := tmpfs.New(tmpfs.Options{MaxPages: 16, MaxInodes: 64}).FileSystem
	return p.Namespace().Mount(fs, fs.Root, "tmpfs", p, 0)
}

// A mount gets onto a directory that is there, or rmdir and rename find a mount: never
// both.
func TestMountAgainstRemove(t *testing.T) {
	c, ctx := newTree(t)
	for i := range 20000 {
		if e := vfs.MkdirAt(c, ctx, nil, "/d", 0o755); e != 0 {
			t.Fatal(e)
		}
		p, e := vfs.Lookup(c, ctx, nil, "/d", 0)
		if e != 0 {
			t.Fatal(e)
		}
		var m *vfs.Mount
		var mounted, removed linux.Errno
		var both sync.WaitGroup
		both.Go(func() { m, mounted = mountAt(p) })
		both.Go(func() {
			c := caller.NewKernelCtx()
			if i%2 == 0 {
				removed = vfs.RmdirAt(c, ctx, nil, "/d")
			} else if removed = vfs.RenameAt(c, ctx, nil, "/d", nil, "/e", 0); removed == 0 {
				removed = vfs.RmdirAt(c, ctx, nil, "/e")
			}
		})
		both.Wait()
		switch {
		case mounted == 0 && p.Dentry.Gone():
			t.Fatalf("round %d: a mount on a directory that was removed", i)
		case mounted != 0 && removed != 0:
			t.Fatalf("round %d: mount says %v and removal %v", i, mounted, removed)
		}
		if mounted == 0 {
			if e := p.Namespace().Umount(m, false); e != 0 {
				t.Fatal(e)
			}
			vfs.RmdirAt(c, ctx, nil, "/d")
			vfs.RmdirAt(c, ctx, nil, "/e")
		}
	}
}

// A mount comes and goes under others that walk, open, make and remove there. Nobody
// gets a file of a mount that has ended, and nothing is given up twice.
func TestUmountAgainstUse(t *testing.T) {
	c, ctx := newTree(t)
	vfs.MkdirAt(c, ctx, nil, "/m", 0o777)
	var stop atomic.Bool
	var busy sync.WaitGroup
	use := func(f func(c *caller.Ctx)) {
		busy.Go(func() {
			for c := caller.NewKernelCtx(); !stop.Load(); {
				f(c)
			}
		})
	}
	for range 2 {
		use(func(c *caller.Ctx) {
			f, e := vfs.Open(c, ctx, nil, "/m/f", linux.O_CREAT|linux.O_RDWR, 0o644)
			if e == 0 {
				f.Put()
			} else if e != linux.ENOENT {
				t.Error("open", e)
			}
		})
		use(func(c *caller.Ctx) {
			f, e := vfs.Open(c, ctx, nil, "/m", linux.O_RDONLY|linux.O_DIRECTORY, 0)
			if e != 0 {
				t.Error("the place itself:", e) // mounted or not, it is there
				return
			}
			f.Put()
		})
		use(func(c *caller.Ctx) {
			vfs.MkdirAt(c, ctx, nil, "/m/d", 0o755)
			vfs.MkdirAt(c, ctx, nil, "/m/d/e", 0o755)
			vfs.RenameAt(c, ctx, nil, "/m/d/e", nil, "/m/e", 0)
			vfs.RmdirAt(c, ctx, nil, "/m/e")
			vfs.RmdirAt(c, ctx, nil, "/m/d")
			vfs.UnlinkAt(c, ctx, nil, "/m/f")
		})
		use(func(c *caller.Ctx) {
			if p, e := vfs.Lookup(c, ctx, nil, "/m", 0); e == 0 {
				ctx := ctx.Clone()
				ctx.Chdir(c, p)
				vfs.Lookup(c, ctx, nil, "f", 0)
				ctx.Release()
			}
		})
	}
	rounds, gone := 0, 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); rounds++ {
		p, e := vfs.Lookup(c, ctx, nil, "/m", 0)
		if e != 0 {
			t.Fatal(e)
		}
		m, e := mountAt(p)
		if e != 0 {
			t.Fatal("mount", e)
		}
		for {
			e := p.Namespace().Umount(m, rounds%3 == 0)
			if e == 0 {
				gone++
				break
			}
			if e != linux.EBUSY {
				t.Fatal("umount", e)
			}
		}
	}
	stop.Store(true)
	busy.Wait()
	if gone == 0 {
		t.Error("nothing was ever unmounted")
	}
	if n := len(ctx.Root().Namespace().Mounts()); n != 1 {
		t.Errorf("%d mounts are left", n)
	}
}
