package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/net/sock"
)

// A socket keeps its options itself, since it may have no endpoint yet, or
// never: getsockopt answers from here, setsockopt also tells the endpoint, and
// a new endpoint is told everything.

// ipOptions are the options at IPPROTO_IP and IPPROTO_IPV6.
type ipOptions struct {
	kept                  *kept // what is only kept; nil while nothing differs from a new socket
	tos, ttl, hops        int32 // ttl and hops: -1 is the default
	tclass                int32
	mtuDiscover           int32
	mtuDiscover6          int32
	mcastTTL, mcastHops   int32
	mcastIf               int32
	mcastIfAddr           [4]byte
	mcastLoop, mcastLoop6 bool
	v6only, transparent   bool
	recvErr, recvErr6     bool
	pktInfo, pktInfo6     bool
	recvTTL, recvTOS      bool
	recvHops, recvTClass  bool
	freebind, bindNoPort  bool
	hdrIncl, recvOrigDst  bool
	recvOrigDst6          bool
	alert                 bool // a router's: packets that it forwards have a look at the socket, and none is forwarded
	groups4, groups6      int  // of multicast, which the socket has joined
	joined                []membership
}

func (o *ipOptions) init() {
	*o = ipOptions{ttl: -1, hops: -1, mtuDiscover: linux.IP_PMTUDISC_WANT, mtuDiscover6: linux.IP_PMTUDISC_WANT, mcastTTL: 1, mcastHops: 1, mcastLoop: true, mcastLoop6: true,
		v6only: settings.BindV6Only.Get() != 0}
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
		case linux.IP_TRANSPARENT:
			return &o.transparent
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
		return &o.mcastLoop6
	case linux.IPV6_FREEBIND:
		return &o.freebind
	case linux.IPV6_TRANSPARENT:
		return &o.transparent
	case linux.IPV6_RECVORIGDSTADDR:
		return &o.recvOrigDst6
	}
	return nil
}

// setIP is setsockopt at IPPROTO_IP or IPPROTO_IPV6.
func (s *inetSock) setIP(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	if !s.hasLevel(level) {
		return linux.ENOPROTOOPT
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ep tcpip.Endpoint
	if p := s.ep.Load(); p != nil {
		ep = p.Endpoint
	}
	if isMulticast(level, name) {
		return s.setMulticast(ep, level, name, val)
	}
	// As Linux: at IPPROTO_IP a single byte is a value, at both levels nothing
	// is 0 for some options.
	v, e := sock.Int(val)
	if e != 0 && level == linux.IPPROTO_IP && len(val) > 0 {
		v = int32(val[0])
	}
	if i := keptIndex(level, name); i >= 0 {
		return s.setKept(c, i, v, len(val))
	}
	if f := s.ip.flag(level, name); f != nil {
		return s.setFlag(c, ep, level, name, f, v, len(val))
	}
	if level == linux.IPPROTO_IP {
		return s.setIPv4(ep, name, v, val)
	}
	return s.setIPv6(c, ep, name, v, val)
}

// hasLevel reports whether the socket takes options at IPPROTO_IP or
// IPPROTO_IPV6: those of IPv6 take both, but raw ones.
func (s *inetSock) hasLevel(level int32) bool {
	if level == linux.IPPROTO_IPV6 {
		return s.v6
	}
	return !s.v6 || s.Type != linux.SOCK_RAW && s.Protocol != linux.IPPROTO_ICMPV6
}

// setFlag sets a boolean option, given with n bytes; called with mu held.
func (s *inetSock) setFlag(c *caller.Ctx, ep tcpip.Endpoint, level, name int32, f *bool, v int32, n int) linux.Errno {
	o := &s.ip
	switch {
	case f == &o.transparent && v != 0 && !c.Cred().Has(creds.CapNetRaw) && !c.Cred().Has(creds.CapNetAdmin):
		return linux.EPERM
	case level == linux.IPPROTO_IPV6 && n < 4,
		level == linux.IPPROTO_IP && n < 1 && (f == &o.transparent || f == &o.freebind || f == &o.mcastLoop),
		f == &o.mcastLoop6 && v != 0 && v != 1,
		f == &o.v6only && s.hasPort():
		return linux.EINVAL
	}
	*f = v != 0
	if f == &o.v6only {
		s.v6Only.Store(v != 0)
	}
	s.freeBind.Store(o.freebind || o.transparent)
	s.applyFlag(ep, f)
	if (f == &o.recvErr || f == &o.recvErr6) && v == 0 {
		purgeErrors(ep)
	}
	return 0
}

// tellInt tells an endpoint an int option, if there is one.
func tellInt(ep tcpip.Endpoint, opt tcpip.SockOptInt, v int32) linux.Errno {
	if ep == nil {
		return 0
	}
	return errno(ep.SetSockOptInt(opt, int(v)))
}

// setIPv4 sets an option at IPPROTO_IP; called with mu held.
func (s *inetSock) setIPv4(ep tcpip.Endpoint, name, v int32, val []byte) linux.Errno {
	o := &s.ip
	switch name {
	case linux.IP_TOS:
		if v &= 0xff; s.Type == linux.SOCK_STREAM { // the lowest two bits are TCP's
			v = v&^3 | o.tos&3
		}
		o.tos = v
		return tellInt(ep, tcpip.IPv4TOSOption, o.tos)
	case linux.IP_TTL:
		if len(val) < 1 || v != -1 && (v < 1 || v > 255) {
			return linux.EINVAL
		}
		o.ttl = v
		s.sendsFrom()
		return tellInt(ep, tcpip.IPv4TTLOption, max(v, 0))
	case linux.IP_MTU_DISCOVER:
		if v < linux.IP_PMTUDISC_DONT || v > linux.IP_PMTUDISC_OMIT {
			return linux.EINVAL
		}
		o.mtuDiscover = v
		s.noteDiscover()
		return 0
	case linux.IP_MULTICAST_TTL:
		if v == -1 {
			v = 1
		}
		if len(val) < 1 || v < 0 || v > 255 || s.Type == linux.SOCK_STREAM {
			return linux.EINVAL
		}
		o.mcastTTL = v
		return tellInt(ep, tcpip.MulticastTTLOption, v)
	case linux.IP_HDRINCL:
		if s.Type != linux.SOCK_RAW {
			return linux.ENOPROTOOPT
		}
		o.hdrIncl = v != 0
		if ep != nil {
			ep.SocketOptions().SetHeaderIncluded(o.hdrIncl)
		}
		return 0
	case linux.IP_OPTIONS:
		switch {
		case len(val) == 0: // no packet has any
			return 0
		case len(val) > 40:
			return linux.EINVAL
		}
	case linux.IP_ROUTER_ALERT:
		if s.Type != linux.SOCK_RAW || s.Protocol == linux.IPPROTO_RAW {
			return linux.EINVAL
		}
		return s.setAlert(uint8(v) != 0)
	}
	return linux.ENOPROTOOPT
}

// setAlert is IP_ROUTER_ALERT and IPV6_ROUTER_ALERT.
func (s *inetSock) setAlert(on bool) linux.Errno {
	switch {
	case on && s.ip.alert:
		return linux.EADDRINUSE
	case !on && !s.ip.alert:
		return linux.ENOBUFS
	}
	s.ip.alert = on
	return 0
}

// sendsFrom notes another TTL, at which the other end of a connection may look.
func (s *inetSock) sendsFrom() {
	if s.Type == linux.SOCK_STREAM {
		s.regate()
	}
}

// setIPv6 sets an option at IPPROTO_IPV6; called with mu held.
func (s *inetSock) setIPv6(c *caller.Ctx, ep tcpip.Endpoint, name, v int32, val []byte) linux.Errno {
	stream, short := s.Type == linux.SOCK_STREAM, len(val) < 4
	switch name {
	case linux.IPV6_HOPOPTS, linux.IPV6_RTHDRDSTOPTS, linux.IPV6_RTHDR, linux.IPV6_DSTOPTS:
		if name != linux.IPV6_RTHDR && !c.Cred().Has(creds.CapNetRaw) {
			return linux.EPERM
		}
		switch {
		case len(val) == 0: // no packet has any
			return 0
		case len(val) < 8 || len(val)&7 != 0:
			return linux.EINVAL
		}
		return linux.ENOPROTOOPT
	case linux.IPV6_2292PKTOPTIONS:
		if len(val) < linux.SizeofCmsghdr {
			return 0
		}
		return linux.EINVAL
	case linux.IPV6_PKTINFO:
		if len(val) < linux.SizeofIn6Pktinfo {
			return linux.EINVAL
		}
		if index, _ := sock.Int(val[16:]); index != 0 && s.Opt.BindToDevice.Load() != 0 && index != s.Opt.BindToDevice.Load() {
			return linux.EINVAL
		}
		s.changeKept(func(k *kept) { copy(k.sticky[:], val) })
		return 0
	case linux.IPV6_MULTICAST_HOPS, linux.IPV6_MULTICAST_IF:
		if stream {
			return linux.ENOPROTOOPT
		}
	case linux.IPV6_TCLASS, linux.IPV6_UNICAST_HOPS, linux.IPV6_MTU_DISCOVER, linux.IPV6_MTU,
		linux.IPV6_ADDR_PREFERENCES, linux.IPV6_ADDRFORM, linux.IPV6_ROUTER_ALERT, linux.IPV6_FLOWLABEL_MGR:
	default:
		return linux.ENOPROTOOPT
	}
	if short {
		return linux.EINVAL
	}
	return s.setIPv6Int(ep, name, v)
}

// setIPv6Int is setIPv6 of what is an int.
func (s *inetSock) setIPv6Int(ep tcpip.Endpoint, name, v int32) linux.Errno {
	o := &s.ip
	switch name {
	case linux.IPV6_TCLASS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		if v = max(v, 0); s.Type == linux.SOCK_STREAM {
			v = v&^3 | o.tclass&3
		}
		o.tclass = v
		return tellInt(ep, tcpip.IPv6TrafficClassOption, v)
	case linux.IPV6_UNICAST_HOPS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		o.hops = v
		s.sendsFrom()
		return tellInt(ep, tcpip.IPv6HopLimitOption, v)
	case linux.IPV6_MULTICAST_HOPS:
		if v < -1 || v > 255 {
			return linux.EINVAL
		}
		if v == -1 {
			v = 1
		}
		o.mcastHops = v
		return tellInt(ep, tcpip.MulticastTTLOption, v)
	case linux.IPV6_MULTICAST_IF:
		if v != 0 && s.net.InterfaceByIndex(v) == nil {
			return linux.ENODEV
		}
		if d := s.Opt.BindToDevice.Load(); v != 0 && d != 0 && d != v {
			return linux.EINVAL
		}
		o.mcastIf = v
		return tellInt(ep, tcpip.IPv6MulticastInterfaceOption, v)
	case linux.IPV6_MTU_DISCOVER:
		if v < linux.IP_PMTUDISC_DONT || v > linux.IP_PMTUDISC_OMIT {
			return linux.EINVAL
		}
		o.mtuDiscover6 = v
		s.noteDiscover()
		return 0
	case linux.IPV6_MTU:
		if v != 0 && v < linux.IPV6_MIN_MTU {
			return linux.EINVAL
		}
		s.changeKept(func(k *kept) { k.fragSize = v })
		return 0
	case linux.IPV6_ADDR_PREFERENCES:
		p, e := addrPreferences(v)
		if e == 0 {
			s.changeKept(func(k *kept) { k.srcPrefs = p })
		}
		return e
	case linux.IPV6_ADDRFORM:
		return s.addrForm(v)
	case linux.IPV6_FLOWLABEL_MGR:
		return linux.EINVAL
	case linux.IPV6_ROUTER_ALERT:
		if s.Type == linux.SOCK_RAW && s.Protocol == linux.IPPROTO_RAW {
			return s.setAlert(v >= 0)
		}
	}
	return linux.ENOPROTOOPT
}

// addrForm is IPV6_ADDRFORM, which would make a socket of IPv4 of one of IPv6;
// no socket here changes its family.
func (s *inetSock) addrForm(v int32) linux.Errno {
	var a sock.Addr
	switch {
	case v != linux.AF_INET:
		return linux.EINVAL
	case s.Type == linux.SOCK_RAW || s.Protocol == linux.IPPROTO_ICMPV6:
		return linux.ENOPROTOOPT
	case s.self.linuxState() != linux.TCP_ESTABLISHED:
		return linux.ENOTCONN
	case s.self.PeerAddr(&a) == 0 && !mapped(tcpip.AddrFrom16([16]byte(a.B[8:24]))):
		return linux.EADDRNOTAVAIL
	}
	return linux.EBUSY
}

// Preferences for source addresses (IPV6_ADDR_PREFERENCES).
const (
	preferTmp, preferPublic, preferDefault = 0x1, 0x2, 0x100
	preferCoa, preferHome                  = 0x4, 0x400
	preferCga, preferNonCga                = 0x8, 0x800
)

// addrPreferences checks a value and returns what getsockopt then shows.
func addrPreferences(v int32) (int32, linux.Errno) {
	shown := int32(0)
	switch v & (preferTmp | preferPublic | preferDefault) {
	case preferTmp:
		shown = preferTmp
	case preferPublic:
		shown = preferPublic
	case preferDefault, 0:
		shown = preferDefault
	default:
		return 0, linux.EINVAL
	}
	switch v & (preferHome | preferCoa) {
	case preferCoa:
		shown |= preferCoa
	case preferHome, 0:
		shown |= preferHome
	default:
		return 0, linux.EINVAL
	}
	if v&(preferCga|preferNonCga) == preferCga|preferNonCga {
		return 0, linux.EINVAL
	}
	return shown, 0
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
	case &o.pktInfo, &o.pktInfo6: // that of IPv6 tells of datagrams of IPv4, too
		so.SetReceivePacketInfo(o.pktInfo || o.pktInfo6)
		so.SetIPv6ReceivePacketInfo(o.pktInfo6)
	case &o.recvTTL:
		so.SetReceiveTTL(*f)
	case &o.recvTOS:
		so.SetReceiveTOS(*f)
	case &o.recvHops:
		so.SetReceiveHopLimit(*f)
	case &o.recvTClass:
		so.SetReceiveTClass(*f)
	case &o.mcastLoop, &o.mcastLoop6:
		so.SetMulticastLoop(*f)
	case &o.recvErr:
		so.SetIPv4RecvError(*f)
	case &o.recvErr6:
		so.SetIPv6RecvError(*f)
	case &o.recvOrigDst, &o.recvOrigDst6:
		so.SetReceiveOriginalDstAddress(o.recvOrigDst || o.recvOrigDst6)
	}
}

// purgeErrors empties the error queue.
func purgeErrors(ep tcpip.Endpoint) {
	for ep != nil && ep.SocketOptions().DequeueErr() != nil {
	}
}
