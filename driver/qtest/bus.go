package qtest

import (
	"hardtack/driver"
	"hardtack/driver/pci"
)

// Functions gives the memory BARs of a machine's PCI functions addresses, as the firmware
// would, and returns the functions.
func Functions(p driver.Platform) []*pci.Function {
	found := pci.Scan(p, pci.Open(p, nil))
	next := uint32(0xc0000000)
	for _, f := range found {
		for n := 0; n < 6; n++ {
			b, err := f.BAR(n)
			if b.Size == 0 || b.IO || err == nil {
				continue
			}
			size := uint32(b.Size)
			next = (next + size - 1) &^ (size - 1)
			f.Write32(uint16(0x10+4*n), next)
			if f.Read32(uint16(0x10+4*n))&4 != 0 {
				n++
				f.Write32(uint16(0x10+4*n), 0)
			}
			next += size
		}
	}
	return found
}
