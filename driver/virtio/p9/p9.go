// Package p9 drives a virtio 9P transport (type 9 of the virtio specification): messages
// of the protocol 9P to a server that the host runs, and its replies. It knows nothing
// of what the messages say.
//
// Each message has a slot: memory that the device can reach, for the request and behind it
// for the reply. Requests are limited by the slots, which are made at the start and stay.
// Large slots carry any message; as many small ones carry what must get through when all
// large ones are in use.
package p9

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"hardtack/driver"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/queue"
)

// featureTag says that the configuration has a tag, by which the device is found.
const featureTag uint64 = 1 << 0

const (
	// Slots is how many large messages can be under way; there are as many small ones.
	Slots = 16
	// MaxSize is the largest message: 128 KiB of data with their header.
	MaxSize = 128<<10 + 4096
	// behind is the room for the reply to a message of the largest size.
	behind = 8 << 10
	// smallSize is what a small slot has for the request, and for the reply.
	smallSize = 32

	queueSize = 128
	maxTag    = 255
)

// Device is one transport.
type Device struct {
	dev   *virtio.Device        // immutable
	tag   string                // immutable
	slots [2 * Slots]driver.DMA // immutable

	bh   sync.Mutex // held while completions are handed up
	done func(slot, n int)

	mu     sync.Mutex
	q      *queue.Queue // guarded by mu
	broken bool         // guarded by mu; told to done
}

// New drives the transport behind t.
func New(p driver.Platform, t virtio.Transport) (*Device, error) {
	v, err := virtio.Open(p, t, virtio.FeatureEventIndex|featureTag)
	if err != nil {
		return nil, err
	}
	d := &Device{dev: v}
	if !v.Has(featureTag) || !d.readTag() {
		v.Fail()
		return nil, fmt.Errorf("%v: a 9P transport without a tag", t)
	}
	queues, err := v.Setup(nil, []virtio.QueueSpec{{MaxSize: queueSize, Handler: virtio.Handler{Func: d.completed}}})
	if err != nil {
		return nil, err
	}
	if err := d.makeSlots(p); err != nil {
		v.Fail()
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	if queues[0].Size() < 4*Slots { // a message takes two descriptors
		v.Fail()
		return nil, fmt.Errorf("%v: a queue of %d descriptors is too small", t, queues[0].Size())
	}
	d.q = queues[0]
	return d, v.Ready()
}

// makeSlots gets the memory.
func (d *Device) makeSlots(p driver.Platform) error {
	small, ok := p.AllocDMA(driver.Pages(Slots * 2 * smallSize))
	for i := 0; i < Slots && ok; i++ {
		d.slots[Slots+i] = small.Slice(i*2*smallSize, 2*smallSize)
		d.slots[i], ok = p.AllocDMA(driver.Pages(MaxSize + behind))
	}
	if !ok {
		return errors.New("no memory for messages")
	}
	return nil
}

// readTag reads the tag; false if it is none.
func (d *Device) readTag() bool {
	d.dev.ReadConfig(func(c driver.MMIO) {
		b := make([]byte, min(int(c.Read16(0)), maxTag))
		for i := range b {
			b[i] = c.Read8(2 + uint64(i))
		}
		d.tag = string(b)
	})
	return d.tag != "" && !strings.ContainsRune(d.tag, 0)
}

// Tag is the name that the host gave the transport.
func (d *Device) Tag() string { return d.tag }

// Slots returns how many messages of the largest size can be under way; numbers from
// there on, as many again, are small slots.
func (d *Device) Slots() int { return Slots }

// MaxSize is the largest message.
func (d *Device) MaxSize() int { return MaxSize }

// Buffer returns a slot's memory. The request is at its beginning.
func (d *Device) Buffer(slot int) []byte { return d.slots[slot].Virt }

// Start sets who hears of replies: of which slot, and how many bytes the device wrote. A
// slot below 0 says that the device is broken, and no further reply comes.
func (d *Device) Start(done func(slot, n int)) {
	d.bh.Lock()
	d.done = done
	d.bh.Unlock()
}

// Submit sends the first bytes of a slot. The reply comes to offset at, in bytes at most.
// It returns false if the device is broken.
func (d *Device) Submit(slot, request, at, in int) bool {
	m := d.slots[slot]
	if request > at || at+in > len(m.Virt) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := [1]queue.Segment{{Phys: m.Phys, Len: uint32(request)}}
	reply := [1]queue.Segment{{Phys: m.Phys + uint64(at), Len: uint32(in)}}
	if d.broken || !d.q.Add(uint32(slot), out[:], reply[:]) {
		return false
	}
	d.q.Publish()
	return true
}

// completed is the bottom half.
func (d *Device) completed() {
	d.bh.Lock()
	defer d.bh.Unlock()
	for {
		d.mu.Lock()
		slot, n, ok := d.q.Pop()
		more := !ok && d.q.EnableInterrupts(0)
		failed := d.q.Err() != nil && !d.broken
		d.broken = d.broken || failed
		d.mu.Unlock()
		switch {
		case ok && d.done != nil:
			d.done(int(slot), int(n))
		case failed && d.done != nil:
			d.done(-1, 0)
			return
		case !ok && !more:
			return
		}
	}
}
