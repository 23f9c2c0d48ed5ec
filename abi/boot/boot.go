// Package boot holds what the image tool, the loader and the kernel agree on:
// where the boot stub lies, and the PVH start structures.
package boot

// The stub segment that the image tool adds to the kernel: 32-bit entry, first
// page tables, start-up code of the other processors.
const (
	StubBase = 0x100000 // physical address

	StubGDT        = 0x400  // offset of the stub's descriptor table
	StubTrampoline = 0x800  // offset of the other processors' start-up code
	StubPML4       = 0x1000 // offsets of the first page tables
	StubDirect     = 0x2000 // page directory pointers: the first 4 GiB, one to one
	StubKernelPDP  = 0x3000
	StubDirectPD   = 0x4000 // four page directories of 2 MiB pages; the first GiB is the kernel image's too
	StubSize       = 0x8000
)

// Trampoline is where the start-up code is copied to (a page below 1 MiB), and
// where in it the nucleus leaves the words that it reads.
const (
	Trampoline      = 0x8000
	TrampolineSize  = 0x100
	TrampolineCR3   = 0xe0 // 4 bytes: page table root
	TrampolineEntry = 0xe8 // 8 bytes: where to go in long mode
)

// Virtual layout of the kernel's half.
const (
	DirectBase = 0xffff800000000000 // physical memory, PML4 entry 256
	ImageBase  = 0xffffffff80000000 // the kernel image: physical address 0
	TextBase   = 0xffffffff80200000 // where the linker puts the first text
)

// StartInfo is hvm_start_info, version 1 (xen/include/public/arch-x86/hvm/start_info.h).
type StartInfo struct {
	Magic, Version, Flags, Modules uint32
	ModList, Cmdline, RSDP         uint64
	MemMap                         uint64
	MemMapEntries, _               uint32
}

// StartMagic is StartInfo.Magic.
const StartMagic = 0x336ec578

// Module is hvm_modlist_entry.
type Module struct{ Addr, Size, Cmdline, _ uint64 }

// MemMapEntry is hvm_memmap_table_entry; Type 1 is RAM.
type MemMapEntry struct {
	Addr, Size uint64
	Type, _    uint32
}
