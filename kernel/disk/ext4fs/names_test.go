package ext4fs

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// dropAll lets any name go.
func dropAll(i *vfs.Inode) bool {
	if f, ok := i.Node.(*file); ok {
		f.pages.Clean(0, ^uint64(0))
	}
	return true
}

func (m *machine) mkdir(name string) {
	m.t.Helper()
	if e := vfs.MkdirAt(m.c, m.ctx, nil, name, 0o755); e != 0 {
		m.t.Fatalf("mkdir %s: %v", name, e)
	}
}

func (m *machine) lookup(name string) vfs.Path {
	m.t.Helper()
	p, e := vfs.Lookup(m.c, m.ctx, nil, name, 0)
	if e != 0 {
		m.t.Fatalf("%s: %v", name, e)
	}
	return p
}

// TestDirectoriesLeave: directories that nobody uses leave memory with the files in
// them, and what somebody holds is found again as what it was.
func TestDirectoriesLeave(t *testing.T) {
	m := newMachine(t, 64<<20)
	const dirs = 300
	for i := range dirs {
		d := fmt.Sprintf("/d%d", i)
		m.mkdir(d)
		m.mkdir(d + "/sub")
		m.open(d+"/sub/f", linux.O_CREAT|linux.O_RDWR).Put()
	}
	if e := m.fs.sync(); e != 0 {
		t.Fatal(e)
	}
	work := m.lookup("/d5/sub")
	if e := m.ctx.Chdir(m.c, work); e != 0 {
		t.Fatal(e)
	}
	open := m.open("/d6/sub", linux.O_RDONLY|linux.O_DIRECTORY)
	walk := m.lookup("/d7/sub") // as a walk on its way, that nothing counts
	gone := 0
	for range 2 { // the first time all were looked up lately
		gone += m.fs.Shrink(1<<20, dropAll)
	}
	if want := 3*dirs - 5; gone < want || gone > 3*dirs-4 {
		t.Errorf("%d names left the tree, want %d", gone, want)
	}
	if vfs := m.lookup("/d5/sub"); vfs.Dentry != work.Dentry {
		t.Error("the working directory has a second place")
	}
	if p := m.lookup("/d6/sub"); p.Dentry != open.Path.Dentry {
		t.Error("an open directory has a second place")
	}
	// A name made in the old place is there in the new one, for it is the same.
	m.ctx.Chdir(m.c, walk)
	m.open("new", linux.O_CREAT|linux.O_RDWR).Put()
	if p := m.lookup("/d7/sub"); p.Dentry != walk.Dentry {
		t.Error("the directory of a walk has a second place")
	}
	m.lookup("/d7/sub/new")
	if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/d7/sub/new"); e != 0 {
		t.Error(e)
	}
	if _, e := vfs.Lookup(m.c, m.ctx, nil, "new", 0); e != linux.ENOENT {
		t.Error(e)
	}
	// Renamed and removed by their names, they are so for whoever holds them too.
	if e := vfs.RenameAt(m.c, m.ctx, nil, "/d6/sub", nil, "/d6-sub", 0); e != 0 {
		t.Error(e)
	}
	if s := open.Path.Text(m.ctx.Root()); s != "/d6-sub" {
		t.Errorf("the open directory is at %s", s)
	}
	vfs.UnlinkAt(m.c, m.ctx, nil, "/d7/sub/f")
	if e := vfs.RmdirAt(m.c, m.ctx, nil, "/d7/sub"); e != 0 {
		t.Error(e)
	}
	if _, e := vfs.Open(m.c, m.ctx, nil, "more", linux.O_CREAT|linux.O_RDWR, 0o644); e != linux.ENOENT {
		t.Errorf("a file made in a directory that is gone: %v", e)
	}
	open.Put()
	m.ctx.Chdir(m.c, m.ctx.Root())
	work, walk = vfs.Path{}, vfs.Path{}
	for range 2 {
		m.fs.Shrink(1<<20, dropAll)
	}
	m.collect(3) // the root's, and what a stack may still hold
	for i := range dirs {
		if i != 6 && i != 7 {
			m.lookup(fmt.Sprintf("/d%d/sub/f", i))
		}
	}
	m.unmount()
}

// collect waits until the collector has brought the nodes down to most.
func (m *machine) collect(most int64) {
	m.t.Helper()
	for end := time.Now().Add(patience); m.fs.nodes.Load() > most && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if n := m.fs.nodes.Load(); n > most {
		m.t.Errorf("%d nodes in memory, want %d at most", n, most)
	}
}

// TestCrowded: names stay while memory is free, leave where it gets scarce, and go all
// when somebody would have to die otherwise.
func TestCrowded(t *testing.T) {
	m := newMachine(t, 64<<20)
	const dirs, files = 20, 150
	for i := range dirs {
		m.mkdir(fmt.Sprintf("/d%d", i))
		for j := range files {
			if e := vfs.MknodAt(m.c, m.ctx, nil, fmt.Sprintf("/d%d/f%d", i, j), linux.S_IFREG|0o644, 0); e != 0 {
				t.Fatal(e)
			}
		}
	}
	m.fs.sync()
	if n, most := m.fs.nodes.Load(), m.fs.budget(); n < dirs*files || most < n {
		t.Errorf("%d nodes of %d files, and memory for %d", n, dirs*files, most)
	}
	// The only look while memory is scarce is the one below: of two, each would take out
	// as many, before the collector has been there.
	for !m.fs.shrink.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
	var held []mem.Frame
	for mem.Spare() > mem.Total()/32 {
		f, ok := mem.Alloc()
		if !ok {
			break
		}
		held = append(held, f)
	}
	few := m.fs.budget()
	if few > dirs*files/2 {
		t.Errorf("room for %d nodes where memory is scarce", few)
	}
	m.fs.crowded()
	m.collect(few)
	mem.PutBatch(held)
	for i := range dirs {
		m.lookup(fmt.Sprintf("/d%d/f%d", i, i))
	}
	if !mem.Squeeze() {
		t.Error("nothing was squeezed out of many names")
	}
	m.collect(3)
	if mem.Squeeze() {
		t.Error("something was squeezed out of nothing")
	}
	m.unmount()
}

// TestDirectoriesTogether has directories made, moved, removed and worked in while
// they leave the tree and come back.
func TestDirectoriesTogether(t *testing.T) {
	m := newMachine(t, 64<<20)
	var work, aside sync.WaitGroup
	var stop atomic.Bool
	for w := range 3 {
		work.Go(func() {
			c, ctx := caller.NewKernelCtx(), m.ctx.Clone()
			defer ctx.Release()
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			dir := func() string { return fmt.Sprintf("/%c", 'a'+rng.IntN(3)) }
			for range 600 {
				d := dir() + dir()
				var e linux.Errno
				switch rng.IntN(7) {
				case 0, 1:
					vfs.MkdirAt(c, ctx, nil, d[:2], 0o755)
					e = vfs.MkdirAt(c, ctx, nil, d, 0o755)
				case 2:
					e = vfs.RenameAt(c, ctx, nil, d, nil, dir()+dir(), uint32(rng.IntN(2))*linux.RENAME_EXCHANGE)
				case 3:
					e = vfs.RmdirAt(c, ctx, nil, d)
				case 4:
					var p vfs.Path
					if p, e = vfs.Lookup(c, ctx, nil, d, 0); e == 0 {
						e = ctx.Chdir(c, p)
					}
				case 5:
					var f *vfs.File
					if f, e = vfs.Open(c, ctx, nil, "f", linux.O_CREAT|linux.O_RDWR, 0o644); e == 0 {
						f.Put()
					}
				case 6:
					e = vfs.UnlinkAt(c, ctx, nil, d+"/f")
				}
				switch e {
				case 0, linux.ENOENT, linux.EEXIST, linux.ENOTEMPTY, linux.EINVAL, linux.EISDIR, linux.ENOTDIR:
				default:
					t.Errorf("%s: %v", d, e)
				}
			}
		})
	}
	aside.Go(func() {
		for !stop.Load() {
			m.fs.Shrink(100, dropAll)
			runtime.GC()
		}
	})
	work.Wait()
	stop.Store(true)
	aside.Wait()
	// What the tree of names says is what the disk says.
	var list func(name string) (names []string)
	list = func(name string) (names []string) {
		f := m.open(name, linux.O_RDONLY|linux.O_DIRECTORY)
		defer f.Put()
		f.Ops.(vfs.DirReader).ReadDir(m.c, f, func(d *vfs.Dirent) bool {
			if d.Name[0] != '.' && d.Name != "lost+found" {
				names = append(names, name+"/"+d.Name)
			}
			return true
		})
		for _, n := range names[:len(names):len(names)] {
			if m.lookup(n).Inode().IsDir() {
				names = append(names, list(n)...)
			}
		}
		return names
	}
	before := fmt.Sprint(list("/"))
	m.unmount()
	m.mount()
	if after := fmt.Sprint(list("/")); after != before {
		t.Errorf("the names were %s, and are %s after a mount", before, after)
	}
	m.unmount()
}

// TestCircle: on a damaged disk a directory is in itself, two levels down. Who
// walks there gets an error, and those who remove and rename around it do not wait
// for each other for ever.
func TestCircle(t *testing.T) {
	m := newMachine(t, 16<<20)
	m.mkdir("/a")
	m.mkdir("/a/b")
	m.mkdir("/a/b/loop")
	a, b := m.lookup("/a").Inode().Ino, m.lookup("/a/b").Inode().Ino
	loop := m.lookup("/a/b/loop").Inode().Ino
	m.unmount()
	m.redirect(uint32(b), uint32(loop), uint32(a))
	m.mount()
	var wg sync.WaitGroup
	for _, do := range []func(c *caller.Ctx) linux.Errno{
		func(c *caller.Ctx) linux.Errno { _, e := vfs.Lookup(c, m.ctx, nil, "/a/b/loop/b", 0); return e },
		func(c *caller.Ctx) linux.Errno { return vfs.RmdirAt(c, m.ctx, nil, "/a/b/loop") },
		func(c *caller.Ctx) linux.Errno { return vfs.RmdirAt(c, m.ctx, nil, "/a/b/loop/b") },
		func(c *caller.Ctx) linux.Errno { return vfs.RenameAt(c, m.ctx, nil, "/a/b/loop", nil, "/c", 0) },
		func(c *caller.Ctx) linux.Errno { return vfs.RenameAt(c, m.ctx, nil, "/a", nil, "/a/b/loop/c", 0) },
		func(c *caller.Ctx) linux.Errno { return vfs.MkdirAt(c, m.ctx, nil, "/a/b/loop/d", 0o755) },
	} {
		wg.Go(func() {
			c := caller.NewKernelCtx()
			for range 200 {
				if e := do(c); e != linux.EUCLEAN {
					t.Errorf("%v, want EUCLEAN", e)
					return
				}
			}
		})
	}
	wg.Go(func() {
		c := caller.NewKernelCtx()
		for range 200 {
			if e := vfs.RmdirAt(c, m.ctx, nil, "/a/b"); e != linux.ENOTEMPTY {
				t.Errorf("rmdir /a/b: %v", e)
			}
			m.fs.Shrink(10, dropAll)
		}
	})
	wg.Wait()
	m.end()
}

// redirect makes the first name in directory dir, which leads to inode from, lead to
// inode to, on the disk itself: the block is found by what it holds (copies of it in
// the log too). Checksums of one length are linear: what changes is the sum of what
// was changed.
func (m *machine) redirect(dir, from, to uint32) {
	m.t.Helper()
	const size, first, sum = 4096, 24, 4096 - 4
	le, found := binary.LittleEndian, false
	var change [size - 12]byte
	le.PutUint32(change[first:], from^to)
	delta := ^crc32.Update(^uint32(0), crc32.MakeTable(crc32.Castagnoli), change[:])
	for at := 0; at+size <= len(m.d.b); at += size {
		d := m.d.b[at : at+size]
		if le.Uint32(d) == dir && d[6] == 1 && d[8] == '.' && le.Uint32(d[first:]) == from {
			le.PutUint32(d[first:], to)
			le.PutUint32(d[sum:], le.Uint32(d[sum:])^delta)
			found = true
		}
	}
	if !found {
		m.t.Fatalf("no block of directory %d leads to inode %d", dir, from)
	}
}
