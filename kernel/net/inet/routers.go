package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

	"hardtack/abi/linux"
)

// raSettings are net.ipv6.conf.NAME.accept_ra and autoconf: whether advertisements of routers
// count (2: even while the interface forwards), and whether their prefixes give addresses. Other
// than on Linux the first is off by default: the timers of lifetimes cost each context switch.
type raSettings struct {
	accept, autoconf int64
}

// ndp is what netstack asks of routers, and takes from them. Addresses that change (RFC 8981) and
// routes to single prefixes (RFC 4191) are off, as by default on Linux.
func (s raSettings) ndp() ipv6.NDPConfigurations {
	c := ipv6.DefaultNDPConfigurations()
	c.AutoGenTempGlobalAddresses = false
	c.DiscoverMoreSpecificRoutes = false
	c.AutoGenGlobalAddresses = s.autoconf != 0
	switch {
	case s.accept <= 0:
		c.HandleRAs = ipv6.HandlingRAsDisabled
	case s.accept == 1:
		c.HandleRAs = ipv6.HandlingRAsEnabledWhenForwardingDisabled
	default:
		c.HandleRAs = ipv6.HandlingRAsAlwaysEnabled
	}
	return c
}

// AcceptRA returns accept_ra and autoconf of an interface; index 0 is the default of new ones,
// and -1 a value that is only kept, as on Linux.
func (n *Net) AcceptRA(index int32) (accept, autoconf int64) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	s := n.routers[index]
	return s.accept, s.autoconf
}

// SetAcceptRA changes accept_ra. An interface that begins to listen to routers asks them.
func (n *Net) SetAcceptRA(index int32, accept int64) {
	n.setRA(index, func(s *raSettings) { s.accept = accept })
}

// SetAutoconf changes autoconf.
func (n *Net) SetAutoconf(index int32, on int64) {
	n.setRA(index, func(s *raSettings) { s.autoconf = on })
}

func (n *Net) setRA(index int32, change func(*raSettings)) {
	n.changing.Lock()
	defer n.changing.Unlock()
	n.mu.Lock()
	s := n.routers[index]
	was := s.accept > 0
	change(&s)
	n.routers[index] = s
	n.applyNDP(index)
	n.mu.Unlock()
	if i := n.InterfaceByIndex(index); i != nil && i.Up() && !was {
		n.configure(i)
	}
}

// applyNDP tells netstack what an interface takes from routers. Called with mu held.
func (n *Net) applyNDP(index int32) {
	s := n.routers[index]
	if _, off := n.without6[index]; off || index == LoopbackNIC {
		s.accept = 0
	}
	ep, err := n.Stack.GetNetworkEndpoint(tcpip.NICID(index), header.IPv6ProtocolNumber)
	if err != nil {
		return // a default
	}
	if x, ok := ep.(ipv6.NDPEndpoint); ok {
		x.SetNDPConfigurations(s.ndp())
	}
}

// discoverer is netstack's IPv6 of an interface in a kernel (overlay/_netstack): it forgets what
// routers have said, and asks them.
type discoverer interface{ Rediscover() }

// rediscover has an interface forget what routers have said, and ask them if it listens to them.
func (n *Net) rediscover(index int32) {
	ep, err := n.Stack.GetNetworkEndpoint(tcpip.NICID(index), header.IPv6ProtocolNumber)
	if err != nil {
		return
	}
	if x, ok := ep.(discoverer); ok {
		x.Rediscover()
	}
}

// Configure gives an interface that listens to routers the address that all have on their link, and
// asks them.
func (n *Net) Configure(i *Interface) {
	n.changing.Lock()
	defer n.changing.Unlock()
	n.configure(i)
}

// configure is Configure with changing held.
func (n *Net) configure(i *Interface) {
	if accept, _ := n.AcceptRA(i.Index); accept <= 0 || i.Loopback || i.NoARP || n.IPv6Disabled(i.Index) {
		return
	}
	a := header.LinkLocalAddr(tcpip.LinkAddress(i.MAC[:]))
	n.giveAddress(By{}, i, tcpip.AddressWithPrefix{Address: a, PrefixLen: 64}, AddressNote{Proto: linux.IFAPROT_KERNEL_LL})
	n.rediscover(i.Index)
}
