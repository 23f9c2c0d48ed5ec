package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// sockets are what the tests of options ask.
var sockets = []struct {
	name             string
	family, typ, num uint64
}{
	{"tcp", unix.AF_INET, unix.SOCK_STREAM, 0},
	{"udp", unix.AF_INET, unix.SOCK_DGRAM, 0},
	{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
	{"tcp6", unix.AF_INET6, unix.SOCK_STREAM, 0},
	{"udp6", unix.AF_INET6, unix.SOCK_DGRAM, 0},
	{"unix", unix.AF_UNIX, unix.SOCK_STREAM, 0},
	{"unix-datagram", unix.AF_UNIX, unix.SOCK_DGRAM, 0},
	{"netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
	{"packet", unix.AF_PACKET, unix.SOCK_DGRAM, 0},
}

// optionsOf are the options that are asked for, by level.
var optionsOf = map[uint64][]uint64{
	unix.SOL_SOCKET: {unix.SO_DEBUG, unix.SO_REUSEADDR, unix.SO_TYPE, unix.SO_ERROR, unix.SO_DONTROUTE, unix.SO_BROADCAST,
		unix.SO_KEEPALIVE, unix.SO_OOBINLINE, unix.SO_NO_CHECK, unix.SO_PRIORITY, unix.SO_LINGER, unix.SO_REUSEPORT,
		unix.SO_PASSCRED, unix.SO_RCVLOWAT, unix.SO_SNDLOWAT, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO, unix.SO_ACCEPTCONN,
		unix.SO_PROTOCOL, unix.SO_DOMAIN, unix.SO_TIMESTAMP, unix.SO_TIMESTAMPNS, unix.SO_PEEK_OFF, unix.SO_MARK, unix.SO_LOCK_FILTER, 9999},
	unix.IPPROTO_IP: {unix.IP_TOS, unix.IP_TTL, unix.IP_HDRINCL, unix.IP_RECVOPTS, unix.IP_PKTINFO, unix.IP_MTU_DISCOVER,
		unix.IP_RECVERR, unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_MULTICAST_TTL, unix.IP_MULTICAST_LOOP, unix.IP_FREEBIND,
		unix.IP_BIND_ADDRESS_NO_PORT, unix.IP_MINTTL, unix.IP_TRANSPARENT, 9999},
	unix.IPPROTO_IPV6: {unix.IPV6_V6ONLY, unix.IPV6_UNICAST_HOPS, unix.IPV6_MULTICAST_HOPS, unix.IPV6_MULTICAST_LOOP,
		unix.IPV6_RECVPKTINFO, unix.IPV6_RECVHOPLIMIT, unix.IPV6_TCLASS, unix.IPV6_RECVTCLASS, unix.IPV6_RECVERR, unix.IPV6_MTU_DISCOVER, 9999},
	unix.IPPROTO_TCP: {unix.TCP_NODELAY, unix.TCP_CORK, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT, unix.TCP_SYNCNT,
		unix.TCP_LINGER2, unix.TCP_DEFER_ACCEPT, unix.TCP_QUICKACK, unix.TCP_USER_TIMEOUT, unix.TCP_FASTOPEN, unix.TCP_NOTSENT_LOWAT, 9999},
	unix.IPPROTO_UDP: {unix.UDP_CORK, unix.UDP_SEGMENT, unix.UDP_NO_CHECK6_TX, 9999},
	9999:             {1},
}

var levels = []uint64{unix.SOL_SOCKET, unix.IPPROTO_IP, unix.IPPROTO_IPV6, unix.IPPROTO_TCP, unix.IPPROTO_UDP, 9999}

func socketOptions(p *prog) {
	for _, s := range sockets {
		fd := p.must(linux.SYS_socket, s.family, s.typ, s.num)
		for _, level := range levels {
			for _, opt := range optionsOf[level] {
				p.option(s.name, fd, level, opt)
			}
		}
		p.close(fd)
	}
}

// option asks for an option, sets it to some values and asks again.
func (p *prog) option(name string, fd, level, opt uint64) {
	defer p.cut()()
	what := fmt.Sprintf("%s %d %d", name, level, opt)
	val, size := p.room(32), p.ints(16)
	get := func() string {
		p.write(val, make([]byte, 32))
		p.write(size, le.AppendUint32(nil, 16))
		row := p.brief(linux.SYS_getsockopt, fd, level, opt, val, size)
		if row == " 0" {
			row = fmt.Sprintf(" %x", p.get(val, int(min(p.u32(size), 32))))
		}
		return row
	}
	row := what + ":" + get()
	for _, v := range []uint32{1, 0, 300, ^uint32(0)} {
		row += fmt.Sprintf("; %d", int32(v)) + p.brief(linux.SYS_setsockopt, fd, level, opt, p.ints(v, 0, 0, 0), 4) + get()
	}
	row += "; bad"
	row += p.brief(linux.SYS_setsockopt, fd, level, opt, p.ints(1), 1)
	row += p.brief(linux.SYS_setsockopt, fd, level, opt, p.ints(1), 0)
	row += p.brief(linux.SYS_setsockopt, fd, level, opt, p.ints(1), neg(1))
	row += p.brief(linux.SYS_setsockopt, fd, level, opt, 8, 4)
	row += p.brief(linux.SYS_setsockopt, fd, level, opt, p.ints(0, 0, 0, 0), 4)
	p.write(size, le.AppendUint32(nil, 1))
	row += p.brief(linux.SYS_getsockopt, fd, level, opt, val, size)
	p.write(size, le.AppendUint32(nil, ^uint32(0)))
	p.note("%s", row+p.brief(linux.SYS_getsockopt, fd, level, opt, val, size))
}

func socketCalls(p *prog) {
	for _, f := range []uint64{0, 1, 2, 10, 16, 17, 45, 99, neg(1)} {
		for _, typ := range []uint64{0, 1, 2, 3, 5, 6, 10, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 1 << 20} {
			for _, proto := range []uint64{0, 6, 17, 300, neg(1)} {
				if f == 16 || f == 17 && typ == 10 {
					continue // which families of netlink there are differs
				}
				v := p.do(fmt.Sprintf("socket(%d, %#x, %d)", int64(f), typ, int64(proto)), linux.SYS_socket, f, typ, proto)
				if _, bad := failed(v); !bad {
					p.close(v)
				}
			}
		}
	}
	at := p.room(8)
	for _, f := range []uint64{1, 2, 99} {
		for _, typ := range []uint64{1, 2, 3, 5, 0} {
			p.do(fmt.Sprintf("socketpair(%d, %d)", f, typ), linux.SYS_socketpair, f, typ, 0, at)
		}
	}
	p.do("socketpair nowhere", linux.SYS_socketpair, 1, 1, 0, 8)
	for _, k := range p.kinds() {
		p.do("bind "+k.name, linux.SYS_bind, k.fd, p.give(sockaddr(0, 0)), 16)
		p.do("listen "+k.name, linux.SYS_listen, k.fd, 5)
		p.do("getsockname "+k.name, linux.SYS_getsockname, k.fd, p.room(128), p.ints(128))
		p.do("getpeername "+k.name, linux.SYS_getpeername, k.fd, p.room(128), p.ints(128))
		p.do("shutdown "+k.name, linux.SYS_shutdown, k.fd, 3)
		p.do("send "+k.name, linux.SYS_sendto, k.fd, p.str("x"), 1, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		p.do("recv "+k.name, linux.SYS_recvfrom, k.fd, p.room(8), 8, unix.MSG_DONTWAIT, 0, 0)
		p.do("accept "+k.name, linux.SYS_accept4, k.fd, 0, 0, 1)
		p.do("connect to nothing "+k.name, linux.SYS_connect, k.fd, p.give(sockaddr(0, 0)), 1)
	}
}

// sockaddr is a struct sockaddr_in of 127.0.0.1, or of all addresses.
func sockaddr(host byte, port uint16) []byte {
	b := []byte{2, 0, byte(port >> 8), byte(port), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if host != 0 {
		b[4], b[7] = 127, host
	}
	return b
}

// loopback brings the loopback device up.
func (p *prog) loopback() {
	fd := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM, 0)
	ifr := append([]byte("lo"), make([]byte, 38)...)
	ifr[16] = unix.IFF_UP
	p.must(linux.SYS_ioctl, fd, unix.SIOCSIFFLAGS, p.give(ifr))
	p.close(fd)
}

func streams(p *prog) {
	p.loopback()
	l := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	p.do("bind", linux.SYS_bind, l, p.give(sockaddr(1, 7001)), 16)
	p.do("bind again", linux.SYS_bind, l, p.give(sockaddr(1, 7002)), 16)
	p.do("accept early", linux.SYS_accept4, l, 0, 0, 0)
	p.do("listen", linux.SYS_listen, l, 5)
	l2 := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_STREAM, 0)
	p.do("bind there too", linux.SYS_bind, l2, p.give(sockaddr(1, 7001)), 16)
	p.do("short address", linux.SYS_bind, l2, p.give(sockaddr(1, 7001)), 8)
	c := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_STREAM, 0)
	p.do("connect", linux.SYS_connect, c, p.give(sockaddr(1, 7001)), 16)
	p.do("connect again", linux.SYS_connect, c, p.give(sockaddr(1, 7001)), 16)
	p.do("refused", linux.SYS_connect, p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_STREAM, 0), p.give(sockaddr(1, 7003)), 16)
	name, size := p.room(32), p.ints(32)
	p.do("poll", linux.SYS_poll, p.ints(uint32(l), unix.POLLIN), 1, 5000)
	s := p.do("accept", linux.SYS_accept4, l, name, size, unix.SOCK_NONBLOCK)
	p.note("size %d family %d", p.u32(size), p.get(name, 1)[0])
	p.do("accept with bad flags", linux.SYS_accept4, l, name, size, 1)
	buf := p.room(256)
	p.messages(c, s, buf)
	p.do("out of band", linux.SYS_sendto, c, p.str("!"), 1, unix.MSG_OOB, 0, 0)
	for _, how := range []uint64{3, 1, 0, 2} {
		p.do("shutdown", linux.SYS_shutdown, c, how)
	}
	p.do("send after", linux.SYS_sendto, c, buf, 1, unix.MSG_NOSIGNAL, 0, 0)
	p.close(c, s, l)
}

// messages moves data between two connected sockets in each way there is.
func (p *prog) messages(a, b, buf uint64) {
	hdr := func(iov, n, control, size uint64) uint64 { return p.words(0, 0, iov, n, control, size, 0) }
	text := p.str("0123456789")
	p.do("send", linux.SYS_sendto, a, text, 10, 0, 0, 0)
	p.do("send nothing", linux.SYS_sendto, a, text, 0, 0, 0, 0)
	p.do("wait for it", linux.SYS_poll, p.ints(uint32(b), unix.POLLIN), 1, 5000)
	p.do("peek", linux.SYS_recvfrom, b, buf, 4, unix.MSG_PEEK, 0, 0)
	p.do("recv", linux.SYS_recvfrom, b, buf, 4, 0, 0, 0)
	p.show("it", buf, 4)
	p.do("recv into nowhere", linux.SYS_recvfrom, b, 8, 4, unix.MSG_DONTWAIT, 0, 0)
	p.do("recvmsg", linux.SYS_recvmsg, b, hdr(p.vec(buf, 2, buf+10, 20), 2, 0, 0), unix.MSG_DONTWAIT)
	p.do("recv of nothing", linux.SYS_recvfrom, b, buf, 4, unix.MSG_DONTWAIT, 0, 0)
	p.do("sendmsg", linux.SYS_sendmsg, a, hdr(p.vec(text, 3, text+5, 2), 2, 0, 0), 0)
	p.do("sendmsg with too many parts", linux.SYS_sendmsg, a, hdr(buf, 1025, 0, 0), 0)
	p.do("sendmsg from nowhere", linux.SYS_sendmsg, a, 8, 0)
	p.do("sendmsg with bad control", linux.SYS_sendmsg, a, hdr(p.vec(text, 3), 1, p.words(4, 0), 16), 0)
	p.do("sendmmsg", linux.SYS_sendmmsg, a, p.words(0, 0, p.vec(text, 3), 1, 0, 0, 0, 0, 0, 0, p.vec(text, 4), 1, 0, 0, 0, 0), 2, 0)
	p.do("wait for it", linux.SYS_poll, p.ints(uint32(b), unix.POLLIN), 1, 5000)
	p.do("FIONREAD", linux.SYS_ioctl, b, unix.TIOCINQ, buf)
	p.do("recvmmsg", linux.SYS_recvmmsg, b, p.words(0, 0, p.vec(buf, 3), 1, 0, 0, 0, 0, 0, 0, p.vec(buf, 4), 1, 0, 0, 0, 0), 2, unix.MSG_DONTWAIT, 0)
	p.do("recvmmsg with a bad time", linux.SYS_recvmmsg, b, p.words(0, 0, p.vec(buf, 3), 1, 0, 0, 0, 0), 1, unix.MSG_DONTWAIT, p.words(1, neg(1)))
}

func unixSockets(p *prog) {
	for _, typ := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
		a, b := p.pair(linux.SYS_socketpair, unix.AF_UNIX, typ|unix.SOCK_NONBLOCK, 0)
		p.note("type %d", typ)
		buf := p.room(256)
		p.messages(a, b, buf)
		// A descriptor goes with a message.
		control := p.give(append(le.AppendUint64(nil, 20), 1, 0, 0, 0, 1, 0, 0, 0, byte(a), 0, 0, 0, 0, 0, 0, 0))
		msg := p.words(0, 0, p.vec(p.str("fd"), 2), 1, control, 24, 0)
		p.do("send a descriptor", linux.SYS_sendmsg, a, msg, 0)
		c := p.room(64)
		in := p.words(0, 0, p.vec(buf, 10), 1, c, 64, 0)
		for range 4 {
			p.write(in+40, le.AppendUint64(nil, 64))
			p.do("receive it", linux.SYS_recvmsg, b, in, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			p.note("control %d flags %#x", p.u64(in+40), p.u32(in+48))
		}
		p.show("control", c, 20)
		name := append([]byte{1, 0}, []byte(fmt.Sprintf("/sock%d", typ))...)
		s := p.must(linux.SYS_socket, unix.AF_UNIX, typ|unix.SOCK_NONBLOCK, 0)
		n := uint64(len(name) + 1)
		addr := p.give(append(name, 0))
		p.do("connect to none", linux.SYS_connect, a, addr, n)
		p.do("bind", linux.SYS_bind, s, addr, n)
		p.do("bind again", linux.SYS_bind, s, addr, n)
		s2 := p.must(linux.SYS_socket, unix.AF_UNIX, typ|unix.SOCK_NONBLOCK, 0)
		p.do("bind a second", linux.SYS_bind, s2, addr, n)
		p.do("connect early", linux.SYS_connect, s2, addr, n)
		p.do("listen", linux.SYS_listen, s, 1)
		p.do("connect", linux.SYS_connect, s2, addr, n)
		q := p.do("accept", linux.SYS_accept4, s, p.room(128), p.ints(128), 0)
		p.do("name", linux.SYS_getsockname, s, buf, p.ints(128))
		p.show("it", buf, 10)
		p.do("peer's", linux.SYS_getpeername, s2, buf, p.ints(3))
		p.do("abstract", linux.SYS_bind, s2, p.give([]byte("\x01\x00\x00abc")), 6)
		p.do("autobind", linux.SYS_bind, s2, p.give([]byte{1, 0}), 2)
		for _, how := range []uint64{1, 0, 2} {
			p.do("shutdown", linux.SYS_shutdown, s2, how)
			p.do("send", linux.SYS_sendto, s2, buf, 1, unix.MSG_NOSIGNAL, 0, 0)
			p.do("recv", linux.SYS_recvfrom, s2, buf, 1, unix.MSG_DONTWAIT, 0, 0)
			p.do("poll", linux.SYS_poll, p.ints(uint32(s2), 0xffff), 1, 0)
		}
		if _, bad := failed(q); !bad {
			p.do("peer reads", linux.SYS_recvfrom, q, buf, 1, unix.MSG_DONTWAIT, 0, 0)
		}
		p.close(a)
		p.do("write to none", linux.SYS_write, b, buf, 1)
		p.do("read of none", linux.SYS_read, b, buf, 1)
		p.do("unlink", linux.SYS_unlink, addr+2)
	}
}

func datagrams(p *prog) {
	p.loopback()
	a := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	b := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	buf := p.room(256)
	p.do("bind", linux.SYS_bind, a, p.give(sockaddr(1, 7001)), 16)
	p.do("bind the same", linux.SYS_bind, b, p.give(sockaddr(1, 7001)), 16)
	p.do("bind another's address", linux.SYS_bind, b, p.give([]byte{2, 0, 0, 99, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0, 0, 0}), 16)
	p.do("send without an address", linux.SYS_sendto, b, buf, 3, 0, 0, 0)
	to := p.give(sockaddr(1, 7001))
	p.do("send", linux.SYS_sendto, b, p.str("hello"), 5, 0, to, 16)
	p.do("send to a short address", linux.SYS_sendto, b, p.str("hello"), 5, 0, to, 7)
	p.do("send to another family", linux.SYS_sendto, b, p.str("hello"), 5, 0, p.give([]byte{77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 16)
	p.do("too long", linux.SYS_sendto, b, arena, 70000, 0, to, 16)
	p.do("wait", linux.SYS_poll, p.ints(uint32(a), unix.POLLIN), 1, 5000)
	from, size := p.room(32), p.ints(32)
	p.do("cut short", linux.SYS_recvfrom, a, buf, 2, unix.MSG_PEEK|unix.MSG_TRUNC, from, size)
	p.do("recv", linux.SYS_recvfrom, a, buf, 20, 0, from, size)
	p.note("from %x size %d", p.get(from+4, 4), p.u32(size))
	p.do("connect", linux.SYS_connect, b, to, 16)
	p.do("peer", linux.SYS_getpeername, b, from, size)
	p.show("it", from, 8)
	p.messages(b, a, buf)
	p.do("disconnect", linux.SYS_connect, b, p.give(make([]byte, 16)), 16)
	p.do("peer", linux.SYS_getpeername, b, from, size)
	p.do("connect to nobody", linux.SYS_connect, b, p.give(sockaddr(1, 7009)), 16)
	p.do("send there", linux.SYS_sendto, b, buf, 1, 0, 0, 0)
	p.do("wait for the error", linux.SYS_poll, p.ints(uint32(b), 0), 1, 5000)
	p.do("send again", linux.SYS_sendto, b, buf, 1, 0, 0, 0)
	for _, req := range []uint64{unix.SIOCGIFFLAGS, unix.SIOCGIFADDR, unix.SIOCGIFNETMASK, unix.SIOCGIFMTU, unix.SIOCGIFINDEX, unix.SIOCGIFBRDADDR, unix.SIOCGIFMETRIC, unix.SIOCGIFHWADDR, unix.SIOCGIFTXQLEN} {
		for _, name := range []string{"lo", "none0"} {
			ifr := p.give(append([]byte(name), make([]byte, 40-len(name))...))
			p.do(fmt.Sprintf("ioctl %#x %s", req, name), linux.SYS_ioctl, a, req, ifr)
			p.show("answer", ifr+16, 8)
		}
	}
}
