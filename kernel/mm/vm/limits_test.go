package vm

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
)

func TestLimits(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	limits := map[int]uint64{}
	s.Limits = func(r int) uint64 {
		if n, ok := limits[r]; ok {
			return n
		}
		return ^uint64(0)
	}
	anon := uint32(linux.MAP_PRIVATE | linux.MAP_ANONYMOUS)
	limits[linux.RLIMIT_AS] = 10 * pageSize
	a := anonymous(t, s, 8*pageSize)
	if _, e := s.Mmap(nil, &MapArgs{Length: 3 * pageSize, Flags: anon}); e != linux.ENOMEM {
		t.Fatal("beyond RLIMIT_AS:", e)
	}
	// Replacing does not need more.
	mmap(t, s, MapArgs{Addr: a, Length: 9 * pageSize, Prot: rw, Flags: anon | linux.MAP_FIXED})
	if _, e := s.Mremap(nil, a, 9*pageSize, 11*pageSize, linux.MREMAP_MAYMOVE, 0); e != linux.ENOMEM {
		t.Fatal(e)
	}
	s.SetBrk(0x555500000000)
	if b := s.Brk(nil, 0x555500000000+2*pageSize); b != 0x555500000000 {
		t.Fatalf("%#x", b)
	}
	delete(limits, linux.RLIMIT_AS)
	limits[linux.RLIMIT_DATA] = 10 * pageSize
	if _, e := s.Mmap(nil, &MapArgs{Length: 2 * pageSize, Prot: rw, Flags: anon}); e != linux.ENOMEM {
		t.Fatal("beyond RLIMIT_DATA:", e)
	}
	if _, e := s.Mmap(nil, &MapArgs{Length: 2 * pageSize, Prot: linux.PROT_READ, Flags: anon}); e != 0 {
		t.Fatal(e)
	}
	if b := s.Brk(nil, 0x555500000000+pageSize); b != 0x555500000000+pageSize {
		t.Fatalf("%#x", b)
	}
	if b := s.Brk(nil, 0x555500000000+2*pageSize); b != 0x555500000000+pageSize {
		t.Fatalf("%#x", b)
	}
	// More than there is memory is refused where it counts.
	big := uint64(mem.Total()+1) * pageSize
	delete(limits, linux.RLIMIT_DATA)
	if _, e := s.Mmap(nil, &MapArgs{Length: big, Prot: rw, Flags: anon}); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if _, e := s.Mmap(nil, &MapArgs{Length: big, Prot: rw, Flags: anon | linux.MAP_NORESERVE}); e != 0 {
		t.Fatal(e)
	}
}

func TestLocks(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	limit := uint64(4 * pageSize)
	s.Limits = func(r int) uint64 {
		if r == linux.RLIMIT_MEMLOCK {
			return limit
		}
		return ^uint64(0)
	}
	c := caller.NewKernelCtx()
	c.SetCred(&creds.Cred{UID: 1, EUID: 1})
	a := anonymous(t, s, 8*pageSize)
	vec := make([]byte, 8)
	if e := s.Mlock(c, a+pageSize+5, pageSize, 0); e != 0 { // two pages
		t.Fatal(e)
	}
	if e := s.Mincore(a, vec); e != 0 || string(vec) != "\x00\x01\x01\x00\x00\x00\x00\x00" {
		t.Fatal(vec, e)
	}
	if n := s.Stats().Locked; n != 2*pageSize {
		t.Fatal(n)
	}
	if e := s.Mlock(c, a, 4*pageSize, linux.MLOCK_ONFAULT); e != 0 { // two of them were locked already
		t.Fatal(e)
	}
	if e := s.Mlock(c, a, 5*pageSize, 0); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if e := s.Madvise(c, a, pageSize, linux.MADV_DONTNEED); e != linux.EINVAL {
		t.Fatal(e)
	}
	if e := s.Msync(c, a, pageSize, linux.MS_INVALIDATE); e != linux.EBUSY {
		t.Fatal(e)
	}
	n, _ := s.Fork(c)
	if n.Stats().Locked != 0 {
		t.Fatal("locks are inherited")
	}
	n.Release()
	if e := s.Munlock(a, 8*pageSize); e != 0 || s.Stats().Locked != 0 {
		t.Fatal(e, s.Stats().Locked)
	}
	if s.vmas.len() != 1 {
		t.Fatal("not joined:", s.vmas.len())
	}
	limit = 0
	if e := s.Mlock(c, a, pageSize, 0); e != linux.EPERM {
		t.Fatal(e)
	}
	limit = 64 * pageSize
	if e := s.Mlockall(c, linux.MCL_CURRENT|linux.MCL_FUTURE); e != 0 {
		t.Fatal(e)
	}
	b := anonymous(t, s, 2*pageSize)
	if e := s.Mincore(b, vec[:2]); e != 0 || vec[0]&vec[1] != 1 {
		t.Fatal("a mapping to come is not populated", vec, e)
	}
	if s.Stats().Locked != 10*pageSize {
		t.Fatal(s.Stats().Locked)
	}
	if e := s.Munlockall(); e != 0 || s.Stats().Locked != 0 {
		t.Fatal(e)
	}
}
