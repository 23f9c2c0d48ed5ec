package tmpfs_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// One file is read, written, cut, punched, mapped, listed and opened by many at
// once; in the end every frame is back.
func TestFileUsedByMany(t *testing.T) {
	fs, c, ctx := newTree(t)
	before := mem.Available()
	f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	o, _ := f.Ops.(vfs.Mapper).Map(c, f)
	const span = 40 * mem.PageSize
	use := []func(c *caller.Ctx, r *rand.Rand, b []byte){
		func(c *caller.Ctx, r *rand.Rand, b []byte) { f.Ops.Write(c, f, uio.Bytes(b), r.Int64N(span)) },
		func(c *caller.Ctx, r *rand.Rand, b []byte) {
			n, e := f.Ops.Read(c, f, uio.Bytes(b), r.Int64N(span))
			for _, x := range b[:n] {
				if e != 0 || x != 0 && x != 1 && x != 9 {
					t.Errorf("read %d %v", x, e)
					return
				}
			}
		},
		func(c *caller.Ctx, r *rand.Rand, _ []byte) { f.FTruncate(c, r.Int64N(span)) },
		func(c *caller.Ctx, r *rand.Rand, _ []byte) {
			f.Ops.(vfs.Allocator).Allocate(c, f, linux.FALLOC_FL_PUNCH_HOLE|linux.FALLOC_FL_KEEP_SIZE, r.Int64N(span), 1+r.Int64N(5*mem.PageSize))
		},
		func(_ *caller.Ctx, r *rand.Rand, _ []byte) {
			if fr, e := o.Page(r.Uint64N(40), true); e == 0 {
				fr.Bytes()[r.IntN(mem.PageSize)] = 9
				fr.Put()
			}
		},
		func(c *caller.Ctx, _ *rand.Rand, _ []byte) {
			if g, e := vfs.Open(c, ctx, nil, "/f", linux.O_RDWR, 0); e == 0 {
				g.Put()
			}
		},
	}
	var wg sync.WaitGroup
	for w, do := range use {
		wg.Go(func() {
			c, r := caller.NewKernelCtx(), rand.New(rand.NewPCG(uint64(w), 1))
			b := make([]byte, 3*mem.PageSize)
			for range 1500 {
				for i := range b {
					b[i] = 1
				}
				do(c, r, b[:1+r.IntN(len(b))])
			}
		})
	}
	wg.Wait()
	vfs.UnlinkAt(c, ctx, nil, "/f")
	f.Put()
	if n := mem.Available(); n != before || fs.Used() != 0 {
		t.Fatalf("%d frames before, %d after; %d charged", before, n, fs.Used())
	}
}
