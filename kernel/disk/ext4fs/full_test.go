package ext4fs

import (
	"bytes"
	"fmt"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// TestFullReplace: on a full disk a file can be cut and written again, as large as it
// was, whatever was tried before; and what is deleted is there for others at once.
func TestFullReplace(t *testing.T) {
	m := newMachine(t, 64<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	text := bytes.Repeat([]byte("text"), 16<<10)
	m.write(f, text, 0)
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	big := m.open("/big", linux.O_RDWR|linux.O_CREAT)
	off := int64(0)
	for mib := make([]byte, 1<<20); ; {
		n, e := big.Ops.Write(m.c, big, uio.Bytes(mib), off)
		off += int64(n)
		if e == linux.ENOSPC || n == 0 {
			break
		}
		if e != 0 {
			t.Fatal(e)
		}
	}
	if e := fsync(m, big); e != 0 {
		t.Fatal(e)
	}
	if e := f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, 0, 64<<20); e != linux.ENOSPC {
		t.Errorf("fallocate: %v", e)
	}
	for range 3 {
		f.Put()
		f = m.open("/f", linux.O_RDWR|linux.O_TRUNC)
		m.write(f, text, 0)
		if e := fsync(m, f); e != 0 {
			t.Fatal(e)
		}
	}
	big.Put()
	if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/big"); e != 0 {
		t.Fatal(e)
	}
	g := m.open("/g", linux.O_RDWR|linux.O_CREAT)
	m.write(g, make([]byte, 20<<20), 0)
	g.Put()
	f.Put()
	m.unmount()
}

// fill takes all room that buffered writes may take but for about some pages.
func (m *machine) fill(pages int) {
	m.t.Helper()
	room := m.open("/room", linux.O_RDWR|linux.O_CREAT)
	defer room.Put()
	m.write(room, make([]byte, pages*4096), 0)
	if e := fsync(m, room); e != 0 {
		m.t.Fatal(e)
	}
	f := m.open("/big", linux.O_RDWR|linux.O_CREAT)
	defer f.Put()
	off := int64(0)
	for _, size := range []int{1 << 20, 4096} {
		for p := make([]byte, size); ; {
			n, e := f.Ops.Write(m.c, f, uio.Bytes(p), off)
			off += int64(n)
			if e == linux.ENOSPC {
				break
			}
			if e != 0 {
				m.t.Fatal(e)
			}
		}
	}
	if e := fsync(m, f); e != 0 {
		m.t.Fatal(e)
	}
	if e := room.FTruncate(m.c, 0); e != 0 {
		m.t.Fatal(e)
	}
}

// TestFullDirect: a direct write on a full disk gives how much it has written, and what
// it has written is what it was given; of blocks of the device and of the file system.
func TestFullDirect(t *testing.T) {
	for _, off := range []int64{0, 512, 2048} {
		m := newMachine(t, 16<<20)
		f := m.open("/f", linux.O_RDWR|linux.O_CREAT|linux.O_DIRECT)
		m.fill(8)
		p := make([]byte, 64<<10)
		for i := range p {
			p[i] = byte(i >> 9)
		}
		n, e := f.Ops.Write(m.c, f, uio.Bytes(p), off)
		if e != 0 || n <= 0 || n > 8*4096 || n%512 != 0 {
			t.Errorf("at %d: %d bytes, %v", off, n, e)
		} else if got := m.read(f, n, off); !bytes.Equal(got, p[:n]) {
			t.Errorf("at %d: other bytes are there", off)
		}
		if n, e := f.Ops.Write(m.c, f, uio.Bytes(p), 1<<20+off); e != linux.ENOSPC {
			t.Errorf("at %d, then: %d, %v", off, n, e)
		}
		f.Put()
		m.unmount()
	}
}

// TestFullTaken: what a buffered write has taken is written, whatever fallocate and
// direct writes take afterwards.
func TestFullTaken(t *testing.T) {
	m := newMachine(t, 16<<20)
	m.fill(48)
	var files []*vfs.File
	for i := range 40 { // each needs a block, and some the extents' blocks
		f := m.open(fmt.Sprint("/f", i), linux.O_RDWR|linux.O_CREAT)
		m.write(f, page(byte(i)), int64(i)*8192)
		files = append(files, f)
	}
	g := m.open("/g", linux.O_RDWR|linux.O_CREAT|linux.O_DIRECT)
	for n := int64(1); ; n++ {
		e := g.Ops.(vfs.Allocator).Allocate(m.c, g, 0, 0, n*4096)
		if e == linux.ENOSPC {
			break
		}
		if e != 0 || n > 8192 {
			t.Fatalf("fallocate takes all: %v", e)
		}
	}
	for off := int64(80 << 20); ; off += 4096 {
		_, e := g.Ops.Write(m.c, g, uio.Bytes(page(1)), off)
		if e == linux.ENOSPC {
			break
		}
		if e != 0 || off > 100<<20 {
			t.Fatalf("direct writes take all: %v", e)
		}
	}
	for i, f := range files {
		if e := fsync(m, f); e != 0 {
			t.Errorf("file %d was taken and is lost: %v", i, e)
		}
		f.Put()
	}
	g.Put()
	m.unmount()
}

// TestFullPrepared: space that fallocate has set aside takes buffered, direct and mapped
// writes on a full disk, in whatever order they come.
func TestFullPrepared(t *testing.T) {
	const pages = 160
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	if e := f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, 0, 3*pages*4096); e != 0 {
		t.Fatal(e)
	}
	m.fill(0)
	direct := m.open("/f", linux.O_RDWR|linux.O_DIRECT)
	want := make([]byte, 3*pages*4096)
	file := f.Path.Inode().Node.(*file)
	for i := range pages {
		for kind := range 3 {
			n := (i*7%pages)*3 + kind
			p := page(byte(n + 1))
			copy(want[n*4096:], p)
			switch kind {
			case 0:
				m.write(f, p, int64(n)*4096)
			case 1:
				m.write(direct, p, int64(n)*4096)
			case 2:
				fr, e := file.pages.Page(uint64(n), true)
				if e != 0 {
					t.Fatalf("a store to page %d: %v", n, e)
				}
				copy(fr.Bytes(), p)
				fr.Put()
			}
		}
		if i%16 == 0 {
			if e := fsync(m, f); e != 0 {
				t.Fatal(e)
			}
		}
	}
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	direct.Put()
	f.Put()
	m.unmount()
	m.mount()
	f = m.open("/f", linux.O_RDONLY)
	if got := m.read(f, len(want), 0); !bytes.Equal(got, want) {
		t.Error("the content differs")
	}
	f.Put()
	m.unmount()
}

// TestFullNames: where a directory has room a name can be added, moved and replaced on a
// full disk; holes can be cut, ranges zeroed and content written over.
func TestFullNames(t *testing.T) {
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	m.write(f, bytes.Repeat([]byte{1}, 64*4096), 0)
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	m.fill(0)
	if e := m.fs.ext.Reserve(1); e != linux.ENOSPC {
		t.Fatalf("the disk has room: %v", e)
	}
	for i := range 10 {
		m.open(fmt.Sprint("/n", i), linux.O_RDWR|linux.O_CREAT).Put()
	}
	if e := vfs.RenameAt(m.c, m.ctx, nil, "/n1", nil, "/n2", 0); e != 0 {
		t.Errorf("rename: %v", e)
	}
	if e := vfs.LinkAt(m.c, m.ctx, nil, "/f", nil, "/g", 0); e != 0 {
		t.Errorf("link: %v", e)
	}
	want := bytes.Repeat([]byte{1}, 64*4096)
	a := f.Ops.(vfs.Allocator)
	if e := a.Allocate(m.c, f, linux.FALLOC_FL_ZERO_RANGE, 5000, 40000); e != 0 {
		t.Errorf("zero a range: %v", e)
	}
	clear(want[5000:45000])
	if e := a.Allocate(m.c, f, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, 100000, 10000); e != 0 {
		t.Errorf("punch a hole: %v", e)
	}
	clear(want[100000:110000])
	m.write(f, page(9), 8192)
	copy(want[8192:], page(9))
	m.write(f, page(8), 40*4096)
	copy(want[40*4096:], page(8))
	if e := fsync(m, f); e != 0 {
		t.Error(e)
	}
	if e := f.FTruncate(m.c, 60*4096+100); e != 0 {
		t.Errorf("truncate: %v", e)
	}
	f.Put()
	m.unmount()
	m.mount()
	f = m.open("/g", linux.O_RDONLY)
	if got := m.read(f, len(want), 0); !bytes.Equal(got, want[:60*4096+100]) {
		t.Error("the content differs")
	}
	f.Put()
	m.unmount()
}

// TestDirectReadError: a direct read does not give what the disk had before a buffered
// write that could not be written.
func TestDirectReadError(t *testing.T) {
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	m.write(f, page(1), 0)
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	direct := m.open("/f", linux.O_RDONLY|linux.O_DIRECT)
	m.d.failing(func(p []byte) bool { return p[0] == 7 && p[1] == 7 })
	m.write(f, page(7), 0)
	if n, e := direct.Ops.Read(m.c, direct, uio.Bytes(make([]byte, 4096)), 0); e != linux.EIO {
		t.Errorf("%d, %v", n, e)
	}
	m.d.failing(nil)
	if e := fsync(m, f); e != linux.EIO {
		t.Errorf("fsync: %v", e)
	}
	direct.Put()
	f.Put()
	m.unmount()
}

// TestSeekError: lseek neither tells of a write that failed nor takes it from fsync, which
// tells each open file once.
func TestSeekError(t *testing.T) {
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	m.write(f, page(1), 0)
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	g := m.open("/f", linux.O_RDWR)
	m.d.failing(func(p []byte) bool { return p[0] == 7 && p[1] == 7 })
	m.write(f, page(7), 0)
	for range 2 {
		if off, e := f.Ops.(vfs.Seeker).Seek(m.c, f, 0, linux.SEEK_DATA); off != 0 || e != 0 {
			t.Errorf("SEEK_DATA: %d, %v", off, e)
		}
	}
	m.d.failing(nil)
	for _, x := range []*vfs.File{f, g} {
		if e := fsync(m, x); e != linux.EIO {
			t.Errorf("fsync: %v", e)
		}
		if e := fsync(m, x); e != 0 {
			t.Errorf("fsync once more: %v", e)
		}
		x.Put()
	}
	m.unmount()
}

// TestCutRemoved: a file without a name that is cut goes when it is closed, with its
// inode and blocks.
func TestCutRemoved(t *testing.T) {
	m := newMachine(t, 16<<20)
	for i := range 3 {
		f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
		m.write(f, make([]byte, 100<<10), 0)
		if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/f"); e != 0 {
			t.Fatal(e)
		}
		if e := f.FTruncate(m.c, int64(i)*10000); e != 0 {
			t.Fatal(e)
		}
		f.Put()
	}
	m.unmount()
}

// TestFullFault: stores through a mapping get as many pages of a nearly full disk as
// write does, since what is dirty is written back before the last word.
func TestFullFault(t *testing.T) {
	took := map[string]int{}
	for _, kind := range []string{"write", "store", "direct", "allocate"} {
		m := newMachine(t, 32<<20)
		m.fill(3000)
		late := m.open("/late", linux.O_RDWR|linux.O_CREAT)
		for i := range 2600 { // each may need much of a tree, until it is written
			m.write(late, page(1), int64(i)*8192)
		}
		f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
		if e := f.FTruncate(m.c, 400*8192); e != 0 {
			t.Fatal(e)
		}
		direct := m.open("/f", linux.O_RDWR|linux.O_DIRECT)
		n := 0
		for e := linux.Errno(0); n < 400; n++ {
			switch kind {
			case "write":
				_, e = f.Ops.Write(m.c, f, uio.Bytes(page(2)), int64(n)*8192)
			case "direct":
				_, e = direct.Ops.Write(m.c, direct, uio.Bytes(page(2)), int64(n)*8192)
			case "allocate":
				e = f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, int64(n)*8192, 4096)
			case "store":
				var fr mem.Frame
				if fr, e = f.Path.Inode().Node.(*file).pages.Page(uint64(2*n), true); e == 0 {
					fr.Put()
				}
			}
			if e == linux.ENOSPC {
				break
			}
			if e != 0 {
				t.Fatal(kind, e)
			}
		}
		took[kind] = n
		if e := fsync(m, f); e != 0 {
			t.Errorf("%s: %v", kind, e)
		}
		for _, x := range []*vfs.File{direct, f, late} {
			x.Put()
		}
		m.unmount()
	}
	for kind, n := range took {
		if n < took["write"]-6 { // fallocate keeps a path's nodes
			t.Errorf("%s gets %d pages, write %d", kind, n, took["write"])
		}
	}
}

// TestFullAllocated: fallocate on a disk that gets full keeps what it has got, and the
// file is as long as that.
func TestFullAllocated(t *testing.T) {
	m := newMachine(t, 16<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	if e := f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, 0, 64<<20); e != linux.ENOSPC {
		t.Fatal(e)
	}
	var st linux.Stat
	f.StatFile(m.c, &st)
	if st.Size < 4<<20 || st.Size > 16<<20 || st.Blocks*512 < st.Size {
		t.Errorf("%d bytes, %d blocks", st.Size, st.Blocks)
	}
	f.Put()
	m.unmount()
}

// TestFullFreed: blocks that were freed and wait for a commit are there for every kind
// of write.
func TestFullFreed(t *testing.T) {
	for _, kind := range []string{"write", "store", "direct", "allocate"} {
		for _, how := range []string{"unlink", "truncate", "punch"} {
			m := newMachine(t, 16<<20)
			g := m.open("/g", linux.O_RDWR|linux.O_CREAT)
			m.write(g, make([]byte, 1<<20), 0)
			m.fill(0)
			switch how {
			case "unlink":
				if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/g"); e != 0 {
					t.Fatal(e)
				}
			case "truncate":
				if e := g.FTruncate(m.c, 0); e != 0 {
					t.Fatal(e)
				}
			case "punch":
				if e := g.Ops.(vfs.Allocator).Allocate(m.c, g, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, 0, 1<<20); e != 0 {
					t.Fatal(e)
				}
			}
			g.Put()
			f := m.open("/f", linux.O_RDWR|linux.O_CREAT|linux.O_DIRECT)
			if e := f.FTruncate(m.c, 200*4096); e != 0 {
				t.Fatal(e)
			}
			for n := range uint64(200) {
				var e linux.Errno
				switch kind {
				case "write", "direct":
					h := f
					if kind == "write" {
						h = m.open("/f", linux.O_RDWR)
					}
					_, e = h.Ops.Write(m.c, h, uio.Bytes(page(2)), int64(n)*4096)
					if h != f {
						h.Put()
					}
				case "allocate":
					e = f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, int64(n)*4096, 4096)
				case "store":
					var fr mem.Frame
					if fr, e = f.Path.Inode().Node.(*file).pages.Page(n, true); e == 0 {
						fr.Put()
					}
				}
				if e != 0 {
					t.Fatalf("%s after %s, page %d: %v", kind, how, n, e)
				}
			}
			if e := fsync(m, f); e != 0 {
				t.Error(e)
			}
			f.Put()
			m.unmount()
		}
	}
}
