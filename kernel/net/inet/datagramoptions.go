package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/net/sock"
)

// SetOpt is setsockopt(2).
func (s *Datagram) SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	switch {
	case level == linux.SOL_SOCKET && (name == linux.SO_TIMESTAMPING || name == linux.SO_TIMESTAMPING_NEW):
		old := s.Opt.Timestamping()
		e := s.setSocket(c, name, val)
		if e == 0 {
			s.setStamping(old)
		}
		return e
	case level == linux.SOL_SOCKET:
		return s.setSocket(c, name, val)
	case s.isChecksum(level, name):
		return s.setChecksum(level, name, val)
	case level == linux.IPPROTO_IP || level == linux.IPPROTO_IPV6:
		return s.setIP(c, level, name, val)
	case s.Type == linux.SOCK_RAW && (level == linux.SOL_RAW || level == linux.IPPROTO_ICMPV6):
		return s.setFilter(level, name, val)
	case s.isUDP() && (level == linux.IPPROTO_UDP || level == linux.SOL_UDPLITE):
		return s.setUDP(c, name, val)
	}
	return linux.ENOPROTOOPT
}

// setUDP is setsockopt at IPPROTO_UDP.
func (s *Datagram) setUDP(c *caller.Ctx, name int32, val []byte) linux.Errno {
	v, e := sock.Int(val)
	if e != 0 {
		return e
	}
	switch name {
	case linux.UDP_CORK:
		return s.setCork(c, v != 0)
	case linux.UDP_NO_CHECK6_TX:
		s.noCheck6[0].Store(v != 0)
	case linux.UDP_NO_CHECK6_RX:
		s.noCheck6[1].Store(v != 0)
	case linux.UDP_SEGMENT:
		if v < 0 || v > 65535 {
			return linux.EINVAL
		}
		s.segment.Store(v)
	case linux.UDP_GRO:
		s.gro.Store(v != 0)
		if t, ok := s.ep.Load().Endpoint.(interface{ SetTrains(bool) }); ok {
			t.SetTrains(v != 0)
		}
	case linux.UDP_ENCAP:
		if v != 0 {
			return linux.ENOPROTOOPT
		}
	default:
		return linux.ENOPROTOOPT
	}
	return 0
}

// getUDP is getsockopt at IPPROTO_UDP.
func (s *Datagram) getUDP(name int32, val []byte) (int, linux.Errno) {
	switch name {
	case linux.UDP_CORK:
		return s.getCork(val)
	case linux.UDP_NO_CHECK6_TX:
		return sock.PutInt(val, b2i(s.noCheck6[0].Load())), 0
	case linux.UDP_NO_CHECK6_RX:
		return sock.PutInt(val, b2i(s.noCheck6[1].Load())), 0
	case linux.UDP_SEGMENT:
		return sock.PutInt(val, s.segment.Load()), 0
	case linux.UDP_GRO:
		return sock.PutInt(val, b2i(s.gro.Load())), 0
	case linux.UDP_ENCAP, udpliteSend, udpliteReceive:
		return sock.PutInt(val, 0), 0
	}
	return 0, linux.ENOPROTOOPT
}

// Options of UDP-Lite, which getsockopt also answers for UDP.
const (
	udpliteSend    = 10
	udpliteReceive = 11
)

// isChecksum reports whether an option is one of raw sockets of IPv6, which
// have them at two levels.
func (s *Datagram) isChecksum(level, name int32) bool {
	return s.v6 && s.Type == linux.SOCK_RAW && (level == linux.IPPROTO_IPV6 || level == linux.SOL_RAW) &&
		(name == linux.IPV6_CHECKSUM || name == linux.IPV6_HDRINCL)
}

// setChecksum is IPV6_CHECKSUM and IPV6_HDRINCL.
func (s *Datagram) setChecksum(level, name int32, val []byte) linux.Errno {
	v, e := sock.Int(val)
	if e != 0 {
		return e
	}
	if name == linux.IPV6_HDRINCL {
		s.mu.Lock()
		s.ip.hdrIncl = v != 0
		s.mu.Unlock()
		s.ep.Load().SocketOptions().SetHeaderIncluded(v != 0)
		return 0
	}
	if s.Protocol == linux.IPPROTO_ICMPV6 { // at SOL_RAW it may be asked for what there is anyway
		if level == linux.IPPROTO_IPV6 || v != icmp6Checksum {
			return linux.EINVAL
		}
		return 0
	}
	if v > 0 && v&1 != 0 {
		return linux.EINVAL
	}
	s.checksum.Store(max(v, -1))
	return errno(s.ep.Load().SetSockOptInt(tcpip.IPv6Checksum, int(max(v, -1))))
}

// icmp6Checksum is where in a message of ICMPv6 its checksum lies.
const icmp6Checksum = 2

func (s *Datagram) getChecksum(name int32, val []byte) (int, linux.Errno) {
	if name == linux.IPV6_HDRINCL {
		s.mu.Lock()
		defer s.mu.Unlock()
		return sock.PutInt(val, b2i(s.ip.hdrIncl)), 0
	}
	if s.Protocol == linux.IPPROTO_ICMPV6 {
		return sock.PutInt(val, icmp6Checksum), 0
	}
	return sock.PutInt(val, s.checksum.Load()), 0
}

// setFilter is ICMP_FILTER and ICMPV6_FILTER of raw sockets.
func (s *Datagram) setFilter(level, name int32, val []byte) linux.Errno {
	switch {
	case s.v6 && level == linux.SOL_RAW && len(val) < 4:
		return linux.EINVAL
	case level == linux.SOL_RAW && name == linux.ICMP_FILTER && !s.v6:
		if s.Protocol != linux.IPPROTO_ICMP {
			return linux.EOPNOTSUPP
		}
		var b [4]byte
		copy(b[:], val)
		v, _ := sock.Int(b[:])
		s.mu.Lock()
		defer s.mu.Unlock()
		s.icmpFilter.Store(uint32(v))
		s.regate()
		return 0
	case level == linux.IPPROTO_ICMPV6 && s.Protocol == linux.IPPROTO_ICMPV6 && s.v6 && name == linux.ICMPV6_FILTER:
		s.mu.Lock()
		defer s.mu.Unlock()
		copy(s.icmp6Filter[:], val)
		var o tcpip.ICMPv6Filter
		for i := range o.DenyType {
			v, _ := sock.Int(s.icmp6Filter[4*i:])
			o.DenyType[i] = uint32(v)
		}
		return errno(s.ep.Load().SetSockOpt(&o))
	}
	return linux.ENOPROTOOPT
}

// getFilter is getsockopt at the levels of setFilter.
func (s *Datagram) getFilter(level, name int32, val []byte) (int, linux.Errno) {
	switch {
	case level == linux.SOL_RAW && name == linux.ICMP_FILTER && !s.v6:
		if s.Protocol != linux.IPPROTO_ICMP {
			return 0, linux.EOPNOTSUPP
		}
		return sock.PutInt(val, int32(s.icmpFilter.Load())), 0
	case level == linux.IPPROTO_ICMPV6 && s.Protocol == linux.IPPROTO_ICMPV6 && s.v6 && name == linux.ICMPV6_FILTER:
		s.mu.Lock()
		defer s.mu.Unlock()
		return copy(val, s.icmp6Filter[:]), 0
	}
	return 0, linux.ENOPROTOOPT
}

// GetOpt is getsockopt(2).
func (s *Datagram) GetOpt(_ *caller.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	switch {
	case level == linux.SOL_SOCKET:
		return s.getSocket(name, val)
	case s.isChecksum(level, name):
		return s.getChecksum(name, val)
	case level == linux.IPPROTO_IP || level == linux.IPPROTO_IPV6:
		return s.getIP(level, name, val)
	case s.isUDP() && (level == linux.IPPROTO_UDP || level == linux.SOL_UDPLITE):
		return s.getUDP(name, val)
	case s.Type == linux.SOCK_RAW && (level == linux.SOL_RAW || level == linux.IPPROTO_ICMPV6 && s.v6):
		return s.getFilter(level, name, val)
	}
	return 0, s.noLevel()
}

// KnowsOption reports whether setsockopt looks at the value of an option at all.
func (s *Datagram) KnowsOption(level, name int32) bool {
	return level == linux.SOL_SOCKET || s.knowsIP(level, name) ||
		s.isUDP() && (level == linux.IPPROTO_UDP || level == linux.SOL_UDPLITE) ||
		s.Type == linux.SOCK_RAW && (level == linux.SOL_RAW && (s.v6 || name == linux.ICMP_FILTER) || level == linux.IPPROTO_ICMPV6 && s.v6)
}
