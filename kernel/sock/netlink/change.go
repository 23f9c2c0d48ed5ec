package netlink

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/wait"
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
func (w *builder) change(c *kern.Ctx, typ, flags uint16, body []byte) linux.Errno {
	switch typ {
	case linux.RTM_NEWADDR, linux.RTM_DELADDR:
		return w.changeAddress(typ, flags, body)
	case linux.RTM_NEWROUTE, linux.RTM_DELROUTE:
		return w.changeRoute(typ, flags, body)
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
	if !ok {
		a, ok = at.address(linux.IFA_ADDRESS, family)
		ok = ok && (family == linux.AF_INET6 || typ == linux.RTM_DELADDR)
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
	own := tcpip.AddressWithPrefix{Address: a, PrefixLen: prefix}
	if typ == linux.RTM_DELADDR {
		own, ok = n.TakeAddress(i.Index, a)
		if !ok {
			return linux.EADDRNOTAVAIL
		}
	} else if e := n.GiveAddress(i.Index, own); e != 0 {
		if e == linux.EEXIST && flags&linux.NLM_F_REPLACE != 0 && flags&linux.NLM_F_EXCL == 0 {
			return 0
		}
		return e
	}
	group := linux.RTNLGRP_IPV4_IFADDR
	if family == linux.AF_INET6 {
		group = linux.RTNLGRP_IPV6_IFADDR
	}
	w.announce(group, typ, func(x *builder) { x.address(i, own, family) })
	return 0
}

// changeRoute is RTM_NEWROUTE and RTM_DELROUTE.
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
	if r.Destination.ID() != dst {
		return linux.EINVAL
	}
	r.Gateway, _ = at.address(linux.RTA_GATEWAY, family)
	if r.NIC != 0 && n.InterfaceByIndex(int32(r.NIC)) == nil {
		return linux.ENODEV
	}
	var e linux.Errno
	if typ == linux.RTM_DELROUTE {
		e = n.TakeRoute(&r)
	} else {
		e = n.GiveRoute(&r, flags&linux.NLM_F_REPLACE != 0)
	}
	if e != 0 {
		return e
	}
	group := linux.RTNLGRP_IPV4_ROUTE
	if family == linux.AF_INET6 {
		group = linux.RTNLGRP_IPV6_ROUTE
	}
	w.announce(group, typ, func(x *builder) { x.route(r, family) })
	return 0
}

// changeLink is RTM_NEWLINK, RTM_SETLINK and RTM_DELLINK. Interfaces are neither made nor
// taken away: what changes nothing succeeds.
func (w *builder) changeLink(typ uint16, body []byte) linux.Errno {
	i, e := w.s.find(body)
	if e != 0 {
		return e
	}
	flags, change := binary.LittleEndian.Uint32(body[8:]), binary.LittleEndian.Uint32(body[12:])
	if flags != 0 && change == 0 {
		change = ^uint32(0)
	}
	at := parseAttributes(body[linux.SizeofIfInfomsg:])
	mtu := at.u32(linux.IFLA_MTU)
	const mayChange = linux.IFF_UP | linux.IFF_MULTICAST
	switch name, has := at[linux.IFLA_IFNAME]; {
	case typ == linux.RTM_DELLINK,
		(flags^i.Flags())&change&mayChange != 0,
		mtu != 0 && int(mtu) != i.MTU,
		has && string(name) != i.Name && string(name) != i.Name+"\x00":
		return linux.EOPNOTSUPP
	}
	return 0
}

// announce tells the members of a group of a change: build writes the message.
func (w *builder) announce(group int, typ uint16, build func(*builder)) {
	x := &builder{s: w.s, seq: w.seq}
	build(x)
	if len(x.b) == 0 {
		return
	}
	binary.LittleEndian.PutUint16(x.b[4:], typ)
	for _, s := range members(linux.NETLINK_ROUTE, group) {
		if s.in.Append(x.b, int(s.Opt.RcvBuf.Load())) != 0 && !s.has(linux.NETLINK_NO_ENOBUFS) {
			s.NoteError(linux.ENOBUFS)
		}
		s.Q.Notify(wait.In | wait.RdNorm)
	}
}

// members returns the sockets of a protocol that belong to a group.
func members(protocol int32, group int) (out []*Sock) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.list {
		if s.Protocol == protocol && s.groups.Load()>>(group-1)&1 != 0 {
			out = append(out, s)
		}
	}
	return out
}

// lookup answers RTM_GETROUTE about one address.
func (w *builder) lookup(c *kern.Ctx, body []byte) linux.Errno {
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
	kind, flags := byte(linux.RTN_UNICAST), uint32(linux.RTM_F_CLONED)
	if p.Local {
		kind, flags = linux.RTN_LOCAL, flags|linux.RTCF_LOCAL
	}
	w.b = append(w.b, family, bits, 0, 0, linux.RT_TABLE_MAIN, 0, linux.RT_SCOPE_UNIVERSE, kind)
	w.u32(flags)
	w.attrU32(linux.RTA_TABLE, linux.RT_TABLE_MAIN)
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
