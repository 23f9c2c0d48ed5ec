package pci

import "errors"

// MSI (PCI 3.0, section 6.8.1).
const (
	capMSI = 0x05

	msiControl = 2
	msiAddress = 4

	msiEnable = 1 << 0
	msiWide   = 1 << 7
)

// MSI makes the function interrupt by a single message. It returns an error if the
// function does not support MSI.
func (f *Function) MSI(addr uint64, data uint32) error {
	for _, c := range f.Capabilities() {
		if c.ID != capMSI {
			continue
		}
		control := f.Read16(c.Off + msiControl)
		at := c.Off + msiAddress
		f.Write32(at, uint32(addr))
		if control&msiWide != 0 {
			f.Write32(at+4, uint32(addr>>32))
			at += 4
		} else if addr>>32 != 0 {
			return errors.New("the message's address is out of reach")
		}
		f.Write16(at+4, uint16(data))
		f.Enable(false)
		f.Write16(c.Off+msiControl, control&^0x70|msiEnable) // one message
		noteMessage(addr, func(addr uint64) { f.Write32(c.Off+msiAddress, uint32(addr)) })
		return nil
	}
	return errors.New("no MSI")
}
