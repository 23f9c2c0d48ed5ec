// Package pci is the virtio transport over PCI (virtio 1.2, section 4.1), for
// modern and transitional devices.
//
// Interrupts are MSI-X: one message for the configuration and one for each
// queue that wants any, if the device has so many; else all queues share one.
// A device without MSI-X is driven by its pin, where the pin's interrupt is
// known (pci.Function.GSI) and not shared with another driver.
package pci

import (
	"errors"
	"fmt"

	"hardtack/driver"
	bus "hardtack/driver/pci"
	"hardtack/driver/virtio"
)

const (
	vendor            = 0x1af4
	deviceTransition  = 0x1000 // … 0x103f; the type is the subsystem
	deviceModern      = 0x1040 // + type
	deviceLast        = 0x107f
	capabilityVirtio  = 9
	capabilityMinimum = 16
)

// Types of virtio capabilities, and their fields (section 4.1.4).
const (
	cfgCommon = 1
	cfgNotify = 2
	cfgISR    = 3
	cfgDevice = 4

	capLength     = 2
	capType       = 3
	capBAR        = 4
	capOffset     = 8
	capSize       = 12
	capMultiplier = 16
)

// Common configuration (section 4.1.4.3).
const (
	comDeviceFeatureSelect = 0
	comDeviceFeature       = 4
	comDriverFeatureSelect = 8
	comDriverFeature       = 12
	comConfigVector        = 16
	comNumQueues           = 18
	comStatus              = 20
	comGeneration          = 21
	comQueueSelect         = 22
	comQueueSize           = 24
	comQueueVector         = 26
	comQueueEnable         = 28
	comQueueNotifyOff      = 30
	comQueueDesc           = 32
	comQueueDriver         = 40
	comQueueDevice         = 48
	comSize                = 56

	noVector = 0xffff
)

// Transport is one device.
type Transport struct {
	platform   driver.Platform // immutable
	f          *bus.Function   // immutable
	kind       uint32          // immutable
	common     driver.MMIO     // immutable
	isr        driver.MMIO     // immutable
	config     driver.MMIO     // immutable; nil if there is none
	notify     driver.MMIO     // immutable
	notifySize uint64          // immutable
	multiplier uint32          // immutable

	vectors []uint16 // of the queues; written by Connect
	offsets []uint64 // of the queues' doorbells; written by EnableQueue
}

// Probe returns the transport of a virtio function, nil for other functions,
// and an error for a device that it cannot drive.
func Probe(p driver.Platform, f *bus.Function) (*Transport, error) {
	if f.Vendor != vendor || f.Device < deviceTransition || f.Device > deviceLast {
		return nil, nil
	}
	t := &Transport{platform: p, f: f, kind: uint32(f.Subsystem)}
	if f.Device >= deviceModern {
		t.kind = uint32(f.Device - deviceModern)
	}
	f.Enable(true)
	for _, c := range f.Capabilities() {
		if c.ID == capabilityVirtio && f.Read8(c.Off+capLength) >= capabilityMinimum {
			if err := t.capability(c.Off); err != nil {
				return nil, err
			}
		}
	}
	if t.common == nil || t.notify == nil || t.isr == nil {
		return nil, fmt.Errorf("%v: a legacy device; only virtio 1.0 and later are driven", t)
	}
	return t, nil
}

// capability maps one of the structures; of several of a type the first counts.
func (t *Transport) capability(at uint16) error {
	off, size := uint64(t.f.Read32(at+capOffset)), uint64(t.f.Read32(at+capSize))
	open := func(to *driver.MMIO, least uint64) error {
		if *to != nil {
			return nil
		}
		if size < least {
			return fmt.Errorf("%v: structure of %d bytes, want %d", t, size, least)
		}
		m, err := t.f.Map(int(t.f.Read8(at+capBAR)), off, size)
		*to = m
		return err
	}
	switch t.f.Read8(at + capType) {
	case cfgCommon:
		return open(&t.common, comSize)
	case cfgISR:
		return open(&t.isr, 1)
	case cfgDevice:
		return open(&t.config, 1)
	case cfgNotify:
		if t.notify == nil {
			t.notifySize, t.multiplier = size, t.f.Read32(at+capMultiplier)
		}
		return open(&t.notify, 2)
	}
	return nil
}

func (t *Transport) String() string { return "virtio-pci " + t.f.Address.String() }

// Address is the function's, as BUS:DEVICE.FUNCTION in hexadecimal.
func (t *Transport) Address() string { return t.f.Address.String() }

// Function is the function's address.
func (t *Transport) Function() bus.Address { return t.f.Address }

// Windows returns the physical memory that the function's registers are in.
func (t *Transport) Windows() (list [][2]uint64) {
	for i := range 6 {
		if b, err := t.f.BAR(i); err == nil && !b.IO {
			list = append(list, [2]uint64{b.Phys, b.Size})
		}
	}
	return list
}

// Type implements virtio.Transport.
func (t *Transport) Type() uint32 { return t.kind }

// Reset implements virtio.Transport.
func (t *Transport) Reset() { t.SetStatus(0) }

// Status implements virtio.Transport.
func (t *Transport) Status() uint8 { return t.common.Read8(comStatus) }

// SetStatus implements virtio.Transport.
func (t *Transport) SetStatus(s uint8) { t.common.Write8(comStatus, s) }

// DeviceFeatures implements virtio.Transport.
func (t *Transport) DeviceFeatures() uint64 {
	t.common.Write32(comDeviceFeatureSelect, 1)
	hi := t.common.Read32(comDeviceFeature)
	t.common.Write32(comDeviceFeatureSelect, 0)
	return uint64(hi)<<32 | uint64(t.common.Read32(comDeviceFeature))
}

// SetDriverFeatures implements virtio.Transport.
func (t *Transport) SetDriverFeatures(f uint64) {
	t.common.Write32(comDriverFeatureSelect, 1)
	t.common.Write32(comDriverFeature, uint32(f>>32))
	t.common.Write32(comDriverFeatureSelect, 0)
	t.common.Write32(comDriverFeature, uint32(f))
}

// Connect implements virtio.Transport.
func (t *Transport) Connect(config func(), queues []virtio.Handler) error {
	t.vectors = make([]uint16, len(queues))
	t.offsets = make([]uint64, len(queues))
	for i := range t.vectors {
		t.vectors[i] = noVector
	}
	m, err := t.f.MSIX()
	if err != nil {
		return t.connectPin(config, queues)
	}
	wanted := 0
	for _, h := range queues {
		if h.Func != nil {
			wanted++
		}
	}
	next := 0
	add := func(cpu int, f func()) (uint16, error) {
		if next == m.Len() {
			return noVector, errors.New("too few message interrupts")
		}
		addr, data, err := t.platform.MSI(cpu, f)
		if err == nil {
			err = m.Set(next, addr, data)
		}
		next++
		return uint16(next - 1), err
	}
	if config != nil {
		v, err := add(0, config)
		if err != nil {
			return err
		}
		if t.common.Write16(comConfigVector, v); t.common.Read16(comConfigVector) != v {
			return errors.New("the device refuses a vector")
		}
	}
	if wanted > m.Len()-next {
		v, err := add(0, callAll(queues))
		for i, h := range queues {
			if h.Func != nil {
				t.vectors[i] = v
			}
		}
		return err
	}
	for i, h := range queues {
		if h.Func == nil {
			continue
		}
		if t.vectors[i], err = add(h.CPU, h.Func); err != nil {
			return err
		}
	}
	return nil
}

func callAll(queues []virtio.Handler) func() {
	var handlers []func()
	for _, h := range queues {
		if h.Func != nil {
			handlers = append(handlers, h.Func)
		}
	}
	return func() {
		for _, h := range handlers {
			h()
		}
	}
}

// Bits of the interrupt status, which reading clears.
const isrConfig = 2

func (t *Transport) connectPin(config func(), queues []virtio.Handler) error {
	gsi, err := t.f.GSI()
	if err != nil {
		return err
	}
	t.f.Enable(true)
	all := callAll(queues)
	return t.platform.Interrupt(gsi, true, false, func() {
		if cause := t.isr.Read8(0); cause&isrConfig != 0 && config != nil {
			config()
		}
		all()
	})
}

// QueueSize implements virtio.Transport.
func (t *Transport) QueueSize(queue int) int {
	if queue >= int(t.common.Read16(comNumQueues)) {
		return 0
	}
	t.common.Write16(comQueueSelect, uint16(queue))
	return int(t.common.Read16(comQueueSize))
}

// EnableQueue implements virtio.Transport.
func (t *Transport) EnableQueue(queue, size int, desc, avail, used uint64) error {
	t.common.Write16(comQueueSelect, uint16(queue))
	if t.common.Read16(comQueueEnable) != 0 {
		return fmt.Errorf("queue %d is in use already", queue)
	}
	t.common.Write16(comQueueSize, uint16(size))
	t.write64(comQueueDesc, desc)
	t.write64(comQueueDriver, avail)
	t.write64(comQueueDevice, used)
	v := t.vectors[queue]
	if t.common.Write16(comQueueVector, v); t.common.Read16(comQueueVector) != v {
		return errors.New("the device refuses a vector")
	}
	off := uint64(t.common.Read16(comQueueNotifyOff)) * uint64(t.multiplier)
	if off+2 > t.notifySize {
		return fmt.Errorf("queue %d has its doorbell outside", queue)
	}
	t.offsets[queue] = off
	t.common.Write16(comQueueEnable, 1)
	return nil
}

func (t *Transport) write64(off, v uint64) {
	t.common.Write32(off, uint32(v))
	t.common.Write32(off+4, uint32(v>>32))
}

// Notify implements virtio.Transport.
func (t *Transport) Notify(queue int) { t.notify.Write16(t.offsets[queue], uint16(queue)) }

// Config implements virtio.Transport.
func (t *Transport) Config() driver.MMIO { return t.config }

// ConfigGeneration implements virtio.Transport.
func (t *Transport) ConfigGeneration() uint32 { return uint32(t.common.Read8(comGeneration)) }
