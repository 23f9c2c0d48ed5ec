package netif

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/net/netdev"
)

// Most of what a server receives is TCP or UDP over IPv4, whole and addressed to the
// interface's own address. netstack's IP layer looks up three addresses, copies its table
// of counters twice and walks filter tables for such a packet, half of the cost of
// receiving it. The fast path makes the same checks on the bytes of the frame and hands the
// packet to the transport layer itself. Everything else, and anything that looks odd, goes
// the ordinary way.

const (
	ethSize = header.EthernetMinimumSize
	ip4Size = header.IPv4MinimumSize
	tcpSize = header.TCPMinimumSize
)

// receiveFast takes the first of some frames if it is such a packet, and the segments behind
// it that belong to it. It returns how many frames it took.
func (l *Link) receiveFast(d stack.TransportDispatcher, batch []netdev.Frame) int {
	own := l.own4.Load()
	if own == 0 || l.net.RawSockets() != 0 || l.net.Checking() {
		return 0
	}
	b := l.plain(own, &batch[0])
	switch {
	case b == nil:
		return 0
	case b[ethSize+9] == uint8(header.UDPProtocolNumber):
		if l.dhcp.Load() == nil && (l.receivePlain(b, batch[0].ChecksumValid || batch[0].NeedsChecksum) || l.receiveUDP(d, b, &batch[0])) {
			return 1
		}
		return 0
	case len(batch) > 1:
		return l.receiveTrain(d, own, b, batch)
	}
	l.receiveTCP(d, b, &batch[0], false)
	return 1
}

// plain returns a frame up to the end of its packet if the packet is TCP or UDP over IPv4,
// and nothing about it is odd.
func (l *Link) plain(own uint64, f *netdev.Frame) []byte {
	if len(f.Parts) != 1 {
		return nil
	}
	b := f.Parts[0]
	if len(b) < ethSize+ip4Size+header.UDPMinimumSize || [6]byte(b) != l.host {
		return nil
	}
	h := b[ethSize:]
	total := int(binary.BigEndian.Uint16(h[2:]))
	const dontFragment = 0x4000
	switch {
	case b[12] != 0x08 || b[13] != 0x00, // IPv4
		h[0] != 0x45, // without options
		h[9] != uint8(header.TCPProtocolNumber) && h[9] != uint8(header.UDPProtocolNumber),
		binary.BigEndian.Uint16(h[6:])&^dontFragment != 0, // whole
		total < ip4Size+header.UDPMinimumSize || total > len(h),
		binary.BigEndian.Uint32(h[16:]) != uint32(own):
		return nil
	}
	src := binary.BigEndian.Uint32(h[12:])
	if src == uint32(own) || src == uint32(own>>32) || h[12] == 0 || h[12] == 127 || h[12] >= 224 {
		return nil // ours, the broadcast address, or nobody's
	}
	if !validHeader(h) {
		return nil
	}
	if h[9] == uint8(header.TCPProtocolNumber) {
		if total < ip4Size+tcpSize {
			return nil
		}
		if off := tcpOffset(b); off < tcpSize || ip4Size+off > total {
			return nil
		}
	}
	return b[: ethSize+total : ethSize+total]
}

// validHeader verifies the checksum of an IPv4 header without options.
func validHeader(h []byte) bool {
	le := binary.LittleEndian // a sum of words does not depend on the order of their bytes
	_ = h[ip4Size-1]
	sum := uint64(le.Uint32(h)) + uint64(le.Uint32(h[4:])) + uint64(le.Uint32(h[8:])) + uint64(le.Uint32(h[12:])) + uint64(le.Uint32(h[16:]))
	sum = sum>>32 + sum&0xffff_ffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16+sum&0xffff) == 0xffff
}

// tcpOffset is the length of a segment's header, as it says.
func tcpOffset(b []byte) int { return int(b[ethSize+ip4Size+12]>>4) * 4 }

// deliver hands a packet to the transport layer.
func (l *Link) deliver(d stack.TransportDispatcher, p *stack.PacketBuffer, proto tcpip.TransportProtocolNumber, off int) stack.TransportPacketDisposition {
	p.LinkHeader().Consume(ethSize)
	p.NetworkHeader().Consume(ip4Size)
	p.TransportHeader().Consume(off)
	p.NetworkProtocolNumber = header.IPv4ProtocolNumber
	p.TransportProtocolNumber = proto
	p.PktType = tcpip.PacketHost
	p.NICID, p.InputNICID = tcpip.NICID(l.index), tcpip.NICID(l.index)
	return d.DeliverTransportPacket(proto, p)
}

// count counts received packets for the interface.
func (l *Link) count(packets, bytes int) {
	l.rxPackets.IncrementBy(uint64(packets))
	l.rxBytes.IncrementBy(uint64(bytes))
}

// receivePlain hands a packet to its endpoint as it is, and reports whether that took it.
// checked: its checksum is right.
func (l *Link) receivePlain(b []byte, checked bool) bool {
	if l.plainTo == nil || !l.plainTo.DeliverPlain(tcpip.NICID(l.index), b[ethSize:], checked) {
		return false
	}
	l.count(1, len(b)-ethSize)
	if b[ethSize+9] == uint8(header.UDPProtocolNumber) {
		l.net.Waits(len(b) - ethSize)
	}
	return true
}

// receiveTCP takes a segment; checked: its checksum is right.
func (l *Link) receiveTCP(d stack.TransportDispatcher, b []byte, f *netdev.Frame, checked bool) {
	checked = checked || f.ChecksumValid || f.NeedsChecksum
	if l.receivePlain(b, checked) {
		return
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	p.RXChecksumValidated = checked
	l.count(1, len(b)-ethSize)
	l.deliver(d, p, header.TCPProtocolNumber, tcpOffset(b))
	p.DecRef()
}

// receiveUDP reports whether a socket took the datagram; if not, the IP layer says so to
// the sender.
func (l *Link) receiveUDP(d stack.TransportDispatcher, b []byte, f *netdev.Frame) bool {
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b)})
	defer p.DecRef()
	p.RXChecksumValidated = f.ChecksumValid || f.NeedsChecksum
	if l.deliver(d, p, header.UDPProtocolNumber, header.UDPMinimumSize) == stack.TransportPacketDestinationPortUnreachable {
		l.net.Stack.Stats().UDP.UnknownPortErrors.Decrement() // the IP layer's turn counts it
		return false
	}
	l.count(1, len(b)-ethSize)
	l.net.Waits(len(b) - ethSize)
	return true
}

// Segments of one connection that come together are made one, if they are in order and
// differ in nothing but their data, as Linux does (GRO): the transport layer's work is for
// each segment. The last of several acknowledgements without data that only confirm more
// than those before stands for all.

const maxTrain = 65535 - ethSize // bytes of what is made of segments

// receiveTrain takes a segment and those behind it that belong to it.
func (l *Link) receiveTrain(d stack.TransportDispatcher, own uint64, first []byte, batch []netdev.Frame) int {
	off := tcpOffset(first)
	at := ethSize + ip4Size + off // where data begins
	size := len(first) - at
	if !mergeable(first, &batch[0]) {
		l.receiveTCP(d, first, &batch[0], false)
		return 1
	}
	if size == 0 {
		n, last := 1, first
		for n < len(batch) {
			b := l.plain(own, &batch[n])
			if b == nil || !confirmsMore(last, b) || !mergeable(b, &batch[n]) {
				break
			}
			l.count(1, len(last)-ethSize)
			last = b
			n++
		}
		l.receiveTCP(d, last, &batch[n-1], true)
		return n
	}
	n, total := 1, len(first)
	last := first
	for n < len(batch) && len(last) == len(first) && last[ethSize+ip4Size+13]&uint8(header.TCPFlagPsh) == 0 {
		b := l.plain(own, &batch[n])
		if b == nil || len(b) > len(first) || total+len(b)-at > maxTrain || !continues(first, b, uint32(total-at)) || !mergeable(b, &batch[n]) {
			break
		}
		total += len(b) - at
		last = b
		n++
	}
	if n == 1 {
		l.receiveTCP(d, first, &batch[0], true)
		return 1
	}
	v := buffer.NewView(total)
	v.Write(first)
	for i := 1; i < n; i++ {
		frame := batch[i].Parts[0]
		end := ethSize + int(binary.BigEndian.Uint16(frame[ethSize+2:]))
		v.Write(frame[at:end])
	}
	b := v.AsSlice()
	binary.BigEndian.PutUint16(b[ethSize+2:], uint16(total-ethSize))
	b[ethSize+ip4Size+13] = last[ethSize+ip4Size+13]
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	p.RXChecksumValidated = true
	p.GSOOptions.MSS = uint16(size) // the transport layer counts segments
	l.count(n, total-ethSize+(n-1)*(at-ethSize))
	l.deliver(d, p, header.TCPProtocolNumber, off)
	p.DecRef()
	return n
}

// mergeable reports whether a segment may be one of several: it acknowledges, and its
// checksum is right.
func mergeable(b []byte, f *netdev.Frame) bool {
	t := b[ethSize+ip4Size:]
	if t[13]&^uint8(header.TCPFlagPsh) != uint8(header.TCPFlagAck) || t[12]&0xf != 0 {
		return false
	}
	if f.ChecksumValid || f.NeedsChecksum {
		return true
	}
	sum := uint32(len(t)) + uint32(header.TCPProtocolNumber)
	for i := ethSize + 12; i < ethSize+ip4Size; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return checksum.Checksum(t, uint16(sum)) == 0xffff
}

// sameFlow compares all of two segments' headers but what may differ: identification,
// checksums, lengths, and the numbers.
func sameFlow(a, b []byte) bool {
	const t = ip4Size
	if len(b) < ethSize+ip4Size+tcpSize || len(a) < ethSize+ip4Size+tcpSize {
		return false
	}
	a, b = a[ethSize:ethSize+ip4Size+tcpSize], b[ethSize:ethSize+ip4Size+tcpSize]
	le := binary.LittleEndian
	return b[9] == uint8(header.TCPProtocolNumber) && a[1] == b[1] && a[8] == b[8] &&
		le.Uint64(a[12:]) == le.Uint64(b[12:]) && le.Uint32(a[t:]) == le.Uint32(b[t:]) && a[t+12] == b[t+12]
}

// sameOptions compares the options of two segments, whose headers have the same length;
// nearly always they are timestamps, twelve bytes.
func sameOptions(a, b []byte) bool {
	if len(a) != 12 || len(b) != 12 {
		return string(a) == string(b)
	}
	le := binary.LittleEndian
	return le.Uint64(a) == le.Uint64(b) && le.Uint32(a[8:]) == le.Uint32(b[8:])
}

// continues reports whether a segment is what comes so many bytes behind the beginning of
// another's data, and has data itself.
func continues(first, b []byte, bytes uint32) bool {
	const t = ethSize + ip4Size
	be := binary.BigEndian
	if !sameFlow(first, b) {
		return false
	}
	end := t + tcpOffset(first)
	return len(b) > end && be.Uint32(b[t+4:]) == be.Uint32(first[t+4:])+bytes && be.Uint32(b[t+8:]) == be.Uint32(first[t+8:]) &&
		be.Uint16(first[t+14:]) == be.Uint16(b[t+14:]) && sameOptions(first[t+tcpSize:end], b[t+tcpSize:end])
}

// confirmsMore reports whether of two acknowledgements without data the second does all
// that the first does. Their options are none, or timestamps as everybody writes them; the
// second's is not older.
func confirmsMore(a, b []byte) bool {
	const t = ethSize + ip4Size
	be := binary.BigEndian
	if !sameFlow(a, b) || len(b) != len(a) || len(b) != t+tcpOffset(b) || be.Uint32(a[t+4:]) != be.Uint32(b[t+4:]) {
		return false
	}
	switch len(b) - t - tcpSize {
	case 0:
	case 12:
		const stamp = 0x0101080a // two no-operations, kind and length
		if be.Uint32(a[t+tcpSize:]) != stamp || be.Uint32(b[t+tcpSize:]) != stamp || int32(be.Uint32(b[t+tcpSize+4:])-be.Uint32(a[t+tcpSize+4:])) < 0 {
			return false
		}
	default:
		return false
	}
	return int32(be.Uint32(b[t+8:])-be.Uint32(a[t+8:])) > 0
}
