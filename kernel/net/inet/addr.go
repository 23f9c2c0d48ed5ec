package inet

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/random"
	"hardtack/kernel/net/sock"
)

func randSourceUint32() uint32 { return uint32(random.Uint64()) }

// parseAddr decodes sockaddr_in or sockaddr_in6. An unspecified address has
// length 0, as netstack wants it; a v4-mapped one becomes IPv4.
func parseAddr(a *sock.Addr, v6 bool) (fa tcpip.FullAddress, e linux.Errno) {
	b := a.Bytes()
	least, family := linux.SizeofSockaddrIn, linux.AF_INET
	if v6 {
		least, family = linux.SizeofSockaddrIn6-4, linux.AF_INET6 // without sin6_scope_id, as in RFC 2133
	}
	if len(b) < least {
		return fa, linux.EINVAL
	}
	if a.Family() != family {
		return fa, linux.EAFNOSUPPORT
	}
	fa.Port = uint16(b[2])<<8 | uint16(b[3])
	if !v6 {
		if ip := [4]byte(b[4:8]); ip != [4]byte{} {
			fa.Addr = tcpip.AddrFrom4(ip)
		}
		return fa, 0
	}
	ip := [16]byte(b[8:24])
	if ip != [16]byte{} {
		fa.Addr = tcpip.AddrFrom16(ip)
	}
	if len(b) >= linux.SizeofSockaddrIn6 && ip[0] == 0xfe && ip[1]&0xc0 == 0x80 {
		scope, _ := sock.Int(b[24:])
		fa.NIC = tcpip.NICID(scope)
	}
	return fa, 0
}

// mapped reports whether an IPv6 address stands for one of IPv4.
func mapped(a tcpip.Address) bool { return a.Len() == 16 && header.IsV4MappedAddress(a) }

// mapFour makes the IPv6 address that stands for one of IPv4.
func mapFour(fa tcpip.FullAddress) tcpip.FullAddress {
	b := [16]byte{10: 0xff, 11: 0xff}
	copy(b[12:], fa.Addr.AsSlice())
	fa.Addr = tcpip.AddrFrom16(b)
	return fa
}

// connectAddr decodes the address of a datagram socket's connect: one of IPv6
// also takes addresses of IPv4, unless it is for IPv6 only.
func (s *Datagram) connectAddr(a *sock.Addr) (tcpip.FullAddress, linux.Errno) {
	if s.v6 && a.Family() == linux.AF_INET {
		if s.onlyV6() {
			return tcpip.FullAddress{}, linux.EAFNOSUPPORT
		}
		fa, e := parseAddr(a, false)
		return mapFour(fa), e
	}
	fa, e := parseAddr(a, s.v6)
	if e == 0 && mapped(fa.Addr) && s.onlyV6() {
		e = linux.ENETUNREACH
	}
	if s.v6 && fa.Addr.Len() == 0 {
		fa.Addr = header.IPv6Loopback
		if own, err := s.ep.Load().GetLocalAddress(); err == nil && (own.Addr.Len() == 4 || mapped(own.Addr)) {
			fa.Addr = loopback4
			fa = mapFour(fa)
		}
	}
	return fa, e
}

// sendAddr decodes the address that a datagram goes to; none for AF_UNSPEC on
// a UDP socket of IPv6, which then sends to its peer.
func (s *Datagram) sendAddr(a *sock.Addr) (to *tcpip.FullAddress, e linux.Errno) {
	udp := s.isUDP()
	var fa tcpip.FullAddress
	switch family := a.Family(); {
	case !udp:
		fa, e = parseAddr(a, s.v6)
		if s.v6 && s.Type == linux.SOCK_RAW && fa.Port != 0 { // the port is a protocol
			if int32(fa.Port) != s.Protocol && s.Protocol != linux.IPPROTO_RAW || fa.Port > 255 {
				return nil, linux.EINVAL
			}
		}
	case !s.v6:
		if family == linux.AF_UNSPEC { // as Linux, for old programs
			a.B[0] = linux.AF_INET
		}
		fa, e = parseAddr(a, false)
	case family == linux.AF_UNSPEC:
		return nil, 0
	case family == linux.AF_INET:
		if s.onlyV6() {
			return nil, linux.ENETUNREACH
		}
		fa, e = parseAddr(a, false)
		fa = mapFour(fa)
	case family != linux.AF_INET6:
		return nil, linux.EINVAL
	default:
		if fa, e = parseAddr(a, true); e == 0 && mapped(fa.Addr) && s.onlyV6() {
			e = linux.ENETUNREACH
		}
	}
	if e == 0 && udp && fa.Port == 0 {
		e = linux.EINVAL
	}
	if e == 0 && fa.Addr.Len() == 16 && s.shunned(&fa) {
		e = linux.ENETUNREACH
	}
	s.byUnicastIf(&fa)
	return &fa, e
}

// shunned reports whether an address is a group's of IPv6 on lo, which has no route to any
// as long as nobody adds one.
func (s *Datagram) shunned(fa *tcpip.FullAddress) bool {
	if !header.IsV6MulticastAddress(fa.Addr) {
		return false
	}
	nic := fa.NIC
	if nic == 0 {
		nic = tcpip.NICID(s.Opt.BindToDevice.Load())
	}
	if nic == 0 {
		s.mu.Lock()
		nic = tcpip.NICID(s.ip.mcastIf)
		s.mu.Unlock()
	}
	return nic == LoopbackNIC && !slices.ContainsFunc(s.net.Routes(), func(r tcpip.Route) bool {
		return r.NIC == nic && r.Destination.Prefix() > 0 && r.Destination.Contains(fa.Addr)
	})
}

// byUnicastIf names the interface for an address that names none.
func (s *Datagram) byUnicastIf(fa *tcpip.FullAddress) {
	i := s.unicastIf.Load()
	if i == 0 || fa.NIC != 0 || s.Opt.BindToDevice.Load() != 0 {
		return
	}
	if a := unmap(fa.Addr); !header.IsV4MulticastAddress(a) && !header.IsV6MulticastAddress(a) {
		fa.NIC = tcpip.NICID(i)
	}
}

// unmap turns a v4-mapped address into IPv4.
func unmap(a tcpip.Address) tcpip.Address {
	if a.Len() == 16 && header.IsV4MappedAddress(a) {
		b := a.As16()
		return tcpip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// putAddr encodes an address for a socket of the family.
func putAddr(a *sock.Addr, fa tcpip.FullAddress, v6 bool) {
	if !v6 {
		var b [linux.SizeofSockaddrIn]byte
		b[0] = linux.AF_INET
		b[2], b[3] = byte(fa.Port>>8), byte(fa.Port)
		if fa.Addr.Len() == 4 {
			ip := fa.Addr.As4()
			copy(b[4:], ip[:])
		}
		a.Set(b[:])
		return
	}
	var b [linux.SizeofSockaddrIn6]byte
	b[0] = linux.AF_INET6
	b[2], b[3] = byte(fa.Port>>8), byte(fa.Port)
	switch fa.Addr.Len() {
	case 4:
		b[18], b[19] = 0xff, 0xff
		ip := fa.Addr.As4()
		copy(b[20:], ip[:])
	case 16:
		ip := fa.Addr.As16()
		copy(b[8:], ip[:])
		if ip[0] == 0xfe && ip[1]&0xc0 == 0x80 {
			sock.PutInt(b[24:], int32(fa.NIC))
		}
	}
	a.Set(b[:])
}
