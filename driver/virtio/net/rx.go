package net

import (
	"sync"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
	"hardtack/kernel/net/netdev"
)

// rxQueue receives. Its buffer i is the request with token i.
type rxQueue struct {
	d   *Device    // immutable
	mem driver.DMA // immutable; rxBufferSize bytes a buffer

	mu      sync.Mutex // the bottom half's, except for the start; guards the rest
	q       *queue.Queue
	started bool // the receiver is known and the buffers are given out
	frames  [rxBatch]netdev.Frame
	parts   [rxSize][]byte // backs the frames' Parts
	taken   [rxSize]uint16 // buffers of the batch, to be given back
	ntaken  int
	drops   uint64 // frames that made no sense
}

func (r *rxQueue) init(p driver.Platform, q *queue.Queue) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ok bool
	r.q = q
	r.mem, ok = p.AllocDMA(driver.Pages(q.Size() * rxBufferSize))
	return ok
}

// start gives all buffers to the device.
func (r *rxQueue) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.q.Size() {
		r.give(uint16(i))
	}
	r.q.EnableInterrupts(0)
	r.started = true
	r.q.Publish()
}

func (r *rxQueue) give(buffer uint16) {
	r.q.AddOne(uint32(buffer), queue.Segment{Phys: r.mem.Phys + uint64(buffer)*rxBufferSize, Len: rxBufferSize}, true)
}

func (r *rxQueue) buffer(i uint16, n uint32) []byte {
	off := int(i) * rxBufferSize
	return r.mem.Virt[off : off+int(n) : off+int(n)]
}

// poll is the bottom half.
func (r *rxQueue) poll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return
	}
	r.q.DisableInterrupts()
	for {
		n := r.batch()
		if n > 0 {
			r.d.Hold() // the answers go together
			r.d.recv(r.frames[:n])
			r.d.Flush()
		}
		if r.ntaken == 0 {
			if !r.q.EnableInterrupts(0) {
				return
			}
			r.q.DisableInterrupts()
			continue
		}
		for _, b := range r.taken[:r.ntaken] {
			r.give(b)
		}
		r.ntaken = 0
		r.q.Publish()
	}
}

// batch collects up to rxBatch frames and returns how many. Their buffers are
// in taken, as are those of frames that were dropped.
func (r *rxQueue) batch() int {
	n := 0
	for n < rxBatch {
		i, b, ok := r.pop()
		if !ok {
			break
		}
		f := &r.frames[n]
		if len(b) < headerSize {
			r.drops++
			continue
		}
		count := readHeader(b, f)
		if !r.d.dev.Has(featureMergeable) {
			count = 1
		}
		first := i
		r.parts[i] = b[headerSize:]
		length := len(b) - headerSize
		for i++; i < first+count; i++ {
			_, b, ok := r.pop()
			if !ok {
				break
			}
			r.parts[i] = b
			length += len(b)
		}
		if count == 0 || i != first+count || !sane(f, length) {
			r.drops++
			continue
		}
		f.Parts = r.parts[first:i:i]
		n++
	}
	return n
}

// pop takes one received buffer and returns its place in taken.
func (r *rxQueue) pop() (int, []byte, bool) {
	if r.ntaken == len(r.taken) {
		return 0, nil, false
	}
	token, n, ok := r.q.Pop()
	if !ok {
		return 0, nil, false
	}
	i := r.ntaken
	r.taken[i] = uint16(token)
	r.ntaken++
	return i, r.buffer(uint16(token), n), true
}

// sane reports whether what the device says about a frame is within it.
func sane(f *netdev.Frame, length int) bool {
	if length < 14 {
		return false
	}
	if f.NeedsChecksum && int(f.ChecksumStart)+int(f.ChecksumOffset)+2 > length {
		return false
	}
	if f.GSO != netdev.GSONone && (f.SegmentSize == 0 || int(f.HeaderLen) > length) {
		return false
	}
	return true
}
