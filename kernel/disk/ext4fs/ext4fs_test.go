package ext4fs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
)

// disk is a device in memory whose writes can be made to fail.
type disk struct {
	mu   sync.Mutex
	b    []byte
	fail func(p []byte) bool // guarded by mu; which writes fail
}

func (d *disk) Size() int64                { return int64(len(d.b)) }
func (d *disk) BlockSize() int             { return 512 }
func (d *disk) Flush() error               { return nil }
func (d *disk) Discard(off, n int64) error { return nil }

func (d *disk) ReadAt(batch []ext4.Transfer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range batch {
		copy(t.Buf, d.b[t.Off:])
	}
	return nil
}

func (d *disk) WriteAt(batch []ext4.Transfer, fua bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range batch {
		if d.fail != nil && d.fail(t.Buf) {
			return fmt.Errorf("the medium: %w", linux.EIO)
		}
		copy(d.b[t.Off:], t.Buf)
	}
	return nil
}

func (d *disk) failing(f func(p []byte) bool) {
	d.mu.Lock()
	d.fail = f
	d.mu.Unlock()
}

func TestMain(m *testing.M) {
	mem.Reclaim.Set(pagecache.Reclaim)
	os.Exit(m.Run())
}

// machine is a mounted disk with a caller.
type machine struct {
	t   *testing.T
	d   *disk
	fs  *FS
	ctx *vfs.FSContext
	c   *caller.Ctx
}

func newMachine(t *testing.T, size int) *machine {
	mem.InitHost(16384)
	log := block.Log
	block.Log = t.Logf
	t.Cleanup(func() { block.Log = log })
	d := &disk{b: make([]byte, size)}
	if err := ext4.Mkfs(d, ext4.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, d: d, c: caller.NewKernelCtx()}
	m.mount()
	t.Cleanup(func() {
		if m.fs != nil && !t.Failed() {
			m.unmount()
		}
	})
	return m
}

func (m *machine) mount() {
	fs, err := Mount(m.d, false, options{commit: time.Hour})
	if err != nil {
		m.t.Fatal(err)
	}
	m.fs = fs
	_, root := vfs.NewNamespace(fs.FileSystem, "disk")
	m.ctx = vfs.NewFSContext(root)
}

// unmount ends the mount and looks at the disk. It comes by itself after a test.
func (m *machine) unmount() {
	m.t.Helper()
	if e := m.end(); e != 0 {
		m.t.Errorf("unmount: %v", e)
	}
	n, err := ext4.Check(m.d, func(s string) { m.t.Log(s) })
	if n != 0 || err != nil {
		m.t.Errorf("%d problems, %v", n, err)
	}
	m.e2fsck()
}

// end ends the mount of a disk that is not clean then.
func (m *machine) end() linux.Errno {
	e := m.fs.destroy()
	m.fs = nil
	return e
}

// e2fsck asks the reference program.
func (m *machine) e2fsck() {
	m.t.Helper()
	tool := "e2fsck"
	if _, err := exec.LookPath(tool); err != nil {
		tool = "/sbin/e2fsck"
		if _, err := os.Stat(tool); err != nil {
			m.t.Log("e2fsck is not installed (package e2fsprogs)")
			return
		}
	}
	dir, err := os.MkdirTemp("/dev/shm", "ext4fs")
	if err != nil {
		dir = m.t.TempDir()
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "disk")
	if err := os.WriteFile(name, m.d.b, 0o600); err != nil {
		m.t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-fn", name).CombinedOutput(); err != nil {
		m.t.Errorf("e2fsck: %v\n%s", err, out)
	}
}

func (m *machine) open(name string, flags uint32) *vfs.File {
	m.t.Helper()
	f, e := vfs.Open(m.c, m.ctx, nil, name, flags, 0o644)
	if e != 0 {
		m.t.Fatalf("open %s: %v", name, e)
	}
	return f
}

func (m *machine) write(f *vfs.File, p []byte, off int64) {
	m.t.Helper()
	if n, e := f.Ops.Write(m.c, f, uio.Bytes(p), off); n != len(p) || e != 0 {
		m.t.Fatalf("write: %d, %v", n, e)
	}
}

func (m *machine) read(f *vfs.File, n int, off int64) []byte {
	m.t.Helper()
	p := make([]byte, n)
	k, e := f.Ops.Read(m.c, f, uio.Bytes(p), off)
	if e != 0 {
		m.t.Fatalf("read: %v", e)
	}
	return p[:k]
}

func fsync(m *machine, f *vfs.File) linux.Errno { return f.Ops.(vfs.Syncer).Sync(m.c, f, false) }

// TestAgain: what was written is there after the next mount, with its attributes.
func TestAgain(t *testing.T) {
	m := newMachine(t, 64<<20)
	text := bytes.Repeat([]byte("0123456789"), 5000)
	if e := vfs.MkdirAt(m.c, m.ctx, nil, "/d", 0o750); e != 0 {
		t.Fatal(e)
	}
	f := m.open("/d/f", linux.O_RDWR|linux.O_CREAT)
	m.write(f, text, 100)
	if e := vfs.LinkAt(m.c, m.ctx, nil, "/d/f", nil, "/g", 0); e != 0 {
		t.Fatal(e)
	}
	var before, after linux.Stat
	f.StatFile(m.c, &before)
	f.Put()
	m.unmount()
	m.mount()
	f = m.open("/g", linux.O_RDONLY)
	f.StatFile(m.c, &after)
	before.Dev, after.Dev = 0, 0
	if before != after {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	if got := m.read(f, 100000, 0); !bytes.Equal(got, append(make([]byte, 100), text...)) {
		t.Error("the content differs")
	}
	f.Put()
	m.unmount()
}

// TestErrors: a write that fails later is told by fsync, once to each open file; the
// rest of the disk goes on.
func TestErrors(t *testing.T) {
	m := newMachine(t, 64<<20)
	a := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	b := m.open("/f", linux.O_RDWR)
	other := m.open("/other", linux.O_RDWR|linux.O_CREAT)
	m.write(a, make([]byte, 8192), 0)
	if e := fsync(m, a); e != 0 {
		t.Fatal(e)
	}
	m.d.failing(func(p []byte) bool { return p[0] == 7 && p[1] == 7 }) // the content, not the log
	m.write(a, bytes.Repeat([]byte{7}, 8192), 0)
	for i, want := range []linux.Errno{linux.EIO, 0, 0} {
		if e := fsync(m, a); e != want {
			t.Errorf("a, fsync %d: %v", i, e)
		}
	}
	for i, want := range []linux.Errno{linux.EIO, 0} {
		if e := fsync(m, b); e != want {
			t.Errorf("b, fsync %d: %v", i, e)
		}
	}
	m.write(other, []byte("fine"), 0)
	if e := fsync(m, other); e != 0 {
		t.Errorf("another file: %v", e)
	}
	m.d.failing(nil)
	m.write(a, bytes.Repeat([]byte{8}, 8192), 0)
	if e := fsync(m, a); e != 0 {
		t.Errorf("after the cause went: %v", e)
	}
	for _, f := range []*vfs.File{a, b, other} {
		f.Put()
	}
	m.unmount()
}

// TestSyncfs: syncfs tells once through each open file, of whatever kind, of what could
// not be written anywhere in the file system since it was opened, also if somebody else
// met the error; and of an error that nobody has heard of yet.
func TestSyncfs(t *testing.T) {
	m := newMachine(t, 64<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	dir := m.open("/", linux.O_RDONLY|linux.O_DIRECTORY)
	want := func(what string, file *vfs.File, wants ...linux.Errno) {
		t.Helper()
		for i, w := range wants {
			if e := file.SyncFS(); e != w {
				t.Errorf("%s, syncfs %d: %v, want %v", what, i, e, w)
			}
		}
	}
	want("new", f, 0, 0)
	want("new directory", dir, 0)
	m.d.failing(func(p []byte) bool { return p[0] == 7 && p[1] == 7 })
	m.write(f, bytes.Repeat([]byte{7}, 8192), 0)
	if e := fsync(m, f); e != linux.EIO {
		t.Errorf("fsync: %v", e)
	}
	late := m.open("/late", linux.O_RDWR|linux.O_CREAT)
	want("opened before syncfs told anybody", late, linux.EIO, 0)
	want("fsync has told of its file only", f, linux.EIO, 0)
	want("a directory", dir, linux.EIO, 0)
	after := m.open("/", linux.O_RDONLY|linux.O_DIRECTORY)
	want("opened when all knew", after, 0)
	m.write(f, bytes.Repeat([]byte{7}, 4096), 0)
	want("met by syncfs itself", dir, linux.EIO, 0)
	want("and heard by the others", after, linux.EIO, 0)
	m.d.failing(nil)
	m.write(f, bytes.Repeat([]byte{8}, 8192), 0)
	want("after the cause went", after, 0)
	for _, x := range []*vfs.File{f, dir, late, after} {
		x.Put()
	}
	m.unmount()
}

// TestSyncfsBackground: changes that a commit in the background loses are told of by
// syncfs, though the file system is read-only then.
func TestSyncfsBackground(t *testing.T) {
	m := newMachine(t, 64<<20)
	dir := m.open("/", linux.O_RDONLY|linux.O_DIRECTORY)
	if e := vfs.MkdirAt(m.c, m.ctx, nil, "/d", 0o755); e != 0 {
		t.Fatal(e)
	}
	m.d.failing(func([]byte) bool { return true })
	m.fs.errno(m.fs.ext.Sync()) // as the committer does
	m.d.failing(nil)
	for i, w := range []linux.Errno{linux.EIO, 0} {
		if e := dir.SyncFS(); e != w {
			t.Errorf("syncfs %d: %v, want %v", i, e, w)
		}
	}
	dir.Put()
	m.end()
}

// TestFsyncAborted: after an error in the log every fsync says EROFS, of whatever file, and
// with nothing to write. The error in data that it met is told with that.
func TestFsyncAborted(t *testing.T) {
	m := newMachine(t, 64<<20)
	clean, dirty := m.open("/clean", linux.O_RDWR|linux.O_CREAT), m.open("/dirty", linux.O_RDWR|linux.O_CREAT)
	dir := m.open("/", linux.O_RDONLY|linux.O_DIRECTORY)
	m.fs.sync()
	m.write(dirty, []byte("x"), 0)
	if e := vfs.MkdirAt(m.c, m.ctx, nil, "/d", 0o755); e != 0 {
		t.Fatal(e)
	}
	m.d.failing(func([]byte) bool { return true })
	m.fs.errno(m.fs.ext.Sync())
	m.d.failing(nil)
	for name, f := range map[string]*vfs.File{"clean": clean, "dirty": dirty, "directory": dir} {
		for i := range 3 {
			if e := fsync(m, f); e != linux.EROFS {
				t.Errorf("%s, fsync %d: %v", name, i, e)
			}
		}
		f.Put()
	}
	m.end()
}

// TestBroken: when the log cannot be written the file system is read-only, and says so.
func TestBroken(t *testing.T) {
	m := newMachine(t, 64<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	m.write(f, []byte("x"), 0)
	m.d.failing(func([]byte) bool { return true })
	if e := fsync(m, f); e != linux.EIO {
		t.Errorf("fsync: %v", e)
	}
	m.d.failing(nil)
	if _, e := f.Ops.Write(m.c, f, uio.Bytes([]byte("y")), 0); e == 0 && m.fs.ext.ReadOnly() {
		t.Error("a write to a broken file system")
	}
	if m.fs.ext.ReadOnly() {
		if _, e := vfs.Open(m.c, m.ctx, nil, "/new", linux.O_CREAT|linux.O_RDWR, 0o644); e != linux.EROFS {
			t.Errorf("create: %v", e)
		}
	}
	f.Put()
	m.end()
}

// TestFull: ENOSPC comes from write, before anything is lost, and goes with a file.
func TestFull(t *testing.T) {
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	p := bytes.Repeat([]byte{1}, 1<<20)
	off := int64(0)
	for {
		n, e := f.Ops.Write(m.c, f, uio.Bytes(p), off)
		off += int64(n)
		if e != 0 || n < len(p) {
			break
		}
	}
	if e := fsync(m, f); e != 0 {
		t.Errorf("fsync of what was taken: %v", e)
	}
	if f.Path.Inode().Size() != off || off < 8<<20 {
		t.Errorf("%d bytes of %d", f.Path.Inode().Size(), off)
	}
	if n, e := f.Ops.Write(m.c, f, uio.Bytes(p), off); e != linux.ENOSPC {
		t.Errorf("%d, %v", n, e)
	}
	f.Put()
	if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/f"); e != 0 {
		t.Fatal(e)
	}
	f = m.open("/g", linux.O_RDWR|linux.O_CREAT)
	m.write(f, p, 0)
	f.Put()
	m.unmount()
}

// TestMany: names of files that nobody uses leave the tree, and are found again; a
// file that is open stays the one it is.
func TestMany(t *testing.T) {
	m := newMachine(t, 64<<20)
	const n = 2000
	name := func(i int) string { return fmt.Sprintf("/f%d", i) }
	open := m.open(name(7), linux.O_RDWR|linux.O_CREAT)
	m.write(open, []byte("open"), 0)
	for i := range n {
		f := m.open(name(i), linux.O_RDWR|linux.O_CREAT)
		if i != 7 {
			m.write(f, []byte(name(i)), 0)
		}
		f.Put()
	}
	if e := m.fs.sync(); e != 0 {
		t.Fatal(e)
	}
	gone := 0
	for range 2 {
		gone += m.fs.Shrink(n, func(i *vfs.Inode) bool { i.Node.(*file).pages.Clean(0, ^uint64(0)); return true })
	}
	if gone < n-10 {
		t.Errorf("%d of %d names went", gone, n)
	}
	m.collect(n / 2)
	again := m.open(name(7), linux.O_RDONLY)
	if again.Path.Inode() != open.Path.Inode() {
		t.Error("an open file has another inode under its name")
	}
	again.Put()
	open.Put()
	for i := range n {
		f := m.open(name(i), linux.O_RDONLY)
		if got := string(m.read(f, 100, 0)); got != name(i) && i != 7 {
			t.Fatalf("%s holds %q", name(i), got)
		}
		f.Put()
	}
	m.unmount()
}

// TestTogether has files made, read, renamed and removed while names leave the tree
// and everything is synced.
func TestTogether(t *testing.T) {
	m := newMachine(t, 64<<20)
	var work, aside sync.WaitGroup
	var stop atomic.Bool
	for w := range 3 {
		work.Go(func() {
			c := caller.NewKernelCtx()
			for i := range 400 {
				name := fmt.Sprintf("/n%d", (i*7+w)%50)
				switch i % 5 {
				case 0, 1:
					if f, e := vfs.Open(c, m.ctx, nil, name, linux.O_RDWR|linux.O_CREAT, 0o644); e == 0 {
						f.Ops.Write(c, f, uio.Bytes([]byte(name)), 0)
						f.Put()
					} else {
						t.Errorf("open %s: %v", name, e)
					}
				case 2:
					if f, e := vfs.Open(c, m.ctx, nil, name, linux.O_RDONLY, 0); e == 0 {
						var p [100]byte
						f.Ops.Read(c, f, uio.Bytes(p[:]), 0)
						f.Put()
					}
				case 3:
					vfs.RenameAt(c, m.ctx, nil, name, nil, fmt.Sprintf("/n%d", (i*3+w)%50), 0)
				case 4:
					vfs.UnlinkAt(c, m.ctx, nil, name)
				}
			}
		})
	}
	aside.Go(func() {
		for !stop.Load() {
			m.fs.Shrink(100, func(i *vfs.Inode) bool { return true })
			m.fs.sync()
			runtime.GC()
		}
	})
	work.Wait()
	stop.Store(true)
	aside.Wait()
	m.unmount()
}
