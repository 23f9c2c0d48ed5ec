package nvme

import (
	"encoding/binary"
	"fmt"

	"hardtack/driver"
	"hardtack/kernel/disk/blockdev"
)

// Disk is a namespace.
type Disk struct {
	c      *Controller     // immutable
	id     uint32          // immutable
	shift  uint            // immutable; sectors of a block, as a power of two
	limits blockdev.Limits // immutable
	done   func(int, []*blockdev.Command)
}

// Optional commands (identify controller, ONCS).
const (
	hasManagement  = 1 << 2
	hasWriteZeroes = 1 << 3
)

// newDisk reads a namespace's data; nil if the namespace cannot be used.
func (c *Controller) newDisk(id uint32, b []byte) *Disk {
	format := b[128+4*int(b[26]&15):]
	blockShift := uint(format[2])
	if blockShift < 9 || blockShift > 12 || binary.LittleEndian.Uint16(format) != 0 { // no metadata
		return nil
	}
	d := &Disk{c: c, id: id, shift: blockShift - blockdev.SectorShift}
	pages := min(c.maxPages, listEntries)
	d.limits = blockdev.Limits{
		Sectors: binary.LittleEndian.Uint64(b) << d.shift, LogicalBlock: 1 << blockShift, PhysicalBlock: 1 << blockShift,
		Queues: len(c.pairs), Depth: c.depth - 1,
		MaxSectors:  uint32(min(pages*driver.PageSize>>blockdev.SectorShift, 0x10000<<d.shift)),
		MaxSegments: pages, PageLists: true,
		WriteCache: c.cache, FUA: true,
		ReadOnly: b[99]&1 != 0,
	}
	if c.oncs&hasManagement != 0 {
		d.limits.MaxDiscard, d.limits.DiscardGrain = 1<<22, 1<<blockShift
	}
	if c.oncs&hasWriteZeroes != 0 {
		d.limits.MaxWriteZeroes = 0x8000 << d.shift
	}
	return d
}

// ID is the namespace's number.
func (d *Disk) ID() uint32 { return d.id }

// Limits implements blockdev.Device.
func (d *Disk) Limits() blockdev.Limits { return d.limits }

// Model implements blockdev.Device.
func (d *Disk) Model() string { return d.c.model }

// Serial implements blockdev.Device.
func (d *Disk) Serial() string { return d.c.serial }

// Start implements blockdev.Device.
func (d *Disk) Start(done func(int, []*blockdev.Command)) {
	for _, q := range d.c.pairs {
		q.bh.Lock()
	}
	d.done = done
	for _, q := range d.c.pairs {
		q.bh.Unlock()
	}
}

// Submit implements blockdev.Device.
func (d *Disk) Submit(queue int, cmds []*blockdev.Command) int {
	return d.c.pairs[queue].submit(d, cmds)
}

// Abort implements blockdev.Device.
func (d *Disk) Abort(queue int, x *blockdev.Command) bool {
	q := d.c.pairs[queue]
	q.completed() // an interrupt that was lost
	q.mu.Lock()
	at := x.Tag
	ours := at >= 0 && int(at) < len(q.cmds) && q.cmds[at].c == x
	q.mu.Unlock()
	if !ours {
		return true
	}
	e := newEntry(adminAbort, 0)
	e.dword(10, uint32(at)<<16|uint32(q.r.sqID))
	d.c.admin.Lock()
	result, err := d.c.do(e)
	d.c.admin.Unlock()
	return err == nil && result&1 == 0
}

// Reset implements blockdev.Device by a reset of the controller. Commands of its other
// namespaces complete as aborted, an error on which the block layer retries.
func (d *Disk) Reset() error {
	c := d.c
	c.admin.Lock()
	defer c.admin.Unlock()
	for _, q := range c.pairs {
		q.bh.Lock()
		defer q.bh.Unlock()
		q.mu.Lock()
		q.up = false
		q.mu.Unlock()
	}
	c.resetGen++
	err := c.enable()
	if err == nil {
		_, err = c.setQueues(len(c.pairs))
	}
	if err == nil {
		err = c.createPairs()
	}
	if err != nil {
		c.regs.Write32(regCC, 0)
		return fmt.Errorf("NVMe %v: %w", c.f.Address, err)
	}
	for _, q := range c.pairs {
		q.mu.Lock()
		q.up = true
		others := q.cmds
		q.cmds = make([]slot, len(others))
		q.refill()
		q.mu.Unlock()
		for _, s := range others {
			if s.c != nil && s.d != d && s.d.done != nil {
				s.c.Err = errnoOf(0x07) // aborted
				s.d.done(q.index, []*blockdev.Command{s.c})
			}
		}
	}
	return nil
}
