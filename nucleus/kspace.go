package nucleus

import (
	"sync/atomic"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// The kernel's half of every address space, by PML4 entry: 256 physical memory
// (direct map), 384 the Go heap's arenas, 385 the runtime's smaller mappings,
// 386 device registers and the nucleus's stacks, 511 the kernel image. All are filled in at boot, so
// that address spaces made later share them for ever.
const (
	arenaBase  = 0xffffc00000000000 // entry 384
	arenaEnd   = arenaBase + 1<<39
	smallBase  = arenaEnd // entry 385
	smallEnd   = smallBase + 1<<39
	deviceBase = smallEnd // entry 386
	deviceEnd  = deviceBase + 1<<39

	arenaAlign = 64 << 20 // the Go heap's arena size
)

// Page table entry bits (SDM vol. 3, 4.5).
const (
	ptePresent = 1 << 0
	pteWrite   = 1 << 1
	pteUser    = 1 << 2
	ptePWT     = 1 << 3
	ptePCD     = 1 << 4
	pteLarge   = 1 << 7
	pteGlobal  = 1 << 8
	pteNX      = 1 << 63
	pteAddr    = 0x000ffffffffff000
)

// kspace is the kernel's half. Regions grow alone.
var kspace struct {
	root      uint64 // physical address of the kernel's PML4; immutable after boot
	direct    uint64 // physical memory below is in the direct map; immutable after boot
	holeStart uint64 // pages of the image that come at the first touch; immutable after boot
	holeEnd   uint64
	arenaNext uint64 // next unused address of each region
	smallNext uint64
	devNext   uint64
}

// KernelPML4 fills the kernel's half of an address space's root table.
func KernelPML4(root *[512]uint64) { copy(root[256:], table(kspace.root)[256:]) }

// initKernelSpace builds the kernel's own tables from the boot ones. Text and read-only
// data cannot be written nor data executed, both in the image and in the direct map. The
// arguments are addresses of the image, which is mapped in 4 KiB pages.
func initKernelSpace(textStart, textEnd, roEnd, imageEnd uint64) {
	k := &kspace
	k.root = kernelFrame(nil)
	t := table(k.root)
	t[256] = initDirect(textStart-boot.ImageBase, roEnd-boot.ImageBase) | ptePresent | pteWrite

	kpdp, kpd := kernelFrame(nil), kernelFrame(nil)
	t[511] = kpdp | ptePresent | pteWrite
	table(kpdp)[510] = kpd | ptePresent | pteWrite
	for big := textStart &^ (largeSize - 1); big < imageEnd; big += largeSize {
		kpt := kernelFrame(nil)
		for i := range uint64(512) {
			va := big + i*pageSize
			switch {
			case va < textStart || va >= imageEnd || va >= k.holeStart && va < k.holeEnd:
			case va < textEnd:
				table(kpt)[i] = va - boot.ImageBase | ptePresent | pteGlobal
			case va < roEnd:
				table(kpt)[i] = va - boot.ImageBase | ptePresent | pteGlobal | pteNX
			default:
				table(kpt)[i] = dataAt(va) | ptePresent | pteGlobal | pteNX | pteWrite
			}
		}
		table(kpd)[big>>21&511] = kpt | ptePresent | pteWrite
	}
	// The other processors start on the boot tables, and on stacks of the kernel's.
	table(bootRoot())[256] = t[256]
	for i := 384; i <= 386; i++ {
		t[i] = kernelFrame(nil) | ptePresent | pteWrite
		table(bootRoot())[i] = t[i]
	}
	k.arenaNext, k.smallNext, k.devNext = arenaBase, smallBase, deviceBase
}

// largeSize is what an entry of a page directory maps at once.
const largeSize = 1 << 21

// initDirect makes the direct map's tables: all memory below RAM's end but for that of
// other clusters. text and roEnd bound what cannot be written.
func initDirect(text, roEnd uint64) uint64 {
	k := &kspace
	pdp := kernelFrame(nil)
	gibs := min(max((max(frames.top, cluster.top)+1<<30-1)>>30, 4), 512)
	k.direct = gibs << 30
	for i := range gibs {
		whole, any := ownMemory(i<<30, (i+1)<<30)
		if !any {
			continue
		}
		if i > 0 && whole && hasGiBPages() {
			table(pdp)[i] = i<<30 | ptePresent | pteWrite | pteLarge | pteNX | pteGlobal
			continue
		}
		pd := kernelFrame(nil)
		for j := range uint64(512) {
			big := i<<30 | j<<21
			switch own, _ := ownMemory(big, big+largeSize); {
			case !own:
			case big < roEnd && big+largeSize > text:
				table(pd)[j] = splitDirect(big, text, roEnd) | ptePresent | pteWrite
			default:
				table(pd)[j] = big | ptePresent | pteWrite | pteLarge | pteNX | pteGlobal
			}
		}
		table(pdp)[i] = pd | ptePresent | pteWrite
	}
	return pdp
}

// splitDirect makes the table of a part of the direct map that is not all writable.
func splitDirect(big, text, roEnd uint64) uint64 {
	pt := kernelFrame(nil)
	for i := range uint64(512) {
		pa := big + i*pageSize
		flags := uint64(ptePresent | pteNX | pteGlobal)
		if pa < text || pa >= roEnd {
			flags |= pteWrite
		}
		table(pt)[i] = pa | flags
	}
	return pt
}

func hasGiBPages() bool {
	_, _, _, edx := amd64.CPUID(0x80000001, 0)
	return edx>>26&1 != 0
}

// kernelPTE returns the entry that maps va, making tables on the way if asked.
func kernelPTE(c *amd64.CPU, va uint64, create bool) *uint64 {
	t := table(kspace.root)
	for shift := uint(39); shift > 12; shift -= 9 {
		e := &t[va>>shift&511]
		if *e&ptePresent == 0 {
			if !create {
				return nil
			}
			*e = kernelFrame(c) | ptePresent | pteWrite
		}
		t = table(*e & pteAddr)
	}
	return &t[va>>12&511]
}

// commit maps the page of heap memory at va if it is not yet; it reports
// whether va is heap memory. Tables never go away, and pages only alone, so what is
// there needs no lock.
func commit(c *amd64.CPU, va uint64) bool {
	k := &kspace
	if !(va >= arenaBase && va < k.arenaNext || va >= smallBase && va < k.smallNext || va >= k.holeStart && va < k.holeEnd) {
		return false
	}
	if e := kernelPTE(c, va, false); e != nil && atomic.LoadUint64(e)&ptePresent != 0 {
		return true
	}
	memory.Acquire()
	if e := kernelPTE(c, va, true); *e&ptePresent == 0 {
		atomic.StoreUint64(e, kernelFrame(c)|ptePresent|pteWrite|pteNX|pteGlobal)
	}
	memory.Release()
	return true
}

// touch makes n bytes at va usable without a fault: heap memory is committed.
// The kernel image and the direct map always are.
func touch(c *amd64.CPU, va uintptr, n int) bool {
	for a := uint64(va) &^ (pageSize - 1); a < uint64(va)+uint64(n); a += pageSize {
		if a < boot.DirectBase {
			return false
		}
		if a >= arenaBase && a < deviceBase && !commit(c, a) {
			return false
		}
	}
	return true
}

// mapAnonymous serves the runtime's mmap: address space only, memory comes with
// the first touch. Hints in the lower half, which is the users', are not taken.
func mapAnonymous(hint, size uint64) uint64 {
	k := &kspace
	size = (size + pageSize - 1) &^ (pageSize - 1)
	if size == 0 || size > 1<<38 {
		return 0
	}
	if size >= arenaAlign {
		start := k.arenaNext
		if hint >= k.arenaNext && hint < arenaEnd && hint&(arenaAlign-1) == 0 {
			start = hint
		}
		end := (start + size + arenaAlign - 1) &^ (arenaAlign - 1)
		if end > arenaEnd {
			return 0
		}
		k.arenaNext = end
		return start
	}
	if k.smallNext+size > smallEnd {
		return 0
	}
	k.smallNext += size
	return k.smallNext - size
}

// discard takes the memory behind heap addresses away; touched again it reads
// as zero. Alone.
func discard(c *amd64.CPU, va, size uint64) {
	if va < arenaBase || va+size > deviceBase || va+size < va {
		return
	}
	const batch = 64
	var drop [batch]uint64
	n := 0
	for a := va &^ (pageSize - 1); a < va+size; a += pageSize {
		e := kernelPTE(c, a, false)
		if e == nil { // no table: skip what it would map
			a = (a | (1<<21 - 1)) + 1 - pageSize
			continue
		}
		if *e&ptePresent == 0 {
			continue
		}
		drop[n] = *e & pteAddr
		*e = 0
		if n++; n == batch {
			release(c, &drop, n)
			n = 0
		}
	}
	release(c, &drop, n)
}

func release(c *amd64.CPU, drop *[64]uint64, n int) {
	if n == 0 {
		return
	}
	flushKernel(c)
	for _, pa := range drop[:n] {
		frames.kernel.Add(-1)
		freeFrame(pa)
	}
}

// mapDevice maps device registers uncached.
func mapDevice(c *amd64.CPU, pa, size uint64) uint64 { return mapPages(c, pa, size, ptePCD|ptePWT) }

// mapPages maps physical memory that need not be in the direct map, for ever.
func mapPages(c *amd64.CPU, pa, size, flags uint64) uint64 {
	first := pa &^ (pageSize - 1)
	va := kspace.devNext
	for p := first; p < pa+size; p += pageSize {
		*kernelPTE(c, kspace.devNext, true) = p | ptePresent | pteWrite | pteNX | pteGlobal | flags
		kspace.devNext += pageSize
	}
	kspace.devNext += pageSize // a guard
	return va + pa&(pageSize-1)
}

// mapStack maps a stack of the nucleus, with an unmapped page below it, and
// returns its top. The word there is the NMI entry's (see amd64.CPU.Load).
func mapStack(c *amd64.CPU, pages int) uintptr {
	k := &kspace
	k.devNext += pageSize
	for range pages {
		*kernelPTE(c, k.devNext, true) = kernelFrame(c) | ptePresent | pteWrite | pteNX | pteGlobal
		k.devNext += pageSize
	}
	return uintptr(k.devNext) - 64
}

// DirectLimit returns the end of the physical addresses in the direct map.
func DirectLimit() uint64 { return kspace.direct }
