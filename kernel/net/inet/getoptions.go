package inet

import (
	"math"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/net/sock"
)

// noLevel is getsockopt's error at a level that the socket does not have; only
// there do the families differ from a name that the level does not have.
func (s *inetSock) noLevel() linux.Errno {
	if s.v6 {
		return linux.ENOPROTOOPT
	}
	return linux.EOPNOTSUPP
}

// getIP is getsockopt at IPPROTO_IP or IPPROTO_IPV6.
func (s *inetSock) getIP(level, name int32, val []byte) (int, linux.Errno) {
	if !s.hasLevel(level) {
		return 0, s.noLevel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var v int32
	var e linux.Errno
	if i := keptIndex(level, name); i >= 0 {
		v = s.getKept(i)
	} else if f := s.ip.flag(level, name); f != nil {
		v = b2i(*f)
	} else if level == linux.IPPROTO_IPV6 {
		return s.getIPv6(name, val)
	} else {
		switch name {
		case linux.IP_MSFILTER:
			return s.getSources(val)
		case linux.MCAST_MSFILTER:
			return s.getGroupSources(level, val)
		case linux.IP_MULTICAST_IF:
			return copy(val, s.ip.mcastIfAddr[:]), 0
		case linux.IP_OPTIONS:
			return 0, 0
		case linux.IP_PKTOPTIONS:
			if s.Type == linux.SOCK_STREAM {
				return 0, 0
			}
		}
		v, e = s.getIPv4(name)
	}
	if e != 0 {
		return 0, e
	}
	if level == linux.IPPROTO_IPV6 {
		return sock.PutInt(val, v), 0
	}
	return putIP(val, v)
}

// getIPv4 returns an int option at IPPROTO_IP; called with mu held.
func (s *inetSock) getIPv4(name int32) (int32, linux.Errno) {
	o := &s.ip
	switch name {
	case linux.IP_TOS:
		return o.tos, 0
	case linux.IP_TTL:
		if o.ttl < 0 {
			return int32(settings.DefaultTTL.Get()), 0
		}
		return o.ttl, 0
	case linux.IP_MTU_DISCOVER:
		return o.mtuDiscover, 0
	case linux.IP_MULTICAST_TTL:
		return o.mcastTTL, 0
	case linux.IP_HDRINCL:
		return b2i(o.hdrIncl), 0
	case linux.IP_MTU:
		if v := s.pathMTU(); v != 0 {
			return v, 0
		}
		return 0, linux.ENOTCONN
	case linux.IP_PROTOCOL:
		if s.Type == linux.SOCK_RAW {
			return s.Protocol, 0
		}
		var a sock.Addr
		s.self.LocalAddr(&a)
		return int32(a.B[2])<<8 | int32(a.B[3]), 0
	}
	return 0, linux.ENOPROTOOPT
}

// getIPv6 answers getsockopt at IPPROTO_IPV6; called with mu held.
func (s *inetSock) getIPv6(name int32, val []byte) (int, linux.Errno) {
	o := &s.ip
	v := int32(0)
	switch name {
	case linux.IPV6_TCLASS:
		v = o.tclass
	case linux.IPV6_UNICAST_HOPS:
		if v = o.hops; v < 0 {
			v = linux.DefaultTTL
		}
	case linux.IPV6_MULTICAST_HOPS:
		v = o.mcastHops
	case linux.IPV6_MULTICAST_IF:
		v = o.mcastIf
	case linux.IPV6_MTU_DISCOVER:
		v = o.mtuDiscover6
	case linux.IPV6_MTU:
		if v = s.pathMTU(); v == 0 {
			return 0, linux.ENOTCONN
		}
	case linux.IPV6_PATHMTU:
		var b [32]byte
		if len(val) < len(b) {
			return 0, linux.EINVAL
		}
		if v = s.pathMTU(); v == 0 {
			return 0, linux.ENOTCONN
		}
		sock.PutInt(b[28:], v)
		return copy(val, b[:]), 0
	case linux.IPV6_ADDR_PREFERENCES:
		v = preferDefault | preferHome
		if o.kept != nil && o.kept.srcPrefs != 0 {
			v = o.kept.srcPrefs
		}
	case linux.IPV6_ADDRFORM:
		switch {
		case s.Type == linux.SOCK_RAW || s.Protocol == linux.IPPROTO_ICMPV6:
			return 0, linux.ENOPROTOOPT
		case s.self.linuxState() != linux.TCP_ESTABLISHED:
			return 0, linux.ENOTCONN
		}
		v = linux.AF_INET6
	case linux.IPV6_HOPOPTS, linux.IPV6_RTHDRDSTOPTS, linux.IPV6_RTHDR, linux.IPV6_DSTOPTS:
		return 0, 0
	case linux.IPV6_2292PKTOPTIONS:
		if s.Type != linux.SOCK_STREAM {
			return 0, linux.ENOPROTOOPT
		}
		return 0, 0
	case linux.MCAST_MSFILTER:
		return s.getGroupSources(linux.IPPROTO_IPV6, val)
	case linux.IPV6_FLOWLABEL_MGR:
		return 0, linux.EINVAL
	default:
		return 0, linux.ENOPROTOOPT
	}
	return sock.PutInt(val, v), 0
}

// knowsIP reports whether an option at IPPROTO_IP or IPPROTO_IPV6 has a value
// that setsockopt reads.
func (s *inetSock) knowsIP(level, name int32) bool {
	switch {
	case level != linux.IPPROTO_IP && level != linux.IPPROTO_IPV6 || !s.hasLevel(level):
		return false
	case level == linux.IPPROTO_IPV6, keptIndex(level, name) >= 0, s.ip.flag(level, name) != nil, isMulticast(level, name):
		return true
	}
	switch name {
	case linux.IP_TOS, linux.IP_TTL, linux.IP_MTU_DISCOVER, linux.IP_MULTICAST_TTL, linux.IP_HDRINCL,
		linux.IP_OPTIONS, linux.IP_ROUTER_ALERT:
		return true
	}
	return false
}

// NegativeLength answers getsockopt for a length below 0: Linux takes it for a
// great one at IPPROTO_IPV6.
func (s *inetSock) NegativeLength(level int32) (int, linux.Errno) {
	switch {
	case level == linux.SOL_SOCKET, level == s.Protocol && level == linux.IPPROTO_TCP,
		s.Protocol == linux.IPPROTO_UDP && s.Type == linux.SOCK_DGRAM && (level == linux.IPPROTO_UDP || level == linux.SOL_UDPLITE),
		level == linux.IPPROTO_IP && s.hasLevel(level):
		return 0, linux.EINVAL
	case level == linux.IPPROTO_IPV6 && s.v6:
		return 4, 0
	case s.Type == linux.SOCK_RAW && level == linux.SOL_RAW:
		return 0, linux.ENOPROTOOPT
	}
	return 0, s.noLevel()
}

// pathMTU returns the MTU towards the peer; 0 without one.
func (s *inetSock) pathMTU() int32 {
	if t, ok := s.self.(*TCP); ok && t.far.Load() != nil {
		if mtu := s.net.lo.CurrentMTU(); t.hereAddr.Len() == 16 {
			return int32(mtu)
		} else {
			return int32(min(mtu, math.MaxUint16))
		}
	}
	p := s.ep.Load()
	if p == nil {
		return 0
	}
	fa, err := p.GetRemoteAddress()
	if err != nil {
		return 0
	}
	a := unmap(fa.Addr)
	proto := s.netProto()
	if a.Len() == 4 {
		proto = header.IPv4ProtocolNumber
	}
	r, err := s.net.Stack.FindRoute(fa.NIC, tcpip.Address{}, a, proto, false)
	if err != nil {
		return 0
	}
	defer r.Release()
	mtu := int32(r.MTU())
	if i := s.net.InterfaceByIndex(int32(r.NICID())); i != nil {
		mtu = int32(i.CurrentMTU()) // netstack's is without the header
	}
	if a.Len() == 4 {
		mtu = min(mtu, math.MaxUint16)
	}
	return mtu
}
