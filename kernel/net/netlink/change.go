package netlink

import (
	"encoding/binary"
	"slices"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/inet"
)

// attributes are those of a message by type; of two the last one counts.
type attributes map[uint16][]byte

func parseAttributes(b []byte) attributes {
	m := attributes{}
	for len(b) >= linux.SizeofRtAttr {
		n := int(binary.LittleEndian.Uint16(b))
		if n < linux.SizeofRtAttr || n > len(b) {
			break
		}
		m[binary.LittleEndian.Uint16(b[2:])&^linux.NLA_TYPE_FLAGS] = b[linux.SizeofRtAttr:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	return m
}

// address returns an attribute that is an address of a family.
func (m attributes) address(typ uint16, family byte) (a tcpip.Address, ok bool) {
	b := m[typ]
	switch {
	case family == linux.AF_INET && len(b) >= 4:
		return tcpip.AddrFrom4([4]byte(b)), true
	case family == linux.AF_INET6 && len(b) >= 16:
		return tcpip.AddrFrom16([16]byte(b)), true
	}
	return a, false
}

// u32 returns an attribute that is a number; 0 without.
func (m attributes) u32(typ uint16) uint32 {
	if b := m[typ]; len(b) >= 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// change carries out a request that changes something; it needs CAP_NET_ADMIN.
func (w *builder) change(c *caller.Ctx, typ, flags uint16, body []byte) linux.Errno {
	switch typ {
	case linux.RTM_NEWADDR, linux.RTM_DELADDR:
		return w.changeAddress(typ, flags, body)
	case linux.RTM_NEWROUTE, linux.RTM_DELROUTE:
		return w.changeRoute(typ, flags, body)
	case linux.RTM_NEWRULE, linux.RTM_DELRULE:
		return w.changeRule(typ, flags, body)
	case linux.RTM_NEWNEIGH, linux.RTM_DELNEIGH:
		return w.changeNeighbor(typ, flags, body)
	case linux.RTM_NEWLINK, linux.RTM_SETLINK, linux.RTM_DELLINK:
		return w.changeLink(typ, body)
	}
	return linux.EOPNOTSUPP
}

// changeAddress is RTM_NEWADDR and RTM_DELADDR.
func (w *builder) changeAddress(typ, flags uint16, body []byte) linux.Errno {
	if len(body) < linux.SizeofIfAddrmsg {
		return linux.EINVAL
	}
	n := w.s.net
	family, prefix := body[0], int(body[1])
	at := parseAttributes(body[linux.SizeofIfAddrmsg:])
	a, ok := at.address(linux.IFA_LOCAL, family)
	far, hasFar := at.address(linux.IFA_ADDRESS, family)
	if !ok {
		a, ok = far, hasFar && (family == linux.AF_INET6 || typ == linux.RTM_DELADDR)
	}
	switch {
	case family != linux.AF_INET && family != linux.AF_INET6:
		return linux.EOPNOTSUPP
	case typ == linux.RTM_NEWADDR && (!ok || prefix > a.BitLen()):
		return linux.EINVAL
	}
	i := n.InterfaceByIndex(int32(binary.LittleEndian.Uint32(body[4:])))
	if i == nil {
		return linux.ENODEV
	}
	if typ == linux.RTM_DELADDR {
		if hasFar && !has(n.Addresses(i.Index), tcpip.AddressWithPrefix{Address: a, PrefixLen: prefix}) {
			return linux.EADDRNOTAVAIL
		}
		return n.TakeAddress(w.by(), i, a)
	}
	x, e := w.addressNote(at, family, body[:linux.SizeofIfAddrmsg])
	switch {
	case e != 0:
		return e
	case hasFar && far != a: // the address of a peer
		return linux.EOPNOTSUPP
	}
	with := tcpip.AddressWithPrefix{Address: a, PrefixLen: prefix}
	e = n.GiveAddress(w.by(), i, with, x)
	if e == linux.EEXIST && flags&linux.NLM_F_REPLACE != 0 && flags&linux.NLM_F_EXCL == 0 {
		return n.ChangeLifetime(w.by(), i, with, x)
	}
	return e
}

func has(list []tcpip.AddressWithPrefix, a tcpip.AddressWithPrefix) bool {
	return slices.Contains(list, a)
}

// flags6 are the flags of an address of IPv6 that a program may give.
const flags6 = linux.IFA_F_NODAD | linux.IFA_F_HOMEADDRESS | linux.IFA_F_MANAGETEMPADDR | linux.IFA_F_NOPREFIXROUTE | linux.IFA_F_MCAUTOJOIN

// only6 are the flags that an address of IPv4 cannot have (IPV6ONLY_FLAGS).
const only6 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x100 | 0x800

// addressNote is what a request says of an address beyond the address itself.
func (w *builder) addressNote(at attributes, family byte, head []byte) (x inet.AddressNote, e linux.Errno) {
	x.Flags = uint32(head[2])
	if _, long := at[linux.IFA_FLAGS]; long {
		x.Flags = at.u32(linux.IFA_FLAGS)
	}
	x.Flags &^= linux.IFA_F_PERMANENT | linux.IFA_F_DEPRECATED | linux.IFA_F_SECONDARY
	if x.Metric = at.u32(linux.IFA_RT_PRIORITY); len(at[linux.IFA_PROTO]) > 0 {
		x.Proto = at[linux.IFA_PROTO][0]
	}
	if b := at[linux.IFA_CACHEINFO]; len(b) >= linux.SizeofIfaCacheinfo {
		l := inet.Lifetime{Limited: true, Preferred: binary.LittleEndian.Uint32(b), Valid: binary.LittleEndian.Uint32(b[4:])}
		if l.Valid == 0 || l.Preferred > l.Valid {
			return x, linux.EINVAL
		}
		if x.Life = l; l.Preferred == 0 {
			x.Flags |= linux.IFA_F_DEPRECATED
		}
	}
	if family == linux.AF_INET6 {
		x.Flags &= flags6 | linux.IFA_F_DEPRECATED
		return x, 0
	}
	x.Flags &^= only6
	x.Scope, x.HasScope, x.HasBroadcast = head[3], true, true
	x.Broadcast, _ = at.address(linux.IFA_BROADCAST, family)
	if b := at[linux.IFA_LABEL]; len(b) > 0 {
		x.Label = strings.TrimRight(string(b), "\x00")
	}
	return x, 0
}

// by says that w's request makes a change.
func (w *builder) by() inet.By { return inet.By{Seq: w.seq, Port: w.s.port.Load()} }

// changeRoute is RTM_NEWROUTE and RTM_DELROUTE: of unicast routes in the main table.
func (w *builder) changeRoute(typ, flags uint16, body []byte) linux.Errno {
	if len(body) < linux.SizeofRtMsg {
		return linux.EINVAL
	}
	n := w.s.net
	family, prefix := body[0], int(body[1])
	at := parseAttributes(body[linux.SizeofRtMsg:])
	bits := 32
	if family == linux.AF_INET6 {
		bits = 128
	}
	dst, ok := at.address(linux.RTA_DST, family)
	if !ok {
		dst = tcpip.AddrFromSlice(make([]byte, bits/8))
	}
	switch {
	case family != linux.AF_INET && family != linux.AF_INET6:
		return linux.EOPNOTSUPP
	case prefix > bits || !ok && prefix != 0:
		return linux.EINVAL
	}
	r := tcpip.Route{Destination: tcpip.AddressWithPrefix{Address: dst, PrefixLen: prefix}.Subnet(), NIC: tcpip.NICID(at.u32(linux.RTA_OIF))}
	if family == linux.AF_INET && r.Destination.ID() != dst {
		return linux.EINVAL
	}
	r.Gateway, _ = at.address(linux.RTA_GATEWAY, family)
	r.SourceHint, _ = at.address(linux.RTA_PREFSRC, family)
	x := inet.RouteNote{Metric: at.u32(linux.RTA_PRIORITY), Proto: body[5], Scope: body[6]}
	if typ == linux.RTM_DELROUTE {
		return n.TakeRoute(w.by(), inet.Wanted{Route: r, Type: body[7], Metric: x.Metric, Proto: x.Proto, Scope: deleteScope(family, x.Scope)})
	}
	if e := mainUnicast(at, body); e != 0 {
		return e
	}
	if nic := inet.Nowhere(body[7]); nic != 0 {
		if family == linux.AF_INET && r.NIC != 0 {
			return linux.EINVAL
		}
		r.NIC = nic
	}
	if family == linux.AF_INET6 {
		if x.Scope = linux.RT_SCOPE_UNIVERSE; x.Metric == 0 {
			x.Metric = inet.MetricUser6
		}
	}
	return n.GiveRoute(w.by(), &r, x, flags)
}

// deleteScope is the scope that a route to delete must have.
func deleteScope(family, scope byte) byte {
	if family == linux.AF_INET6 {
		return linux.RT_SCOPE_NOWHERE
	}
	return scope
}

// mainUnicast refuses a route that netstack's table cannot have: of another table or
// kind, with several ways or properties of its own.
func mainUnicast(at attributes, body []byte) linux.Errno {
	table := uint32(body[4])
	if t := at.u32(linux.RTA_TABLE); t != 0 {
		table = t
	}
	_, several := at[linux.RTA_MULTIPATH]
	_, metrics := at[linux.RTA_METRICS]
	_, via := at[linux.RTA_VIA]
	if table != 0 && table != linux.RT_TABLE_MAIN || body[7] != linux.RTN_UNICAST && inet.Nowhere(body[7]) == 0 || body[3] != 0 || several || metrics || via {
		return linux.EOPNOTSUPP
	}
	return 0
}

// changeLink is RTM_NEWLINK, RTM_SETLINK and RTM_DELLINK: an interface goes up or down,
// and its MTU changes. Interfaces come and go with their devices.
func (w *builder) changeLink(typ uint16, body []byte) linux.Errno {
	at := parseAttributes(body[min(linux.SizeofIfInfomsg, len(body)):])
	i, e := w.s.find(body)
	_, kind := at[linux.IFLA_LINKINFO]
	if e == linux.EINVAL && typ == linux.RTM_NEWLINK { // it names none; ip asks so whether there is the request at all
		e = linux.ENODEV
	}
	switch {
	case e == linux.ENODEV && typ == linux.RTM_NEWLINK && kind:
		return linux.EOPNOTSUPP
	case e != 0:
		return e
	case typ == linux.RTM_DELLINK:
		return linux.EOPNOTSUPP
	}
	for _, x := range []struct {
		typ  uint16
		same string
	}{{linux.IFLA_IFNAME, i.Name}, {linux.IFLA_ADDRESS, string(i.MAC[:])}} {
		if v, ok := at[x.typ]; ok && strings.TrimSuffix(string(v), "\x00") != strings.TrimSuffix(x.same, "\x00") {
			return linux.EOPNOTSUPP
		}
	}
	if v, ok := at[linux.IFLA_TXQLEN]; ok && (len(v) < 4 || at.u32(linux.IFLA_TXQLEN) != inet.TxQueueLen) {
		return linux.EOPNOTSUPP
	}
	if _, ok := at[linux.IFLA_MTU]; ok {
		if e := w.s.net.SetMTU(i, int(at.u32(linux.IFLA_MTU))); e != 0 {
			return e
		}
	}
	flags, change := binary.LittleEndian.Uint32(body[8:]), binary.LittleEndian.Uint32(body[12:])
	if flags == 0 && change == 0 {
		return 0
	}
	if change == 0 {
		change = ^uint32(0)
	}
	return w.s.net.SetFlags(i, flags, change)
}

// Announce tells the members of a change's group. An address comes and goes with routes of
// the table local.
func Announce(n *inet.Net, ev inet.Event) {
	announce(n, ev)
	if ev.Type == linux.RTM_NEWADDR || ev.Type == linux.RTM_DELADDR {
		announceLocal(n, ev)
	}
}

func announce(n *inet.Net, ev inet.Event) {
	group, family := linux.RTNLGRP_LINK, byte(0)
	switch six := ev.Address.Address.Len() == 16 || ev.Route.Destination.ID().Len() == 16; {
	case ev.Type == linux.RTM_NEWADDR || ev.Type == linux.RTM_DELADDR:
		if group = linux.RTNLGRP_IPV4_IFADDR; six {
			group = linux.RTNLGRP_IPV6_IFADDR
		}
	case ev.Type == linux.RTM_NEWROUTE || ev.Type == linux.RTM_DELROUTE:
		if group = linux.RTNLGRP_IPV4_ROUTE; six {
			group = linux.RTNLGRP_IPV6_ROUTE
		}
	}
	list := members(linux.NETLINK_ROUTE, group)
	if len(list) == 0 {
		return
	}
	x := &builder{net: n, seq: ev.By.Seq, port: ev.By.Port}
	switch group {
	case linux.RTNLGRP_LINK:
		x.link(n, ev.Interface)
	case linux.RTNLGRP_IPV4_IFADDR, linux.RTNLGRP_IPV6_IFADDR:
		flags := ev.Flags
		if ev.Type == linux.RTM_NEWADDR {
			flags = n.AddressFlags(ev.Interface, ev.Address)
		}
		x.address(ev.Interface, ev.Address, family, flags)
	default:
		x.routeWith(ev.Route, family, ev.Note)
	}
	if len(x.b) == 0 {
		return
	}
	binary.LittleEndian.PutUint16(x.b[4:], ev.Type)
	x.multicast(list)
}

// multicast gives a message to the members of a group.
func (w *builder) multicast(list []*Sock) {
	for _, s := range list {
		if s.in.Append(w.b, int(s.Opt.RcvBuf.Load()), s.Opt.Filter()) != 0 && !s.has(linux.NETLINK_NO_ENOBUFS) {
			s.NoteError(linux.ENOBUFS)
		}
		s.Q.Notify(wait.In | wait.RdNorm)
	}
}

// members returns the sockets of a protocol that belong to a group.
func members(protocol int32, group int) (out []*Sock) {
	for _, s := range all.All() {
		if s.Protocol == protocol && s.groups.Load()>>(group-1)&1 != 0 {
			out = append(out, s)
		}
	}
	return out
}

// lookup answers RTM_GETROUTE about one address.
func (w *builder) lookup(c *caller.Ctx, body []byte) linux.Errno {
	if len(body) < linux.SizeofRtMsg {
		return linux.EINVAL
	}
	family := body[0]
	bits := byte(32)
	switch family {
	case linux.AF_INET:
	case linux.AF_INET6:
		bits = 128
	default:
		return linux.EOPNOTSUPP
	}
	at := parseAttributes(body[linux.SizeofRtMsg:])
	dst, ok := at.address(linux.RTA_DST, family)
	if !ok {
		dst = tcpip.AddrFromSlice(make([]byte, bits/8))
	}
	p, e := w.s.net.PathTo(dst)
	if e != 0 {
		return e
	}
	w.begin(linux.RTM_NEWROUTE)
	kind, flags, table := byte(linux.RTN_UNICAST), uint32(linux.RTM_F_CLONED), byte(linux.RT_TABLE_MAIN)
	if p.Local {
		kind, flags = linux.RTN_LOCAL, flags|linux.RTCF_LOCAL
		if family == linux.AF_INET6 {
			table = linux.RT_TABLE_LOCAL
		}
	}
	w.b = append(w.b, family, bits, 0, 0, table, 0, linux.RT_SCOPE_UNIVERSE, kind)
	w.u32(flags)
	w.attrU32(linux.RTA_TABLE, uint32(table))
	w.attr(linux.RTA_DST, dst.AsSlice())
	w.attrU32(linux.RTA_OIF, uint32(p.Index))
	w.attr(linux.RTA_PREFSRC, p.From.AsSlice())
	if p.Gateway.Len() != 0 {
		w.attr(linux.RTA_GATEWAY, p.Gateway.AsSlice())
	}
	w.attrU32(linux.RTA_UID, c.Cred().UID)
	w.attr(linux.RTA_CACHEINFO, make([]byte, linux.SizeofRtaCacheinfo))
	w.end()
	return 0
}
