// Package ahci drives SATA disks behind AHCI controllers (AHCI 1.3.1, ATA8-ACS).
// Each port with a disk is a Disk, which implements kernel/disk/blockdev.Device: one queue
// of up to 32 commands, executed in any order if the disk supports NCQ.
//
// Flush and trim cannot be queued: such a command waits until no other command is in
// progress, and the others wait for it. Submit refuses a command that must wait, and
// kernel/disk/block submits it again at the next completion.
//
// Errors (recover.go): a disk that reports an error has stopped, with all its commands
// pending. The driver resets the port and then reissues the commands one at a time, so
// that only the command that causes the error fails.
//
// Memory of a port: a page for the command list and the received FIS, and 2 KiB per
// command for its FIS, its scatter list and the ranges of a trim.
//
// Lock order: Disk.bh; what the receiver of completions takes; Disk.mu.
package ahci

import (
	"errors"
	"fmt"
	"time"

	"hardtack/driver"
	"hardtack/driver/pci"
)

// Registers of the controller (section 3.1).
const (
	regCAP = 0x00
	regGHC = 0x04
	regIS  = 0x08
	regPI  = 0x0c

	capSlots  = 8 // shift of 5 bits
	capNCQ    = 1 << 30
	cap64     = 1 << 31
	capSpinUp = 1 << 27

	ghcReset     = 1 << 0
	ghcInterrupt = 1 << 1
	ghcAHCI      = 1 << 31

	portBase = 0x100
	portSize = 0x80
	maxPorts = 32
	class    = 0x010601
	bar      = 5
)

// resetTime bounds a controller's reset (section 10.4.3).
const resetTime = time.Second

// Controller is an AHCI controller.
type Controller struct {
	platform driver.Platform // immutable
	f        *pci.Function   // immutable
	regs     driver.MMIO     // immutable
	caps     uint32          // immutable
	disks    []*Disk         // immutable after New
	ports    [maxPorts]*Disk // immutable after New
}

// Is reports whether a PCI function is an AHCI controller.
func Is(f *pci.Function) bool {
	return uint32(f.Class)<<16|uint32(f.Subclass)<<8|uint32(f.Programming) == class
}

// New initializes a controller and its disks. problems are the errors of ports whose
// disks cannot be used.
func New(p driver.Platform, f *pci.Function) (c *Controller, problems []error, err error) {
	c = &Controller{platform: p, f: f}
	f.Enable(false)
	if c.regs, err = f.Map(bar, 0, 0); err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*Controller, []error, error) {
		return nil, nil, fmt.Errorf("AHCI %v: %w", f.Address, err)
	}
	c.caps = c.regs.Read32(regCAP)
	if c.caps == ^uint32(0) {
		return fail(errors.New("the device is gone"))
	}
	if c.caps&cap64 == 0 {
		return fail(errors.New("it reaches 32-bit addresses only"))
	}
	if err := c.reset(); err != nil {
		return fail(err)
	}
	if err := c.connect(); err != nil {
		return fail(err)
	}
	implemented := c.regs.Read32(regPI)
	for n := range maxPorts {
		if implemented>>n&1 == 0 {
			continue
		}
		d, err := c.open(n)
		if err != nil {
			problems = append(problems, fmt.Errorf("AHCI %v port %d: %w", f.Address, n, err))
			continue
		}
		if d != nil {
			c.disks = append(c.disks, d)
		}
	}
	c.regs.Write32(regIS, ^uint32(0))
	c.regs.Write32(regGHC, ghcAHCI|ghcInterrupt)
	return c, problems, nil
}

// Disks returns the disks, in order of their ports.
func (c *Controller) Disks() []*Disk { return c.disks }

// reset resets the controller.
func (c *Controller) reset() error {
	c.regs.Write32(regGHC, ghcAHCI)
	c.regs.Write32(regGHC, ghcAHCI|ghcReset)
	for deadline := time.Now().Add(resetTime); c.regs.Read32(regGHC)&ghcReset != 0; time.Sleep(10 * time.Microsecond) {
		if time.Now().After(deadline) {
			return errors.New("it does not reset")
		}
	}
	c.regs.Write32(regGHC, ghcAHCI)
	return nil
}

// connect sets up the interrupt: MSI, or else the pin.
func (c *Controller) connect() error {
	addr, data, err := c.platform.MSI(0, c.interrupted)
	if err == nil {
		err = c.f.MSI(addr, data)
	}
	if err == nil {
		return nil
	}
	gsi, err := c.f.GSI()
	if err != nil {
		return err
	}
	c.f.Enable(true)
	return c.platform.Interrupt(gsi, true, false, c.interrupted)
}

// interrupted is the bottom half of all ports.
func (c *Controller) interrupted() {
	for {
		cause := c.regs.Read32(regIS)
		if cause == 0 || cause == ^uint32(0) {
			return
		}
		for n := range maxPorts {
			if cause>>n&1 == 0 {
				continue
			}
			if d := c.ports[n]; d != nil {
				d.interrupted()
			} else {
				at := uint64(portBase + n*portSize)
				c.regs.Write32(at+portIE, 0)
				c.regs.Write32(at+portIS, ^uint32(0))
			}
		}
		// Clear the ports' causes first: a bit stays set as long as one of them is set.
		c.regs.Write32(regIS, cause)
	}
}
