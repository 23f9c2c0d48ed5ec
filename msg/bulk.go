package msg

import (
	"encoding/binary"

	"hardtack/msg/internal/ring"
)

// The bulk pool holds the bodies of long messages, in the order in which they
// were sent: a ring of bytes, allocated at its head and freed at its tail when
// the slot that refers to a body is acknowledged. It belongs to the sender; the
// receiver reads it in place. It is made when the first long message is sent.
//
// A slot refers to a body by pool, offset and length, 32 bits each.

// MinBulk is the smallest pool. Twice a body is the least that lets the sender
// write one while the peer reads another; a few of 64 KiB stay in a core's
// cache.
const MinBulk = 256 << 10

const bulkRefBytes = 12

type bulkTx struct {
	id   uint32 // of the pool; 0 before the first
	mem  []byte
	keep any
	head int // where the next body goes
	// The bodies not acknowledged yet, a ring as long as the slots.
	live        []bulkLive
	first, used int
}

// bulkLive is a body in use: the slot that refers to it, and where it ends.
type bulkLive struct {
	slot uint32
	off  int
	end  int
}

func alignLine(n int) int { return (n + 63) &^ 63 }

func (b *bulkTx) replace(id uint32, r Region) {
	b.id = id
	b.mem, b.keep, b.head, b.first, b.used = r.Mem, r.Keep, 0, 0, 0
}

// pool is the memory, for reading.
func (b *bulkTx) pool() bulkRx { return bulkRx{id: b.id, mem: b.mem, keep: b.keep} }

// free forgets the bodies whose slots are acknowledged.
func (b *bulkTx) free(t *ring.Tx) {
	acked := t.Sent() - uint32(t.Slots()-t.Room)
	for b.used > 0 && int32(acked-b.live[b.first].slot) > 0 {
		b.first = (b.first + 1) % len(b.live)
		b.used--
	}
}

// empty reports whether no body is in use.
func (b *bulkTx) empty(t *ring.Tx) bool {
	b.free(t)
	return b.used == 0
}

// fits reports whether n bytes are free in one piece, and moves the head there.
func (b *bulkTx) fits(t *ring.Tx, n int) bool {
	n = alignLine(n)
	if n > len(b.mem) {
		return false
	}
	if b.empty(t) {
		if b.head+n > len(b.mem) {
			b.head = 0
		}
		return true
	}
	tail := b.live[b.first].off
	switch {
	case b.head <= tail: // free is [head, tail); equal means full
		return b.head+n <= tail
	case b.head+n <= len(b.mem):
		return true
	case n <= tail:
		b.head = 0
		return true
	}
	return false
}

// at is the memory that fits found.
func (b *bulkTx) at(n int) []byte { return b.mem[b.head : b.head+n : b.head+n] }

// put writes the reference to the n bytes at the head, which the next slot will
// carry, and takes them.
func (b *bulkTx) put(t *ring.Tx, ref *Slot, n int) {
	if len(b.live) != t.Slots() {
		b.live = make([]bulkLive, t.Slots())
		b.first, b.used = 0, 0
	}
	binary.LittleEndian.PutUint32(ref[0:], b.id)
	binary.LittleEndian.PutUint32(ref[4:], uint32(b.head))
	binary.LittleEndian.PutUint32(ref[8:], uint32(n))
	b.live[(b.first+b.used)%len(b.live)] = bulkLive{slot: t.Sent(), off: b.head, end: b.head + alignLine(n)}
	b.used++
	b.head += alignLine(n)
	if b.head == len(b.mem) {
		b.head = 0
	}
}

// bulkRx is a peer's pool, mapped.
type bulkRx struct {
	id   uint32
	mem  []byte
	keep any
	link Link // over which it was announced; for the receiver
}

// find returns the body that ref, a copy, refers to.
func (b *bulkRx) find(ref []byte) ([]byte, string) {
	if len(ref) != bulkRefBytes {
		return nil, "a reference to bulk memory of the wrong length"
	}
	off, n := int(binary.LittleEndian.Uint32(ref[4:])), int(binary.LittleEndian.Uint32(ref[8:]))
	if off > len(b.mem) || n > len(b.mem)-off {
		return nil, "a reference beyond the bulk memory"
	}
	return b.mem[off : off+n : off+n], ""
}
