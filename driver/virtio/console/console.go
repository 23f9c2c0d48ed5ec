// Package console drives virtio console devices with several named ports
// (virtio 1.2, section 5.3; QEMU's virtio-serial), each a stream of bytes to
// the host. The kernel's control channel is one of them (Control).
//
// The device announces ports one after the other on its control queue; a Port
// is there from the start, and what is written to it before it has been
// announced is kept.
//
// Lock order: buffers.mu of a receive queue, then what the receiver takes;
// Port.mu, which guards a transmit queue, is a leaf.
package console

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"hardtack/driver"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/queue"
)

const featureMultiPort uint64 = 1 << 1

// configMaxPorts is where the configuration says how many ports there may be.
const configMaxPorts = 4

// Control events (section 5.3.6.2).
const (
	eventDeviceReady = 0
	eventPortAdd     = 1
	eventPortRemove  = 2
	eventPortReady   = 3
	eventPortOpen    = 6
	eventPortName    = 7

	controlSize = 8 // id, event, value
)

const (
	// maxPorts are the ports that get queues: QEMU keeps port 0 for a console.
	maxPorts = 4
	// Each queue has queueSize buffers of bufferSize bytes, all in one page run.
	queueSize  = 16
	bufferSize = 512
)

// Device is a console device.
type Device struct {
	dev   *virtio.Device
	ports map[string]*Port               // immutable; by name
	slots [maxPorts]slot                 // by the device's number
	names [maxPorts]atomic.Pointer[Port] // the port that a number turned out to be

	controlRx buffers
	controlTx buffers // guarded by controlRx.mu
}

// slot is the pair of queues of one number.
type slot struct{ rx, tx buffers }

// buffers is a queue and a buffer for each of its descriptors.
type buffers struct {
	mu  sync.Mutex   // used for receive queues
	q   *queue.Queue // guarded by mu, or as the user says
	mem driver.DMA   // immutable
}

func (b *buffers) segment(i uint32, n int) []queue.Segment {
	return []queue.Segment{{Phys: b.mem.Phys + uint64(i)*bufferSize, Len: uint32(n)}}
}

func (b *buffers) bytes(i uint32, n int) []byte { return b.mem.Virt[i*bufferSize:][:n:n] }

// give offers buffer i to the device for writing.
func (b *buffers) give(i uint32) { b.q.Add(i, nil, b.segment(i, bufferSize)) }

func (b *buffers) giveAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.q.Size() {
		b.give(uint32(i))
	}
	b.q.EnableInterrupts(0)
	b.q.Publish()
}

// drain hands every received buffer to f and gives it back.
func (b *buffers) drain(f func([]byte)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for {
			i, n, ok := b.q.Pop()
			if !ok {
				break
			}
			f(b.bytes(i, int(n)))
			b.give(i)
			b.q.Publish()
		}
		if !b.q.EnableInterrupts(0) {
			return
		}
	}
}

// New drives the device behind a transport. receive has the ports that are
// wanted, by name, and what is called with bytes that come in (in an interrupt's
// goroutine, one call at a time a port; the bytes must not be kept).
func New(p driver.Platform, t virtio.Transport, receive map[string]func([]byte)) (*Device, error) {
	v, err := virtio.Open(p, t, featureMultiPort|virtio.FeatureEventIndex)
	if err != nil {
		return nil, err
	}
	if !v.Has(featureMultiPort) {
		v.Fail()
		return nil, fmt.Errorf("%v: a console without named ports", t)
	}
	d := &Device{dev: v, ports: map[string]*Port{}}
	for name, f := range receive {
		d.ports[name] = newPort(name, f)
	}
	if err := d.setup(); err != nil {
		return nil, err
	}
	d.controlRx.giveAll() // first: the device answers at once, into these
	d.controlRx.mu.Lock()
	d.say(^uint32(0), eventDeviceReady, 1)
	d.controlRx.mu.Unlock()
	return d, nil
}

// Port returns the port of a name that New was given, nil for others.
func (d *Device) Port(name string) *Port { return d.ports[name] }

// setup makes the queues: 0 and 1 are port 0, 2 and 3 the control queues, from
// 4 on the other ports.
func (d *Device) setup() error {
	var most uint32
	d.dev.ReadConfig(func(c driver.MMIO) { most = c.Read32(configMaxPorts) })
	ports := int(min(max(most, 1), maxPorts))

	specs := []virtio.QueueSpec{2: {MaxSize: queueSize, Handler: virtio.Handler{Func: d.control}}, 3: {MaxSize: queueSize}}
	use := []*buffers{2: &d.controlRx, 3: &d.controlTx}
	for n := range ports {
		rx, tx := 0, 1
		if n > 0 {
			rx, tx = 2+2*n, 3+2*n
			specs, use = append(specs, virtio.QueueSpec{}, virtio.QueueSpec{}), append(use, nil, nil)
		}
		specs[rx] = virtio.QueueSpec{MaxSize: queueSize, Handler: virtio.Handler{Func: func() { d.received(n) }}}
		specs[tx] = virtio.QueueSpec{MaxSize: queueSize, Handler: virtio.Handler{Func: func() { d.sent(n) }}}
		use[rx], use[tx] = &d.slots[n].rx, &d.slots[n].tx
	}
	queues, err := d.dev.Setup(nil, specs)
	if err != nil {
		return err
	}
	for i, b := range use {
		var ok bool
		if b.mem, ok = d.dev.Platform.AllocDMA(driver.Pages(queueSize * bufferSize)); !ok {
			d.dev.Fail()
			return errors.New("virtio console: no memory for buffers")
		}
		b.q = queues[i]
	}
	return d.dev.Ready()
}

// say sends a control message. The device takes them as it is notified, so
// there is room; if not, the message is lost.
func (d *Device) say(id uint32, event, value uint16) {
	c := &d.controlTx
	i := uint32(0)
	if token, _, ok := c.q.Pop(); ok {
		i = token
	} else if i = uint32(c.q.Pending()); int(i) == c.q.Size() {
		return
	}
	b := c.bytes(i, controlSize)
	binary.LittleEndian.PutUint32(b, id)
	binary.LittleEndian.PutUint16(b[4:], event)
	binary.LittleEndian.PutUint16(b[6:], value)
	c.q.DisableInterrupts()
	c.q.Add(i, c.segment(i, controlSize), nil)
	c.q.Publish()
}

// control is the bottom half of the control queue.
func (d *Device) control() { d.controlRx.drain(d.hear) }

// hear acts on a control message of the device.
func (d *Device) hear(b []byte) {
	if len(b) < controlSize {
		return
	}
	id, event := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:])
	if id >= maxPorts || d.slots[id].tx.q == nil {
		if event == eventPortAdd {
			d.say(id, eventPortReady, 0) // we have no queues for it
		}
		return
	}
	switch event {
	case eventPortAdd:
		d.say(id, eventPortReady, 1)
	case eventPortName:
		name := b[controlSize:]
		for len(name) > 0 && name[len(name)-1] == 0 {
			name = name[:len(name)-1]
		}
		if p := d.ports[string(name)]; p != nil && d.names[id].Load() == nil && p.bind(&d.slots[id].tx) {
			d.names[id].Store(p)
			d.slots[id].rx.giveAll()
			d.say(id, eventPortOpen, 1)
			p.flush()
		}
	case eventPortRemove:
		if p := d.names[id].Load(); p != nil {
			p.unbind()
		}
	}
}

// received is the bottom half of a port's receive queue.
func (d *Device) received(n int) {
	if p := d.names[n].Load(); p != nil {
		d.slots[n].rx.drain(p.receive)
	}
}

// sent is the bottom half of a port's transmit queue.
func (d *Device) sent(n int) {
	if p := d.names[n].Load(); p != nil {
		p.sent()
	}
}
