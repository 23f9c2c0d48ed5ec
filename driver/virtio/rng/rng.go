// Package rng reads a virtio entropy device (virtio 1.2, section 5.4).
package rng

import (
	"fmt"
	"sync"

	"hardtack/driver"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/queue"
)

// Device is an entropy device.
type Device struct {
	feed func([]byte)     // immutable
	mem  driver.DMA       // immutable; the one buffer
	out  [bufferSize]byte // the bottom half's

	mu   sync.Mutex
	q    *queue.Queue // guarded by mu
	busy bool         // guarded by mu; the buffer is with the device
}

const bufferSize = 256

// New drives the device behind a transport. feed is called in an interrupt's
// goroutine with entropy, for the first time soon after New and then once after
// each Request; it must not keep the bytes.
func New(p driver.Platform, t virtio.Transport, feed func([]byte)) (*Device, error) {
	v, err := virtio.Open(p, t, virtio.FeatureEventIndex)
	if err != nil {
		return nil, err
	}
	d := &Device{feed: feed}
	queues, err := v.Setup(nil, []virtio.QueueSpec{{MaxSize: 2, Handler: virtio.Handler{Func: d.completed}}})
	if err != nil {
		return nil, err
	}
	var ok bool
	if d.mem, ok = p.AllocDMA(driver.Pages(bufferSize)); !ok {
		v.Fail()
		return nil, fmt.Errorf("%v: no memory", t)
	}
	d.q = queues[0]
	if err := v.Ready(); err != nil {
		return nil, err
	}
	d.Request()
	return d, nil
}

// Request asks for more entropy; while an earlier request is under way it does
// nothing.
func (d *Device) Request() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return
	}
	d.q.EnableInterrupts(0)
	d.busy = d.q.Add(0, nil, []queue.Segment{{Phys: d.mem.Phys, Len: bufferSize}})
	d.q.Publish()
}

func (d *Device) completed() {
	d.mu.Lock()
	_, n, ok := d.q.Pop()
	if ok {
		copy(d.out[:], d.mem.Virt[:n])
		clear(d.mem.Virt[:n])
		d.busy = false
	}
	d.mu.Unlock()
	if ok {
		d.feed(d.out[:n])
		clear(d.out[:n])
	}
}
