package virtio

import (
	"fmt"
	"time"

	"hardtack/driver/virtio/queue"
)

// Restart brings a device up again that was being driven: reset, the same
// features, empty queues in the same memory, the same interrupts. The caller
// makes sure that no handler uses the queues meanwhile. On success the device
// works, with no requests; when it fails it is given up, and if quiet is false
// it may still access memory.
func (d *Device) Restart() (queues []*queue.Queue, quiet bool, err error) {
	d.ready.Store(false)
	d.Reset()
	for deadline := time.Now().Add(resetTime); d.Status() != 0; {
		if time.Now().After(deadline) {
			return nil, false, fmt.Errorf("%v: the device does not reset", d.Transport)
		}
	}
	d.SetStatus(StatusAcknowledge)
	d.SetStatus(StatusAcknowledge | StatusDriver)
	if d.DeviceFeatures()&d.Features != d.Features {
		return nil, true, d.fail(fmt.Errorf("features %#x are gone", d.Features))
	}
	d.SetDriverFeatures(d.Features)
	d.SetStatus(StatusAcknowledge | StatusDriver | StatusFeaturesOK)
	if d.Status()&StatusFeaturesOK == 0 {
		return nil, true, d.fail(fmt.Errorf("the device refuses features %#x", d.Features))
	}
	queues = make([]*queue.Queue, len(d.memory))
	for i, m := range d.memory {
		if m.size == 0 {
			continue
		}
		clear(m.mem.Virt)
		q, err := queue.New(m.mem, m.size, d.options(), i, d.Transport)
		if err != nil {
			return nil, true, d.fail(err)
		}
		desc, avail, used := q.Layout()
		if err := d.EnableQueue(i, m.size, desc, avail, used); err != nil {
			return nil, true, d.fail(err)
		}
		queues[i] = q
	}
	return queues, true, d.Ready()
}
