// Package acpi reads what a driver needs to know from the firmware's ACPI
// tables (ACPI 6.4): the processors and interrupt controllers (MADT), power and
// reset registers (FADT, and \_S5 in the AML), PCI configuration space (MCFG),
// and the virtio-mmio devices that microvm describes in AML. There is no AML
// interpreter: the few objects needed are constants and are read as bytes.
//
// Lengths and checksums of tables are not trusted: a damaged table is ignored and never
// read beyond its end.
package acpi

import (
	"encoding/binary"
	"errors"
	"slices"

	"hardtack/driver"
)

const (
	headerSize = 36
	maxTable   = 16 << 20 // larger ones are considered damaged
)

// Tables are the tables of a machine. Immutable.
type Tables struct {
	platform driver.Platform
	tables   [][]byte // with their headers
	dsdt     []byte
}

var le = binary.LittleEndian

// Find reads the tables. rsdp is the root pointer's physical address as the boot
// loader gave it (PVH start info); 0 searches the places a PC's firmware uses.
func Find(p driver.Platform, rsdp uint64) (*Tables, error) {
	root := validRSDP(p, rsdp)
	if root == nil {
		root = searchRSDP(p)
	}
	if root == nil {
		return nil, errors.New("no ACPI tables")
	}
	t := &Tables{platform: p}
	if root[15] >= 2 {
		t.readRoot(le.Uint64(root[24:]), "XSDT", 8)
	}
	if len(t.tables) == 0 {
		t.readRoot(uint64(le.Uint32(root[16:])), "RSDT", 4)
	}
	if len(t.tables) == 0 {
		return nil, errors.New("ACPI: no valid table in RSDT or XSDT")
	}
	if f, ok := t.FADT(); ok {
		t.dsdt = t.read(f.DSDT)
	}
	return t, nil
}

// validRSDP returns the root pointer at an address, nil if there is none. It pads a
// revision 0 structure to the size of a later one.
func validRSDP(p driver.Platform, phys uint64) []byte {
	if phys == 0 {
		return nil
	}
	b := p.PhysWindow(phys, 20)
	if b == nil || string(b[:8]) != "RSD PTR " || !sumsToZero(b) {
		return nil
	}
	if b[15] < 2 {
		return append(slices.Clone(b), make([]byte, 16)...)
	}
	b = p.PhysWindow(phys, 36)
	if b == nil || !sumsToZero(b) {
		return nil
	}
	return b
}

// searchRSDP searches where section 5.2.5.1 says: the first KiB of the EBDA and
// the BIOS area, at 16-byte boundaries.
func searchRSDP(p driver.Platform) []byte {
	type area struct{ from, to uint64 }
	areas := []area{{0xe0000, 0x100000}}
	if b := p.PhysWindow(0x40e, 2); b != nil {
		if ebda := uint64(le.Uint16(b)) << 4; ebda >= 0x8_0000 && ebda < 0xa_0000 {
			areas = append(areas, area{ebda, ebda + 1024})
		}
	}
	for _, a := range areas {
		for at := a.from; at < a.to; at += 16 {
			if b := validRSDP(p, at); b != nil {
				return b
			}
		}
	}
	return nil
}

func (t *Tables) readRoot(phys uint64, signature string, width int) {
	root := t.read(phys)
	if root == nil || string(root[:4]) != signature {
		return
	}
	for b := root[headerSize:]; len(b) >= width; b = b[width:] {
		at := uint64(le.Uint32(b))
		if width == 8 {
			at = le.Uint64(b)
		}
		if table := t.read(at); table != nil {
			t.tables = append(t.tables, table)
		}
	}
}

// read returns the table at an address, nil if it is damaged.
func (t *Tables) read(phys uint64) []byte {
	if phys == 0 {
		return nil
	}
	h := t.platform.PhysWindow(phys, headerSize)
	if h == nil {
		return nil
	}
	n := uint64(le.Uint32(h[4:]))
	if n < headerSize || n > maxTable {
		return nil
	}
	b := t.platform.PhysWindow(phys, n)
	if b == nil || !sumsToZero(b) {
		return nil
	}
	return b
}

func sumsToZero(b []byte) bool {
	sum := byte(0)
	for _, c := range b {
		sum += c
	}
	return sum == 0
}

// Lookup returns the first table with a signature, nil if there is none.
func (t *Tables) Lookup(signature string) []byte {
	for _, b := range t.tables {
		if string(b[:4]) == signature {
			return b
		}
	}
	return nil
}

// aml returns the code of the DSDT and the SSDTs.
func (t *Tables) aml() [][]byte {
	var code [][]byte
	if t.dsdt != nil {
		code = append(code, t.dsdt[headerSize:])
	}
	for _, b := range t.tables {
		if string(b[:4]) == "SSDT" {
			code = append(code, b[headerSize:])
		}
	}
	return code
}

// ECAM is where the PCI configuration space of some buses is mapped.
type ECAM struct {
	Base              uint64 // of bus 0
	Segment           uint16
	FirstBus, LastBus uint8
}

// MCFG returns the memory-mapped configuration spaces.
func (t *Tables) MCFG() []ECAM {
	b := t.Lookup("MCFG")
	var list []ECAM
	for off := headerSize + 8; off+16 <= len(b); off += 16 {
		e := ECAM{le.Uint64(b[off:]), le.Uint16(b[off+8:]), b[off+10], b[off+11]}
		if e.FirstBus <= e.LastBus {
			list = append(list, e)
		}
	}
	return list
}
