package ahci

import (
	"math/bits"
	"sync"

	"hardtack/abi/linux"
	"hardtack/driver"
	"hardtack/kernel/disk/blockdev"
)

// Disk is a disk behind a port.
type Disk struct {
	c      *Controller     // immutable
	at     uint64          // immutable; of the port's registers
	port   int             // immutable
	list   driver.DMA      // immutable
	tables driver.DMA      // immutable
	queued bool            // immutable; NCQ
	depth  int             // immutable
	shift  uint            // immutable; sectors of a block, as a power of two
	limits blockdev.Limits // immutable
	model  string          // immutable
	serial string          // immutable

	// bh is held while completions are collected and passed up.
	bh    sync.Mutex
	done  func(int, []*blockdev.Command) // guarded by bh
	batch []*blockdev.Command            // guarded by bh

	mu     sync.Mutex
	cmds   [slots]*blockdev.Command // guarded by mu
	ncq    uint32                   // guarded by mu; slots of queued commands in progress
	plain  uint32                   // guarded by mu; the slot of a command that is not queued
	state  state                    // guarded by mu
	replay []*blockdev.Command      // guarded by mu; to be reissued, one at a time
}

// state is what a port is doing.
type state int

const (
	working    state = iota
	recovering       // a goroutine resets the port
	replaying        // the commands from before the reset are reissued
	resetting        // by Reset
	gone             // for ever
)

// Limits implements blockdev.Device.
func (d *Disk) Limits() blockdev.Limits { return d.limits }

// Model implements blockdev.Device.
func (d *Disk) Model() string { return d.model }

// Serial implements blockdev.Device.
func (d *Disk) Serial() string { return d.serial }

// Start implements blockdev.Device.
func (d *Disk) Start(done func(int, []*blockdev.Command)) {
	d.bh.Lock()
	d.done = done
	d.bh.Unlock()
}

// Submit implements blockdev.Device.
func (d *Disk) Submit(_ int, cmds []*blockdev.Command) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != working {
		return 0
	}
	n := 0
	var queued, other uint32
	for n < len(cmds) {
		isQueued := d.queued && cmds[n].Op <= blockdev.Write
		if d.plain|other != 0 || !isQueued && d.ncq|queued != 0 {
			break
		}
		slot := bits.TrailingZeros32(^(d.ncq | queued))
		if slot >= d.depth {
			break
		}
		d.put(slot, cmds[n])
		if isQueued {
			queued |= 1 << slot
		} else {
			other = 1 << slot
		}
		n++
	}
	d.issue(queued, other)
	return n
}

// put prepares a slot; mu is held.
func (d *Disk) put(slot int, c *blockdev.Command) bool {
	d.cmds[slot] = c
	c.Tag = int32(slot)
	return d.prepare(slot, c)
}

// issue starts prepared slots; mu is held.
func (d *Disk) issue(queued, other uint32) {
	if queued|other == 0 {
		return
	}
	d.ncq |= queued
	d.plain |= other
	if queued != 0 {
		d.write(portSACT, queued)
	}
	d.write(portCI, queued|other)
}

// interrupted is the port's bottom half.
func (d *Disk) interrupted() {
	d.bh.Lock()
	defer d.bh.Unlock()
	d.mu.Lock()
	cause := d.read(portIS)
	d.write(portIS, cause)
	d.collect()
	switch {
	case d.state != working && d.state != replaying:
	case cause&(isFatal|isGone) != 0:
		d.state = recovering
		go d.recover()
	case d.state == replaying:
		d.next()
	}
	d.mu.Unlock()
	d.hand()
}

// collect takes the completed commands; bh and mu are held.
func (d *Disk) collect() {
	if d.ncq|d.plain == 0 {
		return
	}
	active := d.read(portSACT) | d.read(portCI)
	for done := (d.ncq | d.plain) &^ active; done != 0; done &= done - 1 {
		slot := bits.TrailingZeros32(done)
		if d.plain>>slot&1 != 0 && d.read(portTFD)&tfdError != 0 {
			continue // this one failed
		}
		d.finish(slot, 0)
	}
}

// finish ends a command; bh and mu are held.
func (d *Disk) finish(slot int, err linux.Errno) {
	c := d.cmds[slot]
	d.cmds[slot] = nil
	d.ncq &^= 1 << slot
	d.plain &^= 1 << slot
	c.Err = err
	d.batch = append(d.batch, c)
}

// hand passes completions up; bh is held.
func (d *Disk) hand() {
	if len(d.batch) > 0 {
		if d.done != nil {
			d.done(0, d.batch)
		}
		d.batch = d.batch[:0]
	}
}

var _ blockdev.Device = (*Disk)(nil)
