package pci_test

import (
	"testing"

	"hardtack/driver"
	"hardtack/driver/pci"
	"hardtack/driver/virtio/softdev"
)

// space is the configuration space of a bus with functions at a few places.
// Bits of a BAR that are not in its mask cannot be written.
type space struct {
	config map[pci.Address][]byte
	masks  map[uint16]uint32 // of the BARs of all functions
}

func (s *space) Read(a pci.Address, off uint16, width int) uint32 {
	b := s.config[a]
	if b == nil {
		return ^uint32(0) >> (32 - 8*width)
	}
	var v uint32
	for i := width - 1; i >= 0; i-- {
		v = v<<8 | uint32(b[int(off)+i])
	}
	return v
}

func (s *space) Write(a pci.Address, off uint16, width int, v uint32) {
	if mask, ok := s.masks[off]; ok {
		v = v&mask | s.Read(a, off, 4)&^mask
	} else if off >= 0x10 && off < 0x28 {
		return // no such BAR: always 0
	}
	for i := range width {
		s.config[a][int(off)+i] = byte(v >> (8 * i))
	}
}

func function(id uint16, header uint8) []byte {
	b := make([]byte, 256)
	b[0], b[1], b[2], b[3], b[0x0e] = 0xf4, 0x1a, byte(id), byte(id>>8), header
	return b
}

// mapper remembers what is mapped.
type mapper struct {
	driver.Platform
	phys, size uint64
}

func (m *mapper) MapDevice(phys, size uint64) driver.MMIO {
	m.phys, m.size = phys, size
	return softdev.Bytes(make([]byte, size))
}

func TestScan(t *testing.T) {
	bridge := function(9, 1)
	bridge[0x0b], bridge[0x0a], bridge[0x19] = 6, 4, 3
	loop := function(9, 1) // a bridge that leads back
	loop[0x0b], loop[0x0a], loop[0x19] = 6, 4, 0
	s := &space{config: map[pci.Address][]byte{
		{Device: 1}:              function(1, 0),
		{Device: 1, Function: 1}: function(2, 0), // not there: function 0 says it is the only one
		{Device: 2}:              function(3, 0x80),
		{Device: 2, Function: 5}: function(4, 0),
		{Device: 3}:              bridge,
		{Bus: 3, Device: 31}:     function(5, 0),
		{Bus: 3, Device: 30}:     loop,
		{Bus: 4, Device: 0}:      function(6, 0), // on a bus that nothing leads to
	}}
	var ids []uint16
	for _, f := range pci.Scan(nil, s) {
		ids = append(ids, f.Device)
	}
	want := []uint16{1, 3, 4, 9, 9, 5}
	if len(ids) != len(want) {
		t.Fatalf("found %v, want %v", ids, want)
	}
	for i := range ids {
		if ids[i] != want[i] {
			t.Errorf("found %v, want %v", ids, want)
		}
	}
}

func TestBAR(t *testing.T) {
	b := function(1, 0)
	s := &space{config: map[pci.Address][]byte{{}: b}, masks: map[uint16]uint32{
		0x10: 0xfffff000,                   // 4 KiB below 4 GiB
		0x14: 0xffe0,                       // 32 ports, upper half missing
		0x18: 0xffffc000, 0x1c: 0xffffffff, // 16 KiB anywhere
		0x24: 0xffff0000, // not assigned
	}}
	b[0x10+1], b[0x10+3] = 0x50, 0xfe
	b[0x14], b[0x15] = 0x41, 0xc0
	b[0x18], b[0x1b], b[0x1c] = 0x0c, 0x80, 7
	m := &mapper{}
	f := pci.Scan(m, s)[0]
	for n, want := range map[int]pci.BAR{
		0: {Phys: 0xfe005000, Size: 0x1000},
		1: {Phys: 0xc040, Size: 32, IO: true},
		2: {Phys: 0x7_8000_0000, Size: 0x4000},
	} {
		if got, err := f.BAR(n); err != nil || got != want {
			t.Errorf("BAR %d: %+v, %v; want %+v", n, got, err, want)
		}
		if got, err := f.BAR(n); err != nil || got != want {
			t.Errorf("BAR %d the second time: %+v, %v", n, got, err)
		}
	}
	for _, n := range []int{-1, 4, 5, 6} {
		if got, err := f.BAR(n); err == nil {
			t.Errorf("BAR %d: %+v", n, got)
		}
	}
	if _, err := f.Map(2, 0x1000, 0x3000); err != nil || m.phys != 0x7_8000_1000 || m.size != 0x3000 {
		t.Errorf("mapped %#x, %#x: %v", m.phys, m.size, err)
	}
	for _, c := range [][3]uint64{{2, 0x1000, 0x3001}, {2, 0x4001, 0}, {2, ^uint64(0), 2}, {1, 0, 4}, {2, 0, 1 << 40}} {
		if _, err := f.Map(int(c[0]), c[1], c[2]); err == nil {
			t.Errorf("mapped %#x", c)
		}
	}
}

func TestCapabilities(t *testing.T) {
	b := function(1, 0)
	s := &space{config: map[pci.Address][]byte{{}: b}}
	f := pci.Scan(&mapper{}, s)[0]
	b[0x34] = 0x50
	if c := f.Capabilities(); c != nil {
		t.Errorf("without the status bit: %v", c)
	}
	b[6] = 0x10
	b[0x50], b[0x51] = 9, 0x60
	b[0x60], b[0x61] = 0x11, 0x00
	if c := f.Capabilities(); len(c) != 2 || c[0] != (pci.Capability{ID: 9, Off: 0x50}) || c[1] != (pci.Capability{ID: 0x11, Off: 0x60}) {
		t.Errorf("%v", c)
	}
	b[0x61] = 0x50 // a loop
	if c := f.Capabilities(); len(c) > 64 {
		t.Errorf("%d capabilities", len(c))
	}
	b[0x61] = 0x10 // into the header
	if c := f.Capabilities(); len(c) != 2 {
		t.Errorf("%v", c)
	}
	b[0x62], b[0x63], b[0x64] = 0xff, 0x07, 5 // 2048 entries in a BAR that is not there
	if _, err := f.MSIX(); err == nil {
		t.Error("MSI-X without a BAR")
	}
}
