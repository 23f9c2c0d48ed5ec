package vm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/nucleus"
)

// Threads of one space fault, copy, map, unmap, protect and fork at random. What
// a thread reads through its own mapping must be what it wrote, and no frame may
// be lost or freed twice.
func TestThreadsOfOneSpace(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	o, f := newFakeFile(t, 8, linux.O_RDWR)
	common := anonymous(t, s, 64*pageSize)
	shared := mmap(t, s, MapArgs{Length: 64 * pageSize, Prot: rw, Flags: linux.MAP_SHARED | linux.MAP_ANONYMOUS})
	file := mmap(t, s, MapArgs{Length: 8 * pageSize, Prot: rw, Flags: linux.MAP_PRIVATE, File: f})
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			own := anonymous(t, s, 16*pageSize)
			var b [3 * pageSize]byte
			for i := range rounds {
				page := rand.Uint64N(64) * pageSize
				switch rand.IntN(10) {
				case 0:
					s.Fault(common+page, nucleus.FaultUser|nucleus.FaultWrite)
				case 1:
					s.CopyOut(uio.Addr(common+page), b[:rand.IntN(len(b))])
				case 2:
					s.CopyIn(b[:rand.IntN(len(b))], uio.Addr(common+page))
				case 3:
					s.Madvise(nil, common+page, 4*pageSize, linux.MADV_DONTNEED)
				case 4:
					s.Mmap(nil, &MapArgs{Addr: common + page, Length: 2 * pageSize, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED})
				case 5:
					s.Mprotect(nil, common+page, 3*pageSize, []uint32{rw, linux.PROT_READ, 0}[rand.IntN(3)])
				case 6:
					s.Munmap(nil, common+page, pageSize)
				case 7:
					n, e := s.Fork(nil)
					if e != 0 {
						t.Error(e)
						continue
					}
					store(n, own, 77)
					store(n, shared+page, 5)
					n.Release()
				case 8:
					store(s, shared+page, 1)
					fetch(s, file+page&(7*pageSize))
					store(s, file+page&(7*pageSize), byte(i))
				case 9:
					o.maps.Zap(o, page>>pageShift&7, 2)
					s.Madvise(nil, shared+page, pageSize, linux.MADV_REMOVE)
				}
				for k := uint64(0); k < 16; k += 5 {
					v := byte(i + w)
					store(s, own+k*pageSize+8, v)
					if got, r := fetch(s, own+k*pageSize+8); got != v || r != FaultOK {
						t.Errorf("wrote %d, read %d %v", v, got, r)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	s.Release()
	f.Put()
	o.truncate(0)
}

// A tree of forks: each node changes some pages and checks that it sees its own
// content, whatever its parent, children and siblings do.
func TestForkTree(t *testing.T) {
	leakCheck(t)
	const n = 40
	s := newSpace(t)
	a := anonymous(t, s, n*pageSize)
	var want [n]byte
	var wg sync.WaitGroup
	var node func(s *Space, want [n]byte, depth int, seed uint64)
	node = func(s *Space, want [n]byte, depth int, seed uint64) {
		defer wg.Done()
		r := rand.New(rand.NewPCG(seed, 1))
		for range 6 {
			for range 8 {
				k := r.IntN(n)
				want[k] = byte(r.IntN(255) + 1)
				if store(s, a+uint64(k)*pageSize, want[k]) != FaultOK {
					t.Error("store")
				}
			}
			if depth > 0 && r.IntN(2) == 0 {
				c, e := s.Fork(nil)
				if e != 0 {
					t.Error(e)
					break
				}
				wg.Add(1)
				go node(c, want, depth-1, r.Uint64())
			}
			for k := range want {
				if b, _ := fetch(s, a+uint64(k)*pageSize); b != want[k] {
					t.Errorf("depth %d page %d: %d, want %d", depth, k, b, want[k])
					break
				}
			}
		}
		s.Release()
	}
	wg.Add(1)
	go node(s, want, 5, 42)
	wg.Wait()
}

func BenchmarkFaultSequential(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	b.ReportAllocs()
	const n = 1024
	a := anonymous(b, s, n*pageSize)
	for i := 0; i < b.N; i++ {
		va := a + uint64(i%n)*pageSize
		if i%n == 0 {
			s.Madvise(nil, a, n*pageSize, linux.MADV_DONTNEED)
		}
		s.pt.RLock()
		there := s.frame(va, pteP|pteW) != nil
		s.pt.RUnlock()
		if !there {
			s.Fault(va, nucleus.FaultUser|nucleus.FaultWrite)
		}
	}
}

func BenchmarkFaultRandom(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	b.ReportAllocs()
	const n = 1024
	a := anonymous(b, s, n*pageSize)
	for i := 0; i < b.N; i++ {
		if i%n == 0 {
			s.Madvise(nil, a, n*pageSize, linux.MADV_DONTNEED)
		}
		s.Fault(a+uint64(i*617%n)*pageSize, nucleus.FaultUser|nucleus.FaultWrite)
	}
}

func BenchmarkMmapTouchMunmap(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	anonymous(b, s, pageSize) // a neighbour keeps the upper tables
	b.ReportAllocs()
	m := MapArgs{Length: 4 << 20, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_NORESERVE}
	for i := 0; i < b.N; i++ {
		a, _ := s.Mmap(nil, &m)
		for va := a; va < a+4<<20; va += pageSize {
			s.pt.RLock()
			there := s.frame(va, pteP|pteW) != nil
			s.pt.RUnlock()
			if !there {
				s.Fault(va, nucleus.FaultUser|nucleus.FaultWrite)
			}
		}
		s.Munmap(nil, a, 4<<20)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/page")
}

// A small static program as a C library makes it: it wrote 17 pages once, and
// writes a few of them between two forks.
func BenchmarkForkExit(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	o, f := newFakeFile(b, 170, linux.O_RDONLY)
	segment := func(addr, n, off uint64, prot uint32) {
		mmap(b, s, MapArgs{Addr: addr, Length: n * pageSize, Prot: prot, Flags: linux.MAP_PRIVATE | linux.MAP_FIXED, File: f, Offset: off * pageSize})
	}
	const text, rodata, data, bss, heap = 0x401000, 0x47a000, 0x4a6000, 0x4a9000, 0x1679000
	segment(0x400000, 1, 0, linux.PROT_READ)
	segment(text, 121, 1, linux.PROT_READ|linux.PROT_EXEC)
	segment(rodata, 40, 122, linux.PROT_READ)
	segment(0x4a2000, 4, 161, linux.PROT_READ)
	segment(data, 3, 165, rw)
	mmap(b, s, MapArgs{Addr: bss, Length: 6 * pageSize, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_FIXED | linux.MAP_ANONYMOUS})
	s.SetBrk(heap)
	s.Brk(nil, heap+34*pageSize)
	vdso := newShared(2)
	mmap(b, s, MapArgs{Length: pageSize, Prot: linux.PROT_READ, Flags: linux.MAP_PRIVATE, Object: vdso})
	mmap(b, s, MapArgs{Length: pageSize, Prot: linux.PROT_READ | linux.PROT_EXEC, Flags: linux.MAP_PRIVATE, Object: vdso, Offset: pageSize})
	top, _ := s.MapStack(true, false)
	for va := uint64(text); va < rodata+40*pageSize; va += 16 * pageSize {
		fetch(s, va)
	}
	for va := uint64(data); va < bss+6*pageSize; va += pageSize {
		store(s, va, 1)
	}
	for i := uint64(0); i < 6; i++ {
		store(s, heap+i*pageSize, 1)
	}
	store(s, top-64, 1)
	store(s, top-64-pageSize, 1)
	run := func(s *Space) {
		cpu(s, text, false)
		cpu(s, text+70*pageSize, false)
		cpu(s, top-64, true)
		cpu(s, data+pageSize, true)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		run(s)
		n, _ := s.Fork(nil)
		run(n)
		n.Release()
	}
	b.StopTimer()
	f.Put()
	vdso.Detach()
	_ = o
}

// cpu is an access with the accessed and dirty bits that the hardware sets.
func cpu(s *Space, va uint64, write bool) {
	need, set, code := pteP, pteA, uint64(readCode)
	if write {
		need, set, code = pteP|pteW, pteA|pteD, writeCode
	}
	for {
		if t := s.leaf(va); t != nil && t[index(va)]&need == need {
			t[index(va)] |= set
			return
		}
		s.Fault(va, code)
	}
}

func BenchmarkCopyOut(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	a := anonymous(b, s, 2*pageSize)
	for _, size := range []int{8, 64, 4096} {
		b.Run(map[int]string{8: "8", 64: "64", 4096: "4096"}[size], func(b *testing.B) {
			buf := make([]byte, size)
			b.ReportAllocs()
			var m uio.Memory = s
			for i := 0; i < b.N; i++ {
				m.CopyOut(uio.Addr(a), buf)
			}
		})
	}
}

func BenchmarkMmapMunmap(b *testing.B) {
	s := newSpace(b)
	defer s.Release()
	for range 20 { // neighbours that do not join
		anonymous(b, s, pageSize)
		mmap(b, s, MapArgs{Length: pageSize, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS})
	}
	b.Run("anonymous", func(b *testing.B) {
		b.ReportAllocs()
		m := MapArgs{Length: 4 * pageSize, Prot: linux.PROT_READ, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS}
		for i := 0; i < b.N; i++ {
			a, _ := s.Mmap(nil, &m)
			s.Munmap(nil, a, 4*pageSize)
		}
	})
	b.Run("file", func(b *testing.B) {
		b.ReportAllocs()
		o, f := newFakeFile(b, 4, linux.O_RDONLY)
		m := MapArgs{Length: 4 * pageSize, Prot: linux.PROT_READ, Flags: linux.MAP_PRIVATE, File: f}
		for i := 0; i < b.N; i++ {
			a, _ := s.Mmap(nil, &m)
			s.Munmap(nil, a, 4*pageSize)
		}
		f.Put()
		o.truncate(0)
	})
	b.Run("protect", func(b *testing.B) {
		b.ReportAllocs()
		a := anonymous(b, s, 16*pageSize)
		store(s, a, 1)
		for i := 0; i < b.N; i++ {
			s.Mprotect(nil, a, 4*pageSize, linux.PROT_READ)
			s.Mprotect(nil, a, 4*pageSize, rw)
		}
	})
	b.Run("brk", func(b *testing.B) {
		b.ReportAllocs()
		s.SetBrk(0x10000000)
		for i := 0; i < b.N; i++ {
			s.Brk(nil, 0x10000000+132<<10)
			s.Brk(nil, 0x10000000)
		}
	})
}
