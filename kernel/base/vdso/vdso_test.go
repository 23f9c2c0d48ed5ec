package vdso

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
)

func TestMain(m *testing.M) {
	mem.InitHost(64)
	if e := Init(); e != 0 {
		panic(e)
	}
	m.Run()
}

func TestCodeIsListing(t *testing.T) {
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skip("no assembler (package binutils)")
	}
	dir := t.TempDir()
	o, b := filepath.Join(dir, "o"), filepath.Join(dir, "b")
	if out, err := exec.Command(as, "--64", "-o", o, "testdata/vdso.s").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("objcopy", "-O", "binary", "-j", ".text", o, b).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(code[:], want) {
		t.Fatal("code.go is not what testdata/vdso.s assembles to")
	}
}

func TestImageIsELF(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(image()))
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != elf.ET_DYN || f.Machine != elf.EM_X86_64 || len(f.Progs) != 2 {
		t.Fatal(f.FileHeader, f.Progs)
	}
	if p := f.Progs[0]; p.Type != elf.PT_LOAD || p.Flags != elf.PF_R|elf.PF_X || p.Vaddr != 0 || p.Filesz > mem.PageSize {
		t.Fatal(p)
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]elf.Symbol{}
	for _, s := range syms {
		if s.Version != version || s.Library != "" && s.Library != soname || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			t.Errorf("%+v", s)
		}
		found[s.Name] = s
	}
	for _, name := range []string{"clock_gettime", "gettimeofday", "time", "clock_getres", "getcpu"} {
		a, b := found["__vdso_"+name], found[name]
		if a.Value == 0 || a.Value != b.Value || f.Sections[a.Section].Name != ".text" {
			t.Errorf("%s: %+v %+v", name, a, b)
		}
		if v := lookup(t, f, "__vdso_"+name); v != a.Value {
			t.Errorf("%s by hash: %#x, by table %#x", name, v, a.Value)
		}
	}
	if so, err := f.DynString(elf.DT_SONAME); err != nil || len(so) != 1 || so[0] != soname {
		t.Error(so, err)
	}
	if v, err := f.DynamicVersions(); err != nil || len(v) != 2 || v[1].Name != version {
		t.Error(v, err)
	}
}

// lookup finds a symbol as a dynamic linker does: through DT_HASH alone.
func lookup(t *testing.T, f *elf.File, name string) uint64 {
	img := image()
	at := func(tag elf.DynTag) uint64 {
		v, err := f.DynValue(tag)
		if err != nil || len(v) != 1 {
			t.Fatal(tag, v, err)
		}
		return v[0]
	}
	h, symtab, strtab := at(elf.DT_HASH), at(elf.DT_SYMTAB), at(elf.DT_STRTAB)
	u32 := func(off uint64) uint32 { return binary.LittleEndian.Uint32(img[off:]) }
	n := u32(h)
	for i := u32(h + 8 + 4*uint64(hashOf(name)%n)); i != 0; i = u32(h + 8 + 4*uint64(n) + 4*uint64(i)) {
		s := img[symtab+24*uint64(i):]
		str := img[strtab+uint64(binary.LittleEndian.Uint32(s)):]
		if string(str[:bytes.IndexByte(str, 0)]) == name {
			return binary.LittleEndian.Uint64(s[8:])
		}
	}
	return 0
}

//go:linkname asmcgocall runtime.asmcgocall
func asmcgocall(fn, arg unsafe.Pointer) int32

// machine is the pages mapped executable on the host, with a trampoline that
// calls a function of the C convention with two arguments.
type machine struct {
	t    *testing.T
	mem  []byte
	syms map[string]uint64
}

type callArgs struct{ fn, a, b, result uint64 }

const trampoline = 2 * mem.PageSize

func newMachine(t *testing.T) *machine {
	b, err := syscall.Mmap(-1, 0, 3*mem.PageSize, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Skip("no executable memory here:", err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	copy(b[ImageOffset:], frames[1].Bytes())
	copy(b[trampoline:], []byte{
		0x53,             // push %rbx
		0x48, 0x89, 0xfb, // mov %rdi,%rbx
		0x48, 0x8b, 0x7b, 0x08, // mov 8(%rbx),%rdi
		0x48, 0x8b, 0x73, 0x10, // mov 16(%rbx),%rsi
		0xff, 0x13, // call *(%rbx)
		0x48, 0x89, 0x43, 0x18, // mov %rax,24(%rbx)
		0x5b, 0xc3, // pop %rbx; ret
	})
	copy(b[trampoline+64:], []byte{
		0x0f, 0x31, // rdtsc
		0x48, 0xc1, 0xe2, 0x20, // shl $32,%rdx
		0x48, 0x09, 0xd0, 0xc3, // or %rdx,%rax; ret
	})
	f, err := elf.NewFile(bytes.NewReader(image()))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, mem: b, syms: map[string]uint64{}}
	syms, _ := f.DynamicSymbols()
	for _, s := range syms {
		m.syms[s.Name] = s.Value
	}
	m.refresh()
	return m
}

// refresh copies the data page that the kernel side wrote.
func (m *machine) refresh() { copy(m.mem, frames[0].Bytes()) }

func (m *machine) call(offset int, a uint64, b unsafe.Pointer) uint64 {
	x := &callArgs{fn: uint64(uintptr(unsafe.Pointer(&m.mem[offset]))), a: a, b: uint64(uintptr(b))}
	asmcgocall(unsafe.Pointer(&m.mem[trampoline]), unsafe.Pointer(x))
	runtime.KeepAlive(b)
	return x.result
}

func (m *machine) vdso(name string, a, b unsafe.Pointer) uint64 {
	v := m.syms["__vdso_"+name]
	if v == 0 {
		m.t.Fatal("no symbol", name)
	}
	r := m.call(ImageOffset+int(v), uint64(uintptr(a)), b)
	runtime.KeepAlive(a)
	return r
}

func (m *machine) tsc() uint64 { return m.call(trampoline+64, 0, nil) }

func (m *machine) gettime(clock int) (int64, int64) {
	var ts linux.Timespec
	r := m.call(ImageOffset+int(m.syms["__vdso_clock_gettime"]), uint64(clock), unsafe.Pointer(&ts))
	return ts.Sec*linux.NsecPerSec + ts.Nsec, int64(int32(r))
}

// sample reads the TSC and the host's clock together.
func (m *machine) sample() (tsc uint64, ns int64) {
	best := int64(1 << 62)
	for range 50 {
		before := hostTime(1)
		x := m.tsc()
		after := hostTime(1)
		if after-before < best {
			best, tsc, ns = after-before, x, before+(after-before)/2
		}
	}
	return tsc, ns
}

func hostTime(clock int) int64 {
	var ts syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// near fails unless got is between two readings of the host's clock, give or
// take a millisecond for the rough calibration.
func near(t *testing.T, what string, before, got, after int64) {
	t.Helper()
	const slack = int64(time.Millisecond)
	if got < before-slack || got > after+slack {
		t.Errorf("%s: %d is not within %d … %d", what, got, before, after)
	}
}

func TestClocks(t *testing.T) {
	m := newMachine(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	// Without a clock every function asks the kernel: the host's.
	before := hostTime(1)
	got, r := m.gettime(1)
	if near(t, "fallback", before, got, hostTime(1)); r != 0 {
		t.Fatal(r)
	}

	t0, m0 := m.sample()
	time.Sleep(30 * time.Millisecond)
	t1, m1 := m.sample()
	const shift = 32
	mult := uint64(float64(m1-m0) / float64(t1-t0) * (1 << shift))
	SetClock(&Clock{TSCBase: t0, Mult: mult, Shift: shift, Base: m0})
	defer SetClock(nil)
	offset := int64(0)
	for range 50 { // a delay between the two readings makes it smaller
		offset = max(offset, hostTime(0)-hostTime(1))
	}
	SetRealtimeOffset(offset)
	m.refresh()

	for _, clock := range []int{0, 1, 4, 5, 6, 7, 11} {
		host := 1
		if clock == 0 || clock == 5 || clock == 11 {
			host = 0
		}
		before := hostTime(host)
		got, r := m.gettime(clock)
		if near(t, "clock", before, got, hostTime(host)); r != 0 {
			t.Error(clock, r)
		}
	}
	if _, r := m.gettime(2); r != 0 { // process CPU time: by the kernel
		t.Error(r)
	}
	for _, clock := range []int{10, 12, 99} {
		if _, r := m.gettime(clock); r != -int64(linux.EINVAL) {
			t.Error(clock, r)
		}
	}

	var tv linux.Timeval
	tz := [2]int32{7, 7}
	before = hostTime(0)
	if r := m.vdso("gettimeofday", unsafe.Pointer(&tv), unsafe.Pointer(&tz)); r != 0 || tz != [2]int32{} {
		t.Error(r, tz)
	}
	near(t, "gettimeofday", before, tv.Sec*1e9+tv.Usec*1000, hostTime(0))
	if r := m.vdso("gettimeofday", nil, nil); r != 0 {
		t.Error(r)
	}

	var sec int64
	before = hostTime(0)
	if r := m.vdso("time", unsafe.Pointer(&sec), nil); int64(r) != sec || sec < before/1e9-1 || sec > before/1e9+1 {
		t.Error(r, sec, before)
	}

	res := linux.Timespec{Sec: 5}
	if r := m.call(ImageOffset+int(m.syms["__vdso_clock_getres"]), 1, unsafe.Pointer(&res)); r != 0 || res != (linux.Timespec{Nsec: 1}) {
		t.Error(r, res)
	}

	// The clock never goes back.
	last := int64(0)
	for range 20000 {
		now, _ := m.gettime(1)
		if now < last {
			t.Fatal("went back by", last-now)
		}
		last = now
	}
}

func TestLongTimesAndLag(t *testing.T) {
	m := newMachine(t)
	// The product needs more than 64 bits.
	SetClock(&Clock{TSCBase: 0, Mult: 1 << 62, Shift: 63, Base: 1000})
	defer SetClock(nil)
	m.refresh()
	before := m.tsc()
	got, _ := m.gettime(1)
	if after := m.tsc(); got < int64(before/2)+999 || got > int64(after/2)+1000 {
		t.Error(before/2, got, after/2)
	}
	// A counter behind the base reads as the base.
	SetClock(&Clock{TSCBase: m.tsc() + 1<<50, Mult: 1 << 32, Shift: 32, Base: 42})
	m.refresh()
	if got, _ := m.gettime(1); got != 42 {
		t.Error(got)
	}
}

// Readers never see half of an update.
func TestSequenceLock(t *testing.T) {
	// The writer may stop in the middle of a change, but not for ever: who reads spins
	// in code that neither the collector nor another goroutine can interrupt.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2)))
	m := newMachine(t)
	d := (*data)(unsafe.Pointer(&m.mem[0]))
	d.useTSC, d.shift, d.mult, d.tscBase, d.base, d.realOffset = 1, 0, 0, 0, 0, 7
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := int64(1); !stop.Load(); i++ {
			d.seq.Add(1)
			atomic.StoreInt64(&d.base, i)
			atomic.StoreInt64(&d.realOffset, -i+7)
			d.seq.Add(1)
		}
	}()
	end := wait.Now() + int64(20*time.Millisecond)
	for wait.Now() < end {
		if got, _ := m.gettime(0); got != 7 {
			t.Error("torn:", got)
			break
		}
	}
	stop.Store(true)
	<-done
}

func TestGetCPU(t *testing.T) {
	m := newMachine(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set [16]uint64
	syscall.Syscall(syscall.SYS_SCHED_GETAFFINITY, 0, 128, uintptr(unsafe.Pointer(&set)))
	for _, s := range []CPUSource{CPUFromKernel, CPUFromRDTSCP} {
		SetCPUSource(s)
		m.refresh()
		cpu, node := uint32(0xffff), uint32(0xffff)
		if r := m.vdso("getcpu", unsafe.Pointer(&cpu), unsafe.Pointer(&node)); r != 0 || cpu >= 1024 || set[cpu/64]>>(cpu%64)&1 == 0 || node > 64 {
			t.Error(s, r, cpu, node)
		}
		if r := m.vdso("getcpu", nil, nil); r != 0 {
			t.Error(r)
		}
	}
}

func TestObject(t *testing.T) {
	for i := range uint64(2) {
		f, e := Object().Page(i, false)
		if e != 0 || f != Pages()[i] {
			t.Fatal(f, e)
		}
		f.Put()
		if _, e := Object().Page(i, true); e != linux.EFAULT {
			t.Fatal(e)
		}
	}
	if _, e := Object().Page(2, false); e != linux.EFAULT {
		t.Fatal(e)
	}
}
