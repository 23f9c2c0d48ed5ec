package netlink

import (
	"bytes"
	"cmp"
	"encoding/binary"
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

// madeBy returns the routes that an address makes and no other of its interface does.
func madeBy(n *inet.Net, i *inet.Interface, a tcpip.AddressWithPrefix) (list []localRoute) {
	if a.Address.Len() == 16 {
		return []localRoute{{family: linux.AF_INET6, prefix: 128, kind: linux.RTN_LOCAL, dst: a.Address, index: i.Index}}
	}
	list = local4(n, i, a)
	for _, x := range n.Addresses(i.Index) {
		if x.Address.Len() != 4 || x == a {
			continue
		}
		others := local4(n, i, x)
		list = slices.DeleteFunc(list, func(r localRoute) bool { return slices.Contains(others, r) })
	}
	return list
}

// announceLocal tells of the routes of the table local that come or go with an address. It
// comes first and goes last.
func announceLocal(n *inet.Net, ev inet.Event) {
	group := linux.RTNLGRP_IPV4_ROUTE
	if ev.Address.Address.Len() == 16 {
		group = linux.RTNLGRP_IPV6_ROUTE
	}
	listeners := members(linux.NETLINK_ROUTE, group)
	if len(listeners) == 0 {
		return
	}
	list := madeBy(n, ev.Interface, ev.Address)
	typ := uint16(linux.RTM_NEWROUTE)
	if ev.Type == linux.RTM_DELADDR {
		typ = linux.RTM_DELROUTE
		list = append(list[min(1, len(list)):], list[:min(1, len(list))]...)
	}
	for _, r := range list {
		x := &builder{net: n, seq: ev.By.Seq, port: ev.By.Port}
		x.local(r)
		binary.LittleEndian.PutUint16(x.b[4:], typ)
		x.multicast(listeners)
	}
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
	if body[0] > linux.AF_INET6 { // routes of multicast have families of their own, and there are none
		return 0
	}
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

// Route4 is what /proc/net/fib_trie tells of a route of IPv4.
type Route4 struct {
	Key                 uint32
	Prefix, Scope, Type byte
}

// Routes4 returns the routes of the tables main and local, by destination, of one the longest
// prefix first. Linux keeps the two as one as long as nobody adds a rule.
func Routes4(n *inet.Net) (list []Route4) {
	key := func(a tcpip.Address) uint32 { return binary.BigEndian.Uint32(a.AsSlice()) }
	for _, r := range localRoutes(n, linux.AF_INET) {
		list = append(list, Route4{key(r.dst), r.prefix, r.scope, r.kind})
	}
	for _, r := range n.Routes() {
		i, x := n.InterfaceByIndex(int32(r.NIC)), n.NoteOf(&r)
		if dst := r.Destination.ID(); dst.Len() == 4 && (i == nil || !i.Loopback || x.Proto != linux.RTPROT_KERNEL) {
			list = append(list, Route4{key(dst), byte(r.Destination.Prefix()), x.Scope, inet.TypeOf(&r)})
		}
	}
	slices.SortStableFunc(list, func(a, b Route4) int {
		if c := cmp.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return int(b.Prefix) - int(a.Prefix)
	})
	return list
}

// Route6 is what /proc/net/ipv6_route tells of a route.
type Route6 struct {
	Dst    [16]byte
	Prefix byte
	Via    [16]byte
	Metric uint32
	Flags  uint32 // RTF_*
	Index  int32
}

// Flags of routes of IPv6, and the metric of one that there is not.
const (
	rtfUp, rtfGateway    = 0x1, 0x2
	rtfReject, rtfNoNext = 0x200, 0x200000
	rtfLocal             = 0x80000000
	nowhereMetric        = 0xffffffff
)

// Routes6 returns the routes of the table main or local, as Linux walks through it: the
// longer prefixes before those that contain them.
func Routes6(n *inet.Net, local bool) (list []Route6) {
	byDefault := false
	if local {
		for _, r := range localRoutes(n, linux.AF_INET6) {
			x := Route6{Dst: r.dst.As16(), Prefix: r.prefix, Metric: r.metric, Flags: rtfUp, Index: r.index}
			if r.kind == linux.RTN_LOCAL {
				x.Flags |= rtfNoNext | rtfLocal
			}
			list = append(list, x)
		}
	} else {
		for _, r := range n.Routes() {
			dst, note := r.Destination.ID(), n.NoteOf(&r)
			if dst.Len() != 16 || dst == header.IPv6Loopback {
				continue
			}
			x := Route6{Dst: dst.As16(), Prefix: byte(r.Destination.Prefix()), Metric: note.Metric, Flags: rtfUp, Index: int32(r.NIC)}
			byDefault = byDefault || x.Prefix == 0
			if r.Gateway.Len() == 16 {
				x.Via, x.Flags = r.Gateway.As16(), x.Flags|rtfGateway
			}
			if r.NIC < 0 {
				x.Flags, x.Index = x.Flags|rtfReject|rtfNoNext, inet.LoopbackNIC
			}
			list = append(list, x)
		}
	}
	if !byDefault {
		list = append(list, Route6{Metric: nowhereMetric, Flags: rtfReject | rtfNoNext, Index: inet.LoopbackNIC})
	}
	slices.SortStableFunc(list, func(a, b Route6) int {
		shorter := min(a.Prefix, b.Prefix)
		x := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom16(a.Dst), PrefixLen: int(shorter)}.Subnet()
		if x.Contains(tcpip.AddrFrom16(b.Dst)) {
			return int(b.Prefix) - int(a.Prefix)
		}
		return bytes.Compare(a.Dst[:], b.Dst[:])
	})
	return list
}
