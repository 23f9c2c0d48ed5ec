package inet

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/raw"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Socket makes a socket of either family.
func (n *Net) Socket(c *caller.Ctx, domain, typ, protocol int32) (sock.Socket, linux.Errno) {
	if protocol < 0 || protocol >= linux.IPPROTO_MAX {
		return nil, linux.EINVAL
	}
	if typ == linux.SOCK_STREAM {
		if protocol != 0 && protocol != linux.IPPROTO_TCP {
			return nil, linux.EPROTONOSUPPORT
		}
		s := n.newTCP(c, domain)
		return s, 0
	}
	s := &Datagram{}
	wq := new(waiter.Queue)
	var ep tcpip.Endpoint
	var err tcpip.Error
	var trans tcpip.TransportProtocolNumber
	s.init(c, n, domain, typ, protocol)
	s.ip.init()
	s.peekOff.Store(-1)
	s.checksum.Store(-1)
	s.Filters = true
	switch typ {
	case linux.SOCK_DGRAM:
		switch {
		case protocol == 0 || protocol == linux.IPPROTO_UDP:
			s.Protocol, trans = linux.IPPROTO_UDP, udp.ProtocolNumber
		case protocol == linux.IPPROTO_ICMP && !s.v6:
			trans = icmp.ProtocolNumber4
		case protocol == linux.IPPROTO_ICMPV6 && s.v6:
			trans = icmp.ProtocolNumber6
		default:
			return nil, linux.EPROTONOSUPPORT
		}
		if s.Protocol != linux.IPPROTO_UDP && !mayPing(c.Cred()) {
			return nil, linux.EACCES
		}
		ep, err = n.Stack.NewEndpoint(trans, s.netProto(), wq)
	case linux.SOCK_RAW:
		if !c.Cred().Has(creds.CapNetRaw) {
			return nil, linux.EPERM
		}
		if protocol == 0 {
			return nil, linux.EPROTONOSUPPORT
		}
		ep, err = n.rawEndpoint(protocol, s.netProto(), wq)
		s.ip.hdrIncl = protocol == linux.IPPROTO_RAW
	default:
		return nil, linux.ESOCKTNOSUPPORT
	}
	if err != nil {
		return nil, errno(err)
	}
	if typ == linux.SOCK_RAW {
		n.raw.Add(1)
	}
	s.self = s
	if s.v6 && s.isUDP() {
		s.rules.Store(fourDeaf)
	}
	s.attach(ep, wq)
	n.all.add(&s.inetSock)
	return s, 0
}

// rawEndpoint makes the endpoint of a raw socket; netstack need not have the protocol.
func (n *Net) rawEndpoint(protocol int32, net tcpip.NetworkProtocolNumber, wq *waiter.Queue) (tcpip.Endpoint, tcpip.Error) {
	ep, err := n.Stack.NewRawEndpoint(tcpip.TransportProtocolNumber(protocol), net, wq, protocol != linux.IPPROTO_RAW)
	if _, unknown := err.(*tcpip.ErrUnknownProtocol); unknown && protocol <= 255 {
		return raw.NewEndpoint(n.Stack, net, tcpip.TransportProtocolNumber(protocol), wq)
	}
	return ep, err
}

// mayPing reports whether net.ipv4.ping_group_range has one of the groups.
func mayPing(c *creds.Cred) bool {
	in := func(gid uint32) bool {
		return int64(gid) >= settings.PingGroupLo.Get() && int64(gid) <= settings.PingGroupHi.Get()
	}
	return in(c.EGID) || slices.ContainsFunc(c.Groups, in)
}

// Datagram is a socket of UDP, ICMP or raw IP: every call goes to its endpoint.
type Datagram struct {
	inetSock
	cork        cork
	segment     atomic.Int32   // UDP_SEGMENT
	gro         atomic.Bool    // UDP_GRO: datagrams that were sent together may come together
	wholes      atomic.Uint32  // whole4 and whole6: what may not be sent in fragments
	tos         sync.Mutex     // held while a send has a TOS of its own
	noCheck6    [2]atomic.Bool // UDP_NO_CHECK6_TX and RX: there are always checksums
	checksum    atomic.Int32   // IPV6_CHECKSUM
	ended       atomic.Uint32  // shutRd, shutWr
	stamp       atomic.Int64   // when the last datagram was read, as CLOCK_REALTIME; 0 for none
	icmpFilter  atomic.Uint32  // ICMP_FILTER: a bit for each type not to deliver
	icmp6Filter [32]byte       // ICMPV6_FILTER; guarded by mu

	unicastIf atomic.Int32               // IP_UNICAST_IF and IPV6_UNICAST_IF: where to send what names no interface
	stamps    atomic.Pointer[sentStamps] // nil until SO_TIMESTAMPING asks for them

	taken atomic.Uint64 // datagrams that were read
	shut  atomic.Int64  // size of the queue before it was shut; 0 while it is open
}

// Bind is bind(2).
func (s *Datagram) Bind(c *caller.Ctx, _ *vfs.File, _ *vfs.FSContext, a *sock.Addr) linux.Errno {
	fa, e := s.bindAddr(c, a)
	if e != 0 {
		return e
	}
	if s.Type == linux.SOCK_RAW {
		fa.Port = 0
	}
	p := s.ep.Load()
	if !s.isUDP() {
		s.net.binding.Lock()
		defer s.net.binding.Unlock()
		return errno(s.bindAnywhere(fa, p.Bind))
	}
	if a, err := p.GetLocalAddress(); err == nil && a.Port != 0 {
		return linux.EINVAL
	}
	if !s.claim(udpPorts, fa.Port) {
		return linux.EADDRINUSE
	}
	s.mu.Lock()
	r, _ := s.span()
	s.mu.Unlock()
	return s.bindTo(fa, r, s.v6Only.Load(), p.Bind)
}

// autobind claims a port for a socket that has none, before netstack takes it. netstack
// knows one range: where the socket has its own, it is bound here.
func (s *Datagram) autobind() linux.Errno {
	if !s.claim(udpPorts, 0) {
		return linux.EAGAIN
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, own := s.span()
	p := s.ep.Load()
	if a, err := p.GetLocalAddress(); !own || err == nil && a.Port != 0 {
		return 0
	}
	if s.bindTo(tcpip.FullAddress{}, r, s.v6Only.Load(), p.Bind) != 0 {
		return linux.EAGAIN
	}
	return 0
}

// Listen is not for datagrams.
func (s *Datagram) Listen(*caller.Ctx, int) linux.Errno { return linux.EOPNOTSUPP }

// Accept is not for datagrams.
func (s *Datagram) Accept(*caller.Ctx, bool, uint32) (*vfs.File, linux.Errno) {
	return nil, linux.EOPNOTSUPP
}

// Connect is connect(2): it says where send goes and from whom to receive.
func (s *Datagram) Connect(_ *caller.Ctx, _ *vfs.FSContext, a *sock.Addr, _ bool) linux.Errno {
	p := s.ep.Load()
	if a.Family() == linux.AF_UNSPEC {
		return errno(p.Disconnect())
	}
	fa, e := s.connectAddr(a)
	if e != 0 {
		return e
	}
	s.byUnicastIf(&fa)
	if own, err := p.GetLocalAddress(); err == nil && own.Addr.Len() == 4 && fa.Addr.Len() == 16 && !mapped(fa.Addr) {
		return linux.EAFNOSUPPORT // it is bound to an address of IPv4
	}
	if !s.Opt.Has(sock.Broadcast) && s.net.isBroadcast(unmap(fa.Addr)) {
		return linux.EACCES
	}
	if s.isUDP() {
		if e := s.autobind(); e != 0 {
			return e
		}
	}
	return errno(p.Endpoint.Connect(fa))
}

// Shutdown is shutdown(2).
func (s *Datagram) Shutdown(_ *caller.Ctx, how int32) linux.Errno {
	p := s.ep.Load()
	e := linux.Errno(0)
	if _, err := p.GetRemoteAddress(); err != nil {
		e = linux.ENOTCONN // it counts all the same
	} else if how != linux.SHUT_RD { // what comes is still delivered
		e = errno(p.Shutdown(tcpip.ShutdownWrite))
	}
	switch how {
	case linux.SHUT_RD:
		s.ended.Or(shutRd)
	case linux.SHUT_WR:
		s.ended.Or(shutWr)
	default:
		s.ended.Or(shutRd | shutWr)
	}
	s.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup)
	return e
}

// LocalAddr is getsockname(2).
func (s *Datagram) LocalAddr(a *sock.Addr) linux.Errno {
	fa, err := s.ep.Load().GetLocalAddress()
	if err != nil {
		return errno(err)
	}
	putAddr(a, fa, s.v6)
	return 0
}

// PeerAddr is getpeername(2).
func (s *Datagram) PeerAddr(a *sock.Addr) linux.Errno {
	fa, err := s.ep.Load().GetRemoteAddress()
	if err != nil {
		return errno(err)
	}
	putAddr(a, fa, s.v6)
	return 0
}

// Ready is what poll(2) sees.
func (s *Datagram) Ready(*vfs.File) wait.Events {
	ev := wait.Events(s.ep.Load().Readiness(netEvents)) & wait.Events(netEvents)
	if ev&wait.Out != 0 {
		ev |= wait.WrBand
	}
	if s.HasError() {
		ev |= wait.Err
	}
	if p := s.ep.Load(); p.errs.Load() > 0 && p.SocketOptions().PeekErr() != nil || s.zeroCopied() || s.hasStamps() {
		ev |= wait.Err
	}
	if shut := s.ended.Load(); shut != 0 {
		if shut&shutRd != 0 {
			ev |= evIn | wait.RdHup
		}
		if shut == shutRd|shutWr {
			ev |= wait.Hup
		}
		ev |= evOut | wait.WrBand
	}
	return ev
}

// Release closes the socket.
func (s *Datagram) Release(*vfs.File) {
	s.net.all.remove(&s.inetSock)
	s.mu.Lock()
	if s.ip.joined != nil {
		s.net.audience.set(&s.inetSock, nil)
	}
	s.mu.Unlock()
	if s.Type == linux.SOCK_RAW {
		s.net.raw.Add(-1)
	}
	s.ep.Load().close()
	s.cork.drop(s.user)
	s.giveBack(udpPorts)
	s.unindex()
}

// Read is recv without flags.
func (s *Datagram) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0 // unlike recv, which takes a message
	}
	m := sock.GetMsg(v)
	n, e := s.Recv(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// Write is send without flags.
func (s *Datagram) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	m := sock.GetMsg(v)
	n, e := s.Send(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// Send is sendmsg(2).
func (s *Datagram) Send(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	o := tcpip.WriteOptions{Atomic: true}
	if m.To != nil {
		var e linux.Errno
		if o.To, e = s.sendAddr(m.To); e != 0 {
			return 0, e
		}
	}
	if m.TTL > 0 {
		if s.v6 {
			o.ControlMessages.HasHopLimit, o.ControlMessages.HopLimit = true, uint8(m.TTL)
		} else {
			o.ControlMessages.HasTTL, o.ControlMessages.TTL = true, uint8(m.TTL)
		}
	}
	if m.HasPktInfo && m.PktInfo.V6 {
		o.ControlMessages.HasIPv6PacketInfo = true
		o.ControlMessages.IPv6PacketInfo.NIC = tcpip.NICID(m.PktInfo.Index)
		if m.PktInfo.Local != [16]byte{} {
			o.ControlMessages.IPv6PacketInfo.Addr = tcpip.AddrFrom16(m.PktInfo.Local)
		}
	}
	if m.HasPktInfo && !m.PktInfo.V6 {
		if e := s.checkPktInfo(&m.PktInfo); e != 0 {
			return 0, e
		}
	}
	nonblock := f.NonBlock() || m.Flags&linux.MSG_DONTWAIT != 0
	if s.wholes.Load() != 0 && m.Segment == 0 && s.segment.Load() == 0 {
		if e := s.fits(m.V.Len(), o.To); e != 0 {
			return 0, e
		}
	}
	if m.SendTOS != 0 || m.Segment != 0 || m.Flags&linux.MSG_ZEROCOPY != 0 || s.segment.Load() != 0 {
		return s.sendRare(c, m, o, nonblock)
	}
	if more := m.Flags&linux.MSG_MORE != 0; (more || s.cork.busy.Load()) && s.isUDP() {
		return s.sendPart(c, m.V, o, nonblock, more)
	}
	if s.stamps.Load() != nil {
		return s.sendStamped(c, m.V, o, nonblock)
	}
	return s.sendWhole(c, m.V, o, nonblock)
}

// sendWhole sends one datagram.
func (s *Datagram) sendWhole(c *caller.Ctx, v *uio.Vec, o tcpip.WriteOptions, nonblock bool) (int, linux.Errno) {
	return s.sendTrain(c, v, 0, o, nonblock)
}

// sendTrain sends a datagram, or a train of those of a length, where o says so.
func (s *Datagram) sendTrain(c *caller.Ctx, v *uio.Vec, train uint16, o tcpip.WriteOptions, nonblock bool) (int, linux.Errno) {
	if s.ended.Load()&shutWr != 0 && s.Type != linux.SOCK_RAW {
		return 0, linux.EPIPE
	}
	p := s.ep.Load()
	if s.claimed.Load() == unclaimed && s.isUDP() {
		if e := s.autobind(); e != 0 {
			return 0, e
		}
	}
	n := int64(0)
	mark := v.Mark()
	try := func() linux.Errno {
		v.Reset(mark)
		x := getXfer(v)
		x.train = train
		var err tcpip.Error
		n, err = p.Endpoint.Write(x, o)
		putXfer(x)
		return errno(err)
	}
	e := try()
	if e == linux.EAGAIN && !nonblock {
		e = s.Block(c, wait.Out, s.Opt.SndTimeo.Load(), try)
	}
	s.net.Waits(int(n))
	if s.v6 && e == 0 {
		s.countSent6(o.To)
	}
	return int(n), e
}

// Recv is recvmsg(2).
func (s *Datagram) Recv(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_ERRQUEUE != 0 {
		return s.recvError(m)
	}
	p := s.ep.Load()
	if n, e, done := s.recvPlain(p, m); done {
		return n, e
	}
	nonblock := f.NonBlock() || m.Flags&linux.MSG_DONTWAIT != 0
	peek := m.Flags&linux.MSG_PEEK != 0
	var r tcpip.ReadResult
	n, off, room := 0, 0, 0
	try := func() linux.Errno {
		x := getXfer(m.V)
		x.whole = true
		room = m.V.Len()
		if peek {
			off := int(s.peekOff.Load())
			x.peeks, x.skip, x.off = off >= 0, max(off, 0), max(off, 0)
		}
		var err tcpip.Error
		r, err = p.Endpoint.Read(x, tcpip.ReadOptions{Peek: peek, NeedRemoteAddr: m.WantFrom || s.v6})
		n, off, m.Segment = x.n, x.off, x.train
		putXfer(x)
		if _, fault := err.(*tcpip.ErrBadBuffer); (err == nil || fault) && m.Flags&linux.MSG_PEEK == 0 {
			s.took(r.Total)
		}
		if _, closed := err.(*tcpip.ErrClosedForReceive); closed {
			r = tcpip.ReadResult{}
			if nonblock {
				return linux.EAGAIN
			}
			return 0
		}
		e := errno(err)
		if e == linux.EAGAIN && !nonblock && s.ended.Load()&shutRd != 0 {
			r = tcpip.ReadResult{}
			return 0
		}
		return e
	}
	e := try()
	if e == linux.EAGAIN && !nonblock {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), try)
	}
	if e != 0 {
		return 0, e
	}
	if s.v6 && !peek {
		s.countUDP6(countIn, r.RemoteAddr.Addr)
	}
	return s.received(m, &r, n, off, room), 0
}

// received tells of a packet of which n bytes were read from off on, with room for some
// more or less, and returns what recvmsg does.
func (s *Datagram) received(m *sock.Msg, r *tcpip.ReadResult, n, off, room int) int {
	if room < r.Total && room <= r.Total-off {
		m.OutFlags |= linux.MSG_TRUNC
	}
	if m.Flags&linux.MSG_TRUNC != 0 {
		n = r.Total
	}
	if at := s.peekOff.Load(); at >= 0 {
		if m.Flags&linux.MSG_PEEK != 0 {
			s.peekOff.Add(int32(n))
		} else {
			s.peekOff.Store(max(at-int32(n), 0))
		}
	}
	if m.WantFrom {
		m.From.Len = 0
		if r.RemoteAddr.Addr.Len() != 0 {
			putAddr(&m.From, r.RemoteAddr, s.v6)
		}
	}
	s.control(&r.ControlMessages, m)
	return n
}

// control turns what netstack tells of a packet into ancillary data.
func (s *Datagram) control(cm *tcpip.ReceivableControlMessages, m *sock.Msg) {
	now := clocks.Realtime()
	s.stamp.Store(now)
	if s.Opt.Has(sock.Timestamp) {
		m.HasTimestamp, m.Timestamp = true, now
	}
	if f := s.Opt.Timestamping(); f&sock.StampSoftware != 0 && (f&sock.StampRxSoftware != 0 || m.HasTimestamp) {
		m.HasStamp, m.Stamp = true, now
	}
	switch {
	case cm.HasTTL:
		m.TTL = int(cm.TTL)
	case cm.HasHopLimit:
		m.TTL, m.V6 = int(cm.HopLimit), true
	default:
		m.TTL = -1
	}
	switch {
	case cm.HasTOS:
		m.TOS = int(cm.TOS)
	case cm.HasTClass:
		m.TOS, m.V6 = int(cm.TClass), true
	default:
		m.TOS = -1
	}
	put := func(to *[16]byte, a tcpip.Address) { copy(to[:], a.AsSlice()) }
	switch {
	case cm.HasIPPacketInfo && s.mapsInfo():
		m.HasPktInfo = true
		m.PktInfo = sock.PktInfo{Index: int32(cm.PacketInfo.NIC), V6: true}
		m.PktInfo.Local = mapFour(tcpip.FullAddress{Addr: cm.PacketInfo.DestinationAddr}).Addr.As16()
	case cm.HasIPPacketInfo:
		m.HasPktInfo = true
		m.PktInfo = sock.PktInfo{Index: int32(cm.PacketInfo.NIC)}
		put(&m.PktInfo.Local, cm.PacketInfo.LocalAddr)
		put(&m.PktInfo.Dest, cm.PacketInfo.DestinationAddr)
	case cm.HasIPv6PacketInfo:
		m.HasPktInfo = true
		m.PktInfo = sock.PktInfo{Index: int32(cm.IPv6PacketInfo.NIC), V6: true}
		put(&m.PktInfo.Local, cm.IPv6PacketInfo.Addr)
	}
	if cm.HasOriginalDstAddress {
		six := cm.OriginalDstAddress.Addr.Len() == 16
		s.mu.Lock()
		m.HasOrigDst = six && s.ip.recvOrigDst6 || !six && s.ip.recvOrigDst
		s.mu.Unlock()
		putAddr(&m.OrigDst, cm.OriginalDstAddress, six)
	}
}

// mapsInfo reports whether IPV6_RECVPKTINFO tells of datagrams of IPv4, too.
func (s *Datagram) mapsInfo() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ip.pktInfo6
}

// Ioctl knows how long the next message is, and the requests about interfaces.
func (s *Datagram) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case linux.SIOCINQ:
		n, err := s.ep.Load().GetSockOptInt(tcpip.ReceiveQueueSizeOption)
		if err != nil {
			n = 0
		}
		return sock.CopyOutInt(c, arg, int32(n))
	case linux.SIOCOUTQ:
		return sock.CopyOutInt(c, arg, 0)
	case linux.SIOCGSTAMP, linux.SIOCGSTAMPNS:
		ns, e := s.stampTime()
		if e != 0 {
			return 0, e
		}
		return CopyOutStamp(c, cmd, arg, ns)
	case linux.SIOCGETVIFCNT: // routes of multicast have no interfaces
		if s.Type == linux.SOCK_RAW {
			if _, e := c.Mem.CopyIn(make([]byte, 40), uio.Addr(arg)); e != 0 {
				return 0, e
			}
			return 0, linux.EINVAL
		}
	}
	return s.inetIoctl(c, cmd, arg)
}

// CopyOutStamp writes a time as SIOCGSTAMP and SIOCGSTAMPNS do.
func CopyOutStamp(c *caller.Ctx, cmd uint32, arg uint64, ns int64) (uint64, linux.Errno) {
	var b [16]byte
	sock.PutUint64(b[:], uint64(ns/1e9))
	sock.PutUint64(b[8:], uint64(ns%1e9))
	if cmd == linux.SIOCGSTAMP {
		sock.PutUint64(b[8:], uint64(ns%1e9/1000))
	}
	_, e := c.Mem.CopyOut(uio.Addr(arg), b[:])
	return 0, e
}
