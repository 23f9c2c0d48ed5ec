package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/net/sock"
)

// maxSegments is how many datagrams one send with UDP_SEGMENT makes at most.
const maxSegments = 128

// checkPktInfo checks where IP_PKTINFO says that a datagram comes from.
func (s *Datagram) checkPktInfo(p *sock.PktInfo) linux.Errno {
	if p.Index != 0 && s.net.InterfaceByIndex(p.Index) == nil {
		return linux.ENODEV
	}
	from := tcpip.AddrFrom4([4]byte(p.Local[:4]))
	if _, _, own := s.net.local(from); !own {
		return linux.ENETUNREACH
	}
	return 0
}

// mostTogether is the length from which on Linux has a frame apart before it sends it on lo.
const mostTogether = 65536

// sendRare is Send with a TOS of its own, in segments, or with MSG_ZEROCOPY.
func (s *Datagram) sendRare(c *caller.Ctx, m *sock.Msg, o tcpip.WriteOptions, nonblock bool) (n int, e linux.Errno) {
	if m.SendTOS != 0 {
		s.tos.Lock()
		defer s.tos.Unlock()
		s.tellTOS(int32(m.SendTOS - 1))
		defer func() {
			s.mu.Lock()
			tos := s.ip.tos
			if s.v6 {
				tos = s.ip.tclass
			}
			s.mu.Unlock()
			s.tellTOS(tos)
		}()
	}
	size := int(s.segment.Load())
	if m.Segment != 0 {
		size = int(m.Segment)
	}
	more := m.Flags&linux.MSG_MORE != 0
	switch {
	case size > 0 && m.V.Len() > size && s.isUDP() && !more && !s.cork.busy.Load():
		n, e = s.sendSegments(c, m.V, size, o, nonblock)
	case (more || s.cork.busy.Load()) && s.isUDP():
		n, e = s.sendPart(c, m.V, o, nonblock, more)
	default:
		n, e = s.sendWhole(c, m.V, o, nonblock)
	}
	if e == 0 && m.Flags&linux.MSG_ZEROCOPY != 0 && s.Opt.Has(sock.ZeroCopy) {
		s.noteZeroCopy()
	}
	return n, e
}

func (s *Datagram) tellTOS(v int32) {
	opt := tcpip.IPv4TOSOption
	if s.v6 {
		opt = tcpip.IPv6TrafficClassOption
	}
	s.ep.Load().SetSockOptInt(opt, int(v))
}

// sendSegments sends datagrams of so many bytes each, and the rest (UDP_SEGMENT).
func (s *Datagram) sendSegments(c *caller.Ctx, v *uio.Vec, size int, o tcpip.WriteOptions, nonblock bool) (int, linux.Errno) {
	n := v.Len()
	switch {
	case n > maxUDP:
		return 0, linux.EMSGSIZE
	case size > s.roomFor(o.To):
		return 0, linux.EMSGSIZE
	case n > size*maxSegments, s.Opt.Has(sock.NoCheck):
		return 0, linux.EINVAL
	}
	if s.trainFits(o.To, n) {
		o.EndOfRecord = true
		return s.sendTrain(c, v, uint16(size), o, nonblock)
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	for done := 0; done < n; done += size {
		if _, e := s.sendWhole(c, uio.Bytes(b[done:min(done+size, n)]), o, nonblock); e != 0 {
			return 0, e
		}
	}
	return n, 0
}

// roomFor returns how much fits into one packet to an address, or to the peer.
func (s *Datagram) roomFor(to *tcpip.FullAddress) int {
	a, front := s.goesTo(to), header.IPv4MinimumSize+header.UDPMinimumSize
	if a.Len() == 16 {
		front = header.IPv6MinimumSize + header.UDPMinimumSize
	}
	i := s.net.InterfaceByIndex(s.net.wayOut(a))
	if _, _, own := s.net.local(a); own {
		i = s.net.lo
	}
	if i == nil || a.Len() == 0 {
		return maxUDP
	}
	return i.CurrentMTU() - front
}

// goesTo returns an address, or without one the peer's; none if there is no peer.
func (s *Datagram) goesTo(to *tcpip.FullAddress) tcpip.Address {
	if to != nil {
		return unmap(to.Addr)
	}
	fa, err := s.ep.Load().GetRemoteAddress()
	if err != nil {
		return tcpip.Address{}
	}
	return unmap(fa.Addr)
}

// trainFits reports whether datagrams may go as one packet: to this machine. The stack then
// has them apart again, unless the receiver wants them together (UDP_GRO).
func (s *Datagram) trainFits(to *tcpip.FullAddress, n int) bool {
	if _, ok := s.ep.Load().Endpoint.(interface{ SetTrains(bool) }); !ok {
		return false
	}
	a := s.goesTo(to)
	_, _, own := s.net.local(a)
	n += LinkHeaderLen + header.IPv4MinimumSize + header.UDPMinimumSize
	if a.Len() == 16 {
		n += header.IPv6MinimumSize - header.IPv4MinimumSize
	}
	return own && a.Len() != 0 && n < mostTogether
}
