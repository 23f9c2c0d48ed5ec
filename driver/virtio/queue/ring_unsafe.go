package queue

import (
	"sync/atomic"
	"unsafe"
)

// desc is an entry of the descriptor table.
type desc struct {
	addr  uint64
	len   uint32
	flags uint16
	next  uint16
}

const descSize = 16

// Flags of descriptors and rings.
const (
	descNext     = 1
	descWrite    = 2
	descIndirect = 4

	availNoInterrupt = 1
	usedNoNotify     = 1
)

// layout gives the offsets of the parts. Between available and used ring lies a
// cache line border, since different processors write them; each event index
// has two spare bytes behind it, so that it can be accessed as 32 bits.
type layout struct{ avail, usedEvent, used, availEvent, total int }

func layoutOf(size int) layout {
	var l layout
	l.avail = size * descSize
	l.usedEvent = l.avail + 4 + 2*size
	l.used = (l.usedEvent + 4 + 63) &^ 63
	l.availEvent = l.used + 4 + 8*size
	l.total = (l.availEvent + 4 + 63) &^ 63
	return l
}

// ring is the shared memory of a queue. Words that both sides use at the same
// time are only accessed atomically, whole 32-bit words at a time: flags are
// the lower half of a head word, the index the upper half (little-endian).
type ring struct {
	desc      []desc
	availHead *uint32
	avail     []uint16
	usedEv    *uint32
	usedHead  *uint32
	used      []uint32 // pairs of id and length
	availEv   *uint32
}

func newRing(b []byte, l layout, size int) ring {
	at := func(off int) unsafe.Pointer { return unsafe.Pointer(&b[off]) }
	return ring{
		desc:      unsafe.Slice((*desc)(at(0)), size),
		availHead: (*uint32)(at(l.avail)),
		avail:     unsafe.Slice((*uint16)(at(l.avail+4)), size),
		usedEv:    (*uint32)(at(l.usedEvent)),
		usedHead:  (*uint32)(at(l.used)),
		used:      unsafe.Slice((*uint32)(at(l.used+4)), 2*size),
		availEv:   (*uint32)(at(l.availEvent)),
	}
}

func (r *ring) setDesc(i uint16, s Segment, flags, next uint16) {
	r.desc[i] = desc{s.Phys, s.Len, flags, next}
}

func (r *ring) setAvail(slot, head uint16) { r.avail[slot] = head }

// publish makes everything written before visible, then the index; what is
// read afterwards is read after the device can see it.
func (r *ring) publish(idx, flags uint16) {
	atomic.StoreUint32(r.availHead, uint32(idx)<<16|uint32(flags))
}

func (r *ring) setUsedEvent(idx uint16) { atomic.StoreUint32(r.usedEv, uint32(idx)) }

func (r *ring) usedIndex() uint16  { return uint16(atomic.LoadUint32(r.usedHead) >> 16) }
func (r *ring) usedFlags() uint16  { return uint16(atomic.LoadUint32(r.usedHead)) }
func (r *ring) availEvent() uint16 { return uint16(atomic.LoadUint32(r.availEv)) }

// usedEntry is read once, atomically: the device could change it.
func (r *ring) usedEntry(slot uint16) (id, n uint32) {
	return atomic.LoadUint32(&r.used[2*slot]), atomic.LoadUint32(&r.used[2*slot+1])
}

func tableAt(b []byte, off int) *[indirectMax]desc {
	return (*[indirectMax]desc)(unsafe.Pointer(&b[off]))
}
