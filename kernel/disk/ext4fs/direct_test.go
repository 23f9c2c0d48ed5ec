package ext4fs

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/fs/vfs"
)

// hooked is a disk that tells of each write of one block before it does it.
type hooked struct {
	*disk
	on atomic.Pointer[func(first byte)]
}

func (h *hooked) WriteAt(batch []ext4.Transfer, fua bool) error {
	if f := h.on.Load(); f != nil && len(batch) == 1 && len(batch[0].Buf) == 4096 {
		(*f)(batch[0].Buf[0])
	}
	return h.disk.WriteAt(batch, fua)
}

// patience of a test: nothing that works takes so long.
const patience = time.Minute

// newDirect is a machine with a file of four blocks on disk, open for direct writes.
func newDirect(t *testing.T) (*machine, *hooked, *vfs.File) {
	m := newMachine(t, 64<<20)
	m.end()
	h := &hooked{disk: m.d}
	fs, err := Mount(h, false, options{commit: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	m.fs = fs
	_, root := vfs.NewNamespace(fs.FileSystem, "disk")
	m.ctx = vfs.NewFSContext(root)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT|linux.O_DIRECT)
	m.write(f, bytes.Repeat([]byte{1}, 4*4096), 0)
	return m, h, f
}

func page(b byte) []byte { return bytes.Repeat([]byte{b}, 4096) }

// TestDirectTogether: direct writes over a file's blocks go to the disk at once, one
// that makes the file longer alone.
func TestDirectTogether(t *testing.T) {
	m, h, f := newDirect(t)
	var meet sync.WaitGroup
	meet.Add(2)
	on := func(b byte) {
		if b == 7 {
			meet.Done()
			meet.Wait() // for ever, if the other cannot come
		}
	}
	h.on.Store(&on)
	done := make(chan struct{})
	go func() {
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() { m.write(f, page(7), int64(i)*4096) })
		}
		both.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("two writes do not go on at once")
	}
	var inside, most atomic.Int32
	on = func(b byte) {
		if b == 8 {
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(time.Millisecond)
			inside.Add(-1)
		}
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { m.write(f, page(8), int64(4+i)*4096) })
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d writes behind the end at once", most.Load())
	}
	h.on.Store(nil)
	want := append(append(append(page(7), page(7)...), append(page(1), page(1)...)...), bytes.Repeat([]byte{8}, 4*4096)...)
	if got := m.read(f, 1<<20, 0); !bytes.Equal(got, want) {
		t.Error("the content differs")
	}
	f.Put()
	m.unmount()
}

// TestDirectStale: who reads through the cache while a block is written over past it
// sees the new content once that is written, and who stores there then is not lost.
func TestDirectStale(t *testing.T) {
	m, h, f := newDirect(t)
	cached := m.open("/f", linux.O_RDWR)
	for i := range 20 {
		b := byte(10 + 2*i)
		on := func(first byte) {
			if first != b {
				return
			}
			h.on.Store(nil) // what the cache writes has the same first byte
			if got := m.read(cached, 4096, 4096); got[0] == b {
				t.Error("the cache had the block before the disk")
			}
			if i%4 == 3 {
				m.write(cached, []byte{b}, 4096) // as if it came after the whole write
			}
		}
		h.on.Store(&on)
		m.write(f, page(b), 4096)
		h.on.Store(nil)
		if i%4 == 3 {
			if c, d := m.read(cached, 4096, 4096), m.read(f, 4096, 4096); c[0] != b || !bytes.Equal(c, d) {
				t.Fatalf("round %d: the cache has %d, the disk %d", i, c[0], d[0])
			}
			continue
		}
		if got := m.read(cached, 4096, 4096); !bytes.Equal(got, page(b)) {
			t.Fatalf("round %d: the cache has %d, written was %d", i, got[0], b)
		}
		m.write(cached, []byte{b + 1}, 4096+5)
		want := page(b)
		want[5] = b + 1
		if got := m.read(f, 4096, 4096); !bytes.Equal(got, want) {
			t.Fatalf("round %d: a direct read misses what was stored", i)
		}
	}
	f.Put()
	cached.Put()
	m.unmount()
}

// TestDirectTorn: writes over blocks, cuts and growth at once leave a sound file
// system, and each block whole.
func TestDirectTorn(t *testing.T) {
	m, _, f := newDirect(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				m.write(f, page(byte(20+g)), int64((i*7+g)%8)*4096)
			}
		})
	}
	all.Go(func() {
		for i := range 50 {
			if e := f.FTruncate(m.c, int64(i%6)*4096); e != 0 {
				t.Error(e)
				return
			}
		}
	})
	all.Wait()
	got := m.read(f, 1<<20, 0)
	for at := 0; at < len(got); at += 4096 {
		if !bytes.Equal(got[at:at+4096], page(got[at])) {
			t.Errorf("block %d is of several writes", at/4096)
		}
	}
	f.Put()
	m.unmount()
}
