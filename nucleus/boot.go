package nucleus

import (
	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/lock/core"
	"hardtack/nucleus/control"
)

// BootFn is what the first 64-bit instructions call; assembly alone uses it.
var BootFn = start

// bootInfo is what the loader told; immutable after boot.
var bootInfo struct {
	rsdp             uint64
	cmdline          uint64
	initrd, initrdSz uint64
	memMap           uint64
	ranges           int
	text, etext      uint64 // of the image, physical, as the next two
	rodata, end      uint64
}

// Stacks of a CPU, in pages: the nucleus's own, one for each kind of exception,
// the idle thread's.
const (
	nucleusStack = 8
	trapStack    = 4
	idleStack    = 1
)

// idt is shared by all CPUs: 256 gates of 16 bytes (SDM vol. 3, 6.14.1).
var idt [256][2]uint64

// start runs before the Go runtime: on the boot stack, with a fake g,
// interrupts off, physical memory still mapped at 0. It makes the machine what
// the runtime takes for Linux.
func start() {
	si := startInfo(amd64.BootInfo)
	readCluster(si)
	initConsole()
	checkCPU()
	if si.Magic != boot.StartMagic || si.Version < 1 {
		halt("not started through PVH with a memory map")
	}
	bootInfo.rsdp, bootInfo.cmdline = si.RSDP, si.Cmdline
	if si.Modules > 0 {
		m := module(si.ModList)
		bootInfo.initrd, bootInfo.initrdSz = m.Addr, m.Size
	}
	text, etext, rodata, end := imageBounds()
	keepMap(si, text, etext, rodata, end)
	initMemory(si, text, rodata, end)
	initKernelSpace(text, etext, rodata, end)
	spreadFrames()

	var ist [7]uintptr
	for i := range ist[1:] {
		ist[i+1] = mapStack(nil, trapStack)
	}
	stack, idle := mapStack(nil, nucleusStack), mapStack(nil, idleStack)
	for i := range cpus {
		cpus[i].run = emptyQueue
	}
	for i := range waits {
		waits[i].queue = emptyQueue
	}
	core.Yield = yield
	_, _, ecx, _ := amd64.CPUID(1, 0)
	control.Virtual = ecx>>31 != 0
	amd64.SyscallHandler = serveSyscall
	amd64.TrapHandler = serveTrap
	amd64.FatalHandler = serveFatal
	amd64.EnterUserHandler = enterUser
	amd64.MessageHandler = serveMessage
	amd64.PreparedHandler = servePrepared
	amd64.StartCPU = startCPU
	initIDT()
	c := &cpus[0].CPU
	numCPU.Store(1)
	guard.SetCores(1)
	initCPU(c, 0, stack, ist)
	if cluster.index == 0 {
		maskPIC()
		initTrampoline()
	}
	initAPIC(c)
	initClock()
	Entropy(amd64.BootRandom[:])
	amd64.SetVDSOClock()

	initIdle(c, idle)
	threads[0] = thread{state: threadRunning, queue: noQueue, altOff: true}
	cpus[0].current = 0
	cpus[0].online.Store(true)
	c.SetThread(&threads[0].Thread)
}

func initIdle(c *amd64.CPU, stack uintptr) {
	t := &threads[idleIndex(c.Index)]
	*t = thread{state: threadRunning, cpu: int32(c.Index), queue: noQueue, altOff: true}
	t.InitIdle(amd64.IdleEntry(), stack)
}

// keepMap keeps what MemoryMap and Image tell.
func keepMap(si *boot.StartInfo, text, etext, rodata, end uint64) {
	b := &bootInfo
	b.memMap, b.ranges = si.MemMap, int(si.MemMapEntries)
	b.text, b.etext, b.rodata, b.end = text-boot.ImageBase, etext-boot.ImageBase, rodata-boot.ImageBase, dataAt(end)
}

// dataAt is the physical address of a place in the image's data.
func dataAt(va uint64) uint64 { return va - boot.ImageBase + cluster.shift }

// initMemory gives the frame allocator all of the memory but for what is in use.
func initMemory(si *boot.StartInfo, text, rodata, end uint64) {
	kspace.holeStart, kspace.holeEnd = scratch()
	hole := [2]uint64{dataAt(kspace.holeStart), dataAt(kspace.holeEnd)}
	archive := [2]uint64{bootInfo.initrd, bootInfo.initrd + bootInfo.initrdSz}
	var keep [boot.MaxClusters + 4][2]uint64
	// Below the image of the first cluster are what the loader left, in the first MiB,
	// and the stub; below another cluster's data, what it was started with.
	keep[0], keep[1], keep[2] = [2]uint64{cluster.base, hole[0]}, [2]uint64{hole[1], dataAt(end)}, archive
	n := 3
	if cluster.index == 0 {
		// The archive is at the end of memory: of a small one, in the hole at best, or
		// in the rest of the hole's last page.
		for _, part := range [2][2]uint64{{text - boot.ImageBase, hole[0]}, {hole[1] + pageSize, dataAt(end)}} {
			if part[0] < part[1] && archive[0] < part[1] && archive[1] > part[0] {
				halt("too little memory: the boot archive lies in the kernel")
			}
		}
		planClusters(si, archive, dataAt(end))
		for _, p := range cluster.plan[:cluster.others] {
			keep[n] = [2]uint64{p.base, p.end}
			n++
		}
	}
	initFrames(si.MemMap, int(si.MemMapEntries), keep[:n])
	if cluster.others > 0 {
		saveData(rodata)
	}
}

// imageBounds reads the program headers that the Go linker left before the
// text: text, end of text, end of read-only data, end of the image.
func imageBounds() (text, etext, rodata, end uint64) {
	const header = boot.TextBase - pageSize
	phoff, n := load64(header+32), uintptr(load32(header+56)&0xffff)
	for i := range n {
		p := header + uintptr(phoff) + 56*i
		if load32(p) != 1 {
			continue
		}
		flags, va, size := load32(p+4), load64(p+16), load64(p+40)
		top := (va + size + pageSize - 1) &^ (pageSize - 1)
		switch {
		case flags&1 != 0:
			text, etext = va&^(pageSize-1), top
		case flags&2 == 0:
			rodata = max(rodata, top)
		}
		end = max(end, top)
	}
	if text == 0 || rodata <= etext || end <= rodata {
		halt("the kernel image's program headers are not as the linker makes them")
	}
	return text, etext, rodata, end
}

// initialised returns the length of the image's data that are not zero at the start.
func initialised(rodata uint64) uint64 {
	const header = boot.TextBase - pageSize
	phoff, n := load64(header+32), uintptr(load32(header+56)&0xffff)
	for i := range n {
		if p := header + uintptr(phoff) + 56*i; load32(p) == 1 && load64(p+16) == rodata {
			return load64(p + 32)
		}
	}
	halt("the kernel image's data are not where its program headers say")
	return 0
}

// checkCPU names what the processor lacks.
func checkCPU() {
	_, _, ecx, edx := amd64.CPUID(1, 0)
	_, ebx, _, _ := amd64.CPUID(7, 0)
	_, _, _, ext := amd64.CPUID(0x80000001, 0)
	need := func(ok bool, what string) {
		if !ok {
			puts("kernel: the processor lacks ")
			halt(what)
		}
	}
	need(ecx>>26&1 != 0, "XSAVE")
	need(ecx>>28&1 != 0, "AVX")
	need(ebx&1 != 0, "FSGSBASE")
	need(ext>>20&1 != 0, "NX")
	need(edx>>13&1 != 0, "global pages")
}

// Control register bits (SDM vol. 3, 2.5).
const (
	cr0NE = 1 << 5  // x87 errors are exceptions
	cr0WP = 1 << 16 // the kernel, too, cannot write what is read-only

	cr4PAE, cr4PGE             = 1 << 5, 1 << 7
	cr4FXSR, cr4XMM            = 1 << 9, 1 << 10
	cr4UMIP, cr4FSGS           = 1 << 11, 1 << 16
	cr4XSAVE, cr4SMEP, cr4SMAP = 1 << 18, 1 << 20, 1 << 21
)

// initCPU sets up the running processor.
func initCPU(c *amd64.CPU, index int, stack uintptr, ist [7]uintptr) {
	_, ebx, ecx, _ := amd64.CPUID(7, 0)
	cr4 := uint64(cr4PAE | cr4FXSR | cr4XMM | cr4FSGS | cr4XSAVE)
	if ebx>>7&1 != 0 {
		cr4 |= cr4SMEP
	}
	if ebx>>20&1 != 0 {
		cr4 |= cr4SMAP
	}
	if ecx>>2&1 != 0 {
		cr4 |= cr4UMIP
	}
	amd64.WriteCR0(amd64.ReadCR0() | cr0NE | cr0WP)
	amd64.WriteCR4(cr4)
	amd64.WriteCR3(kspace.root)
	amd64.WriteCR4(cr4 | cr4PGE)
	protections[index] = readProtections()
	amd64.SetXCR0(7) // x87, SSE, AVX
	if HasTSCAux() {
		amd64.WriteMSR(0xc0000103, uint64(index)) // what RDTSCP gives, for getcpu
	}
	c.Load(index, stack, ist, amd64.Descriptor(idtPointer(), 16*256-1))
}

func initIDT() {
	base := uint64(amd64.StubAddress())
	for v := range 256 {
		h := base + 16*uint64(v)
		ist, dpl := uint64(amd64.ISTInterrupt), uint64(0)
		switch v {
		case 1:
			ist = amd64.ISTDebug
		case 2:
			ist = amd64.ISTNMI
		case 3, 4:
			dpl = 3
		case 8:
			ist = amd64.ISTDouble
		case 14:
			ist = amd64.ISTPageFault
		case 18:
			ist = amd64.ISTMachine
		}
		idt[v][0] = h&0xffff | amd64.SelKernelCode<<16 | ist<<32 | 0xe<<40 | dpl<<45 | 1<<47 | h>>16&0xffff<<48
		idt[v][1] = h >> 32
	}
}

// maskPIC moves the old interrupt controllers out of the way and masks them.
func maskPIC() {
	for _, w := range [...][2]uint16{{0x20, 0x11}, {0xa0, 0x11}, {0x21, 0x20}, {0xa1, 0x28},
		{0x21, 4}, {0xa1, 2}, {0x21, 1}, {0xa1, 1}, {0x21, 0xff}, {0xa1, 0xff}} {
		amd64.Out8(w[0], uint8(w[1]))
	}
}

// RSDP returns the physical address of the ACPI root pointer, or 0.
func RSDP() uint64 { return bootInfo.rsdp }

// Initrd returns the physical address and size of the boot image's root file
// system; size 0 if there is none.
func Initrd() (pa, size uint64) { return bootInfo.initrd, bootInfo.initrdSz }

// Cmdline returns the kernel command line.
func Cmdline() string {
	if bootInfo.cmdline == 0 {
		return ""
	}
	b := RAM(bootInfo.cmdline, 4096)
	n := 0
	for n < len(b) && b[n] != 0 {
		n++
	}
	return string(b[:n])
}

// Range is a range of physical memory. Type is the loader's; 1 is RAM.
type Range struct {
	Start, End uint64
	Type       uint32
}

// MemoryMap returns the memory map that the loader left.
func MemoryMap() (list []Range) {
	for i := range bootInfo.ranges {
		e := memMapEntry(bootInfo.memMap, i)
		list = append(list, Range{Start: e.Addr, End: e.Addr + e.Size, Type: e.Type})
	}
	return list
}

// Image returns where the kernel is: its code, what it only reads, and its data, in the
// midst of which there may be a hole that is used as other memory is.
func Image() (code, rodata Range, data [2]Range) {
	b := &bootInfo
	hole := [2]uint64{dataAt(kspace.holeStart), dataAt(kspace.holeEnd)}
	return Range{Start: b.text, End: b.etext}, Range{Start: b.etext, End: b.rodata},
		[2]Range{{Start: b.rodata + cluster.shift, End: hole[0]}, {Start: hole[1], End: b.end}}
}

// HasTSCAux reports whether RDTSCP gives user programs the CPU's number.
func HasTSCAux() bool {
	_, _, _, edx := amd64.CPUID(0x80000001, 0)
	return edx>>27&1 != 0
}
