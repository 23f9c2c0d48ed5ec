// Package pci finds PCI functions and gives access to their configuration space: the
// memory-mapped space that the MCFG table describes, or else the ports of mechanism #1.
// It does not assign addresses: the firmware has done so.
package pci

import (
	"errors"
	"fmt"
	"sync"

	"hardtack/driver"
	"hardtack/driver/acpi"
)

// Address is a function's place.
type Address struct{ Bus, Device, Function uint8 }

func (a Address) String() string {
	return fmt.Sprintf("%02x:%02x.%d", a.Bus, a.Device, a.Function)
}

// Access reads and writes configuration space; off is aligned to the width.
type Access interface {
	Read(a Address, off uint16, width int) uint32
	Write(a Address, off uint16, width int, v uint32)
}

// ecam is the memory-mapped space, one megabyte per bus.
type ecam struct {
	p     driver.Platform
	area  acpi.ECAM
	mu    sync.Mutex
	buses [256]driver.MMIO // guarded by mu; mapped when first used
}

func (e *ecam) at(a Address) (driver.MMIO, uint64) {
	if a.Bus < e.area.FirstBus || a.Bus > e.area.LastBus {
		return nil, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.buses[a.Bus] == nil {
		e.buses[a.Bus] = e.p.MapDevice(e.area.Base+uint64(a.Bus)<<20, 1<<20)
	}
	return e.buses[a.Bus], uint64(a.Device)<<15 | uint64(a.Function)<<12
}

// one is the memory-mapped space of one function.
type one struct {
	at   Address
	regs driver.MMIO
}

// functionBytes is the configuration space of a function.
const functionBytes = 4096

// Space is where a function's configuration space is in memory, 0 if it is in none.
func Space(spaces []acpi.ECAM, a Address) uint64 {
	for _, s := range spaces {
		if s.Segment == 0 && a.Bus >= s.FirstBus && a.Bus <= s.LastBus {
			return s.Base + uint64(a.Bus)<<20 + uint64(a.Device)<<15 + uint64(a.Function)<<12
		}
	}
	return 0
}

// At returns the function at an address, nil if none is there; its configuration space is at
// phys. Nothing else is looked at.
func At(p driver.Platform, a Address, phys uint64) *Function {
	s := scanner{p: p, c: &one{a, p.MapDevice(phys, functionBytes)}}
	for i := range s.seen { // buses behind it are others'
		s.seen[i] = true
	}
	return s.function(a)
}

func (o *one) Read(a Address, off uint16, width int) uint32 {
	if a != o.at {
		return ^uint32(0)
	}
	switch width {
	case 1:
		return uint32(o.regs.Read8(uint64(off)))
	case 2:
		return uint32(o.regs.Read16(uint64(off)))
	}
	return o.regs.Read32(uint64(off))
}

func (o *one) Write(a Address, off uint16, width int, v uint32) {
	switch {
	case a != o.at:
	case width == 1:
		o.regs.Write8(uint64(off), uint8(v))
	case width == 2:
		o.regs.Write16(uint64(off), uint16(v))
	default:
		o.regs.Write32(uint64(off), v)
	}
}

func (e *ecam) Read(a Address, off uint16, width int) uint32 {
	m, base := e.at(a)
	if m == nil {
		return ^uint32(0)
	}
	switch base += uint64(off); width {
	case 1:
		return uint32(m.Read8(base))
	case 2:
		return uint32(m.Read16(base))
	}
	return m.Read32(base)
}

func (e *ecam) Write(a Address, off uint16, width int, v uint32) {
	m, base := e.at(a)
	if m == nil {
		return
	}
	switch base += uint64(off); width {
	case 1:
		m.Write8(base, uint8(v))
	case 2:
		m.Write16(base, uint16(v))
	default:
		m.Write32(base, v)
	}
}

// Ports of mechanism #1.
const (
	portAddress = 0xcf8
	portData    = 0xcfc
)

type ports struct {
	p  driver.Platform
	mu sync.Mutex // the address register
}

func (c *ports) selectAt(a Address, off uint16) uint16 {
	c.p.Out32(portAddress, 1<<31|uint32(a.Bus)<<16|uint32(a.Device)<<11|uint32(a.Function)<<8|uint32(off&0xfc))
	return portData + off&3
}

func (c *ports) Read(a Address, off uint16, width int) uint32 {
	if off > 0xff {
		return ^uint32(0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch port := c.selectAt(a, off); width {
	case 1:
		return uint32(c.p.In8(port))
	case 2:
		return uint32(c.p.In16(port))
	default:
		return c.p.In32(port)
	}
}

func (c *ports) Write(a Address, off uint16, width int, v uint32) {
	if off > 0xff {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch port := c.selectAt(a, off); width {
	case 1:
		c.p.Out8(port, uint8(v))
	case 2:
		c.p.Out16(port, uint16(v))
	default:
		c.p.Out32(port, v)
	}
}

// Open returns access to the configuration space of segment 0.
func Open(p driver.Platform, spaces []acpi.ECAM) Access {
	for _, s := range spaces {
		if s.Segment == 0 {
			return &ecam{p: p, area: s}
		}
	}
	return &ports{p: p}
}

// PortsAnswer reports whether the ports lead to a PCI bus: the address register then
// keeps what is written to it.
func PortsAnswer(p driver.Platform) bool {
	old := p.In32(portAddress)
	p.Out32(portAddress, 1<<31)
	ok := p.In32(portAddress) == 1<<31
	p.Out32(portAddress, old)
	return ok
}

// Registers of the header that all functions have, and those of type 0.
const (
	regVendor     = 0x00
	regDevice     = 0x02
	regCommand    = 0x04
	regStatus     = 0x06
	regRevision   = 0x08 // and the class
	regHeaderType = 0x0e
	regBAR        = 0x10
	regSecondary  = 0x19 // of bridges
	regSubsystem  = 0x2e
	regCapability = 0x34
	regPin        = 0x3d

	statusCapabilities = 1 << 4
	multiFunction      = 0x80

	commandIO        = 1 << 0
	commandMemory    = 1 << 1
	commandMaster    = 1 << 2
	commandNoINTx    = 1 << 10
	classBridge      = 0x06
	subclassPCI      = 0x04
	headerTypeNormal = 0
)

// Function is a function of a device.
type Function struct {
	Address                      // immutable
	Vendor, Device, Subsystem    uint16
	Class, Subclass, Programming uint8
	HeaderType                   uint8

	platform driver.Platform
	access   Access
}

// Scan returns all functions on bus 0 and behind its bridges.
func Scan(p driver.Platform, c Access) []*Function {
	s := scanner{p: p, c: c}
	s.bus(0)
	return s.found
}

type scanner struct {
	p     driver.Platform
	c     Access
	seen  [256]bool
	found []*Function
}

func (s *scanner) bus(bus uint8) {
	if s.seen[bus] {
		return
	}
	s.seen[bus] = true
	for dev := range uint8(32) {
		for fn := range uint8(8) {
			f := s.function(Address{bus, dev, fn})
			if f == nil && fn == 0 || f != nil && fn == 0 && f.HeaderType&multiFunction == 0 {
				break
			}
		}
	}
}

func (s *scanner) function(a Address) *Function {
	f := &Function{Address: a, platform: s.p, access: s.c}
	f.Vendor = f.Read16(regVendor)
	if f.Vendor == 0xffff || f.Vendor == 0 {
		return nil
	}
	class := f.Read32(regRevision)
	f.Programming, f.Subclass, f.Class = uint8(class>>8), uint8(class>>16), uint8(class>>24)
	f.Device, f.HeaderType = f.Read16(regDevice), f.Read8(regHeaderType)
	s.found = append(s.found, f)
	switch {
	case f.HeaderType&^multiFunction == headerTypeNormal:
		f.Subsystem = f.Read16(regSubsystem)
	case f.Class == classBridge && f.Subclass == subclassPCI:
		s.bus(f.Read8(regSecondary)) // bus 0 again if none was assigned
	}
	return f
}

// Read8 reads configuration space.
func (f *Function) Read8(off uint16) uint8 { return uint8(f.access.Read(f.Address, off, 1)) }

// Read16 reads configuration space.
func (f *Function) Read16(off uint16) uint16 { return uint16(f.access.Read(f.Address, off, 2)) }

// Read32 reads configuration space.
func (f *Function) Read32(off uint16) uint32 { return f.access.Read(f.Address, off, 4) }

// Write16 writes configuration space.
func (f *Function) Write16(off, v uint16) { f.access.Write(f.Address, off, 2, uint32(v)) }

// Write32 writes configuration space.
func (f *Function) Write32(off uint16, v uint32) { f.access.Write(f.Address, off, 4, v) }

// Enable lets the function respond at its addresses and access memory. Pin
// interrupts are off unless intx is set.
func (f *Function) Enable(intx bool) {
	c := f.Read16(regCommand) | commandMemory | commandMaster | commandNoINTx
	if intx {
		c &^= commandNoINTx
	}
	f.Write16(regCommand, c)
}

// Capability is an entry of a function's list.
type Capability struct {
	ID  uint8
	Off uint16 // in configuration space
}

// Capabilities returns the list, up to the first invalid entry.
func (f *Function) Capabilities() []Capability {
	if f.Read16(regStatus)&statusCapabilities == 0 {
		return nil
	}
	var list []Capability
	next := uint16(f.Read8(regCapability) &^ 3)
	for next >= 0x40 && len(list) < 48 { // more do not fit into the space, so it is a loop
		list = append(list, Capability{f.Read8(next), next})
		next = uint16(f.Read8(next+1) &^ 3)
	}
	return list
}

// BAR is a range of addresses at which a function responds.
type BAR struct {
	Phys, Size uint64
	IO         bool
}

// BAR reads a base address register and determines the size of its range.
func (f *Function) BAR(n int) (BAR, error) {
	if n < 0 || n > 5 || f.HeaderType&^multiFunction != headerTypeNormal {
		return BAR{}, errors.New("no such BAR")
	}
	off := uint16(regBAR + 4*n)
	low := f.Read32(off)
	b := BAR{IO: low&1 != 0}
	wide := !b.IO && low>>1&3 == 2
	if wide && n == 5 {
		return BAR{}, errors.New("64-bit BAR without an upper half")
	}
	// The function must not respond while its address is all ones.
	command := f.Read16(regCommand)
	f.Write16(regCommand, command&^(commandIO|commandMemory))
	f.Write32(off, ^uint32(0))
	mask := uint64(f.Read32(off))
	f.Write32(off, low)
	var high uint32
	if wide {
		high = f.Read32(off + 4)
		f.Write32(off+4, ^uint32(0))
		mask |= uint64(f.Read32(off+4)) << 32
		f.Write32(off+4, high)
	} else {
		mask |= 0xffffffff << 32
	}
	f.Write16(regCommand, command)
	flags := uint64(0xf)
	if b.IO {
		flags = 3
		mask |= 0xffff0000 // the upper half of an I/O BAR may be missing
	}
	if mask&^flags == 0 || uint32(mask) == 0 {
		return BAR{}, errors.New("no such BAR")
	}
	b.Phys = uint64(high)<<32 | uint64(low)&^flags
	b.Size = -(mask &^ flags)
	if b.Phys == 0 {
		return b, errors.New("the firmware has not assigned an address")
	}
	return b, nil
}

// Map returns the registers of a memory BAR: size bytes from off on, or the whole rest
// if size is 0.
func (f *Function) Map(n int, off, size uint64) (driver.MMIO, error) {
	b, err := f.BAR(n)
	if err != nil {
		return nil, fmt.Errorf("%v BAR %d: %w", f.Address, n, err)
	}
	if b.IO {
		return nil, fmt.Errorf("%v BAR %d: ports, memory expected", f.Address, n)
	}
	if size == 0 && off < b.Size {
		size = b.Size - off
	}
	if size == 0 || off > b.Size || b.Size-off < size {
		return nil, fmt.Errorf("%v BAR %d: %#x bytes at %#x lie outside", f.Address, n, size, off)
	}
	return f.platform.MapDevice(b.Phys+off, size), nil
}

// GSI returns the global interrupt of the function's pin on QEMU's q35, by the
// routing that its _PRT describes for bus 0: devices 0 to 24 rotate over GSI 20
// to 23; later ones use 16 to 19 whatever the device number. Other machines would need
// an AML interpreter. The interrupt is level-triggered and active high.
func (f *Function) GSI() (uint32, error) {
	pin := uint32(f.Read8(regPin))
	if pin == 0 || pin > 4 || f.Bus != 0 {
		return 0, fmt.Errorf("%v: no known interrupt pin", f.Address)
	}
	pin--
	if f.Address.Device <= 24 {
		return 20 + (uint32(f.Address.Device)+pin)&3, nil
	}
	return 16 + pin, nil
}
