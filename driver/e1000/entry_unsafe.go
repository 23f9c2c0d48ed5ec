package e1000

import (
	"sync/atomic"
	"unsafe"
)

// entrySize is the size of a descriptor of either direction.
const entrySize = 16

// entry is a descriptor: an address, or a context's first half, and two words of which the card
// writes the second, of received frames also the first.
type entry struct {
	first  uint64
	length uint32
	status uint32
}

// entryAt is descriptor i of a ring's memory.
func entryAt(ring []byte, i int) *entry {
	_ = ring[i*entrySize+entrySize-1]
	return (*entry)(unsafe.Pointer(&ring[i*entrySize]))
}

// done loads the word with the status. What is loaded later is at least as new.
func (e *entry) done() uint32 { return atomic.LoadUint32(&e.status) }

// size loads the word with the length, once: the card could change it.
func (e *entry) size() uint32 { return atomic.LoadUint32(&e.length) }

// put writes a descriptor for the card, which is told of it later.
func (e *entry) put(first uint64, length, status uint32) {
	e.first = first
	atomic.StoreUint32(&e.length, length)
	atomic.StoreUint32(&e.status, status)
}
