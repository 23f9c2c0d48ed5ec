// Package queue is the driver's side of a virtio split virtqueue (virtio 1.2,
// section 2.7).
//
// A queue has three parts in memory shared with the device: the descriptor
// table and the available ring, which only the driver writes, and the used ring,
// which only the device writes. The driver keeps a private copy of everything it
// relies on and checks what the device writes: an index must name an outstanding
// chain, a length must fit its writable bytes, and completions must not outnumber
// requests. If a check fails, the queue stays broken: Pop returns nothing more and
// Err says why.
//
// Ordering. The index of the available ring shares a 32-bit word with the flags.
// The driver writes both. It publishes the index with atomic.StoreUint32, which
// releases the descriptors written before. A full barrier must separate publishing
// from checking whether the device wants a notification; otherwise the device can go
// to sleep without one. The same holds for used_event: store, barrier, read the used
// index again. The barrier is core.Fence, not the XCHG of the store; core.Fence says
// why.
//
// A notification that is missed nevertheless would never be sent, because the event
// index that asks for it is behind everything published later. Publish therefore also
// compares the event index with the last notification, and sends the missed one with
// the next request.
//
// Locking: none. One goroutine at a time uses a queue; its owner says how.
package queue

import (
	"errors"
	"fmt"

	"hardtack/driver"
	"hardtack/lock/core"
)

// MaxSize is the largest queue: half of the specification's, since told may lie two
// rings behind avail.
const MaxSize = 16384

// Segment is a piece of physically contiguous memory.
type Segment struct {
	Phys uint64
	Len  uint32
}

// Options are what the device's features allow.
type Options struct {
	EventIndex bool // VIRTIO_F_EVENT_IDX
	Indirect   bool // VIRTIO_F_INDIRECT_DESC
}

// Notifier tells a device that a queue has new requests.
type Notifier interface{ Notify(queue int) }

// indirectMax is how many segments a chain's indirect table has room for, and
// indirectMin the count from which it pays: a table costs the device one more
// access to memory and saves us count−1 descriptors of the queue.
const (
	indirectMax = 20
	indirectMin = 3
)

// Queue is one virtqueue.
type Queue struct {
	ring     ring     // immutable
	size     uint16   // immutable; a power of two
	opts     Options  // immutable
	index    int      // immutable; the queue's number
	notifier Notifier // immutable
	phys     uint64   // immutable; of the memory below
	tables   driver.DMA

	// What follows is guarded by the owner.

	chains    []chain // indexed by head descriptor
	next      []uint16
	free      uint16 // first free descriptor, linked by next
	nfree     uint16
	avail     uint16 // requests ever added, modulo 2^16
	published uint16 // avail as the device can see it
	told      uint16 // published when the device was notified last, or used if that is later
	used      uint16 // completions ever taken
	pending   uint16 // requests with the device or waiting to be published
	noInt     bool   // we do not want interrupts now
	err       error  // set once: the device broke the protocol
	late      uint64 // notifications that were made up for
}

// chain is what we know of an outstanding request, under its head descriptor.
type chain struct {
	writable uint32 // bytes the device may write
	token    uint32
	count    uint16 // descriptors taken from the queue; 0: not outstanding
}

// Bytes returns how much DMA memory a queue of a size needs.
func Bytes(size int, o Options) int {
	n := layoutOf(size).total
	if o.Indirect {
		n += size * indirectMax * descSize
	}
	return n
}

// New makes a queue of size descriptors (a power of two, at most MaxSize) in
// zeroed memory of Bytes bytes.
func New(mem driver.DMA, size int, o Options, index int, n Notifier) (*Queue, error) {
	if size < 2 || size > MaxSize || size&(size-1) != 0 {
		return nil, fmt.Errorf("virtqueue size %d is no power of two from 2 to %d", size, MaxSize)
	}
	if len(mem.Virt) < Bytes(size, o) {
		return nil, errors.New("virtqueue memory is too small")
	}
	l := layoutOf(size)
	q := &Queue{
		ring:     newRing(mem.Virt, l, size),
		size:     uint16(size),
		opts:     o,
		index:    index,
		notifier: n,
		phys:     mem.Phys,
		chains:   make([]chain, size),
		next:     make([]uint16, size),
		nfree:    uint16(size),
	}
	if o.Indirect {
		q.tables = mem.Slice(l.total, size*indirectMax*descSize)
	}
	for i := range q.next {
		q.next[i] = uint16(i + 1)
	}
	return q, nil
}

// Layout returns the physical addresses of the three parts.
func (q *Queue) Layout() (desc, avail, used uint64) {
	l := layoutOf(int(q.size))
	return q.phys, q.phys + uint64(l.avail), q.phys + uint64(l.used)
}

// Size returns the number of descriptors.
func (q *Queue) Size() int { return int(q.size) }

// Index returns the queue's number in its device.
func (q *Queue) Index() int { return q.index }

// Free returns how many descriptors are free.
func (q *Queue) Free() int { return int(q.nfree) }

// Pending returns how many requests have been added and not been taken back.
func (q *Queue) Pending() int { return int(q.pending) }

// Err says how the device broke the protocol; nil while it did not.
func (q *Queue) Err() error { return q.err }

// Add queues one request: the device reads out and then writes in. It returns
// false when there is no room or the queue is broken. Pop gives the token back.
// The device sees the request after Publish.
func (q *Queue) Add(token uint32, out, in []Segment) bool {
	n := len(out) + len(in)
	if n == 0 || q.err != nil {
		return false
	}
	if q.opts.Indirect && n >= indirectMin && n <= indirectMax {
		return q.addIndirect(token, out, in)
	}
	if n > int(q.nfree) {
		return false
	}
	head := q.free
	d, writable := head, uint32(0)
	for i := range out {
		flags := uint16(descNext)
		if i == n-1 {
			flags = 0
		}
		q.ring.setDesc(d, out[i], flags, q.next[d])
		d = q.next[d]
	}
	for i := range in {
		flags := uint16(descNext | descWrite)
		if len(out)+i == n-1 {
			flags = descWrite
		}
		q.ring.setDesc(d, in[i], flags, q.next[d])
		writable += in[i].Len
		d = q.next[d]
	}
	q.free = d
	q.commit(head, uint16(n), writable, token)
	return true
}

// AddOne is Add of one segment, which the device reads or writes.
func (q *Queue) AddOne(token uint32, s Segment, writes bool) bool {
	if q.nfree == 0 || q.err != nil {
		return false
	}
	head, flags, writable := q.free, uint16(0), uint32(0)
	if writes {
		flags, writable = descWrite, s.Len
	}
	q.ring.setDesc(head, s, flags, 0)
	q.free = q.next[head]
	q.commit(head, 1, writable, token)
	return true
}

func (q *Queue) addIndirect(token uint32, out, in []Segment) bool {
	if q.nfree == 0 {
		return false
	}
	head := q.free
	n := len(out) + len(in)
	off := int(head) * indirectMax * descSize
	table := tableAt(q.tables.Virt, off)
	writable := uint32(0)
	for i := range n {
		flags := uint16(descNext)
		if i == n-1 {
			flags = 0
		}
		if i < len(out) {
			table[i] = desc{out[i].Phys, out[i].Len, flags, uint16(i + 1)}
			continue
		}
		s := in[i-len(out)]
		table[i] = desc{s.Phys, s.Len, flags | descWrite, uint16(i + 1)}
		writable += s.Len
	}
	q.ring.setDesc(head, Segment{q.tables.Phys + uint64(off), uint32(n * descSize)}, descIndirect, 0)
	q.free = q.next[head]
	q.commit(head, 1, writable, token)
	return true
}

func (q *Queue) commit(head, count uint16, writable, token uint32) {
	q.chains[head] = chain{writable: writable, token: token, count: count}
	q.nfree -= count
	q.pending++
	q.ring.setAvail(q.avail&(q.size-1), head)
	q.avail++
}

// Publish shows the device the requests added since the last call and notifies
// it if it asked for that.
func (q *Queue) Publish() {
	if q.avail == q.published {
		return
	}
	old := q.published
	q.published = q.avail
	q.ring.publish(q.avail, q.flags())
	if q.deviceWants(old) || q.overlooked(old) {
		q.told = q.avail
		q.notifier.Notify(q.index)
	}
}

// overlooked checks again when the device does not seem to want a notification of the
// requests from old on. It reads what the device asked for before it could see these
// requests, and whether a notification of older ones is missing.
func (q *Queue) overlooked(old uint16) bool {
	core.Fence()
	if q.avail-q.told > q.pending {
		q.told = q.used
	}
	if !q.deviceWants(q.told) {
		return false
	}
	if !q.deviceWants(old) {
		q.late++
	}
	return true
}

// Notify notifies the device even if it did not ask for it.
func (q *Queue) Notify() { q.notifier.Notify(q.index) }

// Late returns how often Publish sent a notification for older requests, because the
// driver had missed the device's wish for it.
func (q *Queue) Late() uint64 { return q.late }

// Used returns the index up to which completions were taken.
func (q *Queue) Used() uint16 { return q.used }

// deviceWants reports whether the device asks to be notified of one of the
// requests from old up to published (section 2.7.10).
func (q *Queue) deviceWants(old uint16) bool {
	if q.opts.EventIndex {
		return crossed(q.ring.availEvent(), q.published, old)
	}
	return q.ring.usedFlags()&usedNoNotify == 0
}

// crossed reports whether an index that went from old to now passed event:
// the device wants a notification when the entry that event names has been added.
func crossed(event, now, old uint16) bool { return now-event-1 < now-old }

func (q *Queue) flags() uint16 {
	if q.noInt && !q.opts.EventIndex {
		return availNoInterrupt
	}
	return 0
}

// Pop takes one completion: the token of its request and how many bytes the
// device wrote.
func (q *Queue) Pop() (token, written uint32, ok bool) {
	idx := q.ring.usedIndex()
	if idx == q.used || q.err != nil {
		return 0, 0, false
	}
	if idx-q.used > q.pending-(q.avail-q.published) {
		return q.fail("the used index ran ahead of the requests")
	}
	id, n := q.ring.usedEntry(q.used & (q.size - 1))
	if id >= uint32(q.size) || q.chains[id].count == 0 {
		return q.fail("completion of a request that was not made")
	}
	c := &q.chains[id]
	if n > c.writable {
		return q.fail("more bytes written than there was room for")
	}
	q.used++
	q.pending--
	last := uint16(id)
	for range c.count - 1 {
		last = q.next[last]
	}
	q.next[last] = q.free
	q.free = uint16(id)
	q.nfree += c.count
	c.count = 0
	return c.token, n, true
}

func (q *Queue) fail(why string) (uint32, uint32, bool) {
	q.err = fmt.Errorf("virtqueue %d: %s", q.index, why)
	return 0, 0, false
}

// More reports whether Pop would find a completion, without taking it.
func (q *Queue) More() bool { return q.err == nil && q.ring.usedIndex() != q.used }

// DisableInterrupts asks the device not to interrupt while completions are polled.
// The device may still interrupt.
func (q *Queue) DisableInterrupts() {
	if q.noInt {
		return
	}
	q.noInt = true
	if q.opts.EventIndex {
		// The device interrupts when it passes used_event: the entry just behind
		// it is the farthest from now.
		q.ring.setUsedEvent(q.used - 1)
		return
	}
	q.ring.publish(q.published, availNoInterrupt)
}

// EnableInterrupts asks for an interrupt once another delay+1 completions are
// there (delay only counts with EVENT_IDX; else it is the first). It returns
// true when they are there already: no interrupt may come, go on polling.
func (q *Queue) EnableInterrupts(delay uint16) (more bool) {
	q.noInt = false
	if q.opts.EventIndex {
		q.ring.setUsedEvent(q.used + delay)
	} else {
		delay = 0
		q.ring.publish(q.published, 0)
	}
	core.Fence()
	return q.err == nil && q.ring.usedIndex()-q.used > delay
}
