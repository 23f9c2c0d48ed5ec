package clusternet

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"hardtack/abi/boot"
)

// A wire is memory that two clusters map: a page of words, and a ring of packets for each
// direction. A packet in a ring is its length (4 bytes), its bytes, and padding up to a
// multiple of 8.
//
// All is zero at the start. The peer may write anything anywhere at any time: each word is
// loaded once and then checked, and a packet is copied before anybody looks at it.
const (
	pageBytes = 4096
	ringBytes = (boot.NetPages - 1) / 2 * pageBytes

	lengthBytes = 4
	align       = 8
	minPacket   = 20 // an IPv4 header
	maxPacket   = 65535
)

// side is what one side writes, but for Asleep, which the other one clears.
type side struct {
	Written atomic.Uint32 // bytes of its ring, modulo 2^32
	Read    atomic.Uint32 // bytes of the other side's ring
	Asleep  atomic.Uint32 // it wants to be rung for
	_       [13]uint32
}

// control is the page of words.
type control struct {
	Side [2]side

	// Written by the first cluster, which is side 0.
	Changes atomic.Uint32                   // grows after a Life has changed
	Life    [boot.MaxClusters]atomic.Uint32 // of each cluster; odd while it runs
}

// Wire is one side of such memory.
type Wire struct {
	c       *control
	side    int
	out, in []byte
	ring    func() // interrupts the peer

	mu      sync.Mutex
	written uint32 // guarded by mu

	read    uint32        // of the receiver
	changes atomic.Uint32 // that the receiver has seen

	wake    chan struct{} // full when the receiver has to look
	over    atomic.Bool
	stopped chan struct{} // closed when the receiver has ended
}

// NewWire makes a side of the wire in mem, which has boot.NetPages pages; ring interrupts
// the other side's kernel, which then calls Net.Rung. The first cluster is side 0.
func NewWire(mem []byte, side int, ring func()) *Wire {
	if len(mem) != boot.NetPages*pageBytes {
		panic("clusternet: a wire of another size")
	}
	rings := [2][]byte{mem[pageBytes:][:ringBytes:ringBytes], mem[pageBytes+ringBytes:][:ringBytes:ringBytes]}
	return &Wire{c: controlOf(mem), side: side, out: rings[side], in: rings[1-side], ring: ring,
		wake: make(chan struct{}, 1), stopped: make(chan struct{})}
}

func (w *Wire) mine() *side   { return &w.c.Side[w.side] }
func (w *Wire) theirs() *side { return &w.c.Side[1-w.side] }

// rung has the receiver look if the peer rang for it. The peer has cleared Asleep then, perhaps for
// a packet that the receiver took before it went to sleep: it must set Asleep again.
func (w *Wire) rung() {
	if w.mine().Asleep.Load() == 0 || w.theirs().Written.Load() != w.mine().Read.Load() {
		w.look()
	}
}

func (w *Wire) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// call rings for the peer if it sleeps.
func (w *Wire) call() {
	if a := &w.theirs().Asleep; a.Load() != 0 && a.Swap(0) != 0 {
		w.ring()
	}
}

// close ends the receiver.
func (w *Wire) close() {
	w.over.Store(true)
	w.look()
}

// send puts a packet of n bytes into the ring: the bytes of parts without the first skip
// ones. It never waits, and reports false where there is no room.
func (w *Wire) send(parts [][]byte, skip, n int) bool {
	need := uint32(lengthBytes+n+align-1) &^ (align - 1)
	w.mu.Lock()
	used := w.written - w.theirs().Read.Load()
	switch {
	case used > ringBytes: // the peer broke the rules
		w.mu.Unlock()
		w.close()
		return true
	case need > ringBytes-used:
		w.mu.Unlock()
		return false
	}
	at := w.written % ringBytes
	binary.LittleEndian.PutUint32(w.out[at:], uint32(n))
	at += lengthBytes
	for _, b := range parts {
		none := min(skip, len(b))
		b, skip = b[none:], skip-none
		for len(b) > 0 {
			k := copy(w.out[at%ringBytes:], b)
			b = b[k:]
			at += uint32(k)
		}
	}
	w.written += need
	w.mine().Written.Store(w.written)
	w.mu.Unlock()
	w.call()
	return true
}

// receive gives each packet to got, in memory with front bytes in front, until the wire is
// closed or the peer breaks the rules. It calls changed before the packets that came after a
// change of Life.
func (w *Wire) receive(front int, got func(frame []byte), changed func()) {
	defer close(w.stopped)
	frame := make([]byte, front+maxPacket)
	for !w.over.Load() {
		// A cluster's Life changes before its packets come.
		there := w.theirs().Written.Load() - w.read
		if now := w.c.Changes.Load(); now != w.changes.Load() {
			w.changes.Store(now)
			changed()
		}
		if there == 0 {
			w.sleep()
			continue
		}
		for there > 0 && !w.over.Load() {
			n, size := w.next(frame[front:], there)
			if n == 0 {
				return
			}
			there -= size
			got(frame[:front+n])
		}
	}
}

// next copies a packet out of the ring, of which so many bytes are there. It returns the
// packet's length and what it takes up, 0 if that is nonsense.
func (w *Wire) next(b []byte, there uint32) (n int, size uint32) {
	if there > ringBytes || there%align != 0 {
		return 0, 0
	}
	at := w.read % ringBytes
	length := binary.LittleEndian.Uint32(w.in[at:])
	if length < minPacket || length > maxPacket {
		return 0, 0
	}
	if size = (lengthBytes + length + align - 1) &^ (align - 1); size > there {
		return 0, 0
	}
	b = b[:length]
	at += lengthBytes
	k := copy(b, w.in[at%ringBytes:])
	copy(b[k:], w.in)
	w.read += size
	w.mine().Read.Store(w.read)
	return int(length), size
}

// sleep waits for the peer.
func (w *Wire) sleep() {
	asleep := &w.mine().Asleep
	asleep.Store(1)
	if w.theirs().Written.Load() == w.read && w.c.Changes.Load() == w.changes.Load() && !w.over.Load() {
		<-w.wake
	}
	asleep.Store(0)
}
