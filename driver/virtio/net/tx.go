package net

import (
	"sync"
	"sync/atomic"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
	"hardtack/kernel/net/netdev"
)

// txQueue transmits. A frame is in a chain of slots, header first; the
// request's token is the first slot.
type txQueue struct {
	d   *Device    // immutable
	mem driver.DMA // immutable; txSlotSize bytes per slot

	// refused is set when a sender found no room, and wants completed to
	// say when there is.
	refused atomic.Bool

	mu    sync.Mutex
	q     *queue.Queue              // guarded by mu
	next  [txSize]uint16            // guarded by mu; links slots of a frame and free ones
	count [txSize]uint16            // guarded by mu; slots of the frame that begins here
	free  uint16                    // guarded by mu; first free slot
	nfree int                       // guarded by mu
	segs  [txMaxSlots]queue.Segment // guarded by mu; scratch
	drops uint64                    // guarded by mu; frames too long for any queue

	refusals uint64 // guarded by mu; of senders since the device sent something
	stuckAt  uint16 // guarded by mu; what was sent when the first of them was
	reminded uint64 // guarded by mu; how often the device was
}

func (t *txQueue) init(p driver.Platform, q *queue.Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ok bool
	t.q = q
	t.mem, ok = p.AllocDMA(driver.Pages(q.Size() * txSlotSize))
	t.nfree = q.Size()
	for i := range t.next {
		t.next[i] = uint16(i + 1)
	}
	q.DisableInterrupts()
	return ok
}

// Transmit implements netdev.Device.
func (d *Device) Transmit(pkts []netdev.Frame) int {
	if len(d.tx) == 1 {
		return d.tx[0].send(pkts)
	}
	for done := 0; done < len(pkts); {
		which := pkts[done].Hash % uint32(len(d.tx))
		n := 1
		for done+n < len(pkts) && pkts[done+n].Hash%uint32(len(d.tx)) == which {
			n++
		}
		sent := d.tx[which].send(pkts[done : done+n])
		done += sent
		if sent < n {
			return done
		}
	}
	return len(pkts)
}

// Hold implements netdev.Device.
func (d *Device) Hold() { d.held.Hold() }

// Flush implements netdev.Device.
func (d *Device) Flush() {
	if d.held.Flush() {
		for _, t := range d.tx {
			t.mu.Lock()
			t.q.Publish()
			t.mu.Unlock()
		}
	}
}

func (t *txQueue) send(pkts []netdev.Frame) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.addAll(pkts)
	if n == len(pkts) && t.d.held.Keep() {
		return n
	}
	t.q.Publish()
	for n < len(pkts) {
		// Full: have the device interrupt when half of the frames are gone. If
		// they have gone meanwhile, more fit now.
		t.refused.Store(true)
		if !t.q.EnableInterrupts(uint16(t.q.Pending() / 2)) {
			t.remind()
			break
		}
		t.refused.Store(false)
		t.q.DisableInterrupts()
		n += t.addAll(pkts[n:])
		t.q.Publish()
	}
	return n
}

// remind notifies the device again if it has sent nothing since a sender was last refused.
// The device may have missed the notification, or the driver may have missed that it was
// wanted (see package queue), and a full ring has no next request to send it with. Mostly
// the device is only slow, so only the 1st, 2nd, 4th, 8th, … refusal notifies.
func (t *txQueue) remind() {
	if used := t.q.Used(); t.refusals == 0 || used != t.stuckAt {
		t.refusals, t.stuckAt = 1, used
		return
	}
	if t.refusals&(t.refusals-1) == 0 {
		t.q.Notify()
		t.reminded++
	}
	t.refusals++
}

func (t *txQueue) addAll(pkts []netdev.Frame) int {
	for i := range pkts {
		if !t.add(&pkts[i]) {
			return i
		}
	}
	return len(pkts)
}

// add copies one frame in, or returns false when there is no room.
func (t *txQueue) add(f *netdev.Frame) bool {
	length := headerSize + f.Len()
	slots := (length + txSlotSize - 1) / txSlotSize
	if slots > txMaxSlots || slots > t.q.Size() {
		t.drops++
		return true // it never fits: gone, as on a wire
	}
	if t.nfree < slots || t.q.Free() < slots {
		t.collect()
		if t.nfree < slots || t.q.Free() < slots {
			return false
		}
	}
	first := t.free
	slot := first
	b := t.slot(slot)
	putHeader(b, f)
	if slots == 1 && len(f.Parts) == 1 { // nearly always
		copy(b[headerSize:], f.Parts[0])
		return t.q.AddOne(uint32(first), t.segment(slot, uint32(length)), false) && t.took(first, slot, 1)
	}
	at, k, left := headerSize, 0, length
	for _, p := range f.Parts {
		for len(p) > 0 {
			if at == txSlotSize {
				t.segs[k] = t.segment(slot, txSlotSize)
				k++
				left -= txSlotSize
				slot = t.next[slot]
				b, at = t.slot(slot), 0
			}
			c := copy(b[at:], p)
			at += c
			p = p[c:]
		}
	}
	t.segs[k] = t.segment(slot, uint32(left))
	if !t.q.Add(uint32(first), t.segs[:k+1], nil) {
		return false // broken
	}
	return t.took(first, slot, slots)
}

// took notes that the slots from first to last have a frame.
func (t *txQueue) took(first, last uint16, slots int) bool {
	t.count[first] = uint16(slots)
	t.free = t.next[last]
	t.nfree -= slots
	return true
}

func (t *txQueue) slot(i uint16) []byte {
	return t.mem.Virt[int(i)*txSlotSize:][:txSlotSize:txSlotSize]
}

func (t *txQueue) segment(i uint16, n uint32) queue.Segment {
	return queue.Segment{Phys: t.mem.Phys + uint64(i)*txSlotSize, Len: n}
}

// collect frees the slots of frames that the device has sent.
func (t *txQueue) collect() {
	for {
		token, _, ok := t.q.Pop()
		if !ok {
			return
		}
		first := uint16(token)
		last := first
		for range t.count[first] - 1 {
			last = t.next[last]
		}
		t.next[last] = t.free
		t.free = first
		t.nfree += int(t.count[first])
	}
}

// completed is the bottom half: if a sender was refused and there is room now, it
// tells the stack.
func (t *txQueue) completed() {
	if !t.refused.Load() {
		return
	}
	t.mu.Lock()
	t.collect()
	for t.nfree == 0 && t.q.EnableInterrupts(0) {
		t.collect()
	}
	room := t.nfree > 0
	if room {
		t.refused.Store(false)
		t.q.DisableInterrupts()
	}
	t.mu.Unlock()
	if f := t.d.ready.Load(); room && f != nil {
		(*f)()
	}
}
