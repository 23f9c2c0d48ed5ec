package softdev

import (
	"sync"
	"sync/atomic"

	"hardtack/driver"
	"hardtack/driver/virtio"
)

// Transport is a virtio.Transport to a device in the test.
type Transport struct {
	M          *Machine
	DeviceType uint32
	Offer      uint64 // features of the device, beside VERSION_1
	Sizes      []int  // of the queues
	Space      []byte // configuration
	// OnNotify is called in the driver's goroutine.
	OnNotify func(queue int)

	mu       sync.Mutex
	status   uint8
	Accepted uint64
	rings    []*Ring
	handlers []virtio.Handler
	config   func()
	Kicks    atomic.Int64
}

func (t *Transport) String() string { return "virtio in software" }

// Type implements virtio.Transport.
func (t *Transport) Type() uint32 { return t.DeviceType }

// Reset implements virtio.Transport.
func (t *Transport) Reset() { t.SetStatus(0) }

// Status implements virtio.Transport.
func (t *Transport) Status() uint8 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// SetStatus implements virtio.Transport.
func (t *Transport) SetStatus(s uint8) {
	t.mu.Lock()
	t.status = s
	t.mu.Unlock()
}

// DeviceFeatures implements virtio.Transport.
func (t *Transport) DeviceFeatures() uint64 { return t.Offer | virtio.FeatureVersion1 }

// SetDriverFeatures implements virtio.Transport.
func (t *Transport) SetDriverFeatures(f uint64) { t.Accepted = f }

// Connect implements virtio.Transport.
func (t *Transport) Connect(config func(), queues []virtio.Handler) error {
	t.config, t.handlers = config, queues
	return nil
}

// QueueSize implements virtio.Transport.
func (t *Transport) QueueSize(queue int) int {
	if queue >= len(t.Sizes) {
		return 0
	}
	return t.Sizes[queue]
}

// EnableQueue implements virtio.Transport.
func (t *Transport) EnableQueue(queue, size int, desc, avail, used uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.rings) <= queue {
		t.rings = append(t.rings, nil)
	}
	t.rings[queue] = NewRing(t.M, size, desc, avail, used, t.Accepted&virtio.FeatureEventIndex != 0)
	return nil
}

// Config implements virtio.Transport.
func (t *Transport) Config() driver.MMIO { return Bytes(t.Space) }

// ConfigGeneration implements virtio.Transport.
func (t *Transport) ConfigGeneration() uint32 { return 0 }

// Notify implements virtio.Transport.
func (t *Transport) Notify(queue int) {
	t.Kicks.Add(1)
	if t.OnNotify != nil {
		t.OnNotify(queue)
	}
}

// Ring returns the device's end of an enabled queue, nil for others.
func (t *Transport) Ring(queue int) *Ring {
	t.mu.Lock()
	defer t.mu.Unlock()
	if queue >= len(t.rings) {
		return nil
	}
	return t.rings[queue]
}

// Interrupt calls a queue's handler.
func (t *Transport) Interrupt(queue int) {
	if f := t.handlers[queue].Func; f != nil {
		f()
	}
}

// Bytes makes device registers of plain memory.
func Bytes(b []byte) driver.MMIO { return bytesMMIO(b) }

type bytesMMIO []byte

func (b bytesMMIO) get(off uint64, n int) (v uint64) {
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[off+uint64(i)])
	}
	return v
}

func (b bytesMMIO) set(off uint64, n int, v uint64) {
	for i := range n {
		b[off+uint64(i)] = byte(v >> (8 * i))
	}
}

func (b bytesMMIO) Read8(off uint64) uint8       { return uint8(b.get(off, 1)) }
func (b bytesMMIO) Read16(off uint64) uint16     { return uint16(b.get(off, 2)) }
func (b bytesMMIO) Read32(off uint64) uint32     { return uint32(b.get(off, 4)) }
func (b bytesMMIO) Read64(off uint64) uint64     { return b.get(off, 8) }
func (b bytesMMIO) Write8(off uint64, v uint8)   { b.set(off, 1, uint64(v)) }
func (b bytesMMIO) Write16(off uint64, v uint16) { b.set(off, 2, uint64(v)) }
func (b bytesMMIO) Write32(off uint64, v uint32) { b.set(off, 4, uint64(v)) }
func (b bytesMMIO) Write64(off uint64, v uint64) { b.set(off, 8, v) }

// ConfigChanged tells the driver that Space has changed.
func (t *Transport) ConfigChanged() {
	if t.config != nil {
		t.config()
	}
}
