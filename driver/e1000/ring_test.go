package e1000

import (
	"bytes"
	"encoding/binary"
	"sync"
	"testing"

	"hardtack/driver"
	"hardtack/driver/virtio/softdev"
	"hardtack/kernel/net/netdev"
)

// registers are a card without a device behind it: a test plays the device by its rings.
type registers struct {
	driver.MMIO // nil: other widths panic
	mu          sync.Mutex
	m           map[uint64]uint32
}

func (r *registers) Read32(off uint64) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.m[off]
}

func (r *registers) Write32(off uint64, v uint32) {
	if off == regControl {
		v &^= controlReset
	}
	r.mu.Lock()
	r.m[off] = v
	r.mu.Unlock()
}

// hostile is a card whose rings a test writes.
type hostile struct {
	d    *Device
	regs *registers
	got  []netdev.Frame
	data [][]byte
}

func newHostile(t testing.TB) *hostile {
	h := &hostile{regs: &registers{m: map[uint64]uint32{regStatus: statusLink, regAddress: 0x00545200, regAddress + 4: 0x0900}}}
	d, err := open(softdev.NewMachine(), h.regs, models[0x10d3])
	if err != nil {
		t.Fatal(err)
	}
	d.rx.messages = true
	h.d = d
	d.start()
	d.SetReceiver(func(batch []netdev.Frame) {
		for _, f := range batch {
			n := 0
			for _, p := range f.Parts {
				n += len(p)
			}
			if n < 14 || n > rxParts*rxBuffer {
				t.Fatalf("a frame of %d bytes", n)
			}
			h.got, h.data = append(h.got, f), append(h.data, bytes.Join(f.Parts, nil))
		}
	})
	return h
}

// write puts what a device says of its next descriptor.
func (h *hostile) write(at int, data []byte, length, status uint32) {
	r := &h.d.rx
	copy(r.buffers.Virt[at*rxBuffer:(at+1)*rxBuffer], data)
	entryAt(r.ring.Virt, at).put(^uint64(0), length, status)
}

func TestReceive(t *testing.T) {
	h := newHostile(t)
	at := 0
	put := func(length, status uint32) {
		h.write(at, bytes.Repeat([]byte{byte(at)}, int(min(length, rxBuffer))), length, status)
		at = (at + 1) % rxSize
	}
	for round := range 300 {
		h.got, h.data = nil, nil
		drops := h.d.rx.drops
		put(60, rxDone|rxLast)
		put(2048, rxDone) // three buffers
		put(2048, rxDone)
		put(100, rxDone|rxLast|rxSumTCP)
		put(60, rxDone|rxLast|rxSumTCP|rxErrSumTCP)
		put(60, rxDone|rxLast|rxSumTCP|rxNoSum)
		put(60, rxDone|rxLast|1<<8) // a CRC error
		put(13, rxDone|rxLast)      // too short
		put(2049, rxDone|rxLast)    // longer than its buffer
		put(0xffff, rxDone)         // and what belongs to it
		put(9, rxDone|rxLast)
		for range rxParts + 3 {
			put(2048, rxDone)
		}
		put(1, rxDone|rxLast) // too long
		put(14, rxDone|rxLast)
		h.d.rx.poll()
		var sizes []int
		var valid []bool
		for i, f := range h.got {
			sizes, valid = append(sizes, len(h.data[i])), append(valid, f.ChecksumValid)
		}
		want := []int{60, 4196, 60, 60, 14}
		if len(sizes) != len(want) {
			t.Fatalf("round %d: frames of %v bytes, want %v", round, sizes, want)
		}
		for i := range want {
			if sizes[i] != want[i] || valid[i] != (i == 1) {
				t.Fatalf("round %d: frames of %v bytes, valid %v", round, sizes, valid)
			}
		}
		if h.d.rx.drops == drops {
			t.Fatal("nothing was counted")
		}
		if tail := h.regs.Read32(regRxTail); int(tail) != (at+rxSize-1)%rxSize {
			t.Fatalf("round %d: tail %d, next is %d", round, tail, at)
		}
	}
	// Half a frame stays until the rest comes.
	h.got = nil
	put(2048, rxDone)
	h.d.rx.poll()
	if len(h.got) != 0 {
		t.Fatal("half a frame was passed on")
	}
	put(1, rxDone|rxLast)
	h.d.rx.poll()
	if len(h.got) != 1 || h.got[0].Len() != 2049 {
		t.Fatal("the other half is missing")
	}
}

// A ring that the card does not empty refuses frames, and takes them when it does.
func TestTransmitFull(t *testing.T) {
	h := newHostile(t)
	ready := 0
	h.d.OnTransmitReady(func() { ready++ })
	f := []netdev.Frame{{Parts: [][]byte{make([]byte, 60)}}}
	for round := range 5 {
		n := 0
		for h.d.Transmit(f) == 1 {
			if n++; n > txSize {
				t.Fatal("the ring is never full")
			}
		}
		if n != txSize-2 {
			t.Fatalf("round %d: %d frames fit", round, n)
		}
		if h.regs.Read32(regMask) != h.d.causes(causeTx) {
			t.Fatal("no interrupt is wanted")
		}
		h.d.tx.completed()
		if ready != round {
			t.Fatal("room without any frame sent")
		}
		for i := range txSize {
			e := entryAt(h.d.tx.ring.Virt, i)
			e.put(e.first, e.length, e.status|txDone)
		}
		h.d.tx.completed()
		if ready != round+1 || h.d.tx.used != 0 {
			t.Fatalf("round %d: %d in use", round, h.d.tx.used)
		}
	}
}

// FuzzRing gives the card descriptors at will: each input is a list of what a device may write
// to one, of 6 bytes. Nothing may panic, and a good frame must still come through.
func FuzzRing(f *testing.F) {
	h := newHostile(f)
	f.Add([]byte{60, 0, rxDone | rxLast, 0, 0, 0})
	f.Add([]byte{0, 8, rxDone, 0, 0, 0, 1, 0, rxDone | rxLast, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 255, 255})
	f.Add(bytes.Repeat([]byte{0, 8, rxDone, 0, 0, 0}, 300))
	var mu sync.Mutex
	f.Fuzz(func(t *testing.T, input []byte) {
		mu.Lock()
		defer mu.Unlock()
		h.got, h.data = nil, nil
		at := h.d.rx.next
		for ; len(input) >= 6; input = input[6:] {
			h.write(at, nil, uint32(binary.LittleEndian.Uint16(input)), binary.LittleEndian.Uint32(input[2:]))
			at = (at + 1) % rxSize
		}
		h.d.rx.poll()
		// What is left is an unfinished frame: its end, and a good one.
		for i := range rxSize {
			h.write(i, nil, 60, rxDone|rxLast)
		}
		h.d.rx.poll()
		h.got, h.data = nil, nil
		h.write(h.d.rx.next, []byte("good"), 60, rxDone|rxLast)
		h.d.rx.poll()
		if len(h.got) != 1 || string(h.data[0][:4]) != "good" {
			t.Fatalf("%d frames", len(h.got))
		}
	})
}

// What the stack asks for is bounded, too: frames that no card can send are dropped.
func TestTransmitNonsense(t *testing.T) {
	h := newHostile(t)
	b := make([]byte, 66000)
	for i, f := range []netdev.Frame{
		{},
		{Parts: [][]byte{b[:20000]}},
		{Parts: [][]byte{b[:60]}, GSO: netdev.GSOTCPv4},
		{Parts: [][]byte{b[:60]}, NeedsChecksum: true, ChecksumStart: 50, ChecksumOffset: 16},
		{Parts: [][]byte{b[:60]}, NeedsChecksum: true, ChecksumStart: 2, ChecksumOffset: 16},
		{Parts: [][]byte{b[:3000]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 54},
		{Parts: [][]byte{b[:3000]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 1000, SegmentSize: 100},
		{Parts: [][]byte{b[:3000]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv6, HeaderLen: 74, SegmentSize: 100},
		{Parts: [][]byte{b[:40], b[40:3000]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 54, SegmentSize: 100},
	} {
		drops := h.d.tx.drops
		if h.d.Transmit([]netdev.Frame{f}) != 1 || h.d.tx.drops != drops+1 || h.d.tx.used != 0 {
			t.Errorf("frame %d: %d dropped, %d descriptors in use", i, h.d.tx.drops-drops, h.d.tx.used)
		}
	}
	// More segments than the ring has.
	f := netdev.Frame{Parts: [][]byte{b[:60054]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 54, SegmentSize: 48}
	if h.d.Transmit([]netdev.Frame{f}) != 1 || h.d.tx.used > txSize {
		t.Errorf("%d descriptors in use", h.d.tx.used)
	}
	h.regs.Write32(regStatus, 0)
	h.d.linkChanged()
	if h.d.Transmit([]netdev.Frame{f}) != 1 || h.d.tx.lost != 1 {
		t.Error("a frame was sent without a link")
	}
}

func TestNothingAllocates(t *testing.T) {
	h := newHostile(t)
	b := make([]byte, 10000)
	f := []netdev.Frame{{Parts: [][]byte{b[:54], b[54:]}, NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 54, SegmentSize: 1448}}
	if n := testing.AllocsPerRun(20, func() { h.d.Transmit(f) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
