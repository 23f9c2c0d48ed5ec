// Package power switches the machine off and resets it.
package power

import (
	"hardtack/driver"
	"hardtack/driver/acpi"
)

// Control knows the machine's power registers. They are mapped beforehand, so
// that Off and Reset work in a dying kernel: they neither allocate nor wait.
type Control struct {
	p driver.Platform // immutable

	// All immutable; nil where the machine has no such register.
	sleep  *register // hardware-reduced: SLEEP_CONTROL_REG
	pm1a   *register
	pm1b   *register
	reset  *register
	smi    uint16 // port that hands the PM1 registers to us
	enable uint8

	typeA, typeB uint8 // sleep types of S5
	s5           bool  // they are known
	resetValue   uint8
}

// register is a register of 8 or 16 bits in either address space.
type register struct {
	p    driver.Platform
	m    driver.MMIO // nil: a port
	port uint16
}

func newRegister(p driver.Platform, a acpi.Address) *register {
	switch {
	case a.Address == 0:
		return nil
	case a.Space == acpi.SpaceMemory:
		return &register{p: p, m: p.MapDevice(a.Address, 8)}
	case a.Space == acpi.SpaceIO && a.Address <= 0xffff:
		return &register{p: p, port: uint16(a.Address)}
	}
	return nil
}

func (r *register) write8(v uint8) {
	if r.m != nil {
		r.m.Write8(0, v)
		return
	}
	r.p.Out8(r.port, v)
}

func (r *register) read16() uint16 {
	if r.m != nil {
		return r.m.Read16(0)
	}
	return r.p.In16(r.port)
}

func (r *register) write16(v uint16) {
	if r.m != nil {
		r.m.Write16(0, v)
		return
	}
	r.p.Out16(r.port, v)
}

// New finds the power registers. t may be nil.
func New(p driver.Platform, t *acpi.Tables) *Control {
	c := &Control{p: p}
	if t == nil {
		return c
	}
	f, ok := t.FADT()
	if !ok {
		return c
	}
	c.typeA, c.typeB, c.s5 = t.S5()
	c.reset, c.resetValue = newRegister(p, f.Reset), f.ResetValue
	if f.HardwareReduced {
		c.sleep = newRegister(p, f.SleepControl)
		return c
	}
	c.pm1a, c.pm1b = newRegister(p, f.PM1aControl), newRegister(p, f.PM1bControl)
	c.smi, c.enable = f.SMICommand, f.ACPIEnable
	return c
}

// Bits of the sleep registers (ACPI 6.4, sections 4.8.3.2 and 4.8.3.7).
const (
	sleepEnable    = 1 << 5
	sleepTypeShift = 2

	pm1Enable    = 1 << 13
	pm1TypeShift = 10
	pm1TypeMask  = 7 << pm1TypeShift
	pm1SCI       = 1 << 0 // the registers are ours
)

// smiPolls bounds the wait for the firmware to hand the registers over.
const smiPolls = 100_000

// Off switches the machine off. When it returns, the machine cannot be.
func (c *Control) Off() {
	switch {
	case !c.s5:
	case c.sleep != nil:
		c.sleep.write8(c.typeA<<sleepTypeShift | sleepEnable)
	case c.pm1a != nil:
		if c.pm1a.read16()&pm1SCI == 0 && c.smi != 0 && c.enable != 0 {
			c.p.Out8(c.smi, c.enable)
			for i := 0; i < smiPolls && c.pm1a.read16()&pm1SCI == 0; i++ {
			}
		}
		c.pm1a.sleep(c.typeA)
		if c.pm1b != nil {
			c.pm1b.sleep(c.typeB)
		}
	}
}

func (r *register) sleep(kind uint8) {
	v := r.read16()&^(pm1TypeMask|pm1Enable) | uint16(kind)<<pm1TypeShift
	r.write16(v)
	r.write16(v | pm1Enable)
}

// Ports that reset a PC: that of the chipset and that of the keyboard controller.
const (
	portReset    = 0xcf9
	portKeyboard = 0x64
)

// Reset restarts the machine, by ACPI or else as PCs have always been. When it
// returns, only a triple fault is left.
func (c *Control) Reset() {
	if c.reset != nil {
		c.reset.write8(c.resetValue)
	}
	c.p.Out8(portReset, 0x02)
	c.p.Out8(portReset, 0x06)
	c.p.Out8(portKeyboard, 0xfe)
}
