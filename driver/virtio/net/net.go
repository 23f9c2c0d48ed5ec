// Package net drives virtio network devices (virtio 1.2, section 5.1). A Device
// fits kernel/net/netdev.Device.
//
// Receive: the device owns each queue's buffers. The bottom half takes frames in
// batches, passes each batch to the receiver and returns the buffers to the device.
// When the queue is empty, it enables interrupts again. Transmit: frames are copied
// into the queue's slots under its lock, with one doorbell per call. Later senders
// collect finished slots. Only a sender that finds the queue full enables the
// interrupt.
//
// Memory of a queue pair: rxSize buffers of rxBufferSize and txSize slots of
// txSlotSize, 512 KiB + 1 MiB. Nothing is allocated for a frame.
//
// Lock order: rxQueue.mu, what the receiver takes, txQueue.mu.
package net

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"hardtack/driver"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/queue"
	"hardtack/kernel/net/netdev"
)

// Feature bits (section 5.1.3).
const (
	featureChecksum      uint64 = 1 << 0
	featureGuestChecksum uint64 = 1 << 1
	featureMTU           uint64 = 1 << 3
	featureMAC           uint64 = 1 << 5
	featureGuestTSO4     uint64 = 1 << 7
	featureGuestTSO6     uint64 = 1 << 8
	featureHostTSO4      uint64 = 1 << 11
	featureHostTSO6      uint64 = 1 << 12
	featureMergeable     uint64 = 1 << 15
	featureStatus        uint64 = 1 << 16
	featureControl       uint64 = 1 << 17
	featureMultiQueue    uint64 = 1 << 22
)

// Offsets in the configuration (section 5.1.4).
const (
	configMAC      = 0
	configStatus   = 6
	configMaxPairs = 8
	configMTU      = 10
	configSize     = 12
)

const statusLink = 1 // of the status; without a status there is always a link

const (
	rxSize = 256 // buffers a receive queue
	txSize = 256 // slots and descriptors a transmit queue
	// A frame of an Ethernet fits one buffer with its header; longer ones
	// (merged segments) span several.
	rxBufferSize = 2048
	// The largest frame, 64 KiB and headers, takes 17 slots; that is within
	// the queue's indirect tables.
	txSlotSize  = 4096
	txMaxSlots  = 17
	rxBatch     = 64 // frames handed up at a time
	controlSize = 2
)

// Device is a network device.
type Device struct {
	dev      *virtio.Device  // immutable
	mac      [6]byte         // immutable
	mtu      int             // immutable
	maxMTU   int             // immutable
	features netdev.Features // immutable
	rx       []*rxQueue      // immutable
	tx       []*txQueue      // immutable
	recv     func([]netdev.Frame)
	ready    atomic.Pointer[func()] // called when a full queue has room again
	held     driver.Held
	down     atomic.Bool // there is no link
	onLink   atomic.Pointer[func()]
}

// New drives the device behind a transport with at most a number of queue
// pairs (one a CPU is what helps). It neither sends nor receives before
// SetReceiver.
func New(p driver.Platform, t virtio.Transport, pairs int) (*Device, error) {
	wanted := virtio.FeatureEventIndex | virtio.FeatureIndirect |
		featureMTU | featureMAC | featureStatus | featureMergeable |
		featureChecksum | featureHostTSO4 | featureHostTSO6 |
		featureGuestChecksum | featureGuestTSO4 | featureGuestTSO6
	if pairs > 1 {
		wanted |= featureControl | featureMultiQueue
	}
	// Some features need others (section 5.1.3.1); we ask for merged segments
	// only with merged buffers, because other buffers would need 64 KiB each.
	// If a device offers a feature without those that it needs, we do not use it.
	offered := t.DeviceFeatures()
	need := func(f, base uint64) {
		if offered&base == 0 {
			wanted &^= f
		}
	}
	need(featureHostTSO4|featureHostTSO6, featureChecksum)
	need(featureGuestTSO4|featureGuestTSO6, featureGuestChecksum)
	need(featureGuestTSO4|featureGuestTSO6, featureMergeable)
	need(featureMultiQueue, featureControl)
	need(featureControl, featureMultiQueue)

	v, err := virtio.Open(p, t, wanted)
	if err != nil {
		return nil, err
	}
	d := &Device{dev: v}
	maxPairs := d.readConfig()
	if err := d.setup(min(max(pairs, 1), maxPairs), maxPairs); err != nil {
		return nil, err
	}
	return d, nil
}

// readConfig returns how many queue pairs the device has.
func (d *Device) readConfig() (maxPairs int) {
	maxPairs, d.mtu = 1, 1500
	d.dev.ReadConfig(func(c driver.MMIO) {
		if d.dev.Has(featureMAC) {
			for i := range d.mac {
				d.mac[i] = c.Read8(configMAC + uint64(i))
			}
		}
		if d.dev.Has(featureMultiQueue) {
			maxPairs = min(max(int(c.Read16(configMaxPairs)), 1), 0x8000)
		}
		if d.dev.Has(featureMTU) {
			d.mtu = int(c.Read16(configMTU))
		}
	})
	if !d.dev.Has(featureMAC) {
		_, _ = rand.Read(d.mac[:])
		d.mac[0] = d.mac[0]&^1 | 2 // one station, locally chosen
	}
	// A frame must fit a buffer, if buffers are not merged.
	d.maxMTU = rxBufferSize - headerSize - 14
	if d.dev.Has(featureMergeable) {
		d.maxMTU = 65535
	}
	d.mtu = min(max(d.mtu, 68), d.maxMTU)
	if d.dev.Has(featureMTU) {
		d.maxMTU = d.mtu
	}
	for feature, name := range map[uint64]netdev.Features{
		featureChecksum: netdev.TxChecksum, featureHostTSO4: netdev.TSO4, featureHostTSO6: netdev.TSO6,
		featureGuestChecksum: netdev.RxChecksum,
		featureGuestTSO4:     netdev.LRO, featureGuestTSO6: netdev.LRO,
	} {
		if d.dev.Has(feature) {
			d.features |= name
		}
	}
	return maxPairs
}

func (d *Device) setup(pairs, maxPairs int) error {
	// Queues 2i and 2i+1 are pair i; the control queue comes behind all pairs
	// that the device has, used or not.
	specs := make([]virtio.QueueSpec, 2*pairs, 2*maxPairs+1)
	for i := range pairs {
		rx, tx := &rxQueue{d: d}, &txQueue{d: d}
		d.rx, d.tx = append(d.rx, rx), append(d.tx, tx)
		specs[2*i] = virtio.QueueSpec{MaxSize: rxSize, Handler: virtio.Handler{Func: rx.poll, CPU: i}}
		specs[2*i+1] = virtio.QueueSpec{MaxSize: txSize, Handler: virtio.Handler{Func: tx.completed, CPU: i}}
	}
	control := 0
	if d.dev.Has(featureControl) && pairs > 1 {
		control = 2 * maxPairs
		specs = specs[:control+1]
		specs[control] = virtio.QueueSpec{MaxSize: controlSize}
	}
	queues, err := d.dev.Setup(d.linkChanged, specs)
	if err != nil {
		return err
	}
	for i := range pairs {
		if !d.rx[i].init(d.dev.Platform, queues[2*i]) || !d.tx[i].init(d.dev.Platform, queues[2*i+1]) {
			d.dev.Fail()
			return fmt.Errorf("%v: no memory for buffers", d.dev.Transport)
		}
	}
	if err := d.dev.Ready(); err != nil {
		return err
	}
	d.linkChanged()
	if control != 0 {
		if err := d.usePairs(queues[control], pairs); err != nil {
			// The device goes on with the first pair, and so do we.
			d.tx = d.tx[:1]
		}
	}
	return nil
}

// Control commands (section 5.1.6.5).
const (
	classMultiQueue = 4
	commandPairs    = 0
)

// usePairs tells the device how many pairs to use.
func (d *Device) usePairs(q *queue.Queue, pairs int) error {
	mem, ok := d.dev.Platform.AllocDMA(1)
	if !ok {
		return errors.New("no memory for a command")
	}
	b := mem.Virt
	b[0], b[1], b[2], b[3], b[4] = classMultiQueue, commandPairs, byte(pairs), byte(pairs>>8), 0xff
	q.DisableInterrupts()
	q.Add(0, []queue.Segment{{Phys: mem.Phys, Len: 4}}, []queue.Segment{{Phys: mem.Phys + 4, Len: 1}})
	q.Publish()
	for deadline := time.Now().Add(time.Second); ; runtime.Gosched() {
		if _, _, ok := q.Pop(); ok {
			break
		}
		if q.Err() != nil || time.Now().After(deadline) {
			return errors.New("no answer to a command")
		}
	}
	if b[4] != 0 {
		return errors.New("command refused")
	}
	return nil
}

// MAC implements netdev.Device.
func (d *Device) MAC() [6]byte { return d.mac }

// MTU implements netdev.Device.
func (d *Device) MTU() int { return d.mtu }

// MaxMTU implements netdev.Jumbo.
func (d *Device) MaxMTU() int { return d.maxMTU }

// LinkUp implements netdev.Carrier.
func (d *Device) LinkUp() bool { return !d.down.Load() }

// OnLink implements netdev.Carrier.
func (d *Device) OnLink(f func()) { d.onLink.Store(&f) }

// linkChanged is the bottom half of a change of the configuration.
func (d *Device) linkChanged() {
	if !d.dev.Has(featureStatus) {
		return
	}
	var status uint16
	d.dev.ReadConfig(func(c driver.MMIO) { status = c.Read16(configStatus) })
	down := status&statusLink == 0
	if d.down.Swap(down) == down {
		return
	}
	if f := d.onLink.Load(); f != nil {
		(*f)()
	}
}

// Features implements netdev.Device.
func (d *Device) Features() netdev.Features { return d.features }

// Pairs returns how many queue pairs are in use.
func (d *Device) Pairs() int { return len(d.tx) }

// SetReceiver implements netdev.Device.
func (d *Device) SetReceiver(recv func(batch []netdev.Frame)) {
	d.recv = recv
	for _, q := range d.rx {
		q.start()
	}
}

// OnTransmitReady names a function that is called, from the device's interrupt
// goroutine, when there is room again after Transmit has refused frames.
func (d *Device) OnTransmitReady(f func()) { d.ready.Store(&f) }

// Err says how the device broke the protocol, nil if it did not.
func (d *Device) Err() error {
	for _, q := range d.tx {
		q.mu.Lock()
		err := q.q.Err()
		q.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Stats counts what went wrong at each queue: late notifications (Queue.Late), repeated
// notifications of a full ring, and frames that were dropped or malformed.
func (d *Device) Stats() []byte {
	b := new(bytes.Buffer)
	for i, q := range d.tx {
		q.mu.Lock()
		fmt.Fprintf(b, "tx%d late %d reminded %d dropped %d\n", i, q.q.Late(), q.reminded, q.drops)
		q.mu.Unlock()
	}
	for i, q := range d.rx {
		q.mu.Lock()
		fmt.Fprintf(b, "rx%d late %d dropped %d\n", i, q.q.Late(), q.drops)
		q.mu.Unlock()
	}
	return b.Bytes()
}

var (
	_ netdev.Device  = (*Device)(nil)
	_ netdev.Carrier = (*Device)(nil)
	_ netdev.Jumbo   = (*Device)(nil)
)
