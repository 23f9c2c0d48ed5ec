package pci

import (
	"errors"
	"fmt"

	"hardtack/driver"
)

// MSI-X (PCI 3.0, section 6.8.2).
const (
	capMSIX = 0x11

	msixControl = 2
	msixTable   = 4

	msixEnable = 1 << 15
	msixMasked = 1 << 14

	entrySize    = 16
	entryAddress = 0
	entryData    = 8
	entryControl = 12
	entryMasked  = 1
)

// MSIX is a function's table of message interrupts.
type MSIX struct {
	f     *Function
	table driver.MMIO
	off   uint16
	n     int
}

// MSIX enables the function's table, with all entries masked, and returns it. It
// returns an error if the function has none.
func (f *Function) MSIX() (*MSIX, error) {
	for _, c := range f.Capabilities() {
		if c.ID != capMSIX {
			continue
		}
		where := f.Read32(c.Off + msixTable)
		n := int(f.Read16(c.Off+msixControl)&0x7ff) + 1
		table, err := f.Map(int(where&7), uint64(where&^7), uint64(n*entrySize))
		if err != nil {
			return nil, err
		}
		m := &MSIX{f, table, c.Off, n}
		f.Enable(false)
		for i := range n {
			table.Write32(uint64(i*entrySize+entryControl), entryMasked)
		}
		f.Write16(c.Off+msixControl, f.Read16(c.Off+msixControl)&^msixMasked|msixEnable)
		return m, nil
	}
	return nil, errors.New("no MSI-X")
}

// Len returns the number of entries.
func (m *MSIX) Len() int { return m.n }

// Set writes a message to entry i and unmasks it.
func (m *MSIX) Set(i int, addr uint64, data uint32) error {
	if i < 0 || i >= m.n {
		return fmt.Errorf("%v: no MSI-X entry %d", m.f.Address, i)
	}
	base := uint64(i * entrySize)
	set := func(addr uint64) {
		m.table.Write32(base+entryControl, entryMasked)
		m.table.Write32(base+entryAddress, uint32(addr))
		m.table.Write32(base+entryAddress+4, uint32(addr>>32))
		m.table.Write32(base+entryData, data)
		m.table.Write32(base+entryControl, 0)
	}
	set(addr)
	noteMessage(addr, set)
	return nil
}

// Disable turns message interrupts off.
func (m *MSIX) Disable() {
	m.f.Write16(m.off+msixControl, m.f.Read16(m.off+msixControl)&^msixEnable)
}
