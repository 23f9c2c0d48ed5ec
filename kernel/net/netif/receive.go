package netif

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/net/netdev"
)

// receive takes frames from the device, on the device's goroutine.
func (l *Link) receive(batch []netdev.Frame) {
	d := l.up.Load()
	if d == nil || l.down.Load() {
		return
	}
	t, _ := (*d).(stack.TransportDispatcher)
	for i := range batch {
		if t == nil || !l.receiveTCP(t, &batch[i]) {
			l.receiveOne(*d, &batch[i])
		}
	}
}

func (l *Link) receiveOne(d stack.NetworkDispatcher, f *netdev.Frame) {
	n := f.Len()
	if n < header.EthernetMinimumSize {
		return
	}
	var b buffer.Buffer
	if len(f.Parts) == 1 {
		b = buffer.MakeWithData(f.Parts[0])
	} else {
		v := buffer.NewViewSize(n)
		at := v.AsSlice()
		for _, p := range f.Parts {
			at = at[copy(at, p):]
		}
		b = buffer.MakeWithView(v)
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: b})
	defer p.DecRef()
	eth, ok := p.LinkHeader().Consume(header.EthernetMinimumSize)
	if !ok {
		return
	}
	switch dst := [6]byte(eth); {
	case dst == l.host:
		p.PktType = tcpip.PacketHost
	case dst == [6]byte{255, 255, 255, 255, 255, 255}:
		p.PktType = tcpip.PacketBroadcast
	case dst[0]&1 != 0:
		p.PktType = tcpip.PacketMulticast
	default:
		p.PktType = tcpip.PacketOtherHost
	}
	if l.net.Tapped() {
		l.net.TapIn(l.index, joined(f), p.PktType, f.ChecksumValid)
	}
	if p.PktType == tcpip.PacketOtherHost {
		return // for another station
	}
	proto := tcpip.NetworkProtocolNumber(eth[12])<<8 | tcpip.NetworkProtocolNumber(eth[13])
	if fn := l.dhcp.Load(); fn != nil && proto == header.IPv4ProtocolNumber {
		if udp := dhcpReply(p); udp != nil {
			(*fn)(udp)
			return
		}
	}
	if l.features&netdev.RxChecksum != 0 && !f.ChecksumValid && !f.NeedsChecksum && !checksumsValid(p, proto) {
		return
	}
	if !l.net.Refuses(l.index, proto, p) {
		l.net.Waits(p.Size())
		d.DeliverNetworkPacket(proto, p)
	}
}

// Most of what a server receives is TCP over IPv4, whole and addressed to the
// interface's own address. netstack's IP layer looks up three addresses, copies
// its table of counters twice and walks filter tables for such a packet, half
// of the cost of receiving it. The fast path makes the same checks on the bytes
// of the frame and hands the packet to the transport layer itself. Everything
// else, and anything that looks odd, goes the ordinary way.

// receiveTCP takes a frame if it is such a packet; false leaves it to others.
func (l *Link) receiveTCP(d stack.TransportDispatcher, f *netdev.Frame) bool {
	own := l.own4.Load()
	if own == 0 || len(f.Parts) != 1 || l.net.RawSockets() != 0 || l.net.Checking() {
		return false
	}
	b := f.Parts[0]
	const eth, ip = header.EthernetMinimumSize, header.IPv4MinimumSize
	if len(b) < eth+ip+header.TCPMinimumSize || [6]byte(b) != l.host {
		return false
	}
	h := b[eth:]
	total := int(binary.BigEndian.Uint16(h[2:]))
	const dontFragment = 0x4000
	switch {
	case b[12] != 0x08 || b[13] != 0x00, // IPv4
		h[0] != 0x45, // without options
		h[9] != uint8(header.TCPProtocolNumber),
		binary.BigEndian.Uint16(h[6:])&^dontFragment != 0, // whole
		total < ip+header.TCPMinimumSize || total > len(h),
		binary.BigEndian.Uint32(h[16:]) != uint32(own):
		return false
	}
	src := binary.BigEndian.Uint32(h[12:])
	if src == uint32(own) || src == uint32(own>>32) || h[12] == 0 || h[12] == 127 || h[12] >= 224 {
		return false // ours, the broadcast address, or nobody's
	}
	if header.IPv4(h[:ip]).CalculateChecksum() != 0xffff {
		return false
	}
	off := int(h[ip+12]>>4) * 4
	if off < header.TCPMinimumSize || ip+off > total {
		return false
	}

	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(b[:eth+total])})
	defer p.DecRef()
	p.LinkHeader().Consume(eth)
	p.NetworkHeader().Consume(ip)
	p.TransportHeader().Consume(off)
	p.NetworkProtocolNumber = header.IPv4ProtocolNumber
	p.TransportProtocolNumber = header.TCPProtocolNumber
	p.PktType = tcpip.PacketHost
	p.NICID, p.InputNICID = tcpip.NICID(l.index), tcpip.NICID(l.index)
	p.RXChecksumValidated = f.ChecksumValid || f.NeedsChecksum
	l.rxPackets.Increment()
	l.rxBytes.IncrementBy(uint64(total))
	d.DeliverTransportPacket(header.TCPProtocolNumber, p)
	return true
}

// AddressesChanged finds out which address is the fast path's, and whether the interface
// is up.
func (l *Link) AddressesChanged() {
	i := l.net.InterfaceByIndex(l.index)
	l.down.Store(i != nil && !i.Up())
	if !l.down.Load() {
		for _, a := range l.net.Addresses(l.index) {
			if a.Address.Len() == 4 {
				l.setOwn(a)
				return
			}
		}
	}
	l.own4.Store(0)
}

// setOwn tells the fast path the interface's address; 0 turns it off.
func (l *Link) setOwn(a tcpip.AddressWithPrefix) {
	if a.Address.Len() != 4 {
		return
	}
	ip := a.Address.As4()
	own := binary.BigEndian.Uint32(ip[:])
	broadcast := own | uint32(uint64(1)<<(32-a.PrefixLen)-1)
	l.own4.Store(uint64(broadcast)<<32 | uint64(own))
}
