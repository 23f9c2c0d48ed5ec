package e1000

import (
	"sync"

	"hardtack/driver"
	"hardtack/kernel/net/netdev"
)

const (
	rxSize   = 256 // descriptors, each with a buffer
	rxBuffer = 2048
	rxBatch  = 64 // frames handed up at a time
	rxParts  = 8  // buffers of a frame: 16 KiB, more than the card takes
)

// A received frame's status (section 7.1.4): bits of the word's first byte, and of its second,
// which tells errors.
const (
	rxDone      = 1 << 0
	rxLast      = 1 << 1
	rxNoSum     = 1 << 2 // nothing was checked
	rxSumUDP    = 1 << 4
	rxSumTCP    = 1 << 5
	rxErrFrame  = 0x97 << 8 // of the wire
	rxErrSumTCP = 1 << 13
	rxErrSumIP  = 1 << 14
)

// rxRing receives. Buffer i is descriptor i's.
type rxRing struct {
	d        *Device    // immutable
	ring     driver.DMA // immutable
	buffers  driver.DMA // immutable
	messages bool       // immutable after connect: the card has a message for each cause

	mu      sync.Mutex // the bottom half's, except for the start; guards the rest
	started bool
	next    int  // the descriptor that the card writes next
	taken   int  // those before it that the card must be given again
	skip    bool // the rest of a frame that is too long comes
	frames  [rxBatch]netdev.Frame
	parts   [rxSize][]byte // backs the frames' Parts
	drops   uint64         // frames that made no sense or were damaged
}

func (r *rxRing) init(d *Device, p driver.Platform) (ok bool) {
	r.d = d
	if r.ring, ok = p.AllocDMA(driver.Pages(rxSize * entrySize)); !ok {
		return false
	}
	r.buffers, ok = p.AllocDMA(driver.Pages(rxSize * rxBuffer))
	return ok
}

// start gives the card the ring. All descriptors but one are the card's: head and tail are the
// same when it has none.
func (r *rxRing) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rxSize {
		r.give(i)
	}
	w := r.d.regs.Write32
	w(regRxBase, uint32(r.ring.Phys))
	w(regRxBase+4, uint32(r.ring.Phys>>32))
	w(regRxSize, rxSize*entrySize)
	w(regRxHead, 0)
	w(regRxTail, rxSize-1)
	r.started = true
}

func (r *rxRing) give(i int) {
	entryAt(r.ring.Virt, i).put(r.buffers.Phys+uint64(i)*rxBuffer, 0, 0)
}

func (r *rxRing) buffer(i int, n uint32) []byte {
	off := i * rxBuffer
	return r.buffers.Virt[off : off+int(n) : off+int(n)]
}

// poll is the bottom half. Its interrupt is masked while it runs.
func (r *rxRing) poll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return
	}
	for {
		n := r.batch()
		if n > 0 {
			r.d.Hold() // the answers go together
			r.d.recv(r.frames[:n])
			r.d.Flush()
		}
		if r.taken == 0 {
			break
		}
		r.giveBack()
	}
	if r.messages { // what came since is pending, and interrupts at once
		r.d.regs.Write32(regMask, r.d.causes(causeRx))
	}
}

// giveBack returns the descriptors of a batch to the card.
func (r *rxRing) giveBack() {
	for i := range r.taken {
		r.give((r.next - r.taken + i + rxSize) % rxSize)
	}
	r.taken = 0
	r.d.regs.Write32(regRxTail, uint32((r.next+rxSize-1)%rxSize))
}

// batch collects up to rxBatch frames and returns how many. A frame of which not all has come
// stays in the ring.
func (r *rxRing) batch() int {
	n := 0
	for n < rxBatch {
		first := r.taken
		count, ok := r.frame(&r.frames[n])
		if count == 0 {
			break
		}
		r.next = (r.next + count) % rxSize
		r.taken += count
		if !ok {
			r.drops++
			continue
		}
		r.frames[n].Parts = r.parts[first:r.taken:r.taken]
		n++
	}
	return n
}

// frame looks at the next frame. It returns how many descriptors it takes, 0 if it is not
// complete, and whether it is to be handed up.
func (r *rxRing) frame(f *netdev.Frame) (count int, ok bool) {
	*f = netdev.Frame{}
	length := 0
	for r.taken+count < rxSize {
		i := (r.next + count) % rxSize
		e := entryAt(r.ring.Virt, i)
		status := e.done()
		if status&rxDone == 0 {
			return 0, false
		}
		size := e.size() & 0xffff
		fits := size <= rxBuffer
		r.parts[r.taken+count] = r.buffer(i, min(size, rxBuffer))
		length += int(size)
		count++
		last := status&rxLast != 0
		switch {
		case r.skip:
			r.skip = !last
			return count, false
		case !fits || count == rxParts && !last:
			r.skip = !last
			return count, false
		case !last:
			continue
		}
		f.ChecksumValid = status&rxNoSum == 0 && status&(rxSumTCP|rxSumUDP) != 0 && status&(rxErrSumTCP|rxErrSumIP) == 0
		return count, status&rxErrFrame == 0 && length >= 14
	}
	return 0, false
}
