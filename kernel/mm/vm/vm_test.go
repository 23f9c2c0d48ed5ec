package vm

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/nucleus"
)

const rw = linux.PROT_READ | linux.PROT_WRITE

func TestMain(m *testing.M) {
	mem.InitHost(80000)
	s, _ := New() // makes the shared page of zeroes, which stays
	s.Release()
	os.Exit(m.Run())
}

func newSpace(t testing.TB) *Space {
	s, e := New()
	if e != 0 {
		t.Fatal(e)
	}
	return s
}

// leakCheck fails the test if frames are missing at its end.
func leakCheck(t testing.TB) {
	before, maps := mem.Available(), allMaps.Load()
	t.Cleanup(func() {
		if n := allMaps.Load(); n != maps {
			t.Errorf("%d mappings before, %d after", maps, n)
		}
		if n := mem.Available(); n != before {
			t.Errorf("%d frames before, %d after", before, n)
		}
	})
}

func mmap(t testing.TB, s *Space, a MapArgs) uint64 {
	t.Helper()
	addr, e := s.Mmap(nil, &a)
	if e != 0 {
		t.Fatal(e)
	}
	return addr
}

func anonymous(t testing.TB, s *Space, n uint64) uint64 {
	t.Helper()
	return mmap(t, s, MapArgs{Length: n, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS})
}

// store and fetch do what a user program's instruction does.
func store(s *Space, va uint64, b byte) FaultResult {
	for {
		s.pt.RLock()
		if p := s.frame(va, pteP|pteU|pteW); p != nil {
			p[0] = b
			s.pt.RUnlock()
			return FaultOK
		}
		s.pt.RUnlock()
		if r := s.Fault(va, nucleus.FaultUser|nucleus.FaultWrite); r != FaultOK {
			return r
		}
	}
}

func fetch(s *Space, va uint64) (byte, FaultResult) {
	for {
		s.pt.RLock()
		if p := s.frame(va, pteP|pteU); p != nil {
			b := p[0]
			s.pt.RUnlock()
			return b, FaultOK
		}
		s.pt.RUnlock()
		if r := s.Fault(va, nucleus.FaultUser); r != FaultOK {
			return 0, r
		}
	}
}

// fakeFile is a file of pages that can be mapped and cut.
type fakeFile struct {
	vfs.BaseOps
	maps     mem.Mappings
	mu       sync.Mutex
	pages    []mem.Frame
	asked    int // Page calls
	released atomic.Int32
}

func newFakeFile(t testing.TB, n int, flags uint32) (*fakeFile, *vfs.File) {
	o := &fakeFile{}
	for i := range n {
		f, ok := mem.AllocZeroed()
		if !ok {
			t.Fatal("no memory")
		}
		f.Bytes()[0] = byte(i + 1)
		o.pages = append(o.pages, f)
	}
	return o, vfs.NewFile(o, flags)
}

func (o *fakeFile) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) { return o, 0 }
func (o *fakeFile) Mappings() *mem.Mappings                              { return &o.maps }
func (o *fakeFile) Page(i uint64, write bool) (mem.Frame, linux.Errno) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	if i >= uint64(len(o.pages)) {
		return 0, linux.EFAULT
	}
	o.pages[i].Get()
	return o.pages[i], 0
}
func (o *fakeFile) Cached(i uint64) (mem.Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i >= uint64(len(o.pages)) {
		return 0, false
	}
	o.pages[i].Get()
	return o.pages[i], true
}
func (o *fakeFile) Release(*vfs.File) { o.released.Add(1) }
func (o *fakeFile) truncate(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone := o.pages[n:]
	o.pages = o.pages[:n]
	o.maps.Zap(o, uint64(n), ^uint64(0))
	for _, f := range gone {
		f.Put()
	}
}

func TestDemandZeroAndUnmap(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	a := anonymous(t, s, 64*pageSize)
	for i := uint64(0); i < 64; i++ {
		if b, r := fetch(s, a+i*pageSize+5); b != 0 || r != FaultOK {
			t.Fatal(i, b, r)
		}
	}
	if s.pages() != 0 {
		t.Fatal("pages that were only read are resident:", s.pages())
	}
	for i := uint64(0); i < 64; i++ {
		if r := store(s, a+i*pageSize+5, byte(i+1)); r != FaultOK {
			t.Fatal(r)
		}
	}
	for i := uint64(0); i < 64; i++ {
		if b, _ := fetch(s, a+i*pageSize+5); b != byte(i+1) {
			t.Fatal(i, b)
		}
	}
	if s.pages() != 64 {
		t.Fatal(s.pages())
	}
	if e := s.Munmap(nil, a+16*pageSize, 32*pageSize); e != 0 {
		t.Fatal(e)
	}
	if _, r := fetch(s, a+16*pageSize); r != FaultMapErr {
		t.Fatal(r)
	}
	if b, _ := fetch(s, a+15*pageSize+5); b != 16 {
		t.Fatal(b)
	}
	if s.pages() != 32 || s.Stats().Size != 32*pageSize || s.Stats().HWM != 64*pageSize {
		t.Fatal(s.Stats())
	}
}

func TestSequentialFaultsGrowTheWindow(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	a := anonymous(t, s, 256*pageSize)
	faults := 0
	for i := uint64(0); i < 256; i++ {
		s.pt.RLock()
		there := s.frame(a+i*pageSize, pteP|pteW) != nil
		s.pt.RUnlock()
		if !there {
			faults++
			store(s, a+i*pageSize, 1)
		}
	}
	if faults > 25 {
		t.Fatal(faults, "faults for 256 pages")
	}
	// A single touch maps a single page.
	b := anonymous(t, s, 256*pageSize)
	before := s.pages()
	store(s, b+100*pageSize, 1)
	store(s, b+50*pageSize, 1)
	if n := s.pages() - before; n != 2 {
		t.Fatal(n, "pages for two touches")
	}
}

func TestProtection(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	a := anonymous(t, s, 8*pageSize)
	for i := uint64(0); i < 8; i++ {
		store(s, a+i*pageSize, 7)
	}
	if e := s.Mprotect(nil, a+2*pageSize, 2*pageSize, linux.PROT_READ); e != 0 {
		t.Fatal(e)
	}
	if r := store(s, a+2*pageSize, 1); r != FaultAccErr {
		t.Fatal(r)
	}
	if n, e := s.CopyOut(uio.Addr(a+2*pageSize-2), []byte("abcd")); n != 2 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	if e := s.Mprotect(nil, a+3*pageSize, pageSize, linux.PROT_NONE); e != 0 {
		t.Fatal(e)
	}
	if _, r := fetch(s, a+3*pageSize); r != FaultAccErr {
		t.Fatal(r)
	}
	if r := s.Fault(a, nucleus.FaultUser|nucleus.FaultFetch); r != FaultAccErr {
		t.Fatal("executed data:", r)
	}
	if s.vmas.len() != 4 {
		t.Fatal(s.vmas.len(), "mappings")
	}
	if e := s.Mprotect(nil, a, 8*pageSize, rw); e != 0 {
		t.Fatal(e)
	}
	if s.vmas.len() != 1 {
		t.Fatal("not merged:", s.vmas.len())
	}
	if b, r := fetch(s, a+3*pageSize); b != 7 || r != FaultOK {
		t.Fatal("content lost by PROT_NONE", b, r)
	}
	if e := s.Mprotect(nil, a+4*pageSize, 8*pageSize, rw); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if e := s.Mprotect(nil, a+1, pageSize, rw); e != linux.EINVAL {
		t.Fatal(e)
	}
}

func TestKernelAddressesAreRefused(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	var b [16]byte
	for _, a := range []uio.Addr{0, 1, 8, userTop - 8, userTop, 1 << 47, 0xffff800000000000, ^uio.Addr(0), ^uio.Addr(7)} {
		if _, e := s.CopyIn(b[:], a); e != linux.EFAULT {
			t.Errorf("CopyIn %#x: %v", a, e)
		}
		if _, e := s.CopyOut(a, b[:]); e != linux.EFAULT {
			t.Errorf("CopyOut %#x: %v", a, e)
		}
		if _, e := s.ReadString(a, 100); e != linux.EFAULT {
			t.Errorf("ReadString %#x: %v", a, e)
		}
		if _, e := s.LoadU32(a); e != linux.EFAULT {
			t.Errorf("LoadU32 %#x: %v", a, e)
		}
		if e := s.StoreU64(a, 1); e != linux.EFAULT {
			t.Errorf("StoreU64 %#x: %v", a, e)
		}
	}
}

func TestStringsAndWords(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	a := anonymous(t, s, 3*pageSize)
	s.CopyOut(uio.Addr(a+pageSize-3), []byte("hello\x00"))
	if str, e := s.ReadString(uio.Addr(a+pageSize-3), 6); str != "hello" || e != 0 {
		t.Fatal(str, e)
	}
	if _, e := s.ReadString(uio.Addr(a+pageSize-3), 5); e != linux.ENAMETOOLONG {
		t.Fatal(e)
	}
	s.CopyOut(uio.Addr(a+2*pageSize), bytes.Repeat([]byte{1}, pageSize))
	if _, e := s.ReadString(uio.Addr(a+2*pageSize), 2*pageSize); e != linux.EFAULT {
		t.Fatal(e)
	}
	w := uio.Addr(a + 64)
	if e := s.StoreU32(w, 5); e != 0 {
		t.Fatal(e)
	}
	if v, e := s.CASU32(w, 4, 9); v != 5 || e != 0 {
		t.Fatal(v, e)
	}
	if v, e := s.CASU32(w, 5, 9); v != 5 || e != 0 {
		t.Fatal(v, e)
	}
	if v, e := s.LoadU32(w); v != 9 || e != 0 {
		t.Fatal(v, e)
	}
	if v, e := s.LoadU64(w); v != 9 || e != 0 {
		t.Fatal(v, e)
	}
	if _, e := s.LoadU32(w + 1); e != linux.EFAULT {
		t.Fatal(e)
	}
}

func TestFilePrivateAndShared(t *testing.T) {
	leakCheck(t)
	o, f := newFakeFile(t, 4, linux.O_RDWR)
	s := newSpace(t)
	p := mmap(t, s, MapArgs{Length: 6 * pageSize, Prot: rw, Flags: linux.MAP_PRIVATE, File: f, Offset: pageSize})
	q := mmap(t, s, MapArgs{Length: 6 * pageSize, Prot: rw, Flags: linux.MAP_SHARED, File: f})
	f.Put()
	if b, _ := fetch(s, p); b != 2 {
		t.Fatal(b)
	}
	if o.asked != 1 {
		t.Fatal("neighbours were asked for one by one")
	}
	store(s, q+pageSize, 50)
	if b, _ := fetch(s, p); b != 50 {
		t.Fatal("a private page does not follow the file before it is written", b)
	}
	store(s, p, 60)
	store(s, p+pageSize, 61)
	if b, _ := fetch(s, q+pageSize); b != 50 {
		t.Fatal("a private store reached the file")
	}
	if o.pages[1].Bytes()[0] != 50 || o.pages[2].Bytes()[0] != 3 {
		t.Fatal("file content")
	}
	if _, r := fetch(s, q+4*pageSize); r != FaultBus {
		t.Fatal(r)
	}
	if r := store(s, p+3*pageSize, 1); r != FaultBus {
		t.Fatal(r)
	}
	o.truncate(1)
	if _, r := fetch(s, q+pageSize); r != FaultBus {
		t.Fatal("mapped beyond the end:", r)
	}
	if b, r := fetch(s, p); b != 60 || r != FaultOK {
		t.Fatal("private copy lost", b, r)
	}
	n, e := s.Fork(nil)
	if e != 0 {
		t.Fatal(e)
	}
	store(n, q, 70)
	if b, _ := fetch(s, q); b != 70 {
		t.Fatal("shared mapping is not shared after fork")
	}
	store(n, p, 71)
	if b, _ := fetch(s, p); b != 60 {
		t.Fatal("private page shared with the child")
	}
	s.Munmap(nil, q+pageSize, pageSize) // cuts the mapping: two registrations
	s.Release()
	if o.released.Load() != 0 {
		t.Fatal("released while the child maps it")
	}
	n.Release()
	if o.released.Load() != 1 || o.maps.Mapped() {
		t.Fatal("still mapped")
	}
	o.truncate(0)
}

func TestFileModes(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	o, ro := newFakeFile(t, 1, linux.O_RDONLY)
	defer o.truncate(0)
	if _, e := s.Mmap(nil, &MapArgs{Length: 1, Prot: rw, Flags: linux.MAP_SHARED, File: ro}); e != linux.EACCES {
		t.Fatal(e)
	}
	a := mmap(t, s, MapArgs{Length: 1, Prot: linux.PROT_READ, Flags: linux.MAP_SHARED, File: ro})
	if e := s.Mprotect(nil, a, 1, rw); e != linux.EACCES {
		t.Fatal(e)
	}
	if _, e := s.Mmap(nil, &MapArgs{Length: 1, Flags: linux.MAP_SHARED, File: vfs.NewFile(o, linux.O_WRONLY)}); e != linux.EACCES {
		t.Fatal(e)
	}
	if _, e := s.Mmap(nil, &MapArgs{Length: 1, Flags: linux.MAP_SHARED, File: vfs.NewFile(vfs.BaseOps{}, linux.O_RDWR)}); e != linux.ENODEV {
		t.Fatal(e)
	}
}

func TestSharedAnonymous(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	a := mmap(t, s, MapArgs{Length: 40 * pageSize, Prot: rw, Flags: linux.MAP_SHARED | linux.MAP_ANONYMOUS})
	n, _ := s.Fork(nil)
	store(n, a+20*pageSize, 9)
	if b, _ := fetch(s, a+20*pageSize); b != 9 {
		t.Fatal(b)
	}
	k1, e1 := s.FutexKey(uio.Addr(a+20*pageSize), false, false)
	k2, e2 := n.FutexKey(uio.Addr(a+20*pageSize), false, false)
	if k1 != k2 || e1 != 0 || e2 != 0 {
		t.Fatal("keys differ", k1, k2)
	}
	p1, _ := s.FutexKey(uio.Addr(a), true, false)
	p2, _ := n.FutexKey(uio.Addr(a), true, false)
	if p1 == p2 {
		t.Fatal("private keys of two spaces are the same")
	}
	// Grown by moving, the pages go along; a second mapping shows the same.
	m, e := s.Mremap(nil, a, 40*pageSize, 80*pageSize, linux.MREMAP_MAYMOVE, 0)
	if e != 0 {
		t.Fatal(e)
	}
	d, e := s.Mremap(nil, m, 0, 40*pageSize, linux.MREMAP_MAYMOVE, 0)
	if e != 0 {
		t.Fatal(e)
	}
	store(s, d+3*pageSize, 33)
	if b, _ := fetch(n, a+3*pageSize); b != 33 {
		t.Fatal(b)
	}
	if e := s.Madvise(nil, m+20*pageSize, pageSize, linux.MADV_REMOVE); e != 0 {
		t.Fatal(e)
	}
	if b, _ := fetch(n, a+20*pageSize); b != 0 {
		t.Fatal("not removed", b)
	}
	s.Release()
	n.Release()
}

func TestStackGrows(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	s.Limits = func(r int) uint64 {
		if r == linux.RLIMIT_STACK {
			return 1 << 20
		}
		return ^uint64(0)
	}
	s.PickMmapBase(true)
	top, e := s.MapStack(true, false)
	if e != 0 {
		t.Fatal(e)
	}
	for off := uint64(8); off <= 1<<20; off += pageSize {
		if r := store(s, top-off, 1); r != FaultOK {
			t.Fatalf("%#x: %v", off, r)
		}
	}
	if r := store(s, top-1<<20-1, 1); r != FaultMapErr {
		t.Fatal("grew beyond the limit", r)
	}
	if n := s.Stats().Stack; n != 1<<20 {
		t.Fatal(n)
	}
	// Something mapped close below stops it, at the guard gap.
	s2 := newSpace(t)
	defer s2.Release()
	top, _ = s2.MapStack(false, false)
	low := top - 2<<20
	mmap(t, s2, MapArgs{Addr: low, Length: pageSize, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED})
	if r := store(s2, low+pageSize+guardGap-1, 1); r != FaultMapErr {
		t.Fatal("grew into the gap", r)
	}
	if r := store(s2, low+pageSize+guardGap, 1); r != FaultOK {
		t.Fatal(r)
	}
}

func TestBrk(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	s.SetBrk(0x600123)
	if b := s.Brk(nil, 0); b != 0x600123 {
		t.Fatalf("%#x", b)
	}
	if b := s.Brk(nil, 0x605001); b != 0x605001 {
		t.Fatalf("%#x", b)
	}
	store(s, 0x605fff, 1)
	if b := s.Brk(nil, 0x601000); b != 0x601000 {
		t.Fatalf("%#x", b)
	}
	if _, r := fetch(s, 0x605fff); r != FaultMapErr {
		t.Fatal(r)
	}
	if b := s.Brk(nil, 0x700000); b != 0x700000 {
		t.Fatalf("%#x", b)
	}
	if b, _ := fetch(s, 0x605fff); b != 0 {
		t.Fatal("old content came back")
	}
	if s.vmas.len() != 1 || s.vmas.at(0).name != "[heap]" {
		t.Fatal(s.vmas)
	}
	if b := s.Brk(nil, userTop); b != 0x700000 {
		t.Fatalf("%#x", b)
	}
	if b := s.Brk(nil, ^uint64(0)); b != 0x700000 {
		t.Fatalf("%#x", b)
	}
}

func TestMmapErrors(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	anon := uint32(linux.MAP_PRIVATE | linux.MAP_ANONYMOUS)
	for i, c := range []struct {
		a MapArgs
		e linux.Errno
	}{
		{MapArgs{Length: 0, Flags: anon}, linux.EINVAL},
		{MapArgs{Length: 1, Flags: linux.MAP_ANONYMOUS}, linux.EINVAL},
		{MapArgs{Length: 1, Flags: linux.MAP_ANONYMOUS | 4}, linux.EINVAL},
		{MapArgs{Length: ^uint64(0), Flags: anon}, linux.ENOMEM},
		{MapArgs{Length: 1 << 47, Flags: anon}, linux.ENOMEM},
		{MapArgs{Length: 1 << 45, Prot: rw, Flags: anon}, linux.ENOMEM},
		{MapArgs{Addr: 1, Length: 1, Flags: anon | linux.MAP_FIXED}, linux.EINVAL},
		{MapArgs{Addr: 0x1000, Length: 1, Flags: anon | linux.MAP_FIXED}, linux.EPERM},
		{MapArgs{Addr: userTop - pageSize, Length: 2 * pageSize, Flags: anon | linux.MAP_FIXED}, linux.ENOMEM},
		{MapArgs{Addr: 1 << 63, Length: pageSize, Flags: anon | linux.MAP_FIXED}, linux.ENOMEM},
		{MapArgs{Length: 1, Flags: anon | linux.MAP_HUGETLB}, linux.ENOMEM},
		{MapArgs{Length: 1, Flags: linux.MAP_SHARED_VALIDATE | linux.MAP_ANONYMOUS | linux.MAP_SYNC}, linux.EINVAL},
		{MapArgs{Length: 2 * pageSize, Offset: ^uint64(pageMask), Flags: anon}, linux.EOVERFLOW},
		{MapArgs{Length: 1 << 45, Prot: rw, Flags: anon | linux.MAP_NORESERVE}, 0},
		{MapArgs{Length: 1 << 45, Flags: anon}, 0},
	} {
		if _, e := s.Mmap(nil, &c.a); e != c.e {
			t.Errorf("%d: %v, want %v", i, e, c.e)
		}
	}
	a := anonymous(t, s, pageSize)
	if _, e := s.Mmap(nil, &MapArgs{Addr: a, Length: pageSize, Flags: anon | linux.MAP_FIXED_NOREPLACE}); e != linux.EEXIST {
		t.Fatal(e)
	}
	b := mmap(t, s, MapArgs{Length: pageSize, Prot: rw, Flags: anon | linux.MAP_32BIT})
	if b >= 1<<31 {
		t.Fatalf("%#x", b)
	}
	h := mmap(t, s, MapArgs{Addr: 0x12345678, Length: pageSize, Prot: rw, Flags: anon})
	if h != 0x12346000 {
		t.Fatalf("hint: %#x", h)
	}
	if e := s.Munmap(nil, a+1, 1); e != linux.EINVAL {
		t.Fatal(e)
	}
	if e := s.Munmap(nil, a, 0); e != linux.EINVAL {
		t.Fatal(e)
	}
	if e := s.Madvise(nil, a, pageSize, 77); e != linux.EINVAL {
		t.Fatal(e)
	}
}

func TestMremapErrors(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	a := anonymous(t, s, 4*pageSize)
	for i, c := range []struct {
		addr, old, new uint64
		flags          uint32
		to             uint64
		e              linux.Errno
	}{
		{a, pageSize, 0, 0, 0, linux.EINVAL},
		{a + 1, pageSize, pageSize, 0, 0, linux.EINVAL},
		{a, pageSize, pageSize, linux.MREMAP_FIXED, a + 1<<20, linux.EINVAL},
		{a, pageSize, 2 * pageSize, linux.MREMAP_DONTUNMAP | linux.MREMAP_MAYMOVE, 0, linux.EINVAL},
		{a, 0, pageSize, linux.MREMAP_MAYMOVE, 0, linux.EINVAL},
		{a - 1<<30, pageSize, 2 * pageSize, linux.MREMAP_MAYMOVE, 0, linux.EFAULT},
		{a, 8 * pageSize, 16 * pageSize, linux.MREMAP_MAYMOVE, 0, linux.EFAULT},
		{a, 2 * pageSize, 3 * pageSize, 0, 0, linux.ENOMEM},
		{a, 4 * pageSize, 4 * pageSize, linux.MREMAP_MAYMOVE | linux.MREMAP_FIXED, a + pageSize, linux.EINVAL},
		{a, 4 * pageSize, ^uint64(0), linux.MREMAP_MAYMOVE, 0, linux.EINVAL},
		{a, 4 * pageSize, 1 << 46, linux.MREMAP_MAYMOVE, 0, linux.ENOMEM},
	} {
		if _, e := s.Mremap(nil, c.addr, c.old, c.new, c.flags, c.to); e != c.e {
			t.Errorf("%d: %v, want %v", i, e, c.e)
		}
	}
}

func TestOutOfMemoryIsAnAnswer(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer func() { mem.SetFloor(0, 0); s.Release() }()
	mem.SetFloor(mem.Spare()-2000, mem.Spare()-2000)
	a := mmap(t, s, MapArgs{Length: 64 << 20, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_NORESERVE})
	for i := uint64(0); ; i++ {
		r := store(s, a+i*pageSize, 1)
		if r == FaultOOM {
			break
		}
		if r != FaultOK || i > 10000 {
			t.Fatal(i, r)
		}
	}
	if _, e := s.CopyOut(uio.Addr(a+60<<20), []byte("x")); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if _, e := New(); e != linux.ENOMEM {
		t.Fatal(e)
	}
	if _, e := s.Fork(nil); e != linux.ENOMEM {
		t.Fatal(e)
	}
}

func TestMapsAndFork(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	var want []uint64
	for i := uint64(0); i < 100; i++ {
		want = append(want, mmap(t, s, MapArgs{Addr: 0x10000000 + i*2*pageSize, Length: pageSize, Prot: rw, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED}))
	}
	if e := s.Madvise(nil, want[50], pageSize, linux.MADV_DONTFORK); e != 0 {
		t.Fatal(e)
	}
	if e := s.Madvise(nil, want[51], pageSize, linux.MADV_WIPEONFORK); e != 0 {
		t.Fatal(e)
	}
	store(s, want[51], 1)
	store(s, want[52], 2)
	n, e := s.Fork(nil)
	if e != 0 {
		t.Fatal(e)
	}
	defer n.Release()
	if _, r := fetch(n, want[50]); r != FaultMapErr {
		t.Fatal(r)
	}
	if b, _ := fetch(n, want[51]); b != 0 {
		t.Fatal("not wiped")
	}
	if b, _ := fetch(n, want[52]); b != 2 {
		t.Fatal(b)
	}
	var got []uint64
	s.Maps(func(m MapInfo) bool { got = append(got, m.Start); return true })
	if len(got) != len(want) {
		t.Fatal(len(got))
	}
	k := 0
	s.Maps(func(m MapInfo) bool { k++; return k < 40 })
	if k != 40 {
		t.Fatal(k)
	}
}

func TestManyMappingsHaveALimit(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	defer s.Release()
	n, maxMaps := 0, int(settings.MaxMapCount.Get())
	for ; n < maxMaps+10; n++ {
		prot := uint32(n & 1)
		if _, e := s.Mmap(nil, &MapArgs{Length: pageSize, Prot: prot, Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS}); e != 0 {
			if e != linux.ENOMEM {
				t.Fatal(e)
			}
			break
		}
	}
	if n < maxMaps-10 || n > maxMaps {
		t.Fatal(n)
	}
	// Nor can forks multiply them beyond what the kernel's heap may hold.
	if _, e := s.Fork(nil); e != linux.ENOMEM {
		t.Fatal(e)
	}
}

func TestRemapPages(t *testing.T) {
	leakCheck(t)
	o, f := newFakeFile(t, 6, linux.O_RDWR)
	s := newSpace(t)
	a := mmap(t, s, MapArgs{Length: 4 * pageSize, Prot: rw, Flags: linux.MAP_SHARED, File: f})
	f.Put()
	if e := s.RemapPages(nil, a+pageSize, 2*pageSize, 4, 0); e != 0 {
		t.Fatal(e)
	}
	for i, want := range []byte{1, 5, 6, 4} {
		if b, r := fetch(s, a+uint64(i)*pageSize); b != want || r != FaultOK {
			t.Fatal(i, b, r)
		}
	}
	if e := s.RemapPages(nil, a, 2*pageSize, 0, 0); e != linux.EINVAL {
		t.Fatal("across two mappings:", e)
	}
	if e := s.Resident(a); e != 0 {
		t.Fatal(e)
	}
	if e := s.Resident(a - pageSize); e != linux.EFAULT {
		t.Fatal(e)
	}
	s.Release()
	if o.released.Load() != 1 || o.maps.Mapped() {
		t.Fatal("still held")
	}
	o.truncate(0)
}

func TestResidency(t *testing.T) {
	leakCheck(t)
	o, f := newFakeFile(t, 4, linux.O_RDWR)
	s := newSpace(t)
	a := anonymous(t, s, 8*pageSize)
	p := mmap(t, s, MapArgs{Length: 4 * pageSize, Prot: rw, Flags: linux.MAP_PRIVATE, File: f})
	f.Put()
	store(s, a, 1)
	store(s, a+4*pageSize, 1)
	fetch(s, a+6*pageSize) // zero page: not resident
	fetch(s, p)            // maps its neighbours too
	store(s, p+pageSize, 1)
	if r := s.Residency(a, a+8*pageSize); r.RSS != 2*pageSize || r.Anonymous != r.RSS || r.PrivateDirty != r.RSS || r.PSS != r.RSS {
		t.Fatal(r)
	}
	if r := s.Residency(p, p+4*pageSize); r.RSS != 4*pageSize || r.Anonymous != pageSize || r.PrivateClean != 3*pageSize || r.Referenced != 2*pageSize {
		t.Fatal(r)
	}
	store(s, a+pageSize, 1) // in order: the window maps one more
	n, _ := s.Fork(nil)
	// Dirty pages are copied at once, so nothing is shared.
	if r := n.Residency(0, userTop); r.SharedDirty != 0 || r.Anonymous == 0 {
		t.Fatal(r)
	}
	// What was not written since that fork is shared after the next.
	n2, _ := s.Fork(nil)
	if r := n2.Residency(0, userTop); r.SharedDirty != r.Anonymous || r.PSS >= r.RSS {
		t.Fatal(r)
	}
	n.Release()
	n2.Release()
	s.Release()
	o.truncate(0)
}
