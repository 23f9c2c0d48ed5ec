package msg

import (
	"encoding/binary"
	"errors"
	"os"

	"hardtack/msg/internal/ring"
)

// The bulk pool holds the bodies of long messages, in the order in which they
// were sent: a ring of bytes, allocated at its head and freed at its tail when
// the slot that refers to a body is acknowledged. It belongs to the sender; the
// receiver reads it in place. It is made when the first long message is sent.
//
// A slot refers to a body by pool, offset and length, 32 bits each.

// MinBulk is the smallest pool, unless all bodies are short. Twice a body is the least that lets the sender
// write one while the peer reads another; a few of 64 KiB stay in a core's
// cache.
const MinBulk = 256 << 10

// poolSize is how large a pool is for a body of n bytes, where none has more than most.
func poolSize(n, most int) int { return max(min(MinBulk, 4*alignLine(most)), 2*alignLine(n)) }

const bulkRefBytes = 12

type bulkTx struct {
	id   uint32 // of the pool; 0 before the first
	mem  []byte
	keep any
	file *os.File // for moving the end; nil if it was not kept
	head int      // where the next body goes
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
	b.mem, b.keep, b.file, b.head, b.first, b.used = r.Mem, r.Keep, r.File, 0, 0, 0
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
	// The receiver's:
	link Link     // over which it was announced
	file *os.File // for moving the end; nil if it was not kept
}

// appendState writes the pool and what is in use of it, for moving the end:
// number, size and head, then slot, offset and end of each body, 32 bits each.
func (b *bulkTx) appendState(s []byte) []byte {
	for _, v := range []int{int(b.id), len(b.mem), b.head} {
		s = binary.LittleEndian.AppendUint32(s, uint32(v))
	}
	for i := range b.used {
		l := b.live[(b.first+i)%len(b.live)]
		for _, v := range []uint32{l.slot, uint32(l.off), uint32(l.end)} {
			s = binary.LittleEndian.AppendUint32(s, v)
		}
	}
	return s
}

const bulkStateBytes = 12

// bulkStateSound reports whether s can be a state. Anybody may have written it.
func bulkStateSound(s []byte) bool {
	n := bulkStateSize(s)
	if len(s) < bulkStateBytes || len(s)%bulkStateBytes != 0 || n < BulkBytes || n > 4*MaxBody || n%64 != 0 {
		return false
	}
	ok := binary.LittleEndian.Uint32(s[8:]) < uint32(n)
	for l := s[bulkStateBytes:]; len(l) > 0; l = l[bulkStateBytes:] {
		off, end := binary.LittleEndian.Uint32(l[4:]), binary.LittleEndian.Uint32(l[8:])
		ok = ok && off < end && end <= uint32(n)
	}
	return ok
}

func bulkStateSize(s []byte) int {
	if len(s) < bulkStateBytes {
		return 0
	}
	return int(binary.LittleEndian.Uint32(s[4:]))
}

// restore is the inverse of appendState, for a sound state.
func (b *bulkTx) restore(s []byte, r Region, t *ring.Tx) error {
	b.replace(binary.LittleEndian.Uint32(s), r)
	b.head = int(binary.LittleEndian.Uint32(s[8:]))
	b.live = make([]bulkLive, t.Slots())
	for s = s[bulkStateBytes:]; len(s) > 0; s = s[bulkStateBytes:] {
		if b.used == len(b.live) {
			return errors.New("msg: more bulk memory in use than slots")
		}
		b.live[b.used] = bulkLive{binary.LittleEndian.Uint32(s), int(binary.LittleEndian.Uint32(s[4:])), int(binary.LittleEndian.Uint32(s[8:]))}
		b.used++
	}
	return nil
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
