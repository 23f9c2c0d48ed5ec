package tmpfs_test

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

// exhaust takes all frames until the test ends; give gives one back.
func exhaust(t *testing.T) (give func()) {
	var taken []mem.Frame
	for fr, ok := mem.Alloc(); ok; fr, ok = mem.Alloc() {
		taken = append(taken, fr)
	}
	give = func() {
		taken[len(taken)-1].Put()
		taken = taken[:len(taken)-1]
	}
	wanted := caller.OnMemoryWanted.Call
	t.Cleanup(func() {
		for len(taken) > 0 {
			give()
		}
		caller.OnMemoryWanted.Call = wanted
	})
	return give
}

// A write that finds no frame for its second page waits for more and goes on; it ends short
// only where memory does not come.
func TestWriteWaitsForMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // frames that are given back are found
	_, c, ctx := newTree(t)
	f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	if _, e := f.Ops.Write(c, f, uio.Bytes([]byte("x")), 0); e != 0 { // what else it needs once
		t.Fatal(e)
	}
	give := exhaust(t)
	waits := 0
	for _, x := range []struct{ comes, from, want, waits int }{
		{2, 1, 3 * mem.PageSize, 2},
		{1, 4, 2 * mem.PageSize, 2},
		{0, 7, mem.PageSize, 1},
	} {
		waits = 0
		caller.OnMemoryWanted.Call = func(*caller.Ctx) bool {
			if waits++; waits > x.comes {
				return false
			}
			give()
			return true
		}
		give()
		n, e := f.Ops.Write(c, f, uio.Bytes(make([]byte, 3*mem.PageSize)), int64(x.from)*mem.PageSize)
		if n != x.want || e != 0 || waits != x.waits {
			t.Errorf("memory comes %d times: wrote %d bytes, %v, after %d waits; want %d bytes after %d", x.comes, n, e, waits, x.want, x.waits)
		}
	}
}

// A write at the end of a file that waits for memory in its middle is one piece: others, and changes
// of the size, come behind it.
func TestAppendIsOnePiece(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, c, ctx := newTree(t)
	f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR|linux.O_APPEND, 0o644)
	defer f.Put()
	if _, e := f.Ops.Write(c, f, uio.Bytes([]byte("x")), 0); e != 0 {
		t.Fatal(e)
	}
	give := exhaust(t)
	var others sync.WaitGroup
	caller.OnMemoryWanted.Call = func(*caller.Ctx) bool {
		others.Go(func() {
			me := caller.NewKernelCtx()
			if n, e := f.Ops.Write(me, f, uio.Bytes([]byte("other")), 0); n != 5 || e != 0 {
				t.Errorf("the other wrote %d, %v", n, e)
			}
		})
		others.Go(func() {
			me := caller.NewKernelCtx()
			if e := f.FTruncate(me, 2*mem.PageSize+8); e != 0 {
				t.Error(e)
			}
		})
		for range 100 { // they have run until they wait
			runtime.Gosched()
		}
		give()
		give()
		return true
	}
	text := bytes.Repeat([]byte("a"), 2*mem.PageSize)
	if n, e := f.Ops.Write(c, f, uio.Bytes(text), 0); n != len(text) || e != 0 {
		t.Errorf("wrote %d, %v", n, e)
	}
	others.Wait()
	got := make([]byte, 3*mem.PageSize)
	n, e := f.Ops.Read(c, f, uio.Bytes(got), 0)
	if e != 0 || n < 1+len(text) || !bytes.Equal(got[1:1+len(text)], text) {
		t.Errorf("read %d bytes, %v: the write at the end is not one piece", n, e)
	}
}
