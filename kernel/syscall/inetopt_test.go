package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// moreOptions are options with values of their own form, or of few sockets.
var moreOptions = map[uint64][]uint64{
	unix.SOL_SOCKET: {unix.SO_BINDTODEVICE, unix.SO_PEERCRED, unix.SO_PEERNAME, unix.SO_PASSSEC, unix.SO_BUSY_POLL, unix.SO_MAX_PACING_RATE,
		unix.SO_INCOMING_CPU, unix.SO_INCOMING_NAPI_ID, unix.SO_ZEROCOPY, unix.SO_TXTIME, unix.SO_BINDTOIFINDEX, unix.SO_RXQ_OVFL,
		unix.SO_SELECT_ERR_QUEUE, unix.SO_TIMESTAMPING, unix.SO_NOFCS, unix.SO_WIFI_STATUS, unix.SO_PREFER_BUSY_POLL, unix.SO_DETACH_REUSEPORT_BPF,
		unix.SO_RESERVE_MEM, unix.SO_TXREHASH, unix.SO_RCVMARK},
	unix.IPPROTO_IP: {unix.IP_OPTIONS, unix.IP_ROUTER_ALERT, unix.IP_RETOPTS, unix.IP_PASSSEC, unix.IP_MTU, unix.IP_NODEFRAG, unix.IP_CHECKSUM,
		unix.IP_RECVFRAGSIZE, unix.IP_RECVERR_RFC4884, unix.IP_MULTICAST_IF, unix.IP_UNICAST_IF, unix.IP_MULTICAST_ALL, unix.IP_RECVORIGDSTADDR,
		unix.IP_LOCAL_PORT_RANGE},
	unix.IPPROTO_IPV6: {unix.IPV6_ADDRFORM, unix.IPV6_2292PKTINFO, unix.IPV6_CHECKSUM, unix.IPV6_MULTICAST_IF, unix.IPV6_MTU, unix.IPV6_ROUTER_ALERT,
		unix.IPV6_AUTOFLOWLABEL, unix.IPV6_ADDR_PREFERENCES, unix.IPV6_MINHOPCOUNT, unix.IPV6_FREEBIND, unix.IPV6_TRANSPARENT, unix.IPV6_DONTFRAG,
		unix.IPV6_UNICAST_IF, unix.IPV6_MULTICAST_ALL, unix.IPV6_RECVPATHMTU, unix.IPV6_RECVERR_RFC4884, unix.IPV6_RECVDSTOPTS, unix.IPV6_RECVRTHDR},
	unix.IPPROTO_TCP: {unix.TCP_MAXSEG, unix.TCP_WINDOW_CLAMP, unix.TCP_REPAIR, unix.TCP_THIN_LINEAR_TIMEOUTS, unix.TCP_THIN_DUPACK,
		unix.TCP_SAVE_SYN, unix.TCP_SAVED_SYN, unix.TCP_FASTOPEN_CONNECT, unix.TCP_FASTOPEN_NO_COOKIE, unix.TCP_INQ, unix.TCP_TX_DELAY, unix.TCP_QUEUE_SEQ},
}

func moreSocketOptions(p *prog) {
	p.loopback()
	for _, s := range sockets[:7] {
		fd := p.must(linux.SYS_socket, s.family, s.typ, s.num)
		for _, level := range levels {
			for _, opt := range moreOptions[level] {
				p.option(s.name, fd, level, opt)
			}
		}
		p.close(fd)
	}
}

// groupOptions joins and leaves groups of multicast.
func groupOptions(p *prog) {
	p.loopback()
	group, other := []byte{224, 1, 2, 3}, []byte{10, 1, 2, 3}
	local, none := []byte{127, 0, 0, 1}, []byte{0, 0, 0, 0}
	index := func(n byte) []byte { return []byte{n, 0, 0, 0} }
	for _, typ := range []uint64{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
		fd := p.must(linux.SYS_socket, unix.AF_INET, typ, 0)
		set := func(what string, opt uint64, parts ...[]byte) {
			b := join(parts...)
			p.do(fmt.Sprint(what, " ", typ), linux.SYS_setsockopt, fd, unix.IPPROTO_IP, opt, p.give(b), uint64(len(b)))
		}
		for _, opt := range []uint64{unix.IP_ADD_MEMBERSHIP, unix.IP_ADD_MEMBERSHIP, unix.IP_DROP_MEMBERSHIP, unix.IP_DROP_MEMBERSHIP} {
			set(fmt.Sprint("member ", opt), opt, group, local)
			set("by index", opt, group, none, index(1))
			set("no interface", opt, group, none, index(99))
			set("nowhere", opt, group, []byte{9, 9, 9, 9})
			set("no group", opt, other, local)
			set("short", opt, group)
		}
		for _, opt := range []uint64{unix.IP_ADD_SOURCE_MEMBERSHIP, unix.IP_BLOCK_SOURCE, unix.IP_UNBLOCK_SOURCE, unix.IP_DROP_SOURCE_MEMBERSHIP} {
			set(fmt.Sprint("source ", opt), opt, group, local, other)
			set("short", opt, group, local)
			set("no group", opt, other, local, other)
		}
		for _, c := range [][]byte{local, none, join(none, local), join(none, none, index(1)), join(none, none, index(99)), {9, 9, 9, 9}, {1}} {
			set(fmt.Sprint("interface ", c), unix.IP_MULTICAST_IF, c)
			v, n := p.room(16), p.ints(16)
			p.do("it is", linux.SYS_getsockopt, fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, v, n)
			p.show("address", v, 4)
		}
		p.close(fd)
	}
	ff := join([]byte{0xff, 2}, make([]byte, 13), []byte{5})
	for _, typ := range []uint64{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
		fd := p.must(linux.SYS_socket, unix.AF_INET6, typ, 0)
		for _, opt := range []uint64{unix.IPV6_JOIN_GROUP, unix.IPV6_JOIN_GROUP, unix.IPV6_LEAVE_GROUP, unix.IPV6_LEAVE_GROUP} {
			for _, b := range [][]byte{join(ff, index(1)), join(ff, index(99)), join(make([]byte, 16), index(1)), ff[:5]} {
				p.do(fmt.Sprint("group of IPv6 ", opt), linux.SYS_setsockopt, fd, unix.IPPROTO_IPV6, opt, p.give(b), uint64(len(b)))
			}
		}
		p.close(fd)
	}
}

// interfaces are the requests of ioctl about lo, and about an interface that is not there.
func interfaces(p *prog) {
	p.loopback()
	fds := []uint64{p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM, 0), p.must(linux.SYS_socket, unix.AF_INET6, unix.SOCK_DGRAM, 0), p.must(linux.SYS_socket, unix.AF_UNIX, unix.SOCK_DGRAM, 0)}
	requests := []uint64{unix.SIOCGIFNAME, unix.SIOCGIFFLAGS, unix.SIOCGIFADDR, unix.SIOCGIFDSTADDR, unix.SIOCGIFBRDADDR, unix.SIOCGIFNETMASK,
		unix.SIOCGIFMETRIC, unix.SIOCGIFMEM, unix.SIOCGIFMTU, unix.SIOCGIFHWADDR, unix.SIOCGIFSLAVE, unix.SIOCGIFINDEX, unix.SIOCGIFPFLAGS,
		unix.SIOCGIFTXQLEN, unix.SIOCGIFMAP, unix.SIOCGIFBR, unix.SIOCSIFNETMASK, unix.SIOCSIFBRDADDR, unix.SIOCSIFMTU, unix.SIOCSIFTXQLEN,
		unix.SIOCSIFMETRIC, unix.SIOCSIFADDR, unix.SIOCSIFDSTADDR, unix.SIOCSIFFLAGS, unix.SIOCSIFHWADDR, unix.SIOCSIFNAME, unix.SIOCADDMULTI, unix.SIOCDELMULTI,
		unix.SIOCGARP, unix.SIOCSARP, unix.SIOCDARP, unix.SIOCADDRT, unix.SIOCDELRT, unix.SIOCRTMSG, unix.SIOCETHTOOL, unix.SIOCGMIIPHY}
	value := map[uint64][]byte{
		unix.SIOCSIFNETMASK: {2, 0, 0, 0, 255, 0, 0, 0}, unix.SIOCSIFBRDADDR: {2, 0, 0, 0, 0, 0, 0, 0},
		unix.SIOCSIFMTU: {0, 0, 1, 0}, unix.SIOCSIFTXQLEN: {232, 3, 0, 0}, unix.SIOCSIFADDR: {2, 0, 0, 0, 127, 0, 0, 1},
		unix.SIOCSIFDSTADDR: {2, 0, 0, 0, 127, 0, 0, 1}, unix.SIOCSIFFLAGS: {unix.IFF_UP, 0}, unix.SIOCGIFNAME: {1, 0, 0, 0},
	}
	for i, fd := range fds {
		for _, name := range []string{"lo", "lo:1", "none0", ""} {
			for _, req := range requests {
				done := p.cut()
				ifr := p.give(join([]byte(name), make([]byte, 16-len(name)), value[req], make([]byte, 120)))
				p.do(fmt.Sprintf("%d %q %#x", i, name, req), linux.SYS_ioctl, fd, req, ifr)
				if req < unix.SIOCGARP && req != unix.SIOCGIFMAP {
					p.show("it is", ifr+16, 8)
				}
				done()
			}
		}
		p.do("no memory", linux.SYS_ioctl, fd, unix.SIOCGIFADDR, 8)
		list := p.room(200)
		for _, room := range []uint64{0, 20, 40, 200} {
			conf := p.words(room, list)
			p.do(fmt.Sprint("list in ", room), linux.SYS_ioctl, fd, unix.SIOCGIFCONF, conf)
			p.note("it takes %d", p.u32(conf))
		}
	}
}

// rules are requests about rules of routing.
func rules(p *prog) {
	p.loopback()
	fd := p.must(linux.SYS_socket, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	const ack, create = unix.NLM_F_REQUEST | unix.NLM_F_ACK, unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL
	head := func(family, dst, src, action byte) []byte {
		return []byte{family, dst, src, 0, unix.RT_TABLE_MAIN, 0, 0, action, 0, 0, 0, 0}
	}
	const in = unix.AF_INET
	word := func(typ uint16, v uint32) []byte { return attr(typ, le.AppendUint32(nil, v)...) }
	to, from := attr(unix.FRA_DST, 10, 0, 0, 0), attr(unix.FRA_SRC, 10, 1, 0, 0)
	for _, r := range []struct {
		name string
		body []byte
	}{
		{"plain", join(head(in, 0, 0, 1), word(unix.FRA_PRIORITY, 100))},
		{"to", join(head(in, 8, 0, 1), to, word(unix.FRA_PRIORITY, 101))},
		{"from", join(head(in, 0, 16, 1), from, word(unix.FRA_PRIORITY, 102), word(unix.FRA_TABLE, 1000))},
		{"by mark", join(head(in, 0, 0, 1), word(unix.FRA_FWMARK, 5), word(unix.FRA_FWMASK, 0xff), word(unix.FRA_PRIORITY, 103))},
		{"by interface", join(head(in, 0, 0, 1), attr(unix.FRA_IIFNAME, 'l', 'o', 0), word(unix.FRA_PRIORITY, 104))},
		{"blackhole", join(head(in, 8, 0, unix.FR_ACT_BLACKHOLE), attr(unix.FRA_DST, 99, 0, 0, 0), word(unix.FRA_PRIORITY, 105))},
		{"short address", join(head(in, 8, 0, 1), attr(unix.FRA_DST, 10, 0))},
		{"long prefix", join(head(in, 33, 0, 1), to)},
		{"prefix without an address", head(in, 8, 0, 1)},
		{"unknown action", head(in, 0, 0, 77)},
		{"goto nowhere", join(head(in, 0, 0, unix.FR_ACT_GOTO), word(unix.FRA_GOTO, 1))},
		{"unknown family", head(99, 0, 0, 1)},
		{"short", head(in, 0, 0, 1)[:6]},
	} {
		p.request("new "+r.name, fd, unix.RTM_NEWRULE, create, r.body)
		p.request("again "+r.name, fd, unix.RTM_NEWRULE, create, r.body)
		p.request("dump", fd, unix.RTM_GETRULE, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, head(in, 0, 0, 0))
		p.request("delete "+r.name, fd, unix.RTM_DELRULE, ack, r.body)
		p.request("delete it again", fd, unix.RTM_DELRULE, ack, r.body)
	}
	p.request("get one", fd, unix.RTM_GETRULE, unix.NLM_F_REQUEST, head(in, 0, 0, 0))
}
