package e1000

import (
	"errors"

	"hardtack/driver"
)

// connect routes the interrupts: a message for each cause, or else the pin.
func (d *Device) connect(p driver.Platform) error {
	if d.model.messages {
		if d.connectMessages(p) == nil {
			return nil
		}
		d.rx.messages = false
	}
	gsi, err := d.f.GSI()
	if err != nil {
		return err
	}
	d.f.Enable(true)
	return p.Interrupt(gsi, true, false, d.pin)
}

// connectMessages gives each cause an entry of the MSI-X table (section 7.4).
func (d *Device) connectMessages(p driver.Platform) error {
	m, err := d.f.MSIX()
	if err != nil {
		return err
	}
	if m.Len() < int(nCauses) {
		m.Disable()
		return errors.New("too few messages")
	}
	d.rx.messages = true
	for i, f := range [nCauses]func(){causeRx: d.rx.poll, causeTx: d.tx.completed, causeLink: d.linkInterrupt} {
		addr, data, err := p.MSI(0, f)
		if err == nil {
			err = m.Set(i, addr, data)
		}
		if err != nil {
			m.Disable()
			return err
		}
	}
	d.route()
	return nil
}

// route has the card send a message for each cause, clear the cause, and mask it until the
// bottom half has run.
func (d *Device) route() {
	const valid = 8
	const always = 1 << 31 // for each descriptor that was sent
	d.regs.Write32(regVectors, always|uint32(causeRx|valid)|uint32(causeTx|valid)<<8|uint32(causeLink|valid)<<16)
	all := d.causes(causeRx) | d.causes(causeTx) | d.causes(causeLink)
	d.regs.Write32(regAutoClear, all&^icrLink)
	d.regs.Write32(regAutoMask, all)
	d.regs.Write32(regExtended, d.regs.Read32(regExtended)|extendedClear|extendedMask)
}

// linkInterrupt is the bottom half of the message for what has no message of its own.
func (d *Device) linkInterrupt() {
	d.regs.Write32(regCause, icrLink|icrOther)
	d.linkChanged()
	d.regs.Write32(regMask, d.causes(causeLink))
}

// pin is the bottom half of the pin, which is masked meanwhile. With all causes masked, reading
// them clears them on all models.
func (d *Device) pin() {
	d.regs.Write32(regMaskClear, ^uint32(0))
	v := d.regs.Read32(regCause)
	if v == ^uint32(0) {
		d.linkChanged()
		return // the device is gone, and so are its interrupts
	}
	if v&d.causes(causeLink) != 0 {
		d.linkChanged()
	}
	if !d.receives.Load() {
		return
	}
	d.rx.poll()
	d.tx.completed()
	mask := d.causes(causeRx) | d.causes(causeLink)
	if d.tx.refused.Load() {
		mask |= d.causes(causeTx)
	}
	d.regs.Write32(regMask, mask)
}
