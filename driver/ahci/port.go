package ahci

import (
	"errors"
	"fmt"
	"time"

	"hardtack/driver"
)

// Registers of a port (section 3.3).
const (
	portCLB  = 0x00
	portFB   = 0x08
	portIS   = 0x10
	portIE   = 0x14
	portCMD  = 0x18
	portTFD  = 0x20
	portSIG  = 0x24
	portSSTS = 0x28
	portSCTL = 0x2c
	portSERR = 0x30
	portSACT = 0x34
	portCI   = 0x38

	cmdStart   = 1 << 0
	cmdSpinUp  = 1 << 1
	cmdPowerOn = 1 << 2
	cmdFIS     = 1 << 4
	cmdFISRuns = 1 << 14
	cmdRuns    = 1 << 15

	tfdError = 1 << 0
	tfdDRQ   = 1 << 3
	tfdBusy  = 1 << 7

	// Causes: the three kinds of FIS that end commands, and errors.
	isD2H    = 1 << 0
	isPIO    = 1 << 1
	isSDB    = 1 << 3
	isErrors = 1<<26 | 1<<27 | 1<<28 | 1<<29 | 1<<30 // non-fatal and fatal interface, host bus data and fatal, task file
	isGone   = 1<<6 | 1<<22                          // port connect change, PhyRdy change
	isFatal  = isErrors &^ (1 << 26)

	ssstDetected = 3
	sigDisk      = 0x101
)

// Layout of a port's memory: list at 0, received FIS at fisOffset of its page.
const (
	fisOffset  = 0x400
	headerSize = 32

	tableSize  = 0x800
	tablePRDT  = 0x80
	tableTrim  = 0x600 // a trim's ranges, 512 bytes
	prdtSize   = 16
	maxPRDT    = (tableTrim - tablePRDT) / prdtSize
	maxPRDSize = 4 << 20

	slots = 32
)

// Limits on waiting.
const (
	stopTime  = 500 * time.Millisecond // section 10.1.2
	linkTime  = 100 * time.Millisecond
	readyTime = 3 * time.Second
	pollPause = 50 * time.Microsecond
	comreset  = 2 * time.Millisecond
)

func (d *Disk) read(off uint64) uint32     { return d.c.regs.Read32(d.at + off) }
func (d *Disk) write(off uint64, v uint32) { d.c.regs.Write32(d.at+off, v) }

// until polls a register until its bits under mask equal value.
func (d *Disk) until(off uint64, mask, value uint32, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(pollPause) {
		v := d.read(off)
		if v&mask == value && v != ^uint32(0) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// stop stops the port. If it returns no error, the port no longer accesses memory.
func (d *Disk) stop() error {
	d.write(portCMD, d.read(portCMD)&^cmdStart)
	if !d.until(portCMD, cmdRuns, 0, stopTime) {
		return errors.New("the port does not stop")
	}
	d.write(portCMD, d.read(portCMD)&^cmdFIS)
	if !d.until(portCMD, cmdFISRuns, 0, stopTime) {
		return errors.New("the port does not stop receiving")
	}
	return nil
}

// comreset resets the link and the disk behind it; the port is stopped.
func (d *Disk) comreset() {
	control := d.read(portSCTL) &^ 0xf
	d.write(portSCTL, control|1)
	time.Sleep(comreset)
	d.write(portSCTL, control)
	d.until(portSSTS, 0xf, ssstDetected, linkTime)
}

// start starts the port.
func (d *Disk) start() error {
	d.write64(portCLB, d.list.Phys)
	d.write64(portFB, d.list.Phys+fisOffset)
	d.write(portCMD, d.read(portCMD)|cmdFIS|cmdSpinUp|cmdPowerOn)
	if !d.until(portSSTS, 0xf, ssstDetected, linkTime) {
		return errors.New("the disk is gone")
	}
	d.write(portSERR, ^uint32(0))
	d.write(portIS, ^uint32(0))
	if !d.until(portTFD, tfdBusy|tfdDRQ, 0, readyTime) {
		return fmt.Errorf("the disk is busy: status %#x", d.read(portTFD))
	}
	d.write(portCMD, d.read(portCMD)|cmdStart)
	if d.read(portCI)|d.read(portSACT) != 0 {
		return errors.New("the port remembers commands after a reset")
	}
	d.write(portIE, isD2H|isPIO|isSDB|isErrors|isGone)
	return nil
}

func (d *Disk) write64(off, v uint64) {
	d.write(off, uint32(v))
	d.write(off+4, uint32(v>>32))
}

// open initializes the disk of a port; nil if there is none.
func (c *Controller) open(n int) (*Disk, error) {
	d := &Disk{c: c, at: uint64(portBase + n*portSize), port: n}
	if err := d.stop(); err != nil {
		return nil, err
	}
	d.write(portIE, 0)
	if c.caps&capSpinUp != 0 {
		d.write(portCMD, d.read(portCMD)|cmdSpinUp|cmdPowerOn)
	}
	if !d.until(portSSTS, 0xf, ssstDetected, linkTime) {
		return nil, nil
	}
	var ok, ok2 bool
	d.list, ok = c.platform.AllocDMA(1)
	d.tables, ok2 = c.platform.AllocDMA(driver.Pages(slots * tableSize))
	if !ok || !ok2 {
		return nil, errors.New("no memory")
	}
	for i := range slots {
		putHeaderTable(d.list.Virt[i*headerSize:], d.tables.Phys+uint64(i)*tableSize)
	}
	if err := d.start(); err != nil {
		return nil, err
	}
	if sig := d.read(portSIG); sig != sigDisk {
		_ = d.stop()
		if sig == 0xeb140101 {
			return nil, nil // a CD drive
		}
		return nil, fmt.Errorf("neither a disk nor a CD drive: signature %#x", sig)
	}
	d.depth = int(c.caps>>capSlots&31) + 1
	if err := d.identify(); err != nil {
		_ = d.stop()
		return nil, err
	}
	c.ports[n] = d
	return d, nil
}
