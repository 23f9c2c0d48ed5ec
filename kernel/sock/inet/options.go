package inet

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/sock"
)

// A socket keeps its options itself, since it may have no endpoint yet, or
// never: getsockopt answers from here, setsockopt also tells the endpoint, and
// a new endpoint is told everything.

// ipOptions are the options at IPPROTO_IP and IPPROTO_IPV6.
type ipOptions struct {
	tos, ttl, hops       int32 // ttl and hops: -1 is the default
	tclass               int32
	mtuDiscover          int32
	mcastTTL, mcastHops  int32
	mcastIf              int32
	mcastIfAddr          [4]byte
	mcastLoop, v6only    bool
	recvErr, recvErr6    bool
	pktInfo, pktInfo6    bool
	recvTTL, recvTOS     bool
	recvHops, recvTClass bool
	freebind, bindNoPort bool
	hdrIncl, recvOrigDst bool
	mcastAll, autoFlow   bool
}

func (o *ipOptions) init() {
	*o = ipOptions{ttl: -1, hops: -1, mtuDiscover: linux.IP_PMTUDISC_WANT, mcastTTL: 1, mcastHops: 1, mcastLoop: true, mcastAll: true}
}

// applyAll tells a new endpoint what differs from the defaults.
func (o *ipOptions) applyAll(ep tcpip.Endpoint, v6 bool) {
	so := ep.SocketOptions()
	if o.tos != 0 {
		ep.SetSockOptInt(tcpip.IPv4TOSOption, int(o.tos))
	}
	if o.ttl >= 0 {
		ep.SetSockOptInt(tcpip.IPv4TTLOption, int(o.ttl))
	}
	if v6 {
		so.SetV6Only(o.v6only)
		if o.tclass != 0 {
			ep.SetSockOptInt(tcpip.IPv6TrafficClassOption, int(o.tclass))
		}
		if o.hops >= 0 {
			ep.SetSockOptInt(tcpip.IPv6HopLimitOption, int(o.hops))
		}
	}
	if o.hdrIncl {
		so.SetHeaderIncluded(true)
	}
}

// flag returns where a boolean option is kept.
func (o *ipOptions) flag(level, name int32) *bool {
	if level == linux.IPPROTO_IP {
		switch name {
		case linux.IP_PKTINFO:
			return &o.pktInfo
		case linux.IP_RECVERR:
			return &o.recvErr
		case linux.IP_RECVTTL:
			return &o.recvTTL
		case linux.IP_RECVTOS:
			return &o.recvTOS
		case linux.IP_FREEBIND:
			return &o.freebind
		case linux.IP_BIND_ADDRESS_NO_PORT:
			return &o.bindNoPort
		case linux.IP_MULTICAST_LOOP:
			return &o.mcastLoop
		case linux.IP_MULTICAST_ALL:
			return &o.mcastAll
		case linux.IP_RECVORIGDSTADDR:
			return &o.recvOrigDst
		}
		return nil
	}
	switch name {
	case linux.IPV6_V6ONLY:
		return &o.v6only
	case linux.IPV6_RECVPKTINFO:
		return &o.pktInfo6
	case linux.IPV6_RECVERR:
		return &o.recvErr6
	case linux.IPV6_RECVHOPLIMIT:
		return &o.recvHops
	case linux.IPV6_RECVTCLASS:
		return &o.recvTClass
	case linux.IPV6_MULTICAST_LOOP:
		return &o.mcastLoop
	case linux.IPV6_FREEBIND:
		return &o.freebind
	case linux.IPV6_AUTOFLOWLABEL:
		return &o.autoFlow
	case linux.IPV6_MULTICAST_ALL:
		return &o.mcastAll
	}
	return nil
}

// setIP is setsockopt at IPPROTO_IP or IPPROTO_IPV6.
func (s *inetSock) setIP(c *kern.Ctx, level, name int32, val []byte) linux.Errno {
	if level == linux.IPPROTO_IPV6 && !s.v6 {
		return linux.ENOPROTOOPT
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ep tcpip.Endpoint
	if p := s.ep.Load(); p != nil {
		ep = p.Endpoint
	}
	switch {
	case level == linux.IPPROTO_IP && name >= linux.IP_MULTICAST_IF && name <= linux.IP_DROP_MEMBERSHIP && name != linux.IP_MULTICAST_TTL && name != linux.IP_MULTICAST_LOOP,
		level == linux.IPPROTO_IPV6 && (name == linux.IPV6_ADD_MEMBERSHIP || name == linux.IPV6_DROP_MEMBERSHIP):
		return s.setMulticast(ep, level, name, val)
	}
	// As Linux: a single byte is accepted at IPPROTO_IP.
	var v int32
	if level == linux.IPPROTO_IP && len(val) >= 1 && len(val) < 4 {
		v = int32(val[0])
	} else {
		var e linux.Errno
		if v, e = sock.Int(val); e != 0 {
			return e
		}
	}
	o := &s.ip
	if f := o.flag(level, name); f != nil {
		if f == &o.v6only && s.hasPort() {
			return linux.EINVAL
		}
		*f = v != 0
		s.applyFlag(ep, f)
		return 0
	}
	tell := func(opt tcpip.SockOptInt, v int32) linux.Errno {
		if ep == nil {
			return 0
		}
		return errno(ep.SetSockOptInt(opt, int(v)))
	}
	if level == linux.IPPROTO_IP {
		switch name {
		case linux.IP_TOS:
			o.tos = v & 0xff
			return tell(tcpip.IPv4TOSOption, o.tos)
		case linux.IP_TTL:
			if v != -1 && (v < 1 || v > 255) {
				return linux.EINVAL
			}
			o.ttl = v
			return tell(tcpip.IPv4TTLOption, max(v, 0))
		case linux.IP_MTU_DISCOVER:
			if v < linux.IP_PMTUDISC_DONT || v > 5 {
				return linux.EINVAL
			}
			o.mtuDiscover = v
			return 0
		case linux.IP_MULTICAST_TTL:
			if v < -1 || v > 255 {
				return linux.EINVAL
			}
			if v == -1 {
				v = 1
			}
			o.mcastTTL = v
			return tell(tcpip.MulticastTTLOption, v)
		case linux.IP_HDRINCL:
			if s.Type != linux.SOCK_RAW {
				return linux.ENOPROTOOPT
			}
			o.hdrIncl = v != 0
			if ep != nil {
				ep.SocketOptions().SetHeaderIncluded(o.hdrIncl)
			}
			return 0
		case linux.IP_TRANSPARENT:
			if v != 0 && !c.Cred().Has(kern.CapNetAdmin) {
				return linux.EPERM
			}
			if v != 0 {
				return linux.ENOPROTOOPT
			}
			return 0
		}
		return linux.ENOPROTOOPT
	}
	switch name {
	case linux.IPV6_TCLASS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		o.tclass = max(v, 0)
		return tell(tcpip.IPv6TrafficClassOption, o.tclass)
	case linux.IPV6_UNICAST_HOPS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		o.hops = v
		return tell(tcpip.IPv6HopLimitOption, v)
	case linux.IPV6_MULTICAST_HOPS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		if v == -1 {
			v = 1
		}
		o.mcastHops = v
		return tell(tcpip.MulticastTTLOption, v)
	case linux.IPV6_MULTICAST_IF:
		o.mcastIf = v
		if ep != nil {
			return errno(ep.SetSockOptInt(tcpip.IPv6MulticastInterfaceOption, int(v)))
		}
		return 0
	case linux.IPV6_MTU_DISCOVER:
		if v < linux.IP_PMTUDISC_DONT || v > 5 {
			return linux.EINVAL
		}
		o.mtuDiscover = v
		return 0
	}
	return linux.ENOPROTOOPT
}

// hasPort reports whether the socket was bound, by bind, connect or a first
// send: a raw socket always is. Called with mu held.
func (s *inetSock) hasPort() bool {
	p := s.ep.Load()
	switch x := s.self.(type) {
	case *TCP:
		return p != nil || x.far.Load() != nil
	case *Datagram:
		if x.Type == linux.SOCK_RAW {
			return true
		}
	}
	a, err := p.GetLocalAddress()
	return err == nil && a.Port != 0
}

// onlyV6 reports whether IPV6_V6ONLY is set.
func (s *inetSock) onlyV6() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v6 && s.ip.v6only
}

// applyFlag tells the endpoint one boolean option.
func (s *inetSock) applyFlag(ep tcpip.Endpoint, f *bool) {
	if ep == nil {
		return
	}
	o, so := &s.ip, ep.SocketOptions()
	switch f {
	case &o.v6only:
		so.SetV6Only(*f)
	case &o.pktInfo:
		so.SetReceivePacketInfo(*f)
	case &o.pktInfo6:
		so.SetIPv6ReceivePacketInfo(*f)
	case &o.recvTTL:
		so.SetReceiveTTL(*f)
	case &o.recvTOS:
		so.SetReceiveTOS(*f)
	case &o.recvHops:
		so.SetReceiveHopLimit(*f)
	case &o.recvTClass:
		so.SetReceiveTClass(*f)
	case &o.mcastLoop:
		so.SetMulticastLoop(*f)
	case &o.recvOrigDst:
		so.SetReceiveOriginalDstAddress(*f)
	}
}

// setMulticast is IP_MULTICAST_IF and the membership options.
func (s *inetSock) setMulticast(ep tcpip.Endpoint, level, name int32, val []byte) linux.Errno {
	if ep == nil || s.Type == linux.SOCK_STREAM {
		return linux.EOPNOTSUPP
	}
	if level == linux.IPPROTO_IPV6 {
		if len(val) < linux.SizeofIPv6Mreq {
			return linux.EINVAL
		}
		nic, _ := sock.Int(val[16:])
		m := tcpip.MembershipOption{NIC: tcpip.NICID(nic), MulticastAddr: tcpip.AddrFrom16([16]byte(val))}
		return s.member(ep, m, name == linux.IPV6_ADD_MEMBERSHIP)
	}
	if name == linux.IP_MULTICAST_IF {
		if len(val) < 4 {
			return linux.EINVAL
		}
		o := tcpip.MulticastInterfaceOption{}
		addr := val[:4]
		if len(val) >= linux.SizeofIPMreq {
			addr = val[4:8]
		}
		if len(val) >= linux.SizeofIPMreqn {
			nic, _ := sock.Int(val[8:])
			o.NIC = tcpip.NICID(nic)
		}
		if [4]byte(addr) != [4]byte{} {
			o.InterfaceAddr = tcpip.AddrFrom4([4]byte(addr))
		}
		s.ip.mcastIfAddr = [4]byte(addr)
		return errno(ep.SetSockOpt(&o))
	}
	if len(val) < linux.SizeofIPMreq {
		return linux.EINVAL
	}
	m := tcpip.MembershipOption{MulticastAddr: tcpip.AddrFrom4([4]byte(val))}
	if [4]byte(val[4:8]) != [4]byte{} {
		m.InterfaceAddr = tcpip.AddrFrom4([4]byte(val[4:8]))
	}
	if len(val) >= linux.SizeofIPMreqn {
		nic, _ := sock.Int(val[8:])
		m.NIC = tcpip.NICID(nic)
	}
	return s.member(ep, m, name == linux.IP_ADD_MEMBERSHIP)
}

func (s *inetSock) member(ep tcpip.Endpoint, m tcpip.MembershipOption, add bool) linux.Errno {
	if !header.IsV4MulticastAddress(m.MulticastAddr) && !header.IsV6MulticastAddress(m.MulticastAddr) {
		return linux.EINVAL
	}
	if add {
		o := tcpip.AddMembershipOption(m)
		e := errno(ep.SetSockOpt(&o))
		if e == linux.EINVAL {
			e = linux.ENODEV
		}
		return e
	}
	o := tcpip.RemoveMembershipOption(m)
	if e := errno(ep.SetSockOpt(&o)); e != 0 {
		return linux.EADDRNOTAVAIL
	}
	return 0
}

// noLevel is getsockopt's error at a level that the socket does not have; only
// there do the families differ from a name that the level does not have.
func (s *inetSock) noLevel() linux.Errno {
	if s.v6 {
		return linux.ENOPROTOOPT
	}
	return linux.EOPNOTSUPP
}

// getIP is getsockopt at IPPROTO_IP or IPPROTO_IPV6.
func (s *inetSock) getIP(level, name int32, val []byte) (int, linux.Errno) {
	if level == linux.IPPROTO_IPV6 && !s.v6 {
		return 0, s.noLevel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.ip
	v := int32(0)
	if f := o.flag(level, name); f != nil {
		if *f {
			v = 1
		}
		return sock.PutInt(val, v), 0
	}
	or := func(v, def int32) int32 {
		if v < 0 {
			return def
		}
		return v
	}
	if level == linux.IPPROTO_IP {
		switch name {
		case linux.IP_TOS:
			v = o.tos
		case linux.IP_TTL:
			v = or(o.ttl, linux.DefaultTTL)
		case linux.IP_MTU_DISCOVER:
			v = o.mtuDiscover
		case linux.IP_MULTICAST_TTL:
			v = o.mcastTTL
		case linux.IP_MULTICAST_IF:
			return copy(val, o.mcastIfAddr[:]), 0
		case linux.IP_OPTIONS:
			return 0, 0
		case linux.IP_TRANSPARENT:
		case linux.IP_HDRINCL:
			if s.Type != linux.SOCK_RAW {
				return 0, linux.ENOPROTOOPT
			}
			if o.hdrIncl {
				v = 1
			}
		case linux.IP_MTU:
			if v = s.pathMTU(); v == 0 {
				return 0, linux.ENOTCONN
			}
		default:
			return 0, linux.ENOPROTOOPT
		}
		return sock.PutInt(val, v), 0
	}
	switch name {
	case linux.IPV6_TCLASS:
		v = o.tclass
	case linux.IPV6_UNICAST_HOPS:
		v = or(o.hops, linux.DefaultTTL)
	case linux.IPV6_MULTICAST_HOPS:
		v = o.mcastHops
	case linux.IPV6_MULTICAST_IF:
		v = o.mcastIf
	case linux.IPV6_MTU_DISCOVER:
		v = o.mtuDiscover
	case linux.IPV6_MTU:
		if v = s.pathMTU(); v == 0 {
			return 0, linux.ENOTCONN
		}
	default:
		return 0, linux.ENOPROTOOPT
	}
	return sock.PutInt(val, v), 0
}

// pathMTU returns the MTU towards the peer; 0 without one.
func (s *inetSock) pathMTU() int32 {
	p := s.ep.Load()
	if p == nil {
		return 0
	}
	fa, err := p.GetRemoteAddress()
	if err != nil {
		return 0
	}
	a := unmap(fa.Addr)
	proto := s.netProto()
	if a.Len() == 4 {
		proto = header.IPv4ProtocolNumber
	}
	r, err := s.net.Stack.FindRoute(fa.NIC, tcpip.Address{}, a, proto, false)
	if err != nil {
		return 0
	}
	defer r.Release()
	return int32(r.MTU())
}

// applyBase tells an endpoint the options of SOL_SOCKET that it looks at.
func (s *inetSock) applyBase(ep tcpip.Endpoint) {
	so := ep.SocketOptions()
	o := &s.Opt
	if o.Has(sock.ReuseAddr) {
		so.SetReuseAddress(true)
	}
	if o.Has(sock.ReusePort) {
		so.SetReusePort(true)
	}
	if o.Has(sock.KeepAlive) {
		so.SetKeepAlive(true)
	}
	if o.Has(sock.Broadcast) {
		so.SetBroadcast(true)
	}
	if d := o.BindToDevice.Load(); d != 0 {
		so.SetBindToDevice(d)
	}
	set := o.BufSet.Load()
	if set&1 != 0 {
		so.SetReceiveBufferSize(int64(o.RcvBuf.Load()/2), true)
	}
	if set&2 != 0 {
		so.SetSendBufferSize(int64(o.SndBuf.Load()/2), true)
	}
}

// setSocket is setsockopt at SOL_SOCKET.
func (s *inetSock) setSocket(c *kern.Ctx, name int32, val []byte) linux.Errno {
	if name == linux.SO_BINDTODEVICE {
		return s.bindToDevice(val)
	}
	if e := s.SetSocketOpt(c, name, val); e != 0 {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ep.Load()
	if p == nil {
		return 0
	}
	so, o := p.SocketOptions(), &s.Opt
	switch name {
	case linux.SO_REUSEADDR:
		so.SetReuseAddress(o.Has(sock.ReuseAddr))
	case linux.SO_REUSEPORT:
		so.SetReusePort(o.Has(sock.ReusePort))
	case linux.SO_KEEPALIVE:
		so.SetKeepAlive(o.Has(sock.KeepAlive))
	case linux.SO_BROADCAST:
		so.SetBroadcast(o.Has(sock.Broadcast))
	case linux.SO_RCVBUF, linux.SO_RCVBUFFORCE:
		so.SetReceiveBufferSize(int64(o.RcvBuf.Load()/2), true)
	case linux.SO_SNDBUF, linux.SO_SNDBUFFORCE:
		so.SetSendBufferSize(int64(o.SndBuf.Load()/2), true)
	}
	return 0
}

func (s *inetSock) bindToDevice(val []byte) linux.Errno {
	for i, b := range val {
		if b == 0 {
			val = val[:i]
			break
		}
	}
	index := int32(0)
	if len(val) > 0 {
		i := s.net.interfaceByName(string(val))
		if i == nil {
			return linux.ENODEV
		}
		index = i.Index
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Opt.BindToDevice.Store(index)
	if p := s.ep.Load(); p != nil {
		return errno(p.SocketOptions().SetBindToDevice(index))
	}
	return 0
}

// getSocket is getsockopt at SOL_SOCKET.
func (s *inetSock) getSocket(name int32, val []byte) (int, linux.Errno) {
	switch name {
	case linux.SO_ERROR:
		e := s.TakeError()
		if p := s.ep.Load(); e == 0 && p != nil {
			if e = errno(p.LastError()); e != 0 {
				p.LastError() // netstack keeps a failed connect twice
			}
		}
		return sock.PutInt(val, int32(e)), 0
	case linux.SO_BINDTODEVICE:
		if d := s.Opt.BindToDevice.Load(); d != 0 {
			if i := s.net.InterfaceByIndex(d); i != nil {
				return copy(val, i.Name+"\x00"), 0
			}
		}
		return 0, 0
	case linux.SO_PEERCRED:
		var b [linux.SizeofUcred]byte
		sock.PutUcred(b[:], linux.Ucred{UID: ^uint32(0), GID: ^uint32(0)})
		return copy(val, b[:]), 0
	}
	return s.GetSocketOpt(name, val)
}

// seconds is a whole number of seconds as a time.Duration.
func seconds(v int32) time.Duration { return time.Duration(v) * time.Second }
