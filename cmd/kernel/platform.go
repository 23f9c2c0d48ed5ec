package main

import (
	"errors"
	"math/bits"

	"hardtack/arch/amd64"
	"hardtack/driver"
	"hardtack/driver/acpi"
	"hardtack/nucleus"
)

// platform is driver.Platform over the nucleus.
type platform struct {
	overrides []acpi.Override // ISA lines that are wired elsewhere; immutable
}

func (p *platform) MapDevice(phys, size uint64) driver.MMIO {
	return driver.NewWindow(nucleus.MapDevice(phys, size), size)
}

func (p *platform) PhysWindow(phys, n uint64) []byte {
	if n == 0 || phys+n < phys || phys+n > nucleus.DirectLimit() {
		return nil
	}
	return nucleus.RAM(phys, int(n))
}

func (p *platform) In8(port uint16) uint8       { return amd64.In8(port) }
func (p *platform) In16(port uint16) uint16     { return amd64.In16(port) }
func (p *platform) In32(port uint16) uint32     { return amd64.In32(port) }
func (p *platform) Out8(port uint16, v uint8)   { amd64.Out8(port, v) }
func (p *platform) Out16(port uint16, v uint16) { amd64.Out16(port, v) }
func (p *platform) Out32(port uint16, v uint32) { amd64.Out32(port, v) }

func (p *platform) AllocDMA(pages int) (driver.DMA, bool) {
	pa := nucleus.AllocContiguous(pages)
	if pages <= 0 || pa == 0 {
		return driver.DMA{}, false
	}
	b := nucleus.RAM(pa, pages*driver.PageSize)
	clear(b)
	return driver.DMA{Virt: b, Phys: pa}, true
}

func (p *platform) Interrupt(gsi uint32, level, activeLow bool, bottomHalf func()) error {
	if nucleus.ClusterIndex() > 0 {
		if level || activeLow || !nucleus.OnLine(gsi, bottomHalf) {
			return errors.New("no such line was given to the cluster")
		}
		return nil
	}
	for _, o := range p.overrides {
		if uint32(o.IRQ) == gsi {
			gsi, level, activeLow = o.GSI, o.Level, o.ActiveLow
			break
		}
	}
	if !nucleus.RouteGSI(gsi, level, activeLow, bottomHalf) {
		return errors.New("no I/O APIC pin, or too many interrupts")
	}
	return nil
}

func (p *platform) MSI(cpu int, bottomHalf func()) (uint64, uint32, error) {
	addr, data, ok := nucleus.RouteMSI(cpu%bits.OnesCount64(nucleus.PresentCPUs()), bottomHalf)
	if !ok {
		return 0, 0, errors.New("too many interrupts")
	}
	return addr, data, nil
}
