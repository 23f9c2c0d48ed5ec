// Package virtio initializes virtio devices (virtio 1.2, chapter 3): it negotiates
// features over a Transport and makes the queues. Only devices of version 1 and later are
// driven ("modern"; QEMU's microvm needs -global virtio-mmio.force-legacy=false for
// that). The device types are in the packages net, rng and console; the transports in
// mmio and pci.
//
// The order of a start: Open, which leaves the device with its features agreed;
// Setup, which makes queues and routes interrupts; Ready. Handlers are not
// called before Ready.
package virtio

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
)

// Device types (section 5).
const (
	TypeNet     = 1
	TypeBlock   = 2
	TypeConsole = 3
	TypeRNG     = 4
	Type9P      = 9
)

// Features of every device type (section 6).
const (
	FeatureIndirect   uint64 = 1 << 28
	FeatureEventIndex uint64 = 1 << 29
	FeatureVersion1   uint64 = 1 << 32
)

// Bits of the device status (section 2.1).
const (
	StatusAcknowledge = 1
	StatusDriver      = 2
	StatusDriverOK    = 4
	StatusFeaturesOK  = 8
	StatusNeedsReset  = 64
	StatusFailed      = 128
)

// Handler is what an interrupt calls: a bottom half, and the CPU that is best
// interrupted for it.
type Handler struct {
	Func func() // nil: no interrupt wanted
	CPU  int
}

// Transport is how a device is reached. Except for Notify its methods are used
// by one goroutine.
type Transport interface {
	queue.Notifier
	fmt.Stringer // where the device is
	// Type is the device type; 0 says that there is no device.
	Type() uint32
	// Reset makes the device forget everything; Status is 0 once it has.
	Reset()
	Status() uint8
	SetStatus(s uint8)
	DeviceFeatures() uint64
	SetDriverFeatures(f uint64)
	// Connect routes the interrupts, before queues are enabled: config is called
	// when the device's configuration changed (nil: not wanted), queues[i] when
	// queue i has completions. Handlers may share an interrupt and be called
	// without cause.
	Connect(config func(), queues []Handler) error
	// QueueSize is the largest size of a queue, 0 if it does not exist.
	QueueSize(queue int) int
	EnableQueue(queue, size int, desc, avail, used uint64) error
	// Config is the configuration of the device type.
	Config() driver.MMIO
	// ConfigGeneration changes when Config does.
	ConfigGeneration() uint32
}

// Device is a virtio device that is being driven.
type Device struct {
	Transport                 // immutable
	Platform  driver.Platform // immutable
	Features  uint64          // immutable; what both sides agreed to

	ready  atomic.Bool   // handlers may run
	memory []queueMemory // of the queues; written by Setup
}

// queueMemory is what a queue was made of; size 0: the queue is not used.
type queueMemory struct {
	mem  driver.DMA
	size int
}

func (d *Device) options() queue.Options {
	return queue.Options{EventIndex: d.Has(FeatureEventIndex), Indirect: d.Has(FeatureIndirect)}
}

// Has reports whether a feature was agreed to.
func (d *Device) Has(feature uint64) bool { return d.Features&feature != 0 }

// resetTime bounds a reset; real devices need microseconds.
const resetTime = time.Second

// Open resets a device and agrees with it on those of the wanted features that
// it offers, and on FeatureVersion1.
func Open(p driver.Platform, t Transport, wanted uint64) (*Device, error) {
	t.Reset()
	for deadline := time.Now().Add(resetTime); t.Status() != 0; {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%v: the device does not reset", t)
		}
	}
	t.SetStatus(StatusAcknowledge)
	t.SetStatus(StatusAcknowledge | StatusDriver)
	offered := t.DeviceFeatures()
	if offered&FeatureVersion1 == 0 {
		t.SetStatus(StatusFailed)
		return nil, fmt.Errorf("%v: a legacy device; only virtio 1.0 and later are driven", t)
	}
	d := &Device{Transport: t, Platform: p, Features: offered & (wanted | FeatureVersion1)}
	t.SetDriverFeatures(d.Features)
	t.SetStatus(StatusAcknowledge | StatusDriver | StatusFeaturesOK)
	if t.Status()&StatusFeaturesOK == 0 {
		t.SetStatus(StatusFailed)
		return nil, fmt.Errorf("%v: the device refuses features %#x", t, d.Features)
	}
	return d, nil
}

// QueueSpec says what a driver wants of a queue.
type QueueSpec struct {
	MaxSize int // descriptors at most, a power of two; 0: the queue is not used
	Handler Handler
}

// Setup makes the queues 0, 1, … and routes their interrupts.
func (d *Device) Setup(config func(), specs []QueueSpec) ([]*queue.Queue, error) {
	handlers := make([]Handler, len(specs))
	for i, s := range specs {
		handlers[i] = Handler{d.guard(s.Handler.Func), s.Handler.CPU}
	}
	if err := d.Connect(d.guard(config), handlers); err != nil {
		return nil, d.fail(err)
	}
	o := d.options()
	queues := make([]*queue.Queue, len(specs))
	d.memory = make([]queueMemory, len(specs))
	for i, s := range specs {
		if s.MaxSize == 0 {
			continue
		}
		size := min(s.MaxSize, d.QueueSize(i))
		for size&(size-1) != 0 {
			size &= size - 1 // down to a power of two
		}
		if size < 2 {
			return nil, d.fail(fmt.Errorf("no queue %d", i))
		}
		mem, ok := d.Platform.AllocDMA(driver.Pages(queue.Bytes(size, o)))
		if !ok {
			return nil, d.fail(errors.New("no memory for queues"))
		}
		q, err := queue.New(mem, size, o, i, d.Transport)
		if err != nil {
			return nil, d.fail(err)
		}
		desc, avail, used := q.Layout()
		if err := d.EnableQueue(i, size, desc, avail, used); err != nil {
			return nil, d.fail(err)
		}
		queues[i] = q
		d.memory[i] = queueMemory{mem, size}
	}
	return queues, nil
}

// Ready sets the device to work; handlers may run from here on.
func (d *Device) Ready() error {
	d.ready.Store(true)
	d.SetStatus(StatusAcknowledge | StatusDriver | StatusFeaturesOK | StatusDriverOK)
	if d.Status()&StatusNeedsReset != 0 {
		return d.fail(errors.New("the device wants to be reset at once"))
	}
	return nil
}

// Fail gives the device up: it is told so and no handler runs any more.
func (d *Device) Fail() {
	d.ready.Store(false)
	d.SetStatus(StatusFailed)
}

func (d *Device) fail(err error) error {
	d.Fail()
	return fmt.Errorf("%v: %w", d.Transport, err)
}

func (d *Device) guard(f func()) func() {
	if f == nil {
		return nil
	}
	return func() {
		if d.ready.Load() {
			f()
		}
	}
}

// ReadConfig calls read until the configuration did not change while it ran.
func (d *Device) ReadConfig(read func(driver.MMIO)) {
	for range 100 {
		before := d.ConfigGeneration()
		read(d.Config())
		if d.ConfigGeneration() == before {
			return
		}
	}
}
