package vm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

// Every call with arguments from the edges of what is valid, from two threads of
// one space: nothing may panic, hang or lose a frame, and the list must stay sound.
func TestWildArguments(t *testing.T) {
	leakCheck(t)
	o, f := newFakeFile(t, 8, linux.O_RDWR)
	s := newSpace(t)
	s.SetBrk(0x555500000000)
	s.PickMmapBase(true)
	top, _ := s.MapStack(true, false)
	rounds := 20000
	if testing.Short() {
		rounds = 1000
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(w), seed))
			c := caller.NewKernelCtx()
			places := []uint64{0, 1, pageSize, lowest(), 0x555500000000, top - 64*pageSize, top, userTop - pageSize, userTop,
				1 << 47, 1 << 63, ^uint64(0), ^uint64(pageMask)}
			addr := func() uint64 {
				a := places[r.IntN(len(places))]
				if r.IntN(3) > 0 {
					a += r.Uint64N(64) * pageSize
				}
				if r.IntN(8) == 0 {
					a += r.Uint64N(pageSize)
				}
				return a
			}
			length := func() uint64 {
				switch r.IntN(8) {
				case 0:
					return 0
				case 1:
					return ^uint64(0) - r.Uint64N(2*pageSize)
				case 2:
					return 1 << r.Uint64N(64)
				}
				return r.Uint64N(32 * pageSize)
			}
			var b [300]byte
			for range rounds {
				switch r.IntN(16) {
				case 0, 1, 2:
					a := MapArgs{Addr: addr(), Length: length(), Prot: r.Uint32N(9), Flags: r.Uint32() & 0x1fffff &^ linux.MAP_POPULATE}
					if r.IntN(4) > 0 {
						a.Flags = uint32(linux.MAP_PRIVATE+r.IntN(2)) | a.Flags&(linux.MAP_FIXED|linux.MAP_NORESERVE|linux.MAP_GROWSDOWN)
						a.Addr &^= pageMask
					}
					if r.IntN(3) == 0 {
						a.File, a.Offset = f, r.Uint64N(10)*pageSize
					}
					if at, e := s.Mmap(c, &a); e == 0 {
						places[r.IntN(len(places))] = at
					}
				case 3:
					s.Munmap(c, addr(), length())
				case 4:
					s.Mprotect(c, addr(), length(), r.Uint32()>>r.Uint32N(32))
				case 5, 6:
					if at, e := s.Mremap(c, addr(), length(), length(), r.Uint32N(9), addr()); e == 0 {
						places[r.IntN(len(places))] = at
					}
				case 7:
					// Populating terabytes of nothing takes long, as it should.
					if a := r.Int32N(30); a != linux.MADV_POPULATE_READ && a != linux.MADV_POPULATE_WRITE {
						s.Madvise(c, addr(), length(), a)
					}
				case 8:
					s.Brk(c, addr())
				case 9:
					s.Msync(c, addr(), length(), r.Uint32N(9))
				case 10:
					if a := addr(); a < 1<<47 {
						s.Mincore(a&^pageMask, b[:r.IntN(len(b))])
					}
				case 11:
					s.Munlock(addr(), length())
				case 12:
					s.Fault(addr(), r.Uint64N(32))
					store(s, addr(), 1)
				case 13:
					s.CopyIn(b[:r.IntN(len(b))], uio.Addr(addr()))
					s.CopyOut(uio.Addr(addr()), b[:r.IntN(len(b))])
					s.ReadString(uio.Addr(addr()), r.IntN(9000))
					s.StoreU32(uio.Addr(addr()), 1)
				case 14:
					s.FutexKey(uio.Addr(addr()), r.IntN(2) == 0, r.IntN(2) == 0)
					s.UnmapObject(addr(), func(mem.Object) bool { return r.IntN(2) == 0 })
					s.RemapPages(c, addr(), length(), length(), 0)
					s.Resident(addr())
				case 15:
					if n, e := s.Fork(c); e == 0 {
						n.Release()
					}
				}
			}
		}()
	}
	wg.Wait()
	var size uint64
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		if v.start >= v.end || (v.start|v.end)&pageMask != 0 || v.end > userTop || i > 0 && s.vmas.at(i-1).end > v.start {
			t.Fatalf("mapping %d: %#x–%#x", i, v.start, v.end)
		}
		size += v.end - v.start
	}
	if size != s.size {
		t.Fatal("sizes", size, s.size)
	}
	s.Release()
	f.Put()
	if o.maps.Mapped() || o.released.Load() != 1 {
		t.Fatal("the file is still held")
	}
	o.truncate(0)
}
