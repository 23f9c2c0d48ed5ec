package inet

import (
	"fmt"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// Filter says which packets that come in are dropped though netstack would take them.
type Filter struct {
	IgnoreEcho      settings.Setting // net.ipv4.icmp_echo_ignore_all
	IgnoreBroadcast settings.Setting // net.ipv4.icmp_echo_ignore_broadcasts
	IgnoreEcho6     settings.Setting // net.ipv6.icmp.echo_ignore_all

	// reverse counts the interfaces whose packets must come from where an answer
	// would go (rp_filter), with an interface for all others.
	reverse atomic.Int32
	logged  atomic.Int64 // when the last martian was logged
}

// InterfaceSettings are net.ipv4.conf.NAME.
type InterfaceSettings struct {
	ReversePath settings.Setting // rp_filter: 1 strict, 2 loose
	LogMartians settings.Setting

	// PromoteSecondaries has the other addresses of a prefix outlive the first.
	PromoteSecondaries settings.Setting
}

// Checking reports whether the sources of packets are checked.
func (n *Net) Checking() bool { return n.Filter.reverse.Load() != 0 }

// SetReversePath changes rp_filter of an interface, or of all.
func (n *Net) SetReversePath(s *InterfaceSettings, v int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch old := s.ReversePath.Get(); {
	case old == 0 && v != 0:
		n.Filter.reverse.Add(1)
	case old != 0 && v == 0:
		n.Filter.reverse.Add(-1)
	}
	s.ReversePath.Set(v)
}

// Refuses reports whether a packet that came in by an interface is to be dropped; p
// begins with the network header.
func (n *Net) Refuses(index int32, proto tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) bool {
	switch proto {
	case header.IPv4ProtocolNumber:
		h, ok := p.Data().PullUp(header.IPv4MinimumSize)
		if !ok {
			return false
		}
		ip := header.IPv4(h)
		if n.audience.picky.Load() != 0 && h[16]>>4 == 0xe && n.audience.shuns(tcpip.NICID(index), ip.DestinationAddress(), ip.SourceAddress()) {
			return true
		}
		if n.Checking() && index != LoopbackNIC && n.strayed(index, ip) {
			return true
		}
		if ip.TransportProtocol() != header.ICMPv4ProtocolNumber || ip.FragmentOffset() != 0 {
			return false
		}
		all := n.Filter.IgnoreEcho.Get() != 0
		if !all && (n.Filter.IgnoreBroadcast.Get() == 0 || n.unicast(ip.DestinationAddress())) {
			return false
		}
		b, ok := p.Data().PullUp(int(ip.HeaderLength()) + 1)
		return ok && header.ICMPv4Type(b[ip.HeaderLength()]) == header.ICMPv4Echo
	case header.IPv6ProtocolNumber:
		if n.audience.picky.Load() != 0 {
			h, ok := p.Data().PullUp(header.IPv6MinimumSize)
			if ok && h[24] == 0xff && n.audience.shuns(tcpip.NICID(index), header.IPv6(h).DestinationAddress(), header.IPv6(h).SourceAddress()) {
				return true
			}
		}
		if n.Filter.IgnoreEcho6.Get() == 0 {
			return false
		}
		b, ok := p.Data().PullUp(header.IPv6MinimumSize + 1)
		return ok && header.IPv6(b).NextHeader() == uint8(header.ICMPv6ProtocolNumber) &&
			header.ICMPv6Type(b[header.IPv6MinimumSize]) == header.ICMPv6EchoRequest
	}
	return false
}

// unicast reports whether an address is a host's.
func (n *Net) unicast(a tcpip.Address) bool {
	return !header.IsV4MulticastAddress(a) && a != header.IPv4Broadcast && n.Stack.CheckLocalAddress(0, header.IPv4ProtocolNumber, a) != 0 &&
		!n.Stack.IsSubnetBroadcast(0, header.IPv4ProtocolNumber, a)
}

// strayed reports whether a packet's source would not be answered by the interface
// that it came in by.
func (n *Net) strayed(index int32, ip header.IPv4) bool {
	var own InterfaceSettings
	s := &own
	if i := n.InterfaceByIndex(index); i != nil {
		s = &i.Settings
	}
	mode := max(s.ReversePath.Get(), n.AllInterfaces.ReversePath.Get())
	src := ip.SourceAddress()
	if mode == 0 || src == header.IPv4Any {
		return false
	}
	r, err := n.Stack.FindRoute(0, tcpip.Address{}, src, header.IPv4ProtocolNumber, false)
	if err == nil {
		nic := r.NICID()
		r.Release()
		if mode == 2 || int32(nic) == index {
			return false
		}
	}
	if s.LogMartians.Get() != 0 || n.AllInterfaces.LogMartians.Get() != 0 {
		n.logMartian(index, ip)
	}
	return true
}

// logMartian tells of a stray packet, at most once a second.
func (n *Net) logMartian(index int32, ip header.IPv4) {
	now, last := wait.Now(), n.Filter.logged.Load()
	if now-last < 1e9 && last != 0 || !n.Filter.logged.CompareAndSwap(last, now) {
		return
	}
	name := ""
	if i := n.InterfaceByIndex(index); i != nil {
		name = i.Name
	}
	fmt.Fprintf(n.log, "IPv4: martian source %s from %s, on dev %s\n", ip.DestinationAddress(), ip.SourceAddress(), name)
}
