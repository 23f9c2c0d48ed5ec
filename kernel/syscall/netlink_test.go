package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// request sends a netlink message and notes the kinds and errors of the answers.
func (p *prog) request(what string, fd uint64, typ, flags uint16, body []byte) {
	defer p.cut()()
	b := le.AppendUint32(nil, uint32(16+len(body)))
	b = le.AppendUint16(b, typ)
	b = le.AppendUint16(b, flags)
	b = le.AppendUint32(b, 7)
	b = append(le.AppendUint32(b, 0), body...)
	row := what + ":" + p.brief(linux.SYS_sendto, fd, p.give(b), uint64(len(b)), 0, 0, 0)
	const size = 16384
	buf := p.room(size)
	for range 4 {
		n := p.ask(linux.SYS_recvfrom, fd, buf, size, unix.MSG_DONTWAIT, 0, 0)
		if _, bad := failed(n); bad {
			break
		}
		last := uint16(0)
		for m := p.get(buf, int(n)); len(m) >= 16; {
			length, kind := le.Uint32(m), le.Uint16(m[4:])
			switch {
			case kind == unix.NLMSG_ERROR:
				row += fmt.Sprintf(" error %d", int32(le.Uint32(m[16:])))
			case kind != last:
				row += fmt.Sprintf(" type %d", kind)
			}
			last = kind
			m = m[min(int(length+3)&^3, len(m)):]
		}
	}
	p.note("%s", row)
}

// attr is a netlink attribute.
func attr(typ uint16, data ...byte) []byte {
	b := le.AppendUint16(nil, uint16(4+len(data)))
	b = append(le.AppendUint16(b, typ), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func netlinkRequests(p *prog) {
	p.loopback()
	fd := p.must(linux.SYS_socket, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	const get, dump, ack, create = unix.NLM_F_REQUEST, unix.NLM_F_REQUEST | unix.NLM_F_DUMP, unix.NLM_F_REQUEST | unix.NLM_F_ACK, unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL
	link := func(index int32, flags, change uint32) []byte {
		b := []byte{0, 0, 0, 0}
		return le.AppendUint32(le.AppendUint32(le.AppendUint32(b, uint32(index)), flags), change)
	}
	for _, index := range []int32{0, 1, 99, -1} {
		p.request(fmt.Sprintf("get link %d", index), fd, unix.RTM_GETLINK, get, link(index, 0, 0))
		p.request(fmt.Sprintf("set link %d", index), fd, unix.RTM_SETLINK, ack, link(index, unix.IFF_UP, unix.IFF_UP))
		p.request(fmt.Sprintf("delete link %d", index), fd, unix.RTM_DELLINK, ack, link(index, 0, 0))
	}
	p.request("get link lo", fd, unix.RTM_GETLINK, get, join(link(0, 0, 0), attr(unix.IFLA_IFNAME, 'l', 'o', 0)))
	p.request("get link none", fd, unix.RTM_GETLINK, get, join(link(0, 0, 0), attr(unix.IFLA_IFNAME, 'x', 'x', 0)))
	p.request("short link", fd, unix.RTM_GETLINK, get, []byte{0, 0, 0, 0})
	p.request("mtu", fd, unix.RTM_SETLINK, ack, join(link(1, 0, 0), attr(unix.IFLA_MTU, 0, 8, 0, 0)))
	p.request("mtu too small", fd, unix.RTM_SETLINK, ack, join(link(1, 0, 0), attr(unix.IFLA_MTU, 255, 255, 255, 255)))
	addr := func(prefix byte, index uint32) []byte {
		return le.AppendUint32([]byte{unix.AF_INET, prefix, 0, 0}, index)
	}
	local := attr(unix.IFA_LOCAL, 10, 1, 2, 3)
	for _, a := range []struct {
		name string
		body []byte
	}{{"good", join(addr(24, 1), local)}, {"no interface", join(addr(24, 99), local)}, {"bad prefix", join(addr(33, 1), local)}, {"no address", addr(24, 1)}, {"short address", join(addr(24, 1), attr(unix.IFA_LOCAL, 1, 2))}} {
		p.request("new address "+a.name, fd, unix.RTM_NEWADDR, create, a.body)
		p.request("again "+a.name, fd, unix.RTM_NEWADDR, create, a.body)
		p.request("replace "+a.name, fd, unix.RTM_NEWADDR, ack|unix.NLM_F_REPLACE, a.body)
	}
	route := func(prefix, scope byte) []byte {
		return []byte{unix.AF_INET, prefix, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, scope, unix.RTN_UNICAST, 0, 0, 0, 0}
	}
	dst, oif := attr(unix.RTA_DST, 10, 9, 0, 0), attr(unix.RTA_OIF, 1, 0, 0, 0)
	for _, r := range []struct {
		name string
		body []byte
	}{{"by interface", join(route(16, unix.RT_SCOPE_LINK), dst, oif)}, {"by gateway", join(route(16, 0), attr(unix.RTA_DST, 10, 8, 0, 0), attr(unix.RTA_GATEWAY, 10, 1, 2, 9))},
		{"unreachable gateway", join(route(16, 0), dst, attr(unix.RTA_GATEWAY, 99, 1, 2, 9))}, {"no interface", join(route(16, unix.RT_SCOPE_LINK), dst, attr(unix.RTA_OIF, 99, 0, 0, 0))},
		{"bad prefix", join(route(40, unix.RT_SCOPE_LINK), dst, oif)}, {"nothing", route(16, 0)}} {
		p.request("new route "+r.name, fd, unix.RTM_NEWROUTE, create, r.body)
		p.request("again "+r.name, fd, unix.RTM_NEWROUTE, create, r.body)
	}
	for _, to := range [][]byte{{127, 0, 0, 1}, {10, 9, 1, 1}, {10, 8, 1, 1}, {99, 1, 1, 1}} {
		p.request(fmt.Sprint("route to ", to), fd, unix.RTM_GETROUTE, get, join([]byte{unix.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, attr(unix.RTA_DST, to...)))
	}
	for _, typ := range []uint16{unix.RTM_GETLINK, unix.RTM_GETADDR, unix.RTM_GETROUTE, unix.RTM_GETNEIGH, unix.RTM_GETRULE} {
		for _, family := range []byte{unix.AF_UNSPEC, unix.AF_INET} {
			p.request(fmt.Sprintf("dump %d family %d", typ, family), fd, typ, dump, append([]byte{family}, make([]byte, 15)...))
		}
	}
	for _, r := range [][]byte{join(route(16, unix.RT_SCOPE_LINK), dst, oif), join(route(16, 0), dst), join(route(16, 0), attr(unix.RTA_DST, 7, 7, 0, 0))} {
		p.request("delete route", fd, unix.RTM_DELROUTE, ack, r)
	}
	p.request("delete the other", fd, unix.RTM_DELROUTE, ack, join(route(16, 0), attr(unix.RTA_DST, 10, 8, 0, 0)))
	p.request("mtu again", fd, unix.RTM_SETLINK, ack, join(link(1, 0, 0), attr(unix.IFLA_MTU, 0, 0, 1, 0)))
	p.request("delete address", fd, unix.RTM_DELADDR, ack, join(addr(24, 1), local))
	p.request("delete it again", fd, unix.RTM_DELADDR, ack, join(addr(24, 1), local))
	p.request("unknown", fd, 0x1234, ack, make([]byte, 16))
	p.request("no request", fd, unix.RTM_GETLINK, 0, link(1, 0, 0))
	p.do("short message", linux.SYS_sendto, fd, p.give(make([]byte, 10)), 10, 0, 0, 0)
	p.do("read", linux.SYS_recvfrom, fd, p.room(100), 100, unix.MSG_DONTWAIT, 0, 0)
	nl := func(pid, groups uint32) uint64 { return p.ints(unix.AF_NETLINK, pid, groups) }
	p.do("bind", linux.SYS_bind, fd, nl(0, 1), 12)
	p.do("bind short", linux.SYS_bind, fd, nl(0, 1), 11)
	p.do("bind another", linux.SYS_bind, fd, nl(77777, 0), 12)
	other := p.must(linux.SYS_socket, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	p.do("bind to a number", linux.SYS_bind, other, nl(77777, 0), 12)
	p.do("name", linux.SYS_getsockname, other, p.room(16), p.ints(16))
	p.do("connect", linux.SYS_connect, other, nl(0, 0), 12)
	p.do("listen", linux.SYS_listen, other, 1)
	p.do("accept", linux.SYS_accept, other, 0, 0)
	for _, opt := range []uint64{1, 2, 3, 4, 5, 9, 10, 11, 12, 99} {
		p.note("option %d:%s%s", opt, p.brief(linux.SYS_setsockopt, other, 270, opt, p.ints(1), 4), p.brief(linux.SYS_getsockopt, other, 270, opt, p.room(8), p.ints(4)))
	}
}

func packets(p *prog) {
	p.loopback()
	const all = 0x0300 // ETH_P_ALL in network order
	raw := p.must(linux.SYS_socket, unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, all)
	addr := func(proto uint16, index uint32, n byte) uint64 {
		b := le.AppendUint16(nil, unix.AF_PACKET)
		b = le.AppendUint32(le.AppendUint16(b, proto), index)
		return p.give(append(b, 0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 0))
	}
	p.do("bind short", linux.SYS_bind, raw, addr(all, 1, 6), 10)
	p.do("bind none", linux.SYS_bind, raw, addr(all, 99, 6), 20)
	p.do("bind", linux.SYS_bind, raw, addr(all, 1, 6), 20)
	name := p.room(32)
	p.do("name", linux.SYS_getsockname, raw, name, p.ints(32))
	p.show("it", name, 12)
	frame := append(make([]byte, 12), 8, 0)
	frame = append(frame, make([]byte, 46)...)
	p.do("send", linux.SYS_sendto, raw, p.give(frame), 60, 0, 0, 0)
	p.do("send a short one", linux.SYS_sendto, raw, p.give(frame), 5, 0, 0, 0)
	p.do("send a long one", linux.SYS_sendto, raw, arena, 100000, 0, 0, 0)
	d := p.must(linux.SYS_socket, unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	p.do("send nowhere", linux.SYS_sendto, d, p.give(frame), 20, 0, 0, 0)
	p.do("send to", linux.SYS_sendto, d, p.give(frame[14:]), 40, 0, addr(8, 1, 6), 20)
	p.do("send to none", linux.SYS_sendto, d, p.give(frame[14:]), 40, 0, addr(8, 77, 6), 20)
	buf, from := p.room(200), p.room(32)
	p.do("wait", linux.SYS_poll, p.ints(uint32(raw), 1), 1, 5000)
	for range 5 {
		n := p.do("receive", linux.SYS_recvfrom, raw, buf, 200, unix.MSG_DONTWAIT|unix.MSG_TRUNC, from, p.ints(32))
		if _, bad := failed(n); !bad {
			p.show("from", from, 12)
			p.show("data", buf, 16)
		}
	}
	p.do("connect", linux.SYS_connect, raw, addr(all, 1, 6), 20)
	p.do("listen", linux.SYS_listen, raw, 1)
	p.do("peer", linux.SYS_getpeername, raw, name, p.ints(32))
	for opt := range uint64(25) {
		if opt == 4 || opt == 6 || opt == 18 {
			continue // counters, and FANOUT, which takes an argument of its own
		}
		for _, v := range []uint32{1, 0, 99} {
			val, size := p.room(32), p.ints(4)
			p.note("option %d %d:%s%s %d", opt, v, p.brief(linux.SYS_setsockopt, d, unix.SOL_PACKET, opt, p.ints(v, 0, 0, 0), 4),
				p.brief(linux.SYS_getsockopt, d, unix.SOL_PACKET, opt, val, size), p.u32(val))
		}
	}
	mreq := func(index uint32, typ uint16, n byte) uint64 {
		b := le.AppendUint16(le.AppendUint32(nil, index), typ)
		return p.give(append(b, n, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	}
	for typ := range uint16(5) {
		for _, index := range []uint32{1, 99} {
			p.do(fmt.Sprintf("join %d", typ), linux.SYS_setsockopt, d, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, mreq(index, typ, 6), 16)
			p.do(fmt.Sprintf("leave %d", typ), linux.SYS_setsockopt, d, unix.SOL_PACKET, unix.PACKET_DROP_MEMBERSHIP, mreq(index, typ, 6), 16)
		}
	}
	for _, r := range [][4]uint32{{4096, 2, 2048, 4}, {4096, 2, 2048, 3}, {4095, 1, 2048, 1}, {4096, 1, 16, 256}, {0, 0, 0, 0}, {4096, 0, 2048, 0}, {1 << 31, 1, 1 << 31, 1}} {
		for _, ring := range []uint64{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
			p.do(fmt.Sprint("ring ", ring, r), linux.SYS_setsockopt, d, unix.SOL_PACKET, ring, p.ints(r[0], r[1], r[2], r[3]), 16)
		}
	}
	m := p.ok("map the ring", linux.SYS_mmap, 0, 16384, 3, unix.MAP_SHARED, d, 0)
	if _, bad := failed(m); !bad {
		p.do("unmap", linux.SYS_munmap, m, 16384)
	}
	for _, filter := range [][]uint64{{1}, {0}, {5000}} {
		code := p.give([]byte{6, 0, 0, 0, 0, 0, 0, 0})
		p.do(fmt.Sprint("filter of ", filter[0]), linux.SYS_setsockopt, raw, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, p.words(filter[0], code), 16)
	}
	p.do("detach", linux.SYS_setsockopt, raw, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, p.ints(0), 4)
	p.do("detach again", linux.SYS_setsockopt, raw, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, p.ints(0), 4)
}
