package inet

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// Gates of connections within the machine that were there before the gate: no packets pass
// them. A segment that a gate refuses is sent again on Linux until it is taken, so that here
// it waits in the queue.

// gateBit in TCP.shut says that the end has a gate that may refuse segments.
const gateBit uint32 = 1 << 10

// noteGate sets gateBit when a gate takes another's place; called with mu held.
func (s *TCP) noteGate(old, g *gate) {
	if g == nil || g.admits == nil {
		if s.shut.And(^gateBit)&gateBit != 0 && s.far.Load() != nil {
			s.Q.Notify(evIn)
		}
		return
	}
	if old != nil && old.admits != nil {
		g.passed.Store(old.passed.Load())
	} else if s.far.Load() != nil {
		written, _ := s.in.Passed()
		g.passed.Store(written)
	}
	s.shut.Or(gateBit)
}

// letThrough returns how many bytes that x has sent may be read, and false if the gate
// refuses them now. There are none at the end of the stream.
func (s *TCP) letThrough(x *TCP) (int, bool) {
	g := s.rules.Load()
	if g == nil || g.admits == nil {
		return s.in.Used(), true
	}
	written, read := s.in.Passed()
	if passed := g.passed.Load(); passed > read {
		return int(passed - read), true
	}
	if written == read && !s.fin.Load() {
		return 0, true // nothing has come
	}
	ttl, hops := x.sendsTTL()
	six := s.hereAddr.Len() == 16
	if six && hops < g.minHops || !six && ttl < g.minTTL {
		return 0, false
	}
	if g.filter != nil {
		p := s.asSegment(x, ttl, hops)
		defer p.DecRef()
		if _, ok := g.pass(p); !ok {
			return 0, false
		}
	}
	g.passed.Store(written)
	return int(written - read), true
}

// sendsTTL returns the TTL and the hop limit of what the socket sends.
func (s *TCP) sendsTTL() (ttl, hops uint8) {
	ttl, hops = linux.DefaultTTL, linux.DefaultTTL
	if g := s.rules.Load(); g != nil {
		if g.sendTTL != 0 {
			ttl = g.sendTTL
		}
		if g.sendHops != 0 {
			hops = g.sendHops
		}
	}
	return ttl, hops
}

// segmentHeader is the length of a header of TCP with time stamps.
const segmentHeader = header.TCPMinimumSize + header.TCPOptionTSLength + 2

// asSegment makes of what waits to be read the segment that would have brought it.
func (s *TCP) asSegment(x *TCP, ttl, hops uint8) *stack.PacketBuffer {
	b := make([]byte, min(s.in.NextLen(), loopbackSegment))
	g, _ := s.in.Read(uio.Bytes(b), x.flowLimit(), true)
	b = b[:g.N]
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: header.IPv6MinimumSize + segmentHeader, Payload: buffer.MakeWithData(b)})
	t := header.TCP(p.TransportHeader().Push(segmentHeader))
	flags := header.TCPFlagAck | header.TCPFlagPsh
	if s.fin.Load() {
		flags |= header.TCPFlagFin
	}
	t.Encode(&header.TCPFields{SrcPort: x.herePort, DstPort: s.herePort, DataOffset: segmentHeader, Flags: flags, WindowSize: 512})
	copy(t[header.TCPMinimumSize:], []byte{header.TCPOptionNOP, header.TCPOptionNOP, header.TCPOptionTS, header.TCPOptionTSLength})
	p.NICID, p.TransportProtocolNumber = LoopbackNIC, header.TCPProtocolNumber
	if s.hereAddr.Len() == 16 {
		p.NetworkProtocolNumber = header.IPv6ProtocolNumber
		header.IPv6(p.NetworkHeader().Push(header.IPv6MinimumSize)).Encode(&header.IPv6Fields{PayloadLength: uint16(segmentHeader + len(b)),
			TransportProtocol: header.TCPProtocolNumber, HopLimit: hops, SrcAddr: x.hereAddr, DstAddr: s.hereAddr})
		return p
	}
	p.NetworkProtocolNumber = header.IPv4ProtocolNumber
	header.IPv4(p.NetworkHeader().Push(header.IPv4MinimumSize)).Encode(&header.IPv4Fields{TotalLength: uint16(header.IPv4MinimumSize + segmentHeader + len(b)),
		TTL: ttl, Protocol: uint8(header.TCPProtocolNumber), SrcAddr: x.hereAddr, DstAddr: s.hereAddr})
	return p
}
