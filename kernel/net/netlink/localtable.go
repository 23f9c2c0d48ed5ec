package netlink

import (
	"bytes"
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// The table "local". netstack keeps no such routes: it knows its addresses. As Linux
// shows them they follow from the interfaces' addresses.

// multicast6 is ff00::.
var multicast6 = tcpip.AddrFrom16([16]byte{0: 0xff})

// localRoute is a route of that table.
type localRoute struct {
	family, prefix, kind, scope byte
	dst, from                   tcpip.Address
	metric                      uint32
	index                       int32
}

// localRoutes returns those of a family, in the order of their destinations.
func localRoutes(n *inet.Net, family byte) (list []localRoute) {
	for _, i := range n.Interfaces() {
		multicast := false
		for _, a := range n.Addresses(i.Index) {
			switch {
			case a.Address.Len() == 4 && family == linux.AF_INET:
				list = append(list, local4(n, i, a)...)
			case a.Address.Len() == 16 && family == linux.AF_INET6:
				list = append(list, localRoute{family: family, prefix: 128, kind: linux.RTN_LOCAL, dst: a.Address, index: i.Index})
				multicast = !i.Loopback
			}
		}
		if multicast {
			list = append(list, localRoute{family: family, prefix: 8, kind: linux.RTN_MULTICAST, dst: multicast6, metric: 256, index: i.Index})
		}
	}
	slices.SortStableFunc(list, func(a, b localRoute) int {
		if c := bytes.Compare(a.dst.AsSlice(), b.dst.AsSlice()); c != 0 {
			return c
		}
		return int(b.prefix) - int(a.prefix)
	})
	return slices.CompactFunc(list, func(a, b localRoute) bool { return a == b })
}

// local4 returns the routes that an address of IPv4 makes.
func local4(n *inet.Net, i *inet.Interface, a tcpip.AddressWithPrefix) (list []localRoute) {
	flags := n.AddressFlags(i, a)
	from, subnet := a.Address, a.Subnet()
	if flags&linux.IFA_F_SECONDARY != 0 {
		for _, x := range n.Addresses(i.Index) {
			if x.PrefixLen == a.PrefixLen && x.Subnet() == subnet {
				from = x.Address
				break
			}
		}
	}
	metric := uint32(0)
	add := func(dst tcpip.Address, prefix int, kind, scope byte) {
		list = append(list, localRoute{linux.AF_INET, byte(prefix), kind, scope, dst, from, metric, i.Index})
	}
	add(a.Address, 32, linux.RTN_LOCAL, linux.RT_SCOPE_HOST)
	if !i.Up() {
		return list
	}
	if b, ok := n.Broadcast(i, a); ok && b != header.IPv4Broadcast {
		add(b, 32, linux.RTN_BROADCAST, linux.RT_SCOPE_LINK)
	}
	if flags&linux.IFA_F_SECONDARY != 0 || a.PrefixLen == 32 || subnet.ID().As4()[0] == 0 {
		return list
	}
	if i.Loopback && flags&linux.IFA_F_NOPREFIXROUTE == 0 {
		metric = n.AddressNoteOf(i.Index, a.Address).Metric
		add(subnet.ID(), a.PrefixLen, linux.RTN_LOCAL, linux.RT_SCOPE_HOST)
		metric = 0
	}
	if a.PrefixLen < 31 {
		add(subnet.Broadcast(), 32, linux.RTN_BROADCAST, linux.RT_SCOPE_LINK)
	}
	return list
}

// local writes the message about one.
func (w *builder) local(r localRoute) {
	w.begin(linux.RTM_NEWROUTE)
	w.b = append(w.b, r.family, r.prefix, 0, 0, linux.RT_TABLE_LOCAL, linux.RTPROT_KERNEL, r.scope, r.kind)
	w.u32(0)
	w.attrU32(linux.RTA_TABLE, linux.RT_TABLE_LOCAL)
	w.attr(linux.RTA_DST, r.dst.AsSlice())
	if r.family == linux.AF_INET6 || r.metric != 0 {
		w.attrU32(linux.RTA_PRIORITY, r.metric)
	}
	if r.family == linux.AF_INET {
		w.attr(linux.RTA_PREFSRC, r.from.AsSlice())
	}
	w.attrU32(linux.RTA_OIF, uint32(r.index))
	w.routeEnd6(r.family)
	w.end()
}

// dumpRoutes lists the routes of a family, or of all with 0. With
// NETLINK_GET_STRICT_CHK a request may name a table.
func (w *builder) dumpRoutes(body []byte) linux.Errno {
	table := uint32(0)
	if w.s.has(linux.NETLINK_GET_STRICT_CHK) && len(body) >= linux.SizeofRtMsg {
		table = uint32(body[4])
		if t := parseAttributes(body[linux.SizeofRtMsg:]).u32(linux.RTA_TABLE); t != 0 {
			table = t
		}
	}
	if table != 0 && table != linux.RT_TABLE_MAIN && table != linux.RT_TABLE_LOCAL {
		if body[0] == 0 {
			return 0
		}
		return linux.ENOENT
	}
	for _, family := range []byte{linux.AF_INET, linux.AF_INET6} {
		if body[0] != 0 && body[0] != family {
			continue
		}
		if table != linux.RT_TABLE_LOCAL {
			for _, r := range w.net.SortedRoutes() {
				w.route(r, family)
			}
		}
		if table != linux.RT_TABLE_MAIN {
			for _, r := range localRoutes(w.net, family) {
				w.local(r)
			}
		}
	}
	return 0
}
