// Package driver declares what device drivers need of the machine they run on.
//
// A driver is given a Platform and nothing else: the kernel implements it over
// the nucleus, tests over memory or over the emulator's own devices. Drivers
// never run in interrupt context; the platform turns interrupts into calls of a
// bottom half, an ordinary function in a goroutine.
package driver

// Platform is the machine as drivers see it. All methods may be called from
// any goroutine at any time after start-up.
type Platform interface {
	// MapDevice makes the device registers at a physical address accessible,
	// uncached. phys and size need not be page-aligned; offsets of the result
	// count from phys. The mapping stays for ever, and mapping the same
	// registers twice is allowed.
	MapDevice(phys, size uint64) MMIO

	// PhysWindow returns n bytes of ordinary memory (RAM or firmware tables) at
	// a physical address, cached. It returns nil when the range is not mapped
	// as such.
	PhysWindow(phys, n uint64) []byte

	// Port input and output.
	In8(port uint16) uint8
	In16(port uint16) uint16
	In32(port uint16) uint32
	Out8(port uint16, v uint8)
	Out16(port uint16, v uint16)
	Out32(port uint16, v uint32)

	// AllocDMA returns physically contiguous, zeroed pages of 4096 bytes, or
	// false when there are none. They are never freed.
	AllocDMA(pages int) (DMA, bool)

	// Interrupt routes a global system interrupt (an IOAPIC pin; ISA lines are
	// their number, the platform applies the MADT's overrides) to a bottom half.
	// The bottom half is called in a goroutine of the kernel soon after the
	// interrupt, by one goroutine at a time, and once more when the interrupt
	// came while it ran. A level line stays masked until it returns. It must not
	// wait for anything that user programs do: the goroutine may be that of a
	// user thread which the interrupt met.
	Interrupt(gsi uint32, level, activeLow bool, bottomHalf func()) error

	// MSI makes a message-signalled interrupt of its own for a CPU, with the
	// promises of Interrupt: a device that writes data to addr causes
	// bottomHalf to be called. CPUs count from 0; one that does not exist is
	// replaced by one that does.
	MSI(cpu int, bottomHalf func()) (addr uint64, data uint32, err error)
}

// MMIO is a window of device registers, all little-endian. Every call is
// exactly one access of exactly that width, in program order. Offsets beyond
// the window are a bug of the driver and panic.
type MMIO interface {
	Read8(off uint64) uint8
	Read16(off uint64) uint16
	Read32(off uint64) uint32
	Read64(off uint64) uint64
	Write8(off uint64, v uint8)
	Write16(off uint64, v uint16)
	Write32(off uint64, v uint32)
	Write64(off uint64, v uint64)
}

// DMA is memory that a device can reach.
type DMA struct {
	Virt []byte // its bytes; page-aligned, outside the Go heap
	Phys uint64 // the address the device uses for Virt[0]
}

// Slice returns the part [off, off+n) of the memory.
func (d DMA) Slice(off, n int) DMA {
	return DMA{Virt: d.Virt[off : off+n : off+n], Phys: d.Phys + uint64(off)}
}

// PageSize is the unit of AllocDMA.
const PageSize = 4096

// Pages returns how many pages hold n bytes.
func Pages(n int) int { return (n + PageSize - 1) / PageSize }
