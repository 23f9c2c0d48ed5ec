// Package mmio is the virtio transport over memory-mapped registers (virtio
// 1.2, section 4.2), version 2 only.
//
// All queues of a device share one interrupt line. It is used edge-triggered:
// the bottom half acknowledges first, which lowers the line, and looks at the
// queues afterwards, so whatever comes later raises it again; an edge needs no
// masking and unmasking at the interrupt controller.
package mmio

import (
	"fmt"

	"hardtack/driver"
	"hardtack/driver/virtio"
)

// Registers (table 4.1).
const (
	regMagic             = 0x000
	regVersion           = 0x004
	regDeviceID          = 0x008
	regDeviceFeatures    = 0x010
	regDeviceFeaturesSel = 0x014
	regDriverFeatures    = 0x020
	regDriverFeaturesSel = 0x024
	regQueueSel          = 0x030
	regQueueSizeMax      = 0x034
	regQueueSize         = 0x038
	regQueueReady        = 0x044
	regQueueNotify       = 0x050
	regInterruptStatus   = 0x060
	regInterruptACK      = 0x064
	regStatus            = 0x070
	regQueueDesc         = 0x080
	regQueueDriver       = 0x090
	regQueueDevice       = 0x0a0
	regConfigGeneration  = 0x0fc
	regConfig            = 0x100

	// Size is how many bytes of registers a transport has.
	Size = 0x200

	magic = 0x74726976 // "virt"
)

// Causes of an interrupt.
const (
	intQueue  = 1
	intConfig = 2
)

// Transport is one device.
type Transport struct {
	platform driver.Platform // immutable
	regs     driver.MMIO     // immutable
	phys     uint64          // immutable
	gsi      uint32          // immutable
}

// Probe looks at the registers at a physical address, whose interrupt is a GSI.
// It returns nil when no device is plugged in, and an error for one that it
// cannot drive.
func Probe(p driver.Platform, phys uint64, gsi uint32) (*Transport, error) {
	t := &Transport{p, p.MapDevice(phys, Size), phys, gsi}
	if t.regs.Read32(regMagic) != magic || t.regs.Read32(regDeviceID) == 0 {
		return nil, nil
	}
	if v := t.regs.Read32(regVersion); v != 2 {
		return nil, fmt.Errorf("%v: register version %d, a legacy device; only version 2 is driven"+
			" (QEMU: -global virtio-mmio.force-legacy=false)", t, v)
	}
	return t, nil
}

func (t *Transport) String() string { return fmt.Sprintf("virtio-mmio at %#x", t.phys) }

// Address is where the registers are, in hexadecimal.
func (t *Transport) Address() string { return fmt.Sprintf("%x", t.phys) }

// Line returns the registers' physical address, and the GSI of the interrupt.
func (t *Transport) Line() (phys uint64, gsi uint32) { return t.phys, t.gsi }

// Type implements virtio.Transport.
func (t *Transport) Type() uint32 { return t.regs.Read32(regDeviceID) }

// Reset implements virtio.Transport.
func (t *Transport) Reset() { t.regs.Write32(regStatus, 0) }

// Status implements virtio.Transport.
func (t *Transport) Status() uint8 { return uint8(t.regs.Read32(regStatus)) }

// SetStatus implements virtio.Transport.
func (t *Transport) SetStatus(s uint8) { t.regs.Write32(regStatus, uint32(s)) }

// DeviceFeatures implements virtio.Transport.
func (t *Transport) DeviceFeatures() uint64 {
	t.regs.Write32(regDeviceFeaturesSel, 1)
	hi := t.regs.Read32(regDeviceFeatures)
	t.regs.Write32(regDeviceFeaturesSel, 0)
	return uint64(hi)<<32 | uint64(t.regs.Read32(regDeviceFeatures))
}

// SetDriverFeatures implements virtio.Transport.
func (t *Transport) SetDriverFeatures(f uint64) {
	t.regs.Write32(regDriverFeaturesSel, 1)
	t.regs.Write32(regDriverFeatures, uint32(f>>32))
	t.regs.Write32(regDriverFeaturesSel, 0)
	t.regs.Write32(regDriverFeatures, uint32(f))
}

// QueueSize implements virtio.Transport.
func (t *Transport) QueueSize(queue int) int {
	t.regs.Write32(regQueueSel, uint32(queue))
	return int(t.regs.Read32(regQueueSizeMax))
}

// EnableQueue implements virtio.Transport.
func (t *Transport) EnableQueue(queue, size int, desc, avail, used uint64) error {
	t.regs.Write32(regQueueSel, uint32(queue))
	if t.regs.Read32(regQueueReady) != 0 {
		return fmt.Errorf("queue %d is in use already", queue)
	}
	t.regs.Write32(regQueueSize, uint32(size))
	t.write64(regQueueDesc, desc)
	t.write64(regQueueDriver, avail)
	t.write64(regQueueDevice, used)
	t.regs.Write32(regQueueReady, 1)
	return nil
}

func (t *Transport) write64(reg, v uint64) {
	t.regs.Write32(reg, uint32(v))
	t.regs.Write32(reg+4, uint32(v>>32))
}

// Connect implements virtio.Transport.
func (t *Transport) Connect(config func(), queues []virtio.Handler) error {
	var handlers []func()
	for _, h := range queues {
		if h.Func != nil {
			handlers = append(handlers, h.Func)
		}
	}
	return t.platform.Interrupt(t.gsi, false, false, func() {
		// Whoever does not care for the cause need not ask: each access leaves the
		// guest.
		cause := uint32(intQueue | intConfig)
		if config != nil {
			cause = t.regs.Read32(regInterruptStatus)
		}
		t.regs.Write32(regInterruptACK, cause&(intQueue|intConfig))
		if config != nil && cause&intConfig != 0 {
			config()
		}
		for _, h := range handlers {
			h()
		}
	})
}

// Notify implements virtio.Transport.
func (t *Transport) Notify(queue int) { t.regs.Write32(regQueueNotify, uint32(queue)) }

// Config implements virtio.Transport.
func (t *Transport) Config() driver.MMIO { return driver.Offset(t.regs, regConfig) }

// ConfigGeneration implements virtio.Transport.
func (t *Transport) ConfigGeneration() uint32 { return t.regs.Read32(regConfigGeneration) }
