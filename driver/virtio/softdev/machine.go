// Package softdev is the other side of virtio, in software: a Platform in
// ordinary memory, a transport, and the device's end of a queue, well-behaved
// or hostile. Only tests import it.
package softdev

import (
	"errors"
	"sync"

	"hardtack/driver"
)

// Machine is a Platform whose DMA memory is Go memory at made-up addresses.
// It has neither ports nor registers.
type Machine struct {
	driver.Platform // nil: what tests do not use panics

	mu     sync.Mutex
	next   uint64 // guarded by mu; the address of the next allocation
	blocks []driver.DMA
	Limit  int // pages; 0: no limit
	pages  int
	lines  map[uint32]func()
}

// NewMachine returns an empty machine.
func NewMachine() *Machine { return &Machine{next: 0x10_0000, lines: map[uint32]func(){}} }

// AllocDMA implements driver.Platform.
func (m *Machine) AllocDMA(pages int) (driver.DMA, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Limit != 0 && m.pages+pages > m.Limit {
		return driver.DMA{}, false
	}
	m.pages += pages
	n := pages * driver.PageSize
	d := driver.DMA{Virt: alignedBytes(n), Phys: m.next}
	m.next += uint64(n) + driver.PageSize // a hole, so that overruns are found
	m.blocks = append(m.blocks, d)
	return d, true
}

// PhysWindow implements driver.Platform.
func (m *Machine) PhysWindow(phys, n uint64) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.blocks {
		if phys >= d.Phys && phys+n <= d.Phys+uint64(len(d.Virt)) {
			off := phys - d.Phys
			return d.Virt[off : off+n : off+n]
		}
	}
	return nil
}

// Place puts bytes at a physical address.
func (m *Machine) Place(phys uint64, b []byte) {
	m.mu.Lock()
	m.blocks = append(m.blocks, driver.DMA{Virt: b, Phys: phys})
	m.mu.Unlock()
}

// Interrupt implements driver.Platform.
func (m *Machine) Interrupt(gsi uint32, _, _ bool, bottomHalf func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines[gsi] != nil {
		return errors.New("line is taken")
	}
	m.lines[gsi] = bottomHalf
	return nil
}

// Raise runs the bottom half of a line.
func (m *Machine) Raise(gsi uint32) {
	m.mu.Lock()
	f := m.lines[gsi]
	m.mu.Unlock()
	if f != nil {
		f()
	}
}
