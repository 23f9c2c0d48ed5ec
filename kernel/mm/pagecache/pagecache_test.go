package pagecache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

// disk is a Store in memory. It checks what it is asked for.
type disk struct {
	t    testing.TB
	size atomic.Int64
	mu   sync.Mutex
	data []byte // what is on it; guarded by mu

	reserved atomic.Int64
	fail     atomic.Bool // writes fail
	during   func()      // called while pages are written, or nil
	reads    atomic.Int64
	f        File
	inode    sync.Mutex // as a file system has it
}

const diskSize = 1 << 20

func newDisk(t testing.TB, blockSize int) *disk {
	mem.InitHost(8192)
	d := &disk{t: t, data: make([]byte, diskSize+mem.PageSize)}
	d.f.Init(d, &d.size, blockSize, d)
	return d
}

func (d *disk) ReadPages(pages [][]byte, off int64) linux.Errno {
	d.reads.Add(int64(len(pages)))
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range pages {
		copy(p, d.data[off:])
		off += int64(len(p))
	}
	return 0
}

func (d *disk) WritePages(pages [][]byte, off, size, reserved int64) linux.Errno {
	d.Unreserve(reserved)
	if d.during != nil {
		d.during()
	}
	if d.fail.Load() {
		return linux.EIO
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range pages {
		if int64(len(p))%d.f.blockSize != 0 || len(p) == 0 || off >= size {
			d.t.Errorf("%d bytes at %d of %d", len(p), off, size)
		}
		copy(d.data[off:], p)
		off += int64(len(p))
	}
	for _, b := range d.data[min(size, diskSize):] {
		if b != 0 {
			d.t.Error("a byte behind the end was written")
			break
		}
	}
	return 0
}

func (d *disk) Reserve(n int64) linux.Errno         { d.reserved.Add(n); return 0 }
func (d *disk) MakeRoom() bool                      { return false }
func (d *disk) Unreserve(n int64)                   { d.reserved.Add(-n) }
func (d *disk) Stored() linux.Errno                 { return 0 }
func (d *disk) Missing(uint64) (int64, linux.Errno) { return 0, linux.ENOSPC }
func (d *disk) Punch(_, _ uint64) linux.Errno       { return linux.EOPNOTSUPP }
func (d *disk) write(p []byte, off int64) {
	d.inode.Lock()
	d.f.Write(nil, uio.Bytes(p), off)
	d.inode.Unlock()
}
func (d *disk) cut(size int64) { d.inode.Lock(); d.cutLocked(size); d.inode.Unlock() }
func (d *disk) read(p []byte, off int64) []byte {
	var r Reader
	n, e := d.f.Read(nil, uio.Bytes(p), &r, off, int(max(0, min(int64(len(p)), d.size.Load()-off))))
	if e != 0 {
		d.t.Errorf("read at %d: %v", off, e)
	}
	return p[:n]
}

func (d *disk) cutLocked(size int64) {
	d.f.Cut(size, func() linux.Errno {
		d.mu.Lock()
		clear(d.data[size:])
		d.mu.Unlock()
		return 0
	})
}

func TestMain(m *testing.M) {
	mem.Reclaim.Set(Reclaim)
	os.Exit(m.Run())
}

// TestModel compares random operations with plain memory.
func TestModel(t *testing.T) {
	for _, bs := range []int{1024, 4096} {
		t.Run(fmt.Sprint(bs), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { model(rt, newDisk(t, bs)) })
		})
	}
}

func model(t *rapid.T, d *disk) {
	want := make([]byte, 0, diskSize)
	place := rapid.OneOf(rapid.Int64Range(0, 20000), rapid.Int64Range(0, diskSize-70000))
	length := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, 20000), rapid.Just(4096))
	grow := func(n int64) {
		for int64(len(want)) < n {
			want = append(want, make([]byte, n-int64(len(want)))...)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			off, n := place.Draw(t, "off"), length.Draw(t, "n")
			p := bytes.Repeat([]byte{byte(rapid.IntRange(1, 255).Draw(t, "byte"))}, n)
			d.write(p, off)
			grow(off + int64(n))
			copy(want[off:], p)
		},
		"read": func(t *rapid.T) {
			off, n := place.Draw(t, "off"), length.Draw(t, "n")
			got := d.read(make([]byte, n), off)
			var w []byte
			if off < int64(len(want)) {
				w = want[off:min(off+int64(n), int64(len(want)))]
			}
			if !bytes.Equal(got, w) {
				t.Fatalf("%d bytes at %d differ", n, off)
			}
		},
		"cut": func(t *rapid.T) {
			n := place.Draw(t, "size")
			grow(n)
			clear(want[n:])
			want = want[:n]
			d.cut(n)
		},
		"store": func(t *rapid.T) { // a mapping
			if len(want) == 0 {
				return
			}
			at := rapid.IntRange(0, len(want)-1).Draw(t, "at")
			fr, e := d.f.Page(uint64(at)>>mem.PageShift, true)
			if e != 0 {
				t.Fatal(e)
			}
			fr.Bytes()[at%mem.PageSize] = 99
			// And behind the end, where nobody may see it.
			if end := len(want); end>>mem.PageShift == at>>mem.PageShift && end%mem.PageSize != 0 {
				fr.Bytes()[mem.PageSize-1] = 98
				if end%mem.PageSize == 0 {
					want[end-1] = 98
				}
			}
			fr.Put()
			want[at] = 99
		},
		"write back": func(t *rapid.T) {
			first := rapid.Uint64Range(0, 20).Draw(t, "first")
			if e := d.f.WriteBack(first, ^uint64(0)); e != 0 {
				t.Fatal(e)
			}
		},
		"some":  func(t *rapid.T) { d.f.writeSome(rapid.IntRange(1, 10).Draw(t, "n")) },
		"evict": func(t *rapid.T) { Reclaim(rapid.IntRange(1, 100).Draw(t, "n")) },
		"clean": func(t *rapid.T) { d.f.Clean(0, rapid.Uint64Range(0, 100).Draw(t, "last")) },
		"read ahead": func(t *rapid.T) {
			if n := d.f.limit(); n > 0 {
				d.f.Prefetch(rapid.Uint64Range(0, n-1).Draw(t, "first"), n-1)
			}
		},
		"past": func(t *rapid.T) { // a direct write of a page
			at := rapid.Int64Range(0, 50).Draw(t, "page") * mem.PageSize
			if at+mem.PageSize > int64(len(want)) {
				return
			}
			p := bytes.Repeat([]byte{77}, mem.PageSize)
			d.inode.Lock()
			d.f.Bypass(uint64(at)>>mem.PageShift, uint64(at)>>mem.PageShift, func() linux.Errno {
				return d.WritePages([][]byte{p}, at, d.size.Load(), 0)
			})
			d.inode.Unlock()
			copy(want[at:], p)
		},
		"": func(t *rapid.T) {
			if d.size.Load() != int64(len(want)) {
				t.Fatalf("size %d, want %d", d.size.Load(), len(want))
			}
		},
	})
	if e := d.f.WriteBack(0, ^uint64(0)); e != 0 {
		t.Fatal(e)
	}
	if !bytes.Equal(d.data[:len(want)], want) {
		t.Fatal("the disk differs")
	}
	if d.f.dirty.Load() != 0 || d.f.Reserved() != 0 || d.reserved.Load() != 0 {
		t.Fatalf("%d dirty, %d reserved, %d", d.f.dirty.Load(), d.f.Reserved(), d.reserved.Load())
	}
	d.f.Drop()
	if d.f.Pages() != 0 {
		t.Fatalf("%d pages are left", d.f.Pages())
	}
}

// TestRaces has writers, readers, cutters, those who write back and those who evict
// meet. Each page holds one byte value, written under the inode's lock; readers see
// whole pages of it, since the writers here write whole pages.
func TestRaces(t *testing.T) {
	d := newDisk(t, 4096)
	const pages = 64
	var stop atomic.Bool
	var all, aside sync.WaitGroup
	for w := range 2 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			p := make([]byte, mem.PageSize)
			for range 3000 {
				n := r.Int64N(pages)
				for i := range p {
					p[i] = byte(n + 1)
				}
				d.write(p, n*mem.PageSize)
				if r.IntN(50) == 0 {
					d.cut(r.Int64N(pages) * mem.PageSize)
				}
			}
		})
	}
	beside := func(f func(r *rand.Rand)) {
		aside.Go(func() {
			r := rand.New(rand.NewPCG(2, 3))
			for !stop.Load() {
				f(r)
			}
		})
	}
	beside(func(r *rand.Rand) {
		n := r.Int64N(pages)
		for _, b := range d.read(make([]byte, mem.PageSize), n*mem.PageSize) {
			if b != 0 && b != byte(n+1) {
				t.Errorf("page %d holds %d", n, b-1)
				return
			}
		}
	})
	beside(func(*rand.Rand) { d.f.WriteBack(0, ^uint64(0)) })
	beside(func(*rand.Rand) { Reclaim(10) })
	beside(func(r *rand.Rand) {
		if fr, e := d.f.Page(r.Uint64N(pages), r.IntN(2) == 0); e == 0 {
			fr.Put()
		}
	})
	all.Wait()
	stop.Store(true)
	aside.Wait()
	d.f.WriteBack(0, ^uint64(0))
	for n := range d.size.Load() / mem.PageSize {
		b := d.data[n*mem.PageSize]
		for _, c := range d.data[n*mem.PageSize : (n+1)*mem.PageSize] {
			if c != b || c != 0 && c != byte(n+1) {
				t.Fatalf("page %d on disk holds %d and %d", n, b, c)
			}
		}
	}
	d.f.Drop()
	if n := d.reserved.Load(); n != 0 {
		t.Errorf("%d blocks are still reserved", n)
	}
}

// TestErrors: each open file hears of a failed write once, also if it is opened
// before anybody heard.
func TestErrors(t *testing.T) {
	d := newDisk(t, 4096)
	var a, b, c atomic.Uint32
	s := d.f.Errors()
	a.Store(s.Sample())
	d.fail.Store(true)
	d.write([]byte("x"), 0)
	if e := d.f.WriteBack(0, 0); e != linux.EIO {
		t.Fatal(e)
	}
	b.Store(s.Sample()) // opened later, and nobody knows yet
	for i, want := range []linux.Errno{linux.EIO, 0} {
		if e := s.Check(&a); e != want {
			t.Errorf("a, %d: %v", i, e)
		}
		if e := s.Check(&b); e != want {
			t.Errorf("b, %d: %v", i, e)
		}
	}
	c.Store(s.Sample())
	if e := s.Check(&c); e != 0 {
		t.Errorf("c, opened after all knew: %v", e)
	}
	d.write([]byte("x"), 0)
	d.f.WriteBack(0, 0)
	for i, x := range []*atomic.Uint32{&a, &b, &c} {
		if e := s.Check(x); e != linux.EIO {
			t.Errorf("the second error, %d: %v", i, e)
		}
	}
	if d.f.dirty.Load() != 0 {
		t.Error("pages that cannot be written stay dirty")
	}
}

// TestCutDirty: a file whose dirty pages were cut is not left to those who write.
func TestCutDirty(t *testing.T) {
	d := newDisk(t, 4096)
	d.write(make([]byte, 100000), 0)
	d.cut(0)
	d.f.since.Store(-1 << 62) // long ago
	writeOld(0)
	if d.f.listed || d.f.dirty.Load() != 0 {
		t.Errorf("listed %v, %d dirty", d.f.listed, d.f.dirty.Load())
	}
}

// TestSparse finds its pages again wherever they are, and gives the tree back.
func TestSparse(t *testing.T) {
	d := newDisk(t, 4096)
	places := []uint64{0, 31, 32, 1000, 1 << 11, 1<<17 + 5, 1 << 23, 1<<32 - 3, 1 << 40}
	for i, n := range places {
		d.f.mu.Lock()
		l := d.f.grow(n)
		d.f.mu.Unlock()
		l.dirty.Store(uint32(i + 1))
	}
	for i, n := range places {
		if l := d.f.leaf(n); l == nil || l.base != n&^(leafPages-1) || i > 1 && l.dirty.Load() != uint32(i+1) {
			t.Errorf("page %d: %v", n, l)
		}
		if n > 0 && d.f.leaf(n+2000000) != nil {
			t.Errorf("page %d is there", n+2000000)
		}
	}
	var found []uint64
	d.f.eachLeaf(1, 1<<50, func(l *leaf) { found = append(found, l.base) })
	if len(found) != len(places)-1 { // 0 and 31 share one
		t.Errorf("leaves %v", found)
	}
	d.f.eachLeaf(0, 1<<50, d.f.tidy)
	if d.f.root.Load() != nil || d.f.first.Load() != nil {
		t.Error("the tree is still there")
	}
}

// BenchmarkRead is a cached read of a page.
func BenchmarkRead(b *testing.B) {
	d := newDisk(b, 4096)
	p := make([]byte, mem.PageSize)
	d.write(p, 0)
	var v uio.Vec
	var r Reader
	b.ReportAllocs()
	for b.Loop() {
		v.InitBytes(p)
		d.f.Read(nil, &v, &r, 0, mem.PageSize)
	}
}

// BenchmarkWrite is a write to a page that is dirty.
func BenchmarkWrite(b *testing.B) {
	d := newDisk(b, 4096)
	p := make([]byte, mem.PageSize)
	var v uio.Vec
	b.ReportAllocs()
	for b.Loop() {
		v.InitBytes(p)
		d.f.Write(nil, &v, 0)
	}
}

// A page on its way to the disk is not dirty any more, and not there: whoever reads past the cache has
// to wait for it.
func TestUnwritten(t *testing.T) {
	d := newDisk(t, 4096)
	if d.f.Unwritten() {
		t.Error("an empty file has something to write")
	}
	d.write([]byte("x"), 0)
	if !d.f.Unwritten() {
		t.Error("a dirty page is written already")
	}
	under := false
	d.during = func() { under = d.f.dirty.Load() == 0 && d.f.Unwritten() }
	if e := d.f.WriteBack(0, 0); e != 0 || !under {
		t.Errorf("%v; a page that is being written was unwritten: %v", e, under)
	}
	if d.f.Unwritten() {
		t.Error("a page is still to be written")
	}
}
