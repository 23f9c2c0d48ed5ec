package e1000

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"hardtack/driver"
	"hardtack/kernel/net/netdev"
)

const (
	txSize = 512 // descriptors, each with a slot
	txSlot = 2048
	// The longest frame that is not cut has 16 KiB, the longest that the card cuts has 64 KiB
	// and headers. Before it comes one descriptor that says what is to be computed.
	txWhole = 8
	txCut   = 33
)

// The third word of a descriptor (sections 7.2.10 and 7.2.11): the length in the lower 20 bits,
// then the type and what is to be done.
const (
	txContext = 0 << 20
	txData    = 1 << 20
	txTCP     = 1 << 24 // of a context
	txIPv4    = 1 << 25 // of a context
	txLast    = 1 << 24 // of data
	txCRC     = 1 << 25 // of data
	txSegment = 1 << 26
	txReport  = 1 << 27 // write back that it was sent
	txModern  = 1 << 29

	txDone   = 1 << 0 // the fourth word
	txSumIP  = 1 << 8
	txSumTCP = 1 << 9
)

const (
	ethernet   = 14
	maxHeaders = 255 // what a context can say
)

// txRing transmits. Slot i is descriptor i's, so a frame's slots are neighbours.
type txRing struct {
	d     *Device    // immutable
	ring  driver.DMA // immutable
	slots driver.DMA // immutable

	// refused is set when a sender found no room, and wants completed to say when there is.
	refused atomic.Bool

	mu    sync.Mutex
	next  int            // guarded by mu; the first free descriptor
	clean int            // guarded by mu; the first that is in use
	used  int            // guarded by mu
	ends  [txSize]uint16 // guarded by mu; the last descriptor of the frame that begins here
	told  int            // guarded by mu; what the card was told of
	last  context        // guarded by mu; what the card was told to compute last
	drops uint64         // guarded by mu; frames that cannot be sent
	lost  uint64         // guarded by mu; frames without a link
}

// context is a descriptor that says what is to be computed.
type context struct {
	first        uint64
	second, size uint32
}

func (t *txRing) init(d *Device, p driver.Platform) (ok bool) {
	t.d = d
	if t.ring, ok = p.AllocDMA(driver.Pages(txSize * entrySize)); !ok {
		return false
	}
	t.slots, ok = p.AllocDMA(driver.Pages(txSize * txSlot))
	return ok
}

// Transmit implements netdev.Device.
func (d *Device) Transmit(pkts []netdev.Frame) int {
	t := &d.tx
	t.mu.Lock()
	defer t.mu.Unlock()
	if !d.up.Load() { // a card without a link sends nothing, and its ring would fill
		t.lost += uint64(len(pkts))
		return len(pkts)
	}
	n := t.addAll(pkts)
	if n == len(pkts) && d.held.Keep() {
		return n
	}
	t.publish()
	if n < len(pkts) {
		t.refused.Store(true)
		d.regs.Write32(regMask, d.causes(causeTx))
		// If frames have gone meanwhile, more fit now.
		n += t.addAll(pkts[n:])
		t.publish()
	}
	return n
}

// publish tells the card of all frames.
func (t *txRing) publish() {
	if t.told != t.next {
		t.told = t.next
		t.d.regs.Write32(regTxTail, uint32(t.next))
	}
}

func (t *txRing) addAll(pkts []netdev.Frame) int {
	for i := range pkts {
		if !t.add(&pkts[i]) {
			return i
		}
	}
	return len(pkts)
}

// add copies one frame in, or returns false when there is no room.
func (t *txRing) add(f *netdev.Frame) bool {
	length := f.Len()
	slots, most := (length+txSlot-1)/txSlot, txWhole
	cut := f.GSO != netdev.GSONone
	if cut {
		most = txCut
	}
	if slots == 0 || slots > most || !computable(f) {
		t.drops++
		return true // it never fits: gone, as on a wire
	}
	hard := t.d.model.cuts && f.GSO == netdev.GSOTCPv4
	if cut && !hard {
		return t.segments(f, length)
	}
	if !t.room(slots + 1) {
		return false
	}
	begin := t.next
	command, options := uint32(txData|txModern|txCRC), uint32(0)
	if f.NeedsChecksum {
		options = txSumTCP
		t.compute(contextOf(f, length))
	}
	if cut {
		command |= txSegment
		options |= txSumIP
	}
	first := t.slot(t.next)
	b, at := first, 0
	for _, p := range f.Parts {
		for len(p) > 0 {
			if at == txSlot {
				t.put(t.phys(t.next), command|txSlot, options)
				b, at = t.slot(t.next), 0
				length -= txSlot
			}
			c := copy(b[at:], p)
			at += c
			p = p[c:]
		}
	}
	if cut {
		prepare(first, f)
	}
	t.put(t.phys(t.next), command|txLast|txReport|uint32(length), options)
	t.end(begin)
	return true
}

// room reports whether so many descriptors are free. One more stays so: head and tail are the
// same when the ring is empty.
func (t *txRing) room(n int) bool {
	if t.used+n >= txSize {
		t.collect()
	}
	return t.used+n < txSize
}

// compute tells the card what is to be computed, unless it was told so last.
func (t *txRing) compute(c context) {
	if c != t.last {
		t.put(c.first, c.second, c.size)
		t.last = c
	}
}

// end notes where the frame ends that begins with a descriptor.
func (t *txRing) end(begin int) { t.ends[begin] = uint16((t.next + txSize - 1) % txSize) }

// put writes the next descriptor.
func (t *txRing) put(first uint64, second, status uint32) {
	entryAt(t.ring.Virt, t.next).put(first, second, status)
	t.next = (t.next + 1) % txSize
	t.used++
}

func (t *txRing) slot(i int) []byte { return t.slots.Virt[i*txSlot:][:txSlot:txSlot] }
func (t *txRing) phys(i int) uint64 { return t.slots.Phys + uint64(i)*txSlot }

// computable reports whether the card can compute what a frame wants.
func computable(f *netdev.Frame) bool {
	if !f.NeedsChecksum {
		return f.GSO == netdev.GSONone
	}
	head := len(f.Parts[0])
	start, sum := int(f.ChecksumStart), int(f.ChecksumStart)+int(f.ChecksumOffset)
	if f.GSO == netdev.GSOTCPv6 && start < ethernet+40 || start < ethernet+20 || sum+2 > head || sum+2 > maxHeaders {
		return false
	}
	if f.GSO == netdev.GSONone {
		return true
	}
	const tcp = 20
	return f.SegmentSize > 0 && f.ChecksumOffset == 16 && int(f.HeaderLen) >= start+tcp && int(f.HeaderLen) <= min(head, maxHeaders)
}

// contextOf says where a frame's checksums are, and how it is to be cut.
func contextOf(f *netdev.Frame, length int) context {
	var c context
	ipv4 := f.Parts[0][12] == 0x08
	ipEnd := uint64(f.ChecksumStart) - 1
	if !ipv4 {
		ipEnd = 0
	}
	c.first = ethernet | (ethernet+10)<<8 | ipEnd<<16 | uint64(f.ChecksumStart)<<32 | uint64(f.ChecksumStart+f.ChecksumOffset)<<40
	c.second = txContext | txModern
	if f.ChecksumOffset == 16 {
		c.second |= txTCP
	}
	if ipv4 {
		c.second |= txIPv4
	}
	if f.GSO != netdev.GSONone {
		c.second |= txSegment | uint32(length-int(f.HeaderLen))
		c.size = uint32(f.HeaderLen)<<8 | uint32(f.SegmentSize)<<16
	}
	return c
}

// prepare makes the headers of a frame that the card cuts what it wants to begin with: the length
// and the checksum of IPv4 are zero, and TCP's checksum is that of the pseudo header without its
// length.
func prepare(b []byte, f *netdev.Frame) {
	ip := b[ethernet:]
	tcp := f.Len() - int(f.ChecksumStart)
	add16(b[f.ChecksumStart+f.ChecksumOffset:], ^uint16(tcp))
	ip[2], ip[3], ip[10], ip[11] = 0, 0, 0, 0
}

// add16 adds to a sum in one's complement.
func add16(at []byte, v uint16) {
	sum := uint32(binary.BigEndian.Uint16(at)) + uint32(v)
	binary.BigEndian.PutUint16(at, uint16(sum+sum>>16))
}

// collect frees the slots of frames that were sent.
func (t *txRing) collect() {
	for t.used > 0 {
		end := int(t.ends[t.clean])
		if entryAt(t.ring.Virt, end).done()&txDone == 0 {
			return
		}
		next := (end + 1) % txSize
		t.used -= (next - t.clean + txSize) % txSize
		t.clean = next
	}
}

// completed is the bottom half: if a sender was refused and there is room now, it tells the
// stack.
func (t *txRing) completed() {
	if !t.refused.Load() {
		return
	}
	t.mu.Lock()
	t.collect()
	room := t.used < txSize/2
	if room {
		t.refused.Store(false)
		t.d.regs.Write32(regMaskClear, t.d.causes(causeTx))
	} else if t.d.rx.messages {
		t.d.regs.Write32(regMask, t.d.causes(causeTx))
	}
	t.mu.Unlock()
	if f := t.d.ready.Load(); room && f != nil {
		(*f)()
	}
}
