package inet

import (
	"encoding/binary"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/net/sock"
)

// Sources of multicast groups: a socket that has joined a group may name those whose packets
// it wants, or those whose packets it does not.

// MaxSources4 and MaxSources6 are how many sources a socket may name for a group:
// net.ipv4.igmp_max_msf and net.ipv6.mld_max_msf.
var (
	MaxSources4 = settings.Default(10)
	MaxSources6 = settings.Default(64)
)

// picks reports whether the membership distinguishes sources.
func (m *membership) picks() bool { return m.include || len(m.sources) > 0 }

// hears reports whether packets from a source are wanted.
func (m *membership) hears(from tcpip.Address) bool {
	return slices.Contains(m.sources, from) == m.include
}

// sourceRequest is a request about one source of a group.
type sourceRequest struct {
	group  tcpip.MembershipOption
	source tcpip.Address
	name   int32 // IP_BLOCK_SOURCE and the like
}

// sourceNames maps options with a struct group_source_req to those with a struct
// ip_mreq_source.
var sourceNames = map[int32]int32{
	linux.MCAST_JOIN_SOURCE_GROUP: linux.IP_ADD_SOURCE_MEMBERSHIP, linux.MCAST_LEAVE_SOURCE_GROUP: linux.IP_DROP_SOURCE_MEMBERSHIP,
	linux.MCAST_BLOCK_SOURCE: linux.IP_BLOCK_SOURCE, linux.MCAST_UNBLOCK_SOURCE: linux.IP_UNBLOCK_SOURCE,
}

// setGroupSource is an option with a struct group_source_req.
func (s *inetSock) setGroupSource(ep tcpip.Endpoint, level, name int32, val []byte) linux.Errno {
	if len(val) != sizeofGroupSourceReq {
		return linux.EINVAL
	}
	nic, _ := sock.Int(val)
	six := level == linux.IPPROTO_IPV6
	group, ok := storageAddress(val[8:], six)
	source, ok2 := storageAddress(val[sizeofGroupReq:], six)
	if !ok || !ok2 {
		return linux.EADDRNOTAVAIL
	}
	return s.source(ep, sourceRequest{tcpip.MembershipOption{NIC: tcpip.NICID(nic), MulticastAddr: group}, source, sourceNames[name]})
}

// storageAddress is the address in a struct sockaddr_storage; false for another family.
func storageAddress(b []byte, six bool) (tcpip.Address, bool) {
	family := int32(binary.LittleEndian.Uint16(b))
	if six {
		return tcpip.AddrFrom16([16]byte(b[8:24])), family == linux.AF_INET6
	}
	return tcpip.AddrFrom4([4]byte(b[4:8])), family == linux.AF_INET
}

// setMreqSource is an option with a struct ip_mreq_source.
func (s *inetSock) setMreqSource(ep tcpip.Endpoint, name int32, val []byte) linux.Errno {
	if len(val) != sizeofMreqSource {
		return linux.EINVAL
	}
	r := sourceRequest{tcpip.MembershipOption{MulticastAddr: tcpip.AddrFrom4([4]byte(val))}, tcpip.AddrFrom4([4]byte(val[8:12])), name}
	if [4]byte(val[4:8]) != [4]byte{} {
		r.group.InterfaceAddr = tcpip.AddrFrom4([4]byte(val[4:8]))
	}
	return s.source(ep, r)
}

// source adds a source to those that are wanted or not, or takes it away; called with mu
// held.
func (s *inetSock) source(ep tcpip.Endpoint, r sourceRequest) linux.Errno {
	include := r.name == linux.IP_ADD_SOURCE_MEMBERSHIP || r.name == linux.IP_DROP_SOURCE_MEMBERSHIP
	if r.name == linux.IP_ADD_SOURCE_MEMBERSHIP {
		if e := s.join(ep, r.group, true); e != 0 && e != linux.EADDRINUSE {
			return e
		}
	}
	m, e := s.membership(r.group)
	if e != 0 {
		return e
	}
	if m.sources != nil && m.include != include { // even if none is left of them
		return linux.EINVAL
	}
	m.include = include
	i := slices.Index(m.sources, r.source)
	if r.name == linux.IP_DROP_SOURCE_MEMBERSHIP || r.name == linux.IP_UNBLOCK_SOURCE {
		switch {
		case i < 0:
			s.joinedOthers()
			return linux.EADDRNOTAVAIL
		case include && len(m.sources) == 1: // nobody is heard any more
			return s.member(ep, r.group, false)
		}
		m.sources = slices.Delete(slices.Clone(m.sources), i, i+1) // gates have the old ones
		s.joinedOthers()
		return 0
	}
	switch {
	case i >= 0:
		e = linux.EADDRNOTAVAIL
	case len(m.sources) >= mostSources(r.source), !s.sourcesFit(m, len(m.sources)+1):
		e = linux.ENOBUFS
	default:
		m.sources = append(slices.Clone(m.sources), r.source)
	}
	s.joinedOthers()
	return e
}

func mostSources(a tcpip.Address) int {
	if a.Len() == 4 {
		return int(MaxSources4.Get())
	}
	return int(MaxSources6.Get())
}

// sourcesFit reports whether the socket may keep n sources of a membership: they count as
// its options do.
func (s *inetSock) sourcesFit(m *membership, n int) bool {
	sum := n * m.addr.Len()
	for i := range s.ip.joined {
		if x := &s.ip.joined[i]; x != m {
			sum += len(x.sources) * x.addr.Len()
		}
	}
	return sum <= int(settings.OptmemMax.Get())
}

// membership finds what the socket has joined: EINVAL if it has not.
func (s *inetSock) membership(o tcpip.MembershipOption) (*membership, linux.Errno) {
	four := o.MulticastAddr.Len() == 4
	switch {
	case four && !header.IsV4MulticastAddress(o.MulticastAddr), !four && !header.IsV6MulticastAddress(o.MulticastAddr):
		return nil, linux.EINVAL
	}
	nic := s.groupNIC(o)
	if nic == 0 || s.net.InterfaceByIndex(int32(nic)) == nil {
		return nil, linux.ENODEV
	}
	for i := len(s.ip.joined) - 1; i >= 0; i-- {
		m := &s.ip.joined[i]
		if m.addr == o.MulticastAddr && (m.nic == nic || !four && o.NIC == 0) {
			return m, 0
		}
	}
	return nil, linux.EINVAL
}

// Modes of a list of sources.
const (
	modeExclude = 0
	modeInclude = 1
)

// setSources is IP_MSFILTER with a struct ip_msfilter.
func (s *inetSock) setSources(ep tcpip.Endpoint, val []byte) linux.Errno {
	switch {
	case len(val) < sizeofMsfilter:
		return linux.EINVAL
	case len(val) > int(settings.OptmemMax.Get()):
		return linux.ENOBUFS
	}
	n := binary.LittleEndian.Uint32(val[12:])
	if int64(n) > MaxSources4.Get() {
		return linux.ENOBUFS
	}
	if sizeofMsfilter+4*int(n) > len(val) {
		return linux.EINVAL
	}
	o := tcpip.MembershipOption{MulticastAddr: tcpip.AddrFrom4([4]byte(val))}
	if [4]byte(val[4:8]) != [4]byte{} {
		o.InterfaceAddr = tcpip.AddrFrom4([4]byte(val[4:8]))
	}
	list := make([]tcpip.Address, n)
	for i := range list {
		list[i] = tcpip.AddrFrom4([4]byte(val[sizeofMsfilter+4*i:]))
	}
	return s.replaceSources(ep, o, binary.LittleEndian.Uint32(val[8:]), list)
}

// setGroupSources is MCAST_MSFILTER with a struct group_filter.
func (s *inetSock) setGroupSources(ep tcpip.Endpoint, level int32, val []byte) linux.Errno {
	six := level == linux.IPPROTO_IPV6
	most := MaxSources4.Get()
	if six {
		most = MaxSources6.Get()
	}
	switch {
	case len(val) < sizeofGroupFilter:
		return linux.EINVAL
	case len(val) > int(settings.OptmemMax.Get()):
		return linux.ENOBUFS
	}
	n := binary.LittleEndian.Uint32(val[sizeofGroupReq+4:])
	if int64(n) > most {
		return linux.ENOBUFS
	}
	if sizeofGroupFilter+sizeofStorage*int(n) > len(val) {
		return linux.EINVAL
	}
	nic, _ := sock.Int(val)
	group, ok := storageAddress(val[8:], six)
	list := make([]tcpip.Address, n)
	for i := range list {
		of := true
		list[i], of = storageAddress(val[sizeofGroupFilter+sizeofStorage*i:], six)
		ok = ok && (of || six) // IPv6 does not look
	}
	if !ok && !six {
		return linux.EADDRNOTAVAIL
	}
	return s.replaceSources(ep, tcpip.MembershipOption{NIC: tcpip.NICID(nic), MulticastAddr: group}, binary.LittleEndian.Uint32(val[sizeofGroupReq:]), list)
}

// replaceSources gives a membership other sources; called with mu held.
func (s *inetSock) replaceSources(ep tcpip.Endpoint, o tcpip.MembershipOption, mode uint32, list []tcpip.Address) linux.Errno {
	m, e := s.membership(o)
	switch {
	case e == linux.ENODEV, !header.IsV4MulticastAddress(o.MulticastAddr) && !header.IsV6MulticastAddress(o.MulticastAddr):
		return e
	case mode != modeInclude && mode != modeExclude:
		return linux.EINVAL
	case mode == modeInclude && len(list) == 0: // nobody is to be heard
		return s.member(ep, o, false)
	case e != 0:
		return e
	case !s.sourcesFit(m, len(list)):
		return linux.ENOBUFS
	}
	if len(list) == 0 {
		list = nil
	}
	m.include, m.sources = mode == modeInclude, list
	s.joinedOthers()
	return 0
}

// getSources is getsockopt of IP_MSFILTER: val says of which group, and gets as many sources
// as it says.
func (s *inetSock) getSources(val []byte) (int, linux.Errno) {
	if len(val) < sizeofMsfilter {
		return 0, linux.EINVAL
	}
	o := tcpip.MembershipOption{MulticastAddr: tcpip.AddrFrom4([4]byte(val))}
	if [4]byte(val[4:8]) != [4]byte{} {
		o.InterfaceAddr = tcpip.AddrFrom4([4]byte(val[4:8]))
	}
	m, e := s.membership(o)
	if e == linux.EINVAL && header.IsV4MulticastAddress(o.MulticastAddr) {
		e = linux.EADDRNOTAVAIL
	}
	if e != 0 {
		return 0, e
	}
	room := int64(binary.LittleEndian.Uint32(val[12:]))
	binary.LittleEndian.PutUint32(val[8:], m.mode())
	binary.LittleEndian.PutUint32(val[12:], uint32(len(m.sources)))
	n := sizeofMsfilter
	for i := 0; i < len(m.sources) && int64(i) < room && n+4 <= len(val); i++ {
		n += copy(val[n:], m.sources[i].AsSlice())
	}
	return n, 0
}

// getGroupSources is getsockopt of MCAST_MSFILTER.
func (s *inetSock) getGroupSources(level int32, val []byte) (int, linux.Errno) {
	if len(val) < sizeofGroupFilter {
		return 0, linux.EINVAL
	}
	six := level == linux.IPPROTO_IPV6
	nic, _ := sock.Int(val)
	group, ok := storageAddress(val[8:], six)
	switch {
	case !ok && six:
		return 0, linux.EADDRNOTAVAIL
	case !ok, !six && !header.IsV4MulticastAddress(group), six && !header.IsV6MulticastAddress(group):
		return 0, linux.EINVAL
	}
	i := slices.IndexFunc(s.ip.joined, func(m membership) bool { return m.addr == group && m.nic == tcpip.NICID(nic) })
	if i < 0 {
		return 0, linux.EADDRNOTAVAIL
	}
	m := &s.ip.joined[i]
	room := int64(binary.LittleEndian.Uint32(val[sizeofGroupReq+4:]))
	binary.LittleEndian.PutUint32(val[sizeofGroupReq:], m.mode())
	binary.LittleEndian.PutUint32(val[sizeofGroupReq+4:], uint32(len(m.sources)))
	n := sizeofGroupFilter
	for i := 0; i < len(m.sources) && int64(i) < room && n+sizeofStorage <= len(val); i++ {
		b := val[n : n+sizeofStorage]
		clear(b)
		if six {
			b[0] = linux.AF_INET6
			copy(b[8:], m.sources[i].AsSlice())
		} else {
			b[0] = linux.AF_INET
			copy(b[4:], m.sources[i].AsSlice())
		}
		n += sizeofStorage
	}
	return n, 0
}

func (m *membership) mode() uint32 {
	if m.include {
		return modeInclude
	}
	return modeExclude
}
