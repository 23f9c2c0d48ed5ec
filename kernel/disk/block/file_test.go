package block

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/disk/blockdev"
	"hardtack/kernel/fs/vfs"
)

// openFile opens a part as programs do, except for its name.
func openFile(t testing.TB, p *Part, flags uint32) *vfs.File {
	p.Dev = linux.Makedev(7, uint32(p.Number))
	devices.mu.Lock()
	if devices.byNumber == nil {
		devices.byNumber = map[uint64]*Part{}
	}
	devices.byNumber[p.Dev] = p
	devices.mu.Unlock()
	ops, e := Open(nil, &vfs.Inode{Rdev: p.Dev}, flags)
	if e != 0 {
		t.Fatal(e)
	}
	return vfs.NewFile(ops, flags)
}

func pwrite(f *vfs.File, off int64, b []byte) (int, linux.Errno) {
	return f.Ops.Write(caller.NewKernelCtx(), f, uio.Bytes(b), off)
}

func pread(f *vfs.File, off int64, n int) ([]byte, linux.Errno) {
	b := make([]byte, n)
	n, e := f.Ops.Read(caller.NewKernelCtx(), f, uio.Bytes(b), off)
	return b[:n], e
}

func fsync(f *vfs.File) linux.Errno { return f.Ops.(vfs.Syncer).Sync(nil, f, false) }

// Two files of one disk, one direct, one through the cache, against a plain
// byte slice; after fsync the disk agrees, too.
func TestFile(t *testing.T) {
	oldDirty, oldShare := dirtyPages, cacheShare
	dirtyPages, cacheShare = 64, 1<<20 // 256 pages: with eviction
	defer func() { dirtyPages, cacheShare = oldDirty, oldShare }()
	rapid.Check(t, func(rt *rapid.T) {
		dev, d := newFake(t, func(l *blockdev.Limits) { l.Sectors = 4096*2 + 3 })
		size := int64(dev.limits.Sectors << 9)
		p := &Part{Disk: d, Name: "fake1", Number: 1, Start: 3, Sectors: dev.limits.Sectors - 3} // not at a page
		d.setParts([]*Part{d.Whole(), p})
		size -= 3 << 9
		cached, direct := openFile(t, p, linux.O_RDWR), openFile(t, p, linux.O_RDWR|linux.O_DIRECT)
		want := make([]byte, size)
		for range rapid.IntRange(1, 40).Draw(rt, "operations") {
			off := rapid.Int64Range(0, size-1).Draw(rt, "off")
			n := rapid.SampledFrom([]int{1, 100, 512, 4096, 5000, 65536, 300000}).Draw(rt, "bytes")
			f := cached
			if rapid.Bool().Draw(rt, "direct") {
				f = direct
				off &^= 511
				n = (n + 511) &^ 511
			}
			room := int(min(int64(n), size-off))
			switch rapid.IntRange(0, 3).Draw(rt, "operation") {
			case 0, 1:
				b := random(n, rapid.Uint64().Draw(rt, "seed"))
				k, e := pwrite(f, off, b)
				if e != 0 || k != room {
					rt.Fatalf("write of %d bytes at %d: %d, %v", n, off, k, e)
				}
				copy(want[off:], b)
			case 2:
				b, e := pread(f, off, n)
				if e != 0 || len(b) != room || !bytes.Equal(b, want[off:off+int64(room)]) {
					rt.Fatalf("read of %d bytes at %d: %d, %v; equal %v", n, off, len(b), e, bytes.Equal(b, want[off:off+int64(len(b))]))
				}
			case 3:
				if e := fsync(f); e != 0 {
					rt.Fatal(e)
				}
				if !bytes.Equal(dev.stable[3<<9:], want) {
					rt.Fatal("after fsync the disk differs")
				}
			}
		}
		direct.Put()
		cached.Put() // the last close writes back
		if !bytes.Equal(dev.data[3<<9:], want) {
			rt.Fatal("after close the disk differs")
		}
	})
}

func TestFileBounds(t *testing.T) {
	dev, d := newFake(t, nil)
	f := openFile(t, d.Whole(), linux.O_RDWR)
	size := int64(len(dev.data))
	if n, e := pwrite(f, size, []byte{1}); n != 0 || e != linux.ENOSPC {
		t.Errorf("write at the end: %d, %v", n, e)
	}
	if n, e := pwrite(f, size-2, []byte{1, 2, 3}); n != 2 || e != 0 {
		t.Errorf("write over the end: %d, %v", n, e)
	}
	if b, e := pread(f, size, 10); len(b) != 0 || e != 0 {
		t.Errorf("read at the end: %d, %v", len(b), e)
	}
	s := f.Ops.(vfs.Seeker)
	if at, e := s.Seek(nil, f, 0, linux.SEEK_END); at != size || e != 0 {
		t.Errorf("the end is %d, %v", at, e)
	}
	if _, e := s.Seek(nil, f, size+1, linux.SEEK_SET); e != linux.EINVAL {
		t.Errorf("seek behind the end: %v", e)
	}
	direct := openFile(t, d.Whole(), linux.O_RDWR|linux.O_DIRECT)
	for _, x := range [][2]int64{{1, 512}, {0, 100}, {512, 1000}} {
		if _, e := pread(direct, x[0], int(x[1])); e != linux.EINVAL {
			t.Errorf("direct read of %d bytes at %d: %v", x[1], x[0], e)
		}
	}
	if _, e := Open(nil, &vfs.Inode{Rdev: linux.Makedev(7, 99)}, 0); e != linux.ENXIO {
		t.Errorf("no such device: %v", e)
	}
	_, ro := newFake(t, func(l *blockdev.Limits) { l.ReadOnly = true })
	g := openFile(t, ro.Whole(), linux.O_RDWR)
	if _, e := pwrite(g, 0, []byte{1}); e != linux.EPERM {
		t.Errorf("write to a read-only disk: %v", e)
	}
	// Zeroes, with and without the device's help.
	for _, help := range []uint32{1 << 10, 0} {
		dev, d := newFake(t, func(l *blockdev.Limits) { l.MaxWriteZeroes = help })
		f := openFile(t, d.Whole(), linux.O_RDWR)
		pwrite(f, 0, bytes.Repeat([]byte{7}, 1<<20))
		if e := f.Ops.(vfs.Allocator).Allocate(nil, f, linux.FALLOC_FL_ZERO_RANGE, 512, 1<<19); e != 0 {
			t.Error(e)
		}
		fsync(f)
		if dev.data[511] != 7 || dev.data[512+1<<19] != 7 || !bytes.Equal(dev.data[512:512+1<<19], make([]byte, 1<<19)) {
			t.Error("zeroes in the wrong place")
		}
	}
}

// A write that fails later is told by fsync, once to each open file.
func TestLateError(t *testing.T) {
	oldLog := Log
	Log = t.Logf
	defer func() { Log = oldLog }()
	dev, d := newFake(t, nil)
	a, b := openFile(t, d.Whole(), linux.O_RDWR), openFile(t, d.Whole(), linux.O_RDWR)
	dev.fail = func(c *blockdev.Command) linux.Errno {
		if c.Op == blockdev.Write && c.Sector < 16 && c.Sector+uint64(c.Sectors) > 8 {
			return linux.EIO
		}
		return 0
	}
	for off := int64(0); off < 1<<16; off += 4096 {
		if _, e := pwrite(a, off, random(4096, uint64(off))); e != 0 {
			t.Fatal(e)
		}
	}
	if e := fsync(a); e != linux.EIO {
		t.Errorf("fsync: %v", e)
	}
	if e := fsync(b); e != linux.EIO {
		t.Errorf("fsync of the other file: %v", e)
	}
	if e := fsync(a); e != 0 {
		t.Errorf("the second fsync: %v", e)
	}
	for off := int64(0); off < 1<<16; off += 4096 {
		got := dev.data[off : off+4096]
		if off != 4096 && !bytes.Equal(got, random(4096, uint64(off))) {
			t.Errorf("the page at %d is lost, too", off)
		}
	}
	// A read error is EIO, and passes with its cause.
	dev.fail = func(c *blockdev.Command) linux.Errno { return linux.EIO }
	if _, e := pread(a, 1<<20, 100); e != linux.EIO {
		t.Errorf("read: %v", e)
	}
	dev.fail = nil
	if got, e := pread(a, 1<<20, 100); e != 0 || len(got) != 100 {
		t.Errorf("read: %d bytes, %v", len(got), e)
	}
}

// Writers, readers and syncs at once on the same pages: each 512 bytes are one
// writer's.
func TestFileConcurrent(t *testing.T) {
	oldDirty, oldShare := dirtyPages, cacheShare
	dirtyPages, cacheShare = 64, 1<<20
	defer func() { dirtyPages, cacheShare = oldDirty, oldShare }()
	_, d := newFake(t, nil)
	f := openFile(t, d.Whole(), linux.O_RDWR)
	direct := openFile(t, d.Whole(), linux.O_RDWR|linux.O_DIRECT)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for i := range 300 {
				sector := int64(r.IntN(4000))
				switch i % 4 {
				case 0, 1:
					b := bytes.Repeat([]byte{byte(g + 1)}, 512*(1+r.IntN(40)))
					if _, e := pwrite(f, sector<<9, b); e != 0 {
						t.Error(e)
					}
				case 2:
					b, e := pread(f, sector<<9, 512*20)
					if e != 0 {
						t.Error(e)
					}
					for len(b) >= 512 {
						if !bytes.Equal(b[:512], bytes.Repeat(b[:1], 512)) {
							t.Error("a sector of several writers")
							return
						}
						b = b[512:]
					}
				case 3:
					if i%8 == 3 {
						if e := fsync(f); e != 0 {
							t.Error(e)
						}
					} else if _, e := pread(direct, sector<<9, 4096); e != 0 {
						t.Error(e)
					}
				}
			}
		})
	}
	wg.Wait()
	direct.Put()
	f.Put()
}

func TestClaims(t *testing.T) {
	_, d := newFake(t, nil)
	whole := d.Whole()
	one, two := &Part{Disk: d, Number: 1}, &Part{Disk: d, Number: 2}
	if !one.Claim() || !two.Claim() || one.Claim() || whole.Claim() {
		t.Error("claims of parts")
	}
	one.Release()
	two.Release()
	if !whole.Claim() || one.Claim() {
		t.Error("claim of the disk")
	}
	whole.Release()
	if !one.Claim() {
		t.Error("not released")
	}
	one.Release()
}

// Reading in order: what is read ahead is right, is not read twice, and a bad
// page is an error for whoever asks for it only.
func TestReadAhead(t *testing.T) {
	dev, d := newFake(t, func(l *blockdev.Limits) { l.Sectors = 8192 + 5 })
	want := random(len(dev.data), 9)
	copy(dev.data, want)
	const bad = 3000 // sector
	dev.fail = func(c *blockdev.Command) linux.Errno {
		if c.Sector <= bad && bad < c.Sector+uint64(c.Sectors) {
			return linux.EIO
		}
		return 0
	}
	f := openFile(t, d.Whole(), linux.O_RDWR)
	for off := int64(0); off < int64(len(want)); {
		b, e := pread(f, off, 5000)
		onBad := off>>12 == bad>>3
		switch {
		case e == linux.EIO && onBad:
			off = (off>>12 + 1) << 12
			continue
		case e != 0 || len(b) == 0:
			t.Fatalf("at %d: %d bytes, %v", off, len(b), e)
		case !bytes.Equal(b, want[off:off+int64(len(b))]):
			t.Fatalf("at %d: %d bytes differ", off, len(b))
		case onBad:
			t.Fatalf("the bad page was read")
		}
		off += int64(len(b))
	}
	// Each page came once; the bad one and those read with it a few times more.
	if n := d.Whole().Stats().Reads.Sectors; n > uint64(len(want)>>9)*5/4 {
		t.Errorf("%d sectors were read of %d", n, len(want)>>9)
	}
	f.Put()
}
