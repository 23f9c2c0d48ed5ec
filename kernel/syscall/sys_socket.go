package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

// Sockets: making, naming, connecting, options. Messages are in sys_message.go.
var socketCalls = []Call{
	{linux.SYS_socket, "socket", sysSocket, "works for AF_UNIX, AF_INET, AF_INET6, AF_PACKET (no SOCK_PACKET; rings without PACKET_VNET_HDR; groups by hash, turn, room, chance and classic BPF, of which PACKET_FANOUT_FLAG_DEFRAG changes nothing) and AF_NETLINK (NETLINK_ROUTE, where interfaces cannot be made; NETLINK_SOCK_DIAG for TCP, UDP, raw, Unix, netlink and packet sockets, without timers, rings and groups of interfaces; NETLINK_KOBJECT_UEVENT, where only processors that go and come are announced)"},
	{linux.SYS_socketpair, "socketpair", sysSocketpair, "works"},
	{linux.SYS_bind, "bind", sysBind, "works"},
	{linux.SYS_listen, "listen", sysListen, "works"},
	{linux.SYS_accept, "accept", sysAccept, "works"},
	{linux.SYS_accept4, "accept4", sysAccept4, "works"},
	{linux.SYS_connect, "connect", sysConnect, "works"},
	{linux.SYS_shutdown, "shutdown", sysShutdown, "works"},
	{linux.SYS_getsockname, "getsockname", sysGetsockname, "works"},
	{linux.SYS_getpeername, "getpeername", sysGetpeername, "works"},
	{linux.SYS_setsockopt, "setsockopt", sysSetsockopt, "works; stored without effect: TCP_FASTOPEN, SO_TXTIME (as on a Linux whose interface queues ignore it), SO_TIMESTAMPING of what TCP sends, TCP_FASTOPEN_KEY, TCP_TX_DELAY (as on a Linux whose interface queues ignore it), IP_RECVFRAGSIZE, IP_ROUTER_ALERT (no packet is forwarded), IP_TRANSPARENT but for bind; ENOPROTOOPT for IP options, extension headers, TCP_REPAIR but to turn it off, TCP_ZEROCOPY_RECEIVE, MD5 signatures, IPsec policies, and programs that choose a socket of a group (SO_ATTACH_REUSEPORT_CBPF) or are eBPF"},
	{linux.SYS_getsockopt, "getsockopt", sysGetsockopt, "works; stored without effect: TCP_FASTOPEN, SO_TXTIME (as on a Linux whose interface queues ignore it), SO_TIMESTAMPING of what TCP sends, TCP_FASTOPEN_KEY, TCP_TX_DELAY (as on a Linux whose interface queues ignore it), IP_RECVFRAGSIZE, IP_ROUTER_ALERT (no packet is forwarded), IP_TRANSPARENT but for bind; ENOPROTOOPT for IP options, extension headers, TCP_REPAIR but to turn it off, TCP_ZEROCOPY_RECEIVE, MD5 signatures, IPsec policies, and programs that choose a socket of a group (SO_ATTACH_REUSEPORT_CBPF) or are eBPF"},
}

// socketOf returns the file of a descriptor, with a reference, and its socket.
func socketOf(t *proc.Thread, fd int32) (*vfs.File, sock.Socket, linux.Errno) {
	f := file(t, fd)
	if f == nil {
		return nil, nil, linux.EBADF
	}
	s, ok := sock.Of(f)
	if !ok {
		f.Put()
		return nil, nil, linux.ENOTSOCK
	}
	return f, s, 0
}

// splitType separates the flags from a socket type.
func splitType(v int32) (typ int32, flags uint32, e linux.Errno) {
	flags = uint32(v) &^ linux.SOCK_TYPE_MASK
	if flags&^(linux.SOCK_CLOEXEC|linux.SOCK_NONBLOCK) != 0 {
		return 0, 0, linux.EINVAL
	}
	return v & linux.SOCK_TYPE_MASK, flags, 0
}

// sysSocket is socket(int domain, int type, int protocol).
func sysSocket(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	typ, flags, e := splitType(a.Int(1))
	if e != 0 {
		return 0, e
	}
	f, e := sock.New(&t.Ctx, a.Int(0), typ, a.Int(2), flags)
	if e != 0 {
		return 0, e
	}
	fd, e := t.FDs.Add(f, 0, t.NoFile(), flags&linux.SOCK_CLOEXEC != 0)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}

// sysSocketpair is socketpair(int domain, int type, int protocol, int fd[2]).
func sysSocketpair(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	typ, flags, e := splitType(a.Int(1))
	if e != 0 {
		return 0, e
	}
	fds, e := t.ReserveFDs()
	if e != 0 {
		return 0, e
	}
	var f, g *vfs.File
	if e = fds.Write(t, a.Addr(3)); e == 0 { // first, as on Linux
		f, g, e = sock.NewPair(&t.Ctx, a.Int(0), typ, a.Int(2), flags)
	}
	if e != 0 {
		fds.Drop(t)
		return 0, e
	}
	fds.Install(t, f, g, flags&linux.SOCK_CLOEXEC != 0)
	return 0, 0
}

// readAddr copies a socket address in.
func readAddr(t *proc.Thread, addr uio.Addr, n int32, to *sock.Addr) linux.Errno {
	if n < 0 || n > linux.SizeofSockaddrSpace {
		return linux.EINVAL
	}
	_, e := t.Mem.CopyIn(to.B[:n], addr)
	to.Len = int(n)
	return e
}

// writeAddr copies a socket address out, truncated to the program's buffer, and its full
// length.
func writeAddr(t *proc.Thread, addr, lenAddr uio.Addr, a *sock.Addr) linux.Errno {
	b, e := readUser(t, lenAddr, 4)
	if e != 0 {
		return e
	}
	room, _ := sock.Int(b)
	if room < 0 {
		return linux.EINVAL
	}
	if _, e := t.Mem.CopyOut(addr, a.B[:min(int(room), a.Len)]); e != 0 {
		return e
	}
	return writeU32(t, lenAddr, uint32(a.Len))
}

// sysBind is bind(int fd, const struct sockaddr *addr, socklen_t len).
func sysBind(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	m := sock.GetMsg(nil) // for the room of its address
	if e = readAddr(t, a.Addr(1), a.Int(2), &m.From); e == 0 {
		e = s.Bind(&t.Ctx, f, t.FS, &m.From)
	}
	sock.PutMsg(m)
	return 0, e
}

// sysListen is listen(int fd, int backlog).
func sysListen(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	return 0, s.Listen(&t.Ctx, int(min(a.Uint(1), uint32(settings.Somaxconn.Get()))))
}

// sysAccept is accept(int fd, struct sockaddr *addr, socklen_t *len).
func sysAccept(t *proc.Thread, a *Args) (uint64, linux.Errno) { return accept(t, a, 0) }

// sysAccept4 is accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags).
func sysAccept4(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(3)&^(linux.SOCK_CLOEXEC|linux.SOCK_NONBLOCK) != 0 {
		f := file(t, a.Int(0))
		if f == nil {
			return 0, linux.EBADF
		}
		f.Put()
		return 0, linux.EINVAL
	}
	return accept(t, a, a.Uint(3))
}

func accept(t *proc.Thread, a *Args, flags uint32) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	fd, e := t.FDs.Reserve(0, t.NoFile())
	if e != 0 {
		return 0, e
	}
	n, e := s.Accept(&t.Ctx, f.NonBlock(), flags)
	if e != 0 {
		t.FDs.Unreserve(fd)
		return 0, e
	}
	if a[1] != 0 {
		m := sock.GetMsg(nil) // for the room of its address
		if s, _ := sock.Of(n); s.PeerAddr(&m.From) != 0 {
			e = linux.ECONNABORTED
		} else {
			e = writeAddr(t, a.Addr(1), a.Addr(2), &m.From)
		}
		sock.PutMsg(m)
		if e != 0 {
			t.FDs.Unreserve(fd)
			n.Put()
			return 0, e
		}
	}
	t.FDs.Install(fd, n, flags&linux.SOCK_CLOEXEC != 0)
	return uint64(fd), 0
}

// sysConnect is connect(int fd, const struct sockaddr *addr, socklen_t len).
func sysConnect(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	m := sock.GetMsg(nil) // for the room of its address
	e := readAddr(t, a.Addr(1), a.Int(2), &m.From)
	s, ok := sock.Of(f)
	switch {
	case e != 0:
	case !ok: // only after the address
		e = linux.ENOTSOCK
	case m.From.Len < 2:
		e = linux.EINVAL
	default:
		e = s.Connect(&t.Ctx, t.FS, &m.From, f.NonBlock())
	}
	sock.PutMsg(m)
	return 0, e
}

// sysShutdown is shutdown(int fd, int how).
func sysShutdown(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	if d := s.SockBase().Domain; a.Uint(1) > linux.SHUT_RDWR && d != linux.AF_PACKET && d != linux.AF_NETLINK {
		return 0, linux.EINVAL
	}
	return 0, s.Shutdown(&t.Ctx, a.Int(1))
}

// sysGetsockname is getsockname(int fd, struct sockaddr *addr, socklen_t *len).
func sysGetsockname(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return socketName(t, a, sock.Socket.LocalAddr)
}

// sysGetpeername is getpeername(int fd, struct sockaddr *addr, socklen_t *len).
func sysGetpeername(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return socketName(t, a, sock.Socket.PeerAddr)
}

func socketName(t *proc.Thread, a *Args, get func(sock.Socket, *sock.Addr) linux.Errno) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	m := sock.GetMsg(nil)
	if e = get(s, &m.From); e == 0 {
		e = writeAddr(t, a.Addr(1), a.Addr(2), &m.From)
	}
	sock.PutMsg(m)
	return 0, e
}

// maxOption is the longest option value that is read.
const maxOption = 256

// maxSources is the longest list of sources of a multicast group that is read: one byte more
// than net.core.optmem_max begins with.
const maxSources = 20481

// leastSources is the shortest request that getsockopt reads: a struct ip_msfilter without sources.
const leastSources = 16

// asksSources reports whether getsockopt's value says which group it asks about.
func asksSources(level, name int32) bool {
	return level == linux.IPPROTO_IP && (name == linux.IP_MSFILTER || name == linux.MCAST_MSFILTER) ||
		level == linux.IPPROTO_IPV6 && name == linux.MCAST_MSFILTER
}

// namesSources reports whether an option has such a list.
func namesSources(level, name int32) bool {
	return level == linux.IPPROTO_IP && name == linux.IP_MSFILTER ||
		(level == linux.IPPROTO_IP || level == linux.IPPROTO_IPV6) && name >= linux.MCAST_JOIN_GROUP && name <= linux.MCAST_MSFILTER
}

// sysSetsockopt is setsockopt(int fd, int level, int name, const void *val, socklen_t len).
func sysSetsockopt(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n := a.Int(4)
	if n < 0 {
		return 0, linux.EINVAL
	}
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	if _, e := s.SockBase().ForeignLevel(a.Int(1)); e != 0 {
		return 0, e
	}
	var val []byte
	if n > maxOption && namesSources(a.Int(1), a.Int(2)) {
		val = make([]byte, min(n, maxSources))
		_, e = t.Mem.CopyIn(val, a.Addr(3))
	} else {
		val, e = readUser(t, a.Addr(3), int(min(n, maxOption)))
	}
	if a[3] == 0 && n > 0 && a.Int(1) == linux.IPPROTO_IPV6 { // no value is 0 there
		val, e = make([]byte, min(n, 4)), 0
	}
	if e != 0 {
		if k, ok := s.(optionNames); ok && !k.KnowsOption(a.Int(1), a.Int(2)) {
			e = linux.ENOPROTOOPT
		}
		return 0, e
	}
	return 0, s.SetOpt(&t.Ctx, a.Int(1), a.Int(2), val)
}

// sysGetsockopt is getsockopt(int fd, int level, int name, void *val, socklen_t *len).
func sysGetsockopt(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f, s, e := socketOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	defer f.Put()
	if e, _ := s.SockBase().ForeignLevel(a.Int(1)); e != 0 {
		return 0, e
	}
	b, e := readUser(t, a.Addr(4), 4)
	if e != 0 {
		return 0, e
	}
	room, _ := sock.Int(b)
	if room < 0 {
		n, e := negativeLength(s, a.Int(1))
		if e != 0 {
			return 0, e
		}
		room = int32(n)
	}
	val := t.Scratch[:min(room, maxOption)]
	switch {
	case a.Int(1) == linux.SOL_PACKET && a.Int(2) == linux.PACKET_HDRLEN: // it asks about what it points to
		if _, e := t.Mem.CopyIn(val[:min(room, 4)], a.Addr(3)); e != 0 {
			return 0, e
		}
	case room >= leastSources && asksSources(a.Int(1), a.Int(2)) && s.SockBase().Domain != linux.AF_UNIX: // so does it
		val = make([]byte, min(room, maxSources))
		if _, e := t.Mem.CopyIn(val, a.Addr(3)); e != 0 {
			return 0, e
		}
	}
	n, e := s.GetOpt(&t.Ctx, a.Int(1), a.Int(2), val)
	if e == linux.ERANGE || e == linux.EINVAL && n > 0 { // n is the room that is needed
		if e := writeU32(t, a.Addr(4), uint32(n)); e != 0 {
			return 0, e
		}
	}
	if e != 0 {
		return 0, e
	}
	out := val[:min(n, len(val))]
	if a.Int(1) == linux.SOL_SOCKET && a.Int(2) == linux.SO_GET_FILTER { // its length counts instructions
		if out = nil; room > 0 {
			out = s.SockBase().Opt.FilterText()
		}
	}
	if _, e := t.Mem.CopyOut(a.Addr(3), out); e != 0 {
		return 0, e
	}
	return 0, writeU32(t, a.Addr(4), uint32(n))
}

// optionNames is a socket that knows its options before their values are read.
type optionNames interface {
	KnowsOption(level, name int32) bool
}

// negativeLength answers getsockopt with a negative length: with an error, or the length
// that the socket returns anyway.
func negativeLength(s sock.Socket, level int32) (int, linux.Errno) {
	if x, ok := s.(interface {
		NegativeLength(level int32) (int, linux.Errno)
	}); ok {
		return x.NegativeLength(level)
	}
	return 0, linux.EINVAL
}
