package tmpfs_test

import (
	"runtime"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

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
	var taken []mem.Frame
	for fr, ok := mem.Alloc(); ok; fr, ok = mem.Alloc() {
		taken = append(taken, fr)
	}
	give := func() {
		taken[len(taken)-1].Put()
		taken = taken[:len(taken)-1]
	}
	defer func() {
		for len(taken) > 0 {
			give()
		}
	}()
	wanted := caller.OnMemoryWanted.Call
	defer func() { caller.OnMemoryWanted.Call = wanted }()
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
