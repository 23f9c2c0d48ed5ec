// Package e1000 drives Intel's gigabit Ethernet controllers: the 82574L (QEMU's e1000e) by
// message interrupts, and the 82540EM and 82545EM (QEMU's e1000) by their pin. A Device fits
// kernel/net/netdev.Device. The registers and descriptors are those of the manuals "PCI/PCI-X
// Family of Gigabit Ethernet Controllers Software Developer's Manual" (revision 4.0) and "Intel
// 82574 GbE Controller Family" (revision 3.4); sections named here are the latter's.
//
// Each card has one queue a direction. Receive: the card owns the buffers. The bottom half
// takes frames in batches, passes each batch to the receiver, and gives the buffers back.
// Transmit: frames are copied into the ring's slots under its lock. Later senders free the
// slots of what was sent; only one that finds the ring full enables the interrupt. The card
// computes checksums. Long TCP segments are cut by the card where that can be relied upon, else
// while they are copied.
//
// The driver believes nothing that the card writes: lengths are bounded by the buffers, and a
// descriptor's address is only ever written. What makes no sense costs frames.
//
// Memory: 256 buffers and 512 slots of 2 KiB. Nothing is allocated for a frame.
//
// Lock order: rxRing.mu, what the receiver takes, txRing.mu.
package e1000

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/driver"
	"hardtack/driver/pci"
	"hardtack/kernel/net/netdev"
)

// model is what cards differ in.
type model struct {
	name     string
	messages bool // it has MSI-X, with causes that IVAR routes
	cuts     bool // it cuts TCP segments over IPv4; see segments
}

// models are the cards by their PCI device number.
var models = map[uint16]model{
	0x100e: {name: "82540EM", cuts: true},
	0x100f: {name: "82545EM", cuts: true},
	0x10d3: {name: "82574L", messages: true},
	0x10f6: {name: "82574LA", messages: true},
}

const vendorIntel = 0x8086

// Is reports whether a PCI function is a card that this package drives.
func Is(f *pci.Function) bool {
	_, ok := models[f.Device]
	return ok && f.Vendor == vendorIntel
}

const (
	mtu    = 1500
	maxMTU = 9000 // what switches agree on; the cards do a little more
)

// Device is a card.
type Device struct {
	f        *pci.Function // nil in tests without a bus
	model    model         // immutable
	regs     driver.MMIO   // immutable
	mac      [6]byte       // immutable
	rx       rxRing
	tx       txRing
	held     driver.Held
	recv     func([]netdev.Frame)   // set before frames are taken
	ready    atomic.Pointer[func()] // called when a full ring has room again
	up       atomic.Bool            // there is a link
	onLink   atomic.Pointer[func()]
	receives atomic.Bool // recv is set

	mu       sync.Mutex
	counters [len(counted)]uint64 // guarded by mu; the card's own are cleared when they are read
}

// New resets a card and prepares it. It neither sends nor receives before SetReceiver.
func New(p driver.Platform, f *pci.Function) (*Device, error) {
	f.Enable(false)
	regs, err := f.Map(0, 0, 0)
	if err != nil {
		return nil, err
	}
	d, err := open(p, regs, models[f.Device])
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", models[f.Device].name, f.Address, err)
	}
	d.f = f
	if err := d.connect(p); err != nil {
		d.stop()
		return nil, fmt.Errorf("%s %v: %w", d.model.name, f.Address, err)
	}
	d.start()
	return d, nil
}

// open brings a card into a known state.
func open(p driver.Platform, regs driver.MMIO, m model) (*Device, error) {
	d := &Device{model: m, regs: regs}
	if err := d.reset(); err != nil {
		return nil, err
	}
	d.readMAC()
	if !d.rx.init(d, p) || !d.tx.init(d, p) {
		return nil, errors.New("no memory for buffers")
	}
	return d, nil
}

const resetTime = time.Second

// reset is section 4.6.1: interrupts off, both directions off, all registers as after power-on.
func (d *Device) reset() error {
	d.stop()
	d.regs.Write32(regControl, d.regs.Read32(regControl)|controlReset)
	for deadline := time.Now().Add(resetTime); ; time.Sleep(time.Millisecond) {
		v := d.regs.Read32(regControl)
		if v == ^uint32(0) {
			return errors.New("the device is gone")
		}
		if v&controlReset == 0 {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the device does not reset")
		}
	}
	d.regs.Write32(regMaskClear, ^uint32(0))
	d.regs.Read32(regCause)
	return nil
}

func (d *Device) stop() {
	d.regs.Write32(regMaskClear, ^uint32(0))
	d.regs.Write32(regReceive, 0)
	d.regs.Write32(regTransmit, transmitPad)
}

// readMAC takes the station address that the card has read from its EEPROM.
func (d *Device) readMAC() {
	low, high := d.regs.Read32(regAddress), d.regs.Read32(regAddress+4)
	binary.LittleEndian.PutUint32(d.mac[:], low)
	binary.LittleEndian.PutUint16(d.mac[4:], uint16(high))
	if d.mac[0]&1 != 0 || d.mac == [6]byte{} {
		_, _ = rand.Read(d.mac[:])
		d.mac[0] = d.mac[0]&^1 | 2 // one station, locally chosen
	}
}

// start sets all that stays as it is, and enables sending (sections 4.6.4 to 4.6.6).
func (d *Device) start() {
	w := d.regs.Write32
	w(regControl, d.regs.Read32(regControl)|controlLinkUp|controlAutoSpeed)
	w(regAddress, binary.LittleEndian.Uint32(d.mac[:]))
	w(regAddress+4, uint32(binary.LittleEndian.Uint16(d.mac[4:]))|addressValid)
	for i := range uint64(128) {
		w(regMulticast+4*i, 0)
	}
	w(regChecksum, checksumIP|checksumTCP)

	w(regTxBase, uint32(d.tx.ring.Phys))
	w(regTxBase+4, uint32(d.tx.ring.Phys>>32))
	w(regTxSize, txSize*entrySize)
	w(regTxHead, 0)
	w(regTxTail, 0)
	threshold := uint32(thresholdGranularity | 1<<16) // each descriptor is written back at once
	if d.model.messages {
		threshold |= thresholdCount
	}
	w(regTxThreshold, threshold)
	w(regGap, 8|8<<10|6<<20)
	w(regTransmit, transmitOn|transmitPad|15<<4|63<<12)
	d.linkChanged()
}

// MAC implements netdev.Device.
func (d *Device) MAC() [6]byte { return d.mac }

// MTU implements netdev.Device.
func (d *Device) MTU() int { return mtu }

// MaxMTU implements netdev.Jumbo.
func (d *Device) MaxMTU() int { return maxMTU }

// Features implements netdev.Device.
func (d *Device) Features() netdev.Features {
	return netdev.TxChecksum | netdev.TSO4 | netdev.TSO6 | netdev.RxChecksum
}

// Hold implements netdev.Device.
func (d *Device) Hold() { d.held.Hold() }

// Flush implements netdev.Device.
func (d *Device) Flush() {
	if d.held.Flush() {
		d.tx.mu.Lock()
		d.tx.publish()
		d.tx.mu.Unlock()
	}
}

// SetReceiver implements netdev.Device.
func (d *Device) SetReceiver(recv func(batch []netdev.Frame)) {
	d.recv = recv
	d.receives.Store(true)
	d.rx.start()
	d.regs.Write32(regReceive, receiveOn|receiveLong|receiveMulticast|receiveBroadcast|receiveStripCRC)
	d.regs.Write32(regMask, d.causes(causeRx)|d.causes(causeLink))
}

// SetPromiscuous implements netdev.Promiscuous.
func (d *Device) SetPromiscuous(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.regs.Read32(regReceive) &^ receiveAll
	if on {
		v |= receiveAll
	}
	d.regs.Write32(regReceive, v)
}

// OnTransmitReady names a function that is called, from the device's interrupt goroutine,
// when there is room again after Transmit has refused frames.
func (d *Device) OnTransmitReady(f func()) { d.ready.Store(&f) }

// LinkUp implements netdev.Carrier.
func (d *Device) LinkUp() bool { return d.up.Load() }

// OnLink implements netdev.Carrier.
func (d *Device) OnLink(f func()) { d.onLink.Store(&f) }

// linkChanged looks whether there is a link.
func (d *Device) linkChanged() {
	v := d.regs.Read32(regStatus)
	up := v != ^uint32(0) && v&statusLink != 0
	if d.up.Swap(up) == up {
		return
	}
	if f := d.onLink.Load(); f != nil {
		(*f)()
	}
}

// Stats are the card's counters and the driver's, as text.
func (d *Device) Stats() []byte {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "model %s\nlink %v\n", d.model.name, d.up.Load())
	d.mu.Lock()
	for i, c := range counted {
		if v := d.regs.Read32(c.at); v != ^uint32(0) {
			d.counters[i] += uint64(v)
		}
		fmt.Fprintf(b, "%s %d\n", c.name, d.counters[i])
	}
	d.mu.Unlock()
	d.tx.mu.Lock()
	fmt.Fprintf(b, "tx_dropped %d\ntx_no_link %d\n", d.tx.drops, d.tx.lost)
	d.tx.mu.Unlock()
	d.rx.mu.Lock()
	fmt.Fprintf(b, "rx_dropped %d\n", d.rx.drops)
	d.rx.mu.Unlock()
	return b.Bytes()
}

var (
	_ netdev.Device      = (*Device)(nil)
	_ netdev.Carrier     = (*Device)(nil)
	_ netdev.Jumbo       = (*Device)(nil)
	_ netdev.Promiscuous = (*Device)(nil)
)
