package block

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

// Disk is a disk with its queues.
type Disk struct {
	Name   string          // as in /dev; immutable
	dev    blockdev.Device // immutable
	limits blockdev.Limits // immutable
	queues []queue         // immutable
	flush  flusher
	watch  watchdog
	cache  cache

	inflight atomic.Int32 // requests in the layer
	busyFrom atomic.Int64 // since when there are any
	busy     atomic.Int64 // nanoseconds in which there were any, before that

	mu    sync.Mutex
	parts []*Part // guarded by mu; 0 is the whole disk, n its partition n (nil: there is none)
}

// disks are all disks, in the order in which they were found.
var disks struct {
	mu   sync.Mutex
	list []*Disk // guarded by mu
}

// Disks returns all disks.
func Disks() []*Disk {
	disks.mu.Lock()
	defer disks.mu.Unlock()
	return append([]*Disk(nil), disks.list...)
}

// New makes a disk of a device and gives it work; it is in no list yet (Add
// does that).
func New(name string, dev blockdev.Device) (*Disk, error) {
	l := dev.Limits()
	if l.LogicalBlock < blockdev.SectorSize || l.LogicalBlock&(l.LogicalBlock-1) != 0 || l.LogicalBlock > 4096 {
		return nil, fmt.Errorf("%s: blocks of %d bytes", name, l.LogicalBlock)
	}
	if l.MaxSegments < 1 || l.MaxSectors < 8 || l.Depth < 1 || l.Queues < 1 || l.Sectors > 1<<54 {
		return nil, fmt.Errorf("%s: a device of no use: %+v", name, l)
	}
	l.PhysicalBlock = max(l.PhysicalBlock, l.LogicalBlock)
	l.MaxSegments = min(l.MaxSegments, maxSegments)
	if l.PageLists {
		// Any request may begin and end inside of pages.
		l.MaxSectors = min(l.MaxSectors, uint32(l.MaxSegments-1)*8)
	}
	d := &Disk{Name: name, dev: dev, limits: l, queues: make([]queue, l.Queues)}
	depth := max(min(l.Depth, maxDepth, totalDepth/l.Queues), 2)
	for i := range d.queues {
		d.queues[i].init(d, i, min(depth, l.Depth))
	}
	d.flush.d = d
	d.watch.init(d)
	d.cache.init(d)
	d.setParts([]*Part{{Disk: d, Name: name, Sectors: l.Sectors}})
	dev.Start(func(i int, batch []*blockdev.Command) { d.queues[i].completed(batch) })
	return d, nil
}

// Limits says what requests may be.
func (d *Disk) Limits() *blockdev.Limits { return &d.limits }

// Queues returns how many queues the disk has, and how many commands each holds.
func (d *Disk) Queues() (n, commands int) { return len(d.queues), len(d.queues[0].commands) }

// Model and Serial are the device's.
func (d *Disk) Model() string { return d.dev.Model() }

// Serial is the device's number.
func (d *Disk) Serial() string { return d.dev.Serial() }

// Submit starts a request. It fits the limits and lies inside of the disk.
func (d *Disk) Submit(r *Request) { d.SubmitAll(r, r) }

// SubmitAll starts several requests at once, linked by Then: neighbours among
// them become one command.
func (d *Disk) SubmitAll(first, last *Request) {
	last.next = nil
	if first == last {
		switch {
		case first.Op == blockdev.Flush && !d.limits.WriteCache:
			first.Err = 0
			first.Done(first)
			return
		case first.Op == blockdev.Flush:
			d.flush.add(first)
			return
		}
	}
	d.enqueue(first, last)
}

// Then links requests for SubmitAll; reads and writes only.
func (r *Request) Then(next *Request) { r.next = next }

func (d *Disk) enqueue(first, last *Request) {
	now := wait.Now()
	n := int32(0)
	for r := first; r != nil; r = r.next {
		r.started, r.tries, r.alone, r.Err = now, 0, false, 0
		n++
	}
	if d.inflight.Add(n) == n {
		d.busyFrom.Store(now)
	}
	which := 0
	if len(d.queues) > 1 {
		which = ThisCPU.Call() % len(d.queues)
	}
	d.queues[which].add(first)
}

// finished ends a request that has been with the device.
func (d *Disk) finished(r *Request) {
	if d.inflight.Add(-1) == 0 {
		d.busy.Add(wait.Now() - d.busyFrom.Load())
	}
	if r.FUA && r.Op != blockdev.Flush && r.Err == 0 && d.limits.WriteCache && !d.limits.FUA {
		d.flush.add(r) // which calls Done
		return
	}
	r.Done(r)
}

// Dead reports whether the device is lost.
func (d *Disk) Dead() bool {
	q := &d.queues[0]
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dead
}

// writable refuses writes to what is read-only.
func (d *Disk) writable() linux.Errno {
	if d.limits.ReadOnly {
		return linux.EROFS
	}
	return 0
}
