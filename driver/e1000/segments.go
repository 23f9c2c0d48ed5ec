package e1000

import (
	"encoding/binary"

	"hardtack/kernel/net/netdev"
)

// The 82574L cuts TCP segments, too, but QEMU's model of it does so only since QEMU 8.1. Those
// before make fragments of IPv4, which many receivers drop, and damaged packets of IPv6. The
// 8254x's manual has no IPv6 for some steppings, and QEMU's model writes a wrong length. The
// bytes are copied anyway: the rest is a header a segment, and the card computes its checksums.

const (
	tcpFin = 0x01
	tcpPsh = 0x08
	tcpCwr = 0x80
)

// segments cuts a frame while it copies it. It returns false when there is no room for it. What
// is in more segments than the ring has is lost, as on a wire: its sender repeats it.
func (t *txRing) segments(f *netdev.Frame, length int) bool {
	head, size := int(f.HeaderLen), int(f.SegmentSize)
	slots := (head + size + txSlot - 1) / txSlot // of a segment
	if slots > txWhole {
		t.drops++
		return true
	}
	data := length - head
	count := max((data+size-1)/size, 1)
	if most := (txSize - 2) / slots; count > most {
		t.drops += uint64(count - most)
		count = most
	}
	if !t.room(count*slots + 1) {
		return false
	}
	options := uint32(txSumTCP)
	if f.GSO == netdev.GSOTCPv4 {
		options |= txSumIP
	}
	plain := *f
	plain.GSO = netdev.GSONone
	from := cursor{parts: f.Parts}
	from.skip(head)
	begin := t.next
	t.compute(contextOf(&plain, length))
	for at := 0; count > 0; count-- {
		n := min(size, data-at)
		t.segment(f, &from, at, n, options)
		t.end(begin)
		begin = t.next
		at += n
	}
	return true
}

// segment puts n bytes of a frame's data, from at on, into slots behind their headers.
func (t *txRing) segment(f *netdev.Frame, from *cursor, at, n int, options uint32) {
	const command = txData | txModern | txCRC
	head := int(f.HeaderLen)
	b := t.slot(t.next)
	copy(b, f.Parts[0][:head])
	amend(b[:head], f, at, n)
	left := head + n
	fill := head
	for left > txSlot {
		from.read(b[fill:])
		t.put(t.phys(t.next), command|txSlot, options)
		b, fill = t.slot(t.next), 0
		left -= txSlot
	}
	from.read(b[fill:left])
	t.put(t.phys(t.next), command|txLast|txReport|uint32(left), options)
}

// amend makes a frame's headers those of a segment. The IPv4 checksum begins as zero.
func amend(b []byte, f *netdev.Frame, at, n int) {
	ip, start := b[ethernet:], int(f.ChecksumStart)
	be := binary.BigEndian
	header := int(f.HeaderLen) - start
	whole := f.Len() - start
	if f.GSO == netdev.GSOTCPv4 {
		be.PutUint16(ip[2:], uint16(start-ethernet+header+n))
		be.PutUint16(ip[4:], be.Uint16(ip[4:])+uint16(at/int(f.SegmentSize)))
		ip[10], ip[11] = 0, 0
	} else {
		be.PutUint16(ip[4:], uint16(start-ethernet-40+header+n))
	}
	tcp := b[start:]
	be.PutUint32(tcp[4:], be.Uint32(tcp[4:])+uint32(at))
	if at > 0 {
		tcp[13] &^= tcpCwr
	}
	if at+n+header != whole {
		tcp[13] &^= tcpFin | tcpPsh
	}
	sum := tcp[f.ChecksumOffset:]
	add16(sum, ^uint16(whole))
	add16(sum, uint16(header+n))
}

// cursor reads the parts of a frame in order.
type cursor struct {
	parts [][]byte
	at    int // in the first of them
}

func (c *cursor) skip(n int) {
	for n > 0 && len(c.parts) > 0 {
		k := min(n, len(c.parts[0])-c.at)
		c.advance(k)
		n -= k
	}
}

func (c *cursor) advance(k int) {
	if c.at += k; c.at == len(c.parts[0]) {
		c.parts, c.at = c.parts[1:], 0
	}
}

func (c *cursor) read(b []byte) {
	for len(b) > 0 && len(c.parts) > 0 {
		k := copy(b, c.parts[0][c.at:])
		b = b[k:]
		c.advance(k)
	}
}
