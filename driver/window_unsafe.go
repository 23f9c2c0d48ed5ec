package driver

import "unsafe"

// Window is the MMIO of registers that are mapped at an address of the kernel.
//
// Every access is one plain MOV: the accessors are not inlined, so that the
// compiler can neither merge, drop nor move it, and the processor keeps
// accesses to uncached memory in order. sync/atomic would not do: its stores
// are XCHG, which reads the register as well.
type Window struct {
	base unsafe.Pointer
	size uint64
}

// NewWindow returns the accessor of size bytes of registers mapped at base.
func NewWindow(base unsafe.Pointer, size uint64) *Window { return &Window{base, size} }

func (w *Window) at(off, n uint64) unsafe.Pointer {
	if off > w.size || w.size-off < n {
		panic("driver: access beyond the device's registers")
	}
	return unsafe.Add(w.base, off)
}

// Read8 reads a byte.
func (w *Window) Read8(off uint64) uint8 { return load8((*uint8)(w.at(off, 1))) }

// Read16 reads 16 bits.
func (w *Window) Read16(off uint64) uint16 { return load16((*uint16)(w.at(off, 2))) }

// Read32 reads 32 bits.
func (w *Window) Read32(off uint64) uint32 { return load32((*uint32)(w.at(off, 4))) }

// Read64 reads 64 bits.
func (w *Window) Read64(off uint64) uint64 { return load64((*uint64)(w.at(off, 8))) }

// Write8 writes a byte.
func (w *Window) Write8(off uint64, v uint8) { store8((*uint8)(w.at(off, 1)), v) }

// Write16 writes 16 bits.
func (w *Window) Write16(off uint64, v uint16) { store16((*uint16)(w.at(off, 2)), v) }

// Write32 writes 32 bits.
func (w *Window) Write32(off uint64, v uint32) { store32((*uint32)(w.at(off, 4)), v) }

// Write64 writes 64 bits.
func (w *Window) Write64(off uint64, v uint64) { store64((*uint64)(w.at(off, 8)), v) }

//go:noinline
func load8(p *uint8) uint8 { return *p }

//go:noinline
func load16(p *uint16) uint16 { return *p }

//go:noinline
func load32(p *uint32) uint32 { return *p }

//go:noinline
func load64(p *uint64) uint64 { return *p }

//go:noinline
func store8(p *uint8, v uint8) { *p = v }

//go:noinline
func store16(p *uint16, v uint16) { *p = v }

//go:noinline
func store32(p *uint32, v uint32) { *p = v }

//go:noinline
func store64(p *uint64, v uint64) { *p = v }
