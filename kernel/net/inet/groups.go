package inet

import (
	"cmp"
	"slices"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// membership is a group that a socket has joined on an interface.
type membership struct {
	nic  tcpip.NICID
	addr tcpip.Address
	at   uint64 // orders them by age

	include bool            // only the sources are heard, otherwise all but them
	sources []tcpip.Address // in the order in which they were named; immutable
}

// memberships counts those that there ever were.
var memberships atomic.Uint64

// groupNIC returns the interface on which a request joins or leaves a group, as the
// endpoint finds it, or 0. The endpoint is then told of that one: the socket's list and
// the endpoint's agree even if a route changes in between.
func (s *inetSock) groupNIC(m tcpip.MembershipOption) tcpip.NICID {
	proto := header.IPv4ProtocolNumber
	if m.MulticastAddr.Len() == 16 {
		proto = header.IPv6ProtocolNumber
	}
	switch {
	case !m.InterfaceAddr.Unspecified():
		return s.net.Stack.CheckLocalAddress(m.NIC, proto, m.InterfaceAddr)
	case m.NIC != 0:
		return m.NIC
	}
	r, err := s.net.Stack.FindRoute(0, tcpip.Address{}, m.MulticastAddr, proto, false)
	if err != nil {
		return 0
	}
	defer r.Release()
	return r.NICID()
}

// Group is a multicast group that an interface is in.
type Group struct {
	Addr  tcpip.Address
	Users int // sockets, and the stack itself

	Sources []Source // that sockets name, in the order in which they did

	at uint64 // the age of its oldest user; 0 is the stack
}

// Source is a source of a group that sockets want (Included) or do not.
type Source struct {
	Addr               tcpip.Address
	Included, Excluded int // sockets
}

// name counts a membership's sources.
func (g *Group) name(m *membership) {
	for _, a := range m.sources {
		k := slices.IndexFunc(g.Sources, func(x Source) bool { return x.Addr == a })
		if k < 0 {
			k = len(g.Sources)
			g.Sources = append(g.Sources, Source{Addr: a})
		}
		if m.include {
			g.Sources[k].Included++
		} else {
			g.Sources[k].Excluded++
		}
	}
}

// Groups returns the groups of IPv4 or of IPv6 that an interface is in, the newest first.
func (n *Net) Groups(i *Interface, six bool) (all []Group) {
	join := func(m membership) {
		k := slices.IndexFunc(all, func(g Group) bool { return g.Addr == m.addr })
		if k < 0 {
			k = len(all)
			all = append(all, Group{Addr: m.addr, at: m.at})
		}
		all[k].Users++
		all[k].at = min(all[k].at, m.at)
		all[k].name(&m)
	}
	for _, addr := range n.ownGroups(i, six) {
		join(membership{addr: addr})
	}
	var joined []membership
	for _, s := range n.all.list() {
		s.mu.Lock()
		joined = append(joined, s.ip.joined...)
		s.mu.Unlock()
	}
	slices.SortFunc(joined, func(a, b membership) int { return cmp.Compare(a.at, b.at) })
	for _, x := range joined {
		if in, err := n.Stack.IsInGroup(x.nic, x.addr); x.nic == tcpip.NICID(i.Index) && (x.addr.Len() == 16) == six && err == nil && in {
			join(x)
		}
	}
	slices.SortStableFunc(all, func(a, b Group) int { return cmp.Compare(b.at, a.at) })
	return all
}

// allNodesWithin is ff01::1.
var allNodesWithin = tcpip.AddrFrom16([16]byte{0: 0xff, 1: 0x01, 15: 1})

// ownGroups returns what the stack has joined itself: the groups of all hosts, of
// routers where it forwards, and of those who look for one of its addresses of IPv6.
func (n *Net) ownGroups(i *Interface, six bool) (all []tcpip.Address) {
	nic, proto := tcpip.NICID(i.Index), header.IPv4ProtocolNumber
	hosts, routers := header.IPv4AllSystems, []tcpip.Address{header.IPv4AllRoutersGroup}
	if six {
		proto, hosts = header.IPv6ProtocolNumber, header.IPv6AllNodesMulticastAddress
		routers = []tcpip.Address{header.IPv6AllRoutersSiteLocalMulticastAddress, header.IPv6AllRoutersLinkLocalMulticastAddress,
			header.IPv6AllRoutersInterfaceLocalMulticastAddress}
		for _, a := range n.Addresses(i.Index) {
			if a.Address.Len() == 16 && !i.Loopback {
				all = append(all, header.SolicitedNodeAddr(a.Address))
			}
		}
	}
	if on, err := n.Stack.NICForwarding(nic, proto); err == nil && on {
		all = append(all, routers...)
	}
	all = append(all, hosts)
	all = slices.DeleteFunc(all, func(a tcpip.Address) bool {
		in, err := n.Stack.IsInGroup(nic, a)
		return err != nil || !in
	})
	if six && slices.Contains(all, hosts) { // what Linux counts as joined, too: the group within the machine
		all = append(all, allNodesWithin)
	}
	return all
}
