package vm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

const (
	canRead  = 1
	canWrite = 2
)

// copyWorld is a space with a few pages, among them the last that a program can have,
// and what may be done with each.
type copyWorld struct {
	s     *Space
	pages map[uint64]int
}

const copyBase = 0x10000000

func newCopyWorld(t testing.TB) *copyWorld {
	w := &copyWorld{newSpace(t), map[uint64]int{}}
	for _, p := range []struct {
		at   uint64
		prot uint32
		may  int
	}{
		{copyBase, linux.PROT_READ | linux.PROT_WRITE, canRead | canWrite},
		{copyBase + 1*pageSize, linux.PROT_READ | linux.PROT_WRITE, canRead | canWrite},
		{copyBase + 2*pageSize, linux.PROT_READ, canRead},
		{copyBase + 3*pageSize, linux.PROT_NONE, 0},
		{copyBase + 4*pageSize, linux.PROT_READ | linux.PROT_WRITE, canRead | canWrite},
		{userTop - pageSize, linux.PROT_READ | linux.PROT_WRITE, canRead | canWrite},
	} {
		_, e := w.s.Mmap(caller.NewKernelCtx(), &MapArgs{Addr: p.at, Length: pageSize, Prot: p.prot,
			Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED})
		if e != 0 {
			t.Fatal(e)
		}
		w.pages[p.at] = p.may
	}
	return w
}

// reach returns how many of n bytes from addr on may be used.
func (w *copyWorld) reach(addr uint64, n, need int) int {
	for i := range n {
		a := addr + uint64(i)
		if a < addr || w.pages[a&^uint64(pageMask)]&need == 0 {
			return i
		}
	}
	return n
}

// check copies in and out and compares with what the pages allow.
func (w *copyWorld) check(t testing.TB, addr uint64, n int) {
	src := bytes.Repeat([]byte{0xa5}, n)
	want := w.reach(addr, n, canWrite)
	got, e := w.s.CopyOut(uio.Addr(addr), src)
	if got != want || (e != 0) != (want < n) || e != 0 && e != linux.EFAULT {
		t.Fatalf("CopyOut of %d bytes at %#x: %d, %v; want %d", n, addr, got, e, want)
	}
	dst := make([]byte, n+16)
	readable := w.reach(addr, n, canRead)
	got, e = w.s.CopyIn(dst[:n], uio.Addr(addr))
	if got != readable || (e != 0) != (readable < n) || e != 0 && e != linux.EFAULT {
		t.Fatalf("CopyIn of %d bytes at %#x: %d, %v; want %d", n, addr, got, e, readable)
	}
	if !bytes.Equal(dst[:want], src[:want]) || !bytes.Equal(dst[got:], make([]byte, len(dst)-got)) {
		t.Fatalf("%d bytes at %#x are not what was written", n, addr)
	}
	for _, size := range []uint64{4, 8} {
		ok := addr%size == 0 && w.reach(addr, int(size), canWrite) == int(size)
		if size == 4 {
			e = w.s.StoreU32(uio.Addr(addr), 0)
		} else {
			e = w.s.StoreU64(uio.Addr(addr), 0)
		}
		if (e == 0) != ok {
			t.Fatalf("a word of %d bytes at %#x: %v", size, addr, e)
		}
	}
	if s, e := w.s.ReadString(uio.Addr(addr), n); e == 0 && len(s) >= readable {
		t.Fatalf("a string of %d bytes at %#x, where %d may be read", len(s), addr, readable)
	}
}

// FuzzCopy copies between the kernel and arbitrary places.
func FuzzCopy(f *testing.F) {
	for _, addr := range []uint64{0, copyBase - 1, copyBase + pageSize - 3, copyBase + 3*pageSize, userTop - 1, userTop, 1 << 47,
		1 << 63, 0xffff800000000000, 0xffffffff80200000, ^uint64(0)} {
		for _, n := range []uint16{0, 1, 8, pageSize, 3 * pageSize} {
			f.Add(addr, n)
		}
	}
	f.Fuzz(func(t *testing.T, addr uint64, n uint16) {
		leakCheck(t)
		w := newCopyWorld(t)
		defer w.s.Release()
		w.check(t, addr, int(n)%(4*pageSize))
	})
}

// TestCopyEverywhere is FuzzCopy's property at places near the edges, in one space.
func TestCopyEverywhere(t *testing.T) {
	leakCheck(t)
	w := newCopyWorld(t)
	defer w.s.Release()
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(1, seed))
	edges := []uint64{0, copyBase, copyBase + 2*pageSize, copyBase + 3*pageSize, copyBase + 4*pageSize, copyBase + 5*pageSize,
		userTop - pageSize, userTop, 1 << 47, 1 << 63, 0xffff800000000000, 0xffffffff80200000}
	for range 20000 {
		w.check(t, edges[r.IntN(len(edges))]+r.Uint64N(128)-64, r.IntN(3*pageSize)>>r.IntN(13))
	}
}
