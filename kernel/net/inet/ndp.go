package inet

import (
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/wait"
)

// IPv6 configures itself (RFC 4861, 4862, 8106): an interface has a link-local address of its
// MAC, and from the advertisements of routers prefixes, an address in each, the default route
// and name servers. netstack decodes them and watches their lifetimes, and tells of changes with
// locks held; so they are made by another goroutine, in order.

// NameServers hears which name servers routers advertise at an interface; set before there is a
// network.
var NameServers = hook.Default(func(i *Interface, servers []netip.Addr) {})

// discovery implements ipv6.NDPDispatcher.
type discovery struct {
	n *Net

	mu      sync.Mutex
	queue   []func() // guarded by mu
	running bool     // guarded by mu
}

// maxDiscoveries bounds what waits: a router that says more in one moment is not believed.
const maxDiscoveries = 256

// do has a change made by another goroutine.
func (d *discovery) do(nic tcpip.NICID, f func(i *Interface)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) >= maxDiscoveries {
		return
	}
	d.queue = append(d.queue, func() {
		if i := d.n.InterfaceByIndex(int32(nic)); i != nil {
			f(i)
		}
	})
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *discovery) run() {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.running = false
			d.mu.Unlock()
			return
		}
		f := d.queue[0]
		d.queue = d.queue[1:]
		d.mu.Unlock()
		f()
	}
}

// OnDuplicateAddressDetectionResult does nothing: addresses are used at once.
func (*discovery) OnDuplicateAddressDetectionResult(tcpip.NICID, tcpip.Address, stack.DADResult) {}

// Metrics of routes as Linux gives them.
const (
	metricPrefix = 256
	metricRouter = 1024
)

// give adds a route that a router advertised.
func (d *discovery) give(r tcpip.Route, metric uint32) {
	d.do(r.NIC, func(i *Interface) {
		if !d.n.IPv6Disabled(i.Index) {
			x := RouteNote{Metric: metric, Proto: linux.RTPROT_RA, Scope: linux.RT_SCOPE_UNIVERSE}
			d.n.GiveRoute(By{}, &r, x, linux.NLM_F_CREATE)
		}
	})
}

// OnOffLinkRouteUpdated gives a route by a router.
func (d *discovery) OnOffLinkRouteUpdated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address, _ header.NDPRoutePreference) {
	d.give(tcpip.Route{Destination: to, Gateway: router, NIC: nic}, metricRouter)
}

// OnOffLinkRouteInvalidated takes it away.
func (d *discovery) OnOffLinkRouteInvalidated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address) {
	d.take(tcpip.Route{Destination: to, Gateway: router, NIC: nic})
}

// OnOnLinkPrefixDiscovered gives a route to the machines of a prefix.
func (d *discovery) OnOnLinkPrefixDiscovered(nic tcpip.NICID, prefix tcpip.Subnet) {
	d.give(tcpip.Route{Destination: prefix, NIC: nic}, metricPrefix)
}

// OnOnLinkPrefixInvalidated takes it away.
func (d *discovery) OnOnLinkPrefixInvalidated(nic tcpip.NICID, prefix tcpip.Subnet) {
	d.take(tcpip.Route{Destination: prefix, NIC: nic})
}

func (d *discovery) take(r tcpip.Route) {
	d.do(r.NIC, func(*Interface) {
		d.n.TakeRoute(By{}, Wanted{Route: r, Scope: linux.RT_SCOPE_NOWHERE})
	})
}

// OnAutoGenAddress notes an address that netstack has made of a prefix.
func (d *discovery) OnAutoGenAddress(nic tcpip.NICID, a tcpip.AddressWithPrefix) stack.AddressDispatcher {
	d.do(nic, func(i *Interface) {
		if d.n.IPv6Disabled(i.Index) {
			d.n.Stack.RemoveAddress(nic, a.Address)
			return
		}
		d.n.changing.Lock()
		defer d.n.changing.Unlock()
		d.n.tell(Event{Type: linux.RTM_NEWADDR, Interface: i, Address: a})
		i.addressesChanged()
	})
	return &generated{d, nic, a}
}

// OnAutoGenAddressDeprecated does nothing: generated hears of it.
func (*discovery) OnAutoGenAddressDeprecated(tcpip.NICID, tcpip.AddressWithPrefix) {}

// OnAutoGenAddressInvalidated tells that an address has gone.
func (d *discovery) OnAutoGenAddressInvalidated(nic tcpip.NICID, a tcpip.AddressWithPrefix) {
	d.do(nic, func(i *Interface) {
		d.n.changing.Lock()
		defer d.n.changing.Unlock()
		d.n.forgetAddress(i.Index, a.Address)
		d.n.tell(Event{Type: linux.RTM_DELADDR, Interface: i, Address: a})
		i.addressesChanged()
	})
}

// generated hears of the lifetimes of an address that came from a prefix.
type generated struct {
	d   *discovery
	nic tcpip.NICID
	a   tcpip.AddressWithPrefix
}

// OnChanged notes them; netstack takes the address away when its time is over.
func (g *generated) OnChanged(l stack.AddressLifetimes, _ stack.AddressAssignmentState) {
	now := g.d.n.Stack.Clock().NowMonotonic()
	left := func(until tcpip.MonotonicTime) uint32 {
		if until == (tcpip.MonotonicTime{}) || until == tcpip.MonotonicTimeInfinite() {
			return Forever
		}
		return uint32(max(until.Sub(now), 0) / time.Second)
	}
	x := AddressNote{Proto: linux.IFAPROT_KERNEL_RA}
	x.Life = Lifetime{Limited: true, Valid: left(l.ValidUntil), Preferred: left(l.PreferredUntil), Made: wait.Now(), Changed: wait.Now()}
	if l.Deprecated {
		x.Flags, x.Life.Preferred = linux.IFA_F_DEPRECATED, 0
	}
	g.d.do(g.nic, func(i *Interface) { g.d.n.noteAddress(i.Index, g.a.Address, x) })
}

// OnRemoved does nothing: OnAutoGenAddressInvalidated is called, too.
func (*generated) OnRemoved(stack.AddressRemovalReason) {}

// OnRecursiveDNSServerOption passes name servers on.
func (d *discovery) OnRecursiveDNSServerOption(nic tcpip.NICID, servers []tcpip.Address, life time.Duration) {
	var list []netip.Addr
	for _, s := range servers {
		if a, ok := netip.AddrFromSlice(s.AsSlice()); ok {
			list = append(list, a)
		}
	}
	if life > 0 && len(list) > 0 {
		d.do(nic, func(i *Interface) { NameServers.Call(i, list) })
	}
}

// OnDNSSearchListOption does nothing.
func (*discovery) OnDNSSearchListOption(tcpip.NICID, []string, time.Duration) {}

// OnDHCPv6Configuration does nothing: there is no DHCPv6.
func (*discovery) OnDHCPv6Configuration(tcpip.NICID, ipv6.DHCPv6ConfigurationFromNDPRA) {}

// GiveLinkLocal gives an interface the address that all have on their link.
func (n *Net) GiveLinkLocal(i *Interface) {
	if i.Loopback || i.NoARP || n.IPv6Disabled(i.Index) {
		return
	}
	a := header.LinkLocalAddr(tcpip.LinkAddress(i.MAC[:]))
	n.GiveAddress(By{}, i, tcpip.AddressWithPrefix{Address: a, PrefixLen: 64}, AddressNote{})
}
