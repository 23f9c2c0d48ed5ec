package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
)

// noteDiscover keeps whether datagrams may be sent in fragments (IP_MTU_DISCOVER and
// IPV6_MTU_DISCOVER) for the way of sending, which takes no lock; called with mu held.
func (s *inetSock) noteDiscover() {
	d, ok := s.self.(*Datagram)
	if !ok {
		return
	}
	v := uint32(0)
	if whole(s.ip.mtuDiscover) {
		v |= whole4
	}
	if whole(s.ip.mtuDiscover6) {
		v |= whole6
	}
	d.wholes.Store(v)
}

// Bits of Datagram.wholes: what is sent over IPv4 or IPv6 may not be in fragments.
const whole4, whole6 = 1, 2

func whole(how int32) bool { return how >= linux.IP_PMTUDISC_DO && how < linux.IP_PMTUDISC_OMIT }

// fits refuses a datagram that would have to be sent in fragments, and puts the MTU into
// the error queue.
func (s *Datagram) fits(n int, to *tcpip.FullAddress) linux.Errno {
	p := s.ep.Load()
	if to == nil {
		fa, err := p.GetRemoteAddress()
		if err != nil {
			return 0 // the send tells what is wrong
		}
		to = &fa
	}
	a := unmap(to.Addr)
	proto, front, bit := header.IPv4ProtocolNumber, header.IPv4MinimumSize, uint32(whole4)
	if a.Len() == 16 {
		proto, front, bit = header.IPv6ProtocolNumber, header.IPv6MinimumSize, whole6
	}
	if s.includesHeader() {
		front = 0
	}
	if s.isUDP() {
		front += header.UDPMinimumSize
	}
	if s.wholes.Load()&bit == 0 || n > 0xffff {
		return 0
	}
	i := s.net.InterfaceByIndex(s.net.wayOut(a))
	if _, _, own := s.net.local(a); own {
		i = s.net.lo
	}
	if i == nil || n+front <= i.CurrentMTU() {
		return 0
	}
	s.mu.Lock()
	told := s.ip.recvErr && bit == whole4 || s.ip.recvErr6 && s.v6
	s.mu.Unlock()
	if told && p.errs.Add(1) <= maxErrors {
		p.SocketOptions().QueueLocalErr(&tcpip.ErrMessageTooLong{}, proto, uint32(i.CurrentMTU()), *to, nil)
	}
	return linux.EMSGSIZE
}
