// Package blk drives virtio disks (virtio 1.2, section 5.2). A Device fits
// kernel/disk/blockdev.Device.
//
// Each queue has a slot of slotSize bytes a command: the request's header, the
// range of a discard, and the status byte. The data's segments go to the device
// as they are; nothing is copied or allocated for a command. The device
// interrupts at the first completion after the bottom half has looked.
//
// Lock order: diskQueue.bh, what the receiver of completions takes, diskQueue.mu.
package blk

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"hardtack/abi/linux"
	"hardtack/driver"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/queue"
	"hardtack/kernel/disk/blockdev"
)

// Feature bits (section 5.2.3).
const (
	featureSizeMax     uint64 = 1 << 1
	featureSegMax      uint64 = 1 << 2
	featureReadOnly    uint64 = 1 << 5
	featureBlockSize   uint64 = 1 << 6
	featureFlush       uint64 = 1 << 9
	featureTopology    uint64 = 1 << 10
	featureMultiQueue  uint64 = 1 << 12
	featureDiscard     uint64 = 1 << 13
	featureWriteZeroes uint64 = 1 << 14
)

// Offsets in the configuration (section 5.2.4).
const (
	configCapacity     = 0
	configSizeMax      = 8
	configSegMax       = 12
	configBlockSize    = 20
	configPhysicalExp  = 24
	configOptimalIO    = 28
	configQueues       = 34
	configMaxDiscard   = 36
	configDiscardAlign = 44
	configMaxZeroes    = 48
)

// Types of requests and results (section 5.2.6).
const (
	typeIn          = 0
	typeOut         = 1
	typeFlush       = 4
	typeGetID       = 8
	typeDiscard     = 11
	typeWriteZeroes = 13

	statusOK          = 0
	statusUnsupported = 2
	statusNone        = 0xff // ours, until the device writes another

	rangeUnmap = 1 // of write zeroes: blocks may be dropped
)

const (
	queueSize   = 256
	maxSegments = 64 // of data in a command; the ring has room for three such chains
	idSize      = 20

	// A slot: header at 0, range at 16, status at 32.
	slotSize   = 64
	slotRange  = 16
	slotStatus = 32
	headerSize = 16
	rangeSize  = 16
)

// Device is a disk.
type Device struct {
	dev    *virtio.Device  // immutable
	limits blockdev.Limits // immutable
	serial string          // immutable
	queues []*diskQueue    // immutable
	done   func(int, []*blockdev.Command)
}

// diskQueue is one request queue.
type diskQueue struct {
	d     *Device    // immutable
	index int        // immutable
	slots driver.DMA // immutable

	// bh is held while completions are taken and handed up.
	bh    sync.Mutex
	batch []*blockdev.Command // guarded by bh

	mu   sync.Mutex
	q    *queue.Queue        // guarded by mu; nil while the device is reset, or gone
	cmds []*blockdev.Command // guarded by mu; by slot
	free []uint32            // guarded by mu; slots
	out  [maxSegments + 2]queue.Segment
	in   [maxSegments + 2]queue.Segment // out and in: guarded by mu; scratch
}

// New drives the disk behind a transport with at most a number of queues (one
// a CPU is what helps).
func New(p driver.Platform, t virtio.Transport, queues int) (*Device, error) {
	wanted := virtio.FeatureEventIndex | virtio.FeatureIndirect |
		featureSizeMax | featureSegMax | featureReadOnly | featureBlockSize | featureFlush | featureTopology |
		featureDiscard | featureWriteZeroes
	if queues > 1 {
		wanted |= featureMultiQueue
	}
	v, err := virtio.Open(p, t, wanted)
	if err != nil {
		return nil, err
	}
	d := &Device{dev: v}
	if err := d.readConfig(queues); err != nil {
		v.Fail()
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	specs := make([]virtio.QueueSpec, d.limits.Queues)
	for i := range specs {
		q := &diskQueue{d: d, index: i}
		d.queues = append(d.queues, q)
		specs[i] = virtio.QueueSpec{MaxSize: queueSize, Handler: virtio.Handler{Func: q.completed, CPU: i}}
	}
	rings, err := v.Setup(nil, specs)
	if err != nil {
		return nil, err
	}
	for i, q := range d.queues {
		n := rings[i].Size()
		d.limits.Depth = n
		// A chain that is not in an indirect table is in the ring.
		d.limits.MaxSegments = min(d.limits.MaxSegments, n-2)
		var ok bool
		if q.slots, ok = p.AllocDMA(driver.Pages(n * slotSize)); !ok {
			v.Fail()
			return nil, fmt.Errorf("%v: no memory for requests", t)
		}
		q.q = rings[i]
		q.cmds, q.batch = make([]*blockdev.Command, n), make([]*blockdev.Command, 0, n)
		for s := range n {
			q.free = append(q.free, uint32(n-1-s))
		}
	}
	if d.limits.MaxSegments < 1 {
		v.Fail()
		return nil, fmt.Errorf("%v: queues of %d descriptors are too small", t, rings[0].Size())
	}
	if err := v.Ready(); err != nil {
		return nil, err
	}
	d.readSerial()
	return d, nil
}

// readConfig fills the limits.
func (d *Device) readConfig(queues int) error {
	l := blockdev.Limits{LogicalBlock: 512, Queues: 1, MaxSegments: maxSegments, MaxSectors: 1 << 20}
	d.dev.ReadConfig(func(c driver.MMIO) {
		l.Sectors = uint64(c.Read32(configCapacity)) | uint64(c.Read32(configCapacity+4))<<32
		if d.dev.Has(featureSizeMax) {
			l.MaxSegment = c.Read32(configSizeMax)
		}
		if d.dev.Has(featureSegMax) {
			l.MaxSegments = min(int(c.Read32(configSegMax)), maxSegments)
		}
		if d.dev.Has(featureBlockSize) {
			l.LogicalBlock = int(c.Read32(configBlockSize))
		}
		l.PhysicalBlock = l.LogicalBlock
		if d.dev.Has(featureTopology) {
			l.PhysicalBlock = l.LogicalBlock << min(c.Read8(configPhysicalExp), 16)
			l.OptimalIO = int(c.Read32(configOptimalIO)) * l.LogicalBlock
		}
		if d.dev.Has(featureMultiQueue) {
			l.Queues = max(min(queues, int(c.Read16(configQueues))), 1)
		}
		if d.dev.Has(featureDiscard) {
			l.MaxDiscard = c.Read32(configMaxDiscard)
			l.DiscardGrain = max(int(c.Read32(configDiscardAlign))*blockdev.SectorSize, l.LogicalBlock)
		}
		if d.dev.Has(featureWriteZeroes) {
			l.MaxWriteZeroes = c.Read32(configMaxZeroes)
		}
	})
	l.ReadOnly = d.dev.Has(featureReadOnly)
	l.WriteCache = d.dev.Has(featureFlush)
	d.limits = l
	switch {
	case l.LogicalBlock < 512 || l.LogicalBlock > driver.PageSize || l.LogicalBlock&(l.LogicalBlock-1) != 0:
		return fmt.Errorf("blocks of %d bytes; 512 to %d are driven", l.LogicalBlock, driver.PageSize)
	case l.MaxSegments < 1 || l.MaxSegment != 0 && l.MaxSegment < driver.PageSize:
		return fmt.Errorf("%d segments of %d bytes are too little", l.MaxSegments, l.MaxSegment)
	}
	return nil
}

// idTime bounds the question for the serial number; idToken is its request's,
// others have their slot.
const (
	idTime  = time.Second
	idToken = ^uint32(0)
)

// readSerial asks for the disk's serial number, before anything else is under
// way; a device that does not answer has none.
func (d *Device) readSerial() {
	q := d.queues[0]
	page, ok := d.dev.Platform.AllocDMA(1)
	if !ok {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	b := page.Virt
	putHeader(b, typeGetID, 0)
	b[slotStatus] = statusNone
	q.q.Add(idToken, []queue.Segment{{Phys: page.Phys, Len: headerSize}},
		[]queue.Segment{{Phys: page.Phys + slotSize, Len: idSize}, {Phys: page.Phys + slotStatus, Len: 1}})
	q.q.Publish()
	for deadline := time.Now().Add(idTime); ; runtime.Gosched() {
		if _, _, ok := q.q.Pop(); ok {
			break
		}
		if time.Now().After(deadline) {
			return // its completion, if it still comes, is dropped
		}
	}
	if loadStatus(b[slotStatus:]) == statusOK {
		id, _, _ := bytes.Cut(b[slotSize:slotSize+idSize], []byte{0})
		d.serial = string(bytes.TrimSpace(id))
	}
	q.q.EnableInterrupts(0)
}

// Limits implements blockdev.Device.
func (d *Device) Limits() blockdev.Limits { return d.limits }

// Model implements blockdev.Device.
func (d *Device) Model() string { return "virtio" }

// Serial implements blockdev.Device.
func (d *Device) Serial() string { return d.serial }

// Start implements blockdev.Device.
func (d *Device) Start(done func(int, []*blockdev.Command)) {
	for _, q := range d.queues {
		q.bh.Lock()
	}
	d.done = done
	for _, q := range d.queues {
		q.bh.Unlock()
	}
}

// Submit implements blockdev.Device.
func (d *Device) Submit(i int, cmds []*blockdev.Command) int {
	q := d.queues[i]
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.q == nil {
		return 0
	}
	n := 0
	for n < len(cmds) && q.add(cmds[n]) {
		n++
	}
	q.q.Publish()
	return n
}

// add puts one command into the ring, or returns false when there is no room.
func (q *diskQueue) add(c *blockdev.Command) bool {
	if len(q.free) == 0 {
		return false
	}
	slot := q.free[len(q.free)-1]
	b := q.slots.Virt[slot*slotSize:][:slotSize:slotSize]
	phys := q.slots.Phys + uint64(slot)*slotSize
	b[slotStatus] = statusNone
	out, in := q.out[:1], q.in[:0]
	out[0] = queue.Segment{Phys: phys, Len: headerSize}
	switch c.Op {
	case blockdev.Read:
		putHeader(b, typeIn, c.Sector)
		for _, s := range c.Data {
			in = append(in, queue.Segment(s))
		}
	case blockdev.Write:
		putHeader(b, typeOut, c.Sector)
		for _, s := range c.Data {
			out = append(out, queue.Segment(s))
		}
	case blockdev.Flush:
		putHeader(b, typeFlush, 0)
	case blockdev.Discard:
		putHeader(b, typeDiscard, 0)
		putRange(b[slotRange:], c.Sector, c.Sectors, 0)
		out = append(out, queue.Segment{Phys: phys + slotRange, Len: rangeSize})
	case blockdev.WriteZeroes:
		putHeader(b, typeWriteZeroes, 0)
		flags := uint32(rangeUnmap)
		if c.NoUnmap {
			flags = 0
		}
		putRange(b[slotRange:], c.Sector, c.Sectors, flags)
		out = append(out, queue.Segment{Phys: phys + slotRange, Len: rangeSize})
	}
	in = append(in, queue.Segment{Phys: phys + slotStatus, Len: 1})
	if !q.q.Add(slot, out, in) {
		return false
	}
	q.cmds[slot] = c
	q.free = q.free[:len(q.free)-1]
	return true
}

// completed is the bottom half.
func (q *diskQueue) completed() {
	q.bh.Lock()
	defer q.bh.Unlock()
	if q.d.done == nil {
		return
	}
	for {
		q.mu.Lock()
		more := q.collect()
		q.mu.Unlock()
		if len(q.batch) > 0 {
			q.d.done(q.index, q.batch)
			q.batch = q.batch[:0]
		}
		if !more {
			return
		}
	}
}

// collect takes what is complete and asks for an interrupt at the next; it
// returns true when that is there already.
func (q *diskQueue) collect() (more bool) {
	if q.q == nil {
		return false
	}
	for {
		slot, _, ok := q.q.Pop()
		if !ok {
			return q.q.EnableInterrupts(0)
		}
		if slot == idToken {
			continue // late
		}
		c := q.cmds[slot]
		q.cmds[slot] = nil
		q.free = append(q.free, slot)
		switch loadStatus(q.slots.Virt[slot*slotSize+slotStatus:]) {
		case statusOK:
			c.Err = 0
		case statusUnsupported:
			c.Err = linux.EOPNOTSUPP
		default:
			c.Err = linux.EIO
		}
		q.batch = append(q.batch, c)
	}
}

// Abort implements blockdev.Device: virtio has no such request.
func (d *Device) Abort(int, *blockdev.Command) bool { return false }

// Reset implements blockdev.Device.
func (d *Device) Reset() error {
	for _, q := range d.queues {
		q.bh.Lock()
		defer q.bh.Unlock()
		q.mu.Lock()
		q.q = nil
		q.mu.Unlock()
	}
	rings, quiet, err := d.dev.Restart()
	if err != nil {
		if quiet {
			return fmt.Errorf("%w (it rests)", err)
		}
		return err
	}
	for i, q := range d.queues {
		q.mu.Lock()
		if rings[i] == nil {
			err = errors.New("a queue is gone")
		}
		q.q = rings[i]
		clear(q.cmds)
		q.free = q.free[:0]
		for s := range len(q.cmds) {
			q.free = append(q.free, uint32(len(q.cmds)-1-s))
		}
		q.mu.Unlock()
	}
	return err
}

var _ blockdev.Device = (*Device)(nil)
