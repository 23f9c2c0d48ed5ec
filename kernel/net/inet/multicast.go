package inet

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// isMulticast reports whether an option is about groups and their interfaces.
func isMulticast(level, name int32) bool {
	switch {
	case name >= linux.MCAST_JOIN_GROUP && name <= linux.MCAST_MSFILTER:
		return true
	case level == linux.IPPROTO_IPV6:
		return name == linux.IPV6_ADD_MEMBERSHIP || name == linux.IPV6_DROP_MEMBERSHIP ||
			name == linux.IPV6_JOIN_ANYCAST || name == linux.IPV6_LEAVE_ANYCAST
	}
	return name == linux.IP_MULTICAST_IF || name >= linux.IP_ADD_MEMBERSHIP && name <= linux.IP_MSFILTER
}

// Lengths of the structures that name a group and a source.
const (
	sizeofMreqSource     = 12
	sizeofMsfilter       = 16
	sizeofGroupReq       = 136
	sizeofGroupSourceReq = 264
	sizeofGroupFilter    = 144
	sizeofStorage        = 128
)

// setMulticast sets an option of which isMulticast is true; called with mu held.
func (s *inetSock) setMulticast(ep tcpip.Endpoint, level, name int32, val []byte) linux.Errno {
	stream := s.Type == linux.SOCK_STREAM
	switch name {
	case linux.MCAST_JOIN_GROUP, linux.MCAST_LEAVE_GROUP:
		return s.setGroup(ep, level, val, name == linux.MCAST_JOIN_GROUP)
	case linux.MCAST_JOIN_SOURCE_GROUP, linux.MCAST_LEAVE_SOURCE_GROUP, linux.MCAST_BLOCK_SOURCE, linux.MCAST_UNBLOCK_SOURCE:
		return s.setGroupSource(ep, level, name, val)
	case linux.MCAST_MSFILTER:
		return s.setGroupSources(ep, level, val)
	}
	if level == linux.IPPROTO_IPV6 {
		return s.setMulticast6(ep, name, val)
	}
	switch name {
	case linux.IP_MULTICAST_IF:
		if stream {
			return linux.EINVAL
		}
		return s.setMulticastIf(ep, val)
	case linux.IP_ADD_MEMBERSHIP, linux.IP_DROP_MEMBERSHIP:
		if stream {
			return linux.EPROTO
		}
	case linux.IP_MSFILTER:
		return s.setSources(ep, val)
	default:
		return s.setMreqSource(ep, name, val)
	}
	if len(val) < linux.SizeofIPMreq {
		return linux.EINVAL
	}
	m := tcpip.MembershipOption{MulticastAddr: tcpip.AddrFrom4([4]byte(val))}
	if [4]byte(val[4:8]) != [4]byte{} {
		m.InterfaceAddr = tcpip.AddrFrom4([4]byte(val[4:8]))
	}
	if len(val) >= linux.SizeofIPMreqn {
		nic, _ := sock.Int(val[8:])
		m.NIC = tcpip.NICID(nic)
	}
	return s.member(ep, m, name == linux.IP_ADD_MEMBERSHIP)
}

// setMulticast6 sets an option about groups at IPPROTO_IPV6.
func (s *inetSock) setMulticast6(ep tcpip.Endpoint, name int32, val []byte) linux.Errno {
	switch {
	case len(val) < linux.SizeofIPv6Mreq:
		return linux.EINVAL
	case name == linux.IPV6_JOIN_ANYCAST || name == linux.IPV6_LEAVE_ANYCAST:
		return linux.ENOPROTOOPT
	case s.Type == linux.SOCK_STREAM:
		return linux.EPROTO
	}
	nic, _ := sock.Int(val[16:])
	m := tcpip.MembershipOption{NIC: tcpip.NICID(nic), MulticastAddr: tcpip.AddrFrom16([16]byte(val))}
	return s.member(ep, m, name == linux.IPV6_ADD_MEMBERSHIP)
}

// setGroup joins or leaves a group that a struct group_req names.
func (s *inetSock) setGroup(ep tcpip.Endpoint, level int32, val []byte, join bool) linux.Errno {
	if len(val) < sizeofGroupReq {
		return linux.EINVAL
	}
	nic, _ := sock.Int(val)
	var a sock.Addr
	a.Set(val[8:sizeofGroupReq])
	fa, e := parseAddr(&a, level == linux.IPPROTO_IPV6)
	switch {
	case e == linux.EAFNOSUPPORT && level == linux.IPPROTO_IPV6:
		return linux.EADDRNOTAVAIL
	case e != 0:
		return linux.EINVAL
	case s.Type == linux.SOCK_STREAM:
		return linux.EPROTO
	}
	return s.member(ep, tcpip.MembershipOption{NIC: tcpip.NICID(nic), MulticastAddr: fa.Addr}, join)
}

// setMulticastIf is IP_MULTICAST_IF.
func (s *inetSock) setMulticastIf(ep tcpip.Endpoint, val []byte) linux.Errno {
	if len(val) < 4 {
		return linux.EINVAL
	}
	o := tcpip.MulticastInterfaceOption{}
	addr := val[:4]
	if len(val) >= linux.SizeofIPMreq {
		addr = val[4:8]
	}
	if len(val) >= linux.SizeofIPMreqn {
		nic, _ := sock.Int(val[8:])
		o.NIC = tcpip.NICID(nic)
	}
	if [4]byte(addr) != [4]byte{} {
		o.InterfaceAddr = tcpip.AddrFrom4([4]byte(addr))
	}
	nic := o.NIC
	switch {
	case nic != 0:
		if s.net.InterfaceByIndex(int32(nic)) == nil {
			return linux.EADDRNOTAVAIL
		}
	case o.InterfaceAddr.Len() != 0:
		if nic = s.net.Stack.CheckLocalAddress(0, header.IPv4ProtocolNumber, o.InterfaceAddr); nic == 0 || o.InterfaceAddr == header.IPv4Broadcast {
			return linux.EADDRNOTAVAIL
		}
	}
	if d := s.Opt.BindToDevice.Load(); d != 0 && nic != 0 && int32(nic) != d {
		return linux.EINVAL
	}
	if e := errno(ep.SetSockOpt(&o)); e != 0 {
		return e
	}
	s.ip.mcastIfAddr = [4]byte(addr)
	return 0
}

// The most groups that a socket joins: igmp_max_memberships, and for IPv6 about what
// Linux's optmem_max has room for.
const (
	maxGroups4 = 20
	maxGroups6 = 400
)

// member joins or leaves a group; called with mu held.
func (s *inetSock) member(ep tcpip.Endpoint, m tcpip.MembershipOption, add bool) linux.Errno {
	if add {
		return s.join(ep, m, false)
	}
	return s.leave(ep, m)
}

// join joins a group, to hear all sources or (include) none yet; called with mu held.
func (s *inetSock) join(ep tcpip.Endpoint, m tcpip.MembershipOption, include bool) linux.Errno {
	have, most, full := &s.ip.groups4, maxGroups4, linux.ENOBUFS
	if m.MulticastAddr.Len() == 16 {
		have, most, full = &s.ip.groups6, maxGroups6, linux.ENOMEM
	}
	nic := s.groupNIC(m)
	if nic != 0 {
		m.NIC, m.InterfaceAddr = nic, tcpip.Address{}
	}
	switch {
	case !header.IsV4MulticastAddress(m.MulticastAddr) && !header.IsV6MulticastAddress(m.MulticastAddr):
		return linux.EINVAL
	case m.NIC != 0 && s.net.InterfaceByIndex(int32(m.NIC)) == nil:
		return linux.ENODEV
	case ep == nil: // a stream
		return linux.EPROTO
	}
	o := tcpip.AddMembershipOption(m)
	switch err := ep.SetSockOpt(&o).(type) {
	case nil:
		if *have == most { // only now, since a group joined twice is another error
			leave := tcpip.RemoveMembershipOption(m)
			ep.SetSockOpt(&leave)
			return full
		}
		*have++
		s.ip.joined = append(s.ip.joined, membership{nic: nic, addr: m.MulticastAddr, at: memberships.Add(1), include: include})
		s.joinedOthers()
		return 0
	case *tcpip.ErrPortInUse:
		return linux.EADDRINUSE
	default:
		if e := errno(err); e != linux.EINVAL {
			return e
		}
		return linux.ENODEV
	}
}

// leave leaves a group; called with mu held.
func (s *inetSock) leave(ep tcpip.Endpoint, m tcpip.MembershipOption) linux.Errno {
	have := &s.ip.groups4
	if m.MulticastAddr.Len() == 16 {
		have = &s.ip.groups6
		if !header.IsV6MulticastAddress(m.MulticastAddr) {
			return linux.EINVAL
		}
	}
	nic := s.groupNIC(m)
	if nic != 0 {
		m.NIC, m.InterfaceAddr = nic, tcpip.Address{}
	}
	if nic == 0 && m.NIC == 0 && m.MulticastAddr.Len() == 4 && m.InterfaceAddr.Unspecified() {
		return linux.ENODEV
	}
	o := tcpip.RemoveMembershipOption(m)
	if ep == nil || ep.SetSockOpt(&o) != nil {
		return linux.EADDRNOTAVAIL // whatever was wrong: the socket has no such group
	}
	*have--
	s.ip.joined = slices.DeleteFunc(s.ip.joined, func(x membership) bool { return x.nic == nic && x.addr == m.MulticastAddr })
	s.joinedOthers()
	return 0
}

// joinedOthers tells of other groups or sources; called with mu held.
func (s *inetSock) joinedOthers() {
	s.net.audience.set(s, slices.Clone(s.ip.joined))
	if s.Type != linux.SOCK_STREAM && (s.rules.Load() != nil || slices.ContainsFunc(s.ip.joined, func(m membership) bool { return m.picks() })) {
		s.regate()
	}
}
