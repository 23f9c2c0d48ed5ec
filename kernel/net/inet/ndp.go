package inet

import (
	"slices"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// IPv6 configures itself (RFC 4861, 4862): an interface has a link-local address of its MAC, and
// from the advertisements of routers prefixes, an address in each, and default routes. netstack
// decodes them, watches their lifetimes, and keeps ten of each kind at most. It tells of changes
// with locks held, so a goroutine makes them later. What waits is no list of changes but what is
// known now: who advertises and withdraws without an end costs no more memory.

// discovery implements ipv6.NDPDispatcher.
type discovery struct {
	n *Net

	mu      sync.Mutex
	known   map[learnedKey]*learned // guarded by mu
	running bool                    // guarded by mu: there is a goroutine
}

// learnedKey is a route, or an address.
type learnedKey struct {
	route   routeKey // of an address: nic only
	address tcpip.AddressWithPrefix
}

// learned is what is known of one. One that is neither valid nor made is in no map.
type learned struct {
	valid   bool // netstack says so
	made    bool // programs see it
	changed bool // note has changed since
	note    AddressNote
}

// update notes that something is valid or not, and has it made.
func (d *discovery) update(k learnedKey, change func(*learned)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.known[k]
	if x == nil {
		x = &learned{}
		d.known[k] = x
	}
	change(x)
	if !x.valid && !x.made {
		delete(d.known, k)
		return
	}
	if !d.running {
		d.running = true
		go d.run()
	}
}

func (d *discovery) run() {
	for {
		k, x, ok := d.next()
		if !ok {
			return
		}
		d.n.changing.Lock()
		switch i := d.n.InterfaceByIndex(int32(k.route.nic)); {
		case i == nil:
		case k.address.PrefixLen != 0:
			d.n.learnAddress(i, k.address, x)
		default:
			d.n.learnRoute(k.route, x.valid)
		}
		d.n.changing.Unlock()
	}
}

// next is what is to be made or taken away next. It takes away first: so what is made is never
// more than netstack knew at one time.
func (d *discovery) next() (learnedKey, learned, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for k, x := range d.known {
		if !x.valid {
			delete(d.known, k)
			return k, *x, true
		}
	}
	for k, x := range d.known {
		if !x.made || x.changed {
			x.made, x.changed = true, false
			return k, *x, true
		}
	}
	d.running = false
	return learnedKey{}, learned{}, false
}

// metricRouter is the metric of routes that routers advertise, as on Linux.
const metricRouter = 1024

// learnRoute adds or removes a route. Called with changing held.
func (n *Net) learnRoute(k routeKey, valid bool) {
	r := tcpip.Route{Destination: k.dst, Gateway: k.via, NIC: k.nic}
	x := RouteNote{Metric: metricKernel6, Proto: linux.RTPROT_KERNEL, Scope: linux.RT_SCOPE_UNIVERSE}
	if k.via.Len() != 0 {
		x.Metric, x.Proto = metricRouter, linux.RTPROT_RA
	}
	if valid {
		n.giveRoute(By{}, &r, x, linux.NLM_F_CREATE)
	} else {
		n.takeRoute(By{}, Wanted{Route: r, Proto: x.Proto, Metric: x.Metric, Scope: linux.RT_SCOPE_NOWHERE})
	}
}

// learnAddress notes an address that netstack has made, or that it has gone. Called with changing
// held.
func (n *Net) learnAddress(i *Interface, a tcpip.AddressWithPrefix, x learned) {
	old := n.AddressNoteOf(i.Index, a.Address)
	switch has := slices.Contains(n.Addresses(i.Index), a); {
	case !x.valid && old.Proto == linux.IFAPROT_KERNEL_RA:
		n.forgetAddress(i.Index, a.Address)
		n.tell(Event{Type: linux.RTM_DELADDR, Interface: i, Address: a})
		i.addressesChanged()
	case x.valid && has:
		if old.Proto != linux.IFAPROT_KERNEL_RA {
			n.addressOrder.Store(addressKey{i.Index, a.Address}, n.addressCount.Add(1))
		}
		if x.note.Life.Made = old.Life.Made; x.note.Life.Made == 0 {
			x.note.Life.Made = x.note.Life.Changed
		}
		n.noteAddress(i.Index, a.Address, x.note)
		n.tell(Event{Type: linux.RTM_NEWADDR, Interface: i, Address: a})
		i.addressesChanged()
	}
}

// OnOffLinkRouteUpdated gives a route by a router.
func (d *discovery) OnOffLinkRouteUpdated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address, _ header.NDPRoutePreference) {
	d.update(learnedKey{route: routeKey{to, router, nic}}, func(x *learned) { x.valid = true })
}

// OnOffLinkRouteInvalidated takes it away.
func (d *discovery) OnOffLinkRouteInvalidated(nic tcpip.NICID, to tcpip.Subnet, router tcpip.Address) {
	d.update(learnedKey{route: routeKey{to, router, nic}}, func(x *learned) { x.valid = false })
}

// OnOnLinkPrefixDiscovered gives a route to the machines of a prefix.
func (d *discovery) OnOnLinkPrefixDiscovered(nic tcpip.NICID, prefix tcpip.Subnet) {
	d.update(learnedKey{route: routeKey{dst: prefix, nic: nic}}, func(x *learned) { x.valid = true })
}

// OnOnLinkPrefixInvalidated takes it away.
func (d *discovery) OnOnLinkPrefixInvalidated(nic tcpip.NICID, prefix tcpip.Subnet) {
	d.update(learnedKey{route: routeKey{dst: prefix, nic: nic}}, func(x *learned) { x.valid = false })
}

func addressOf(nic tcpip.NICID, a tcpip.AddressWithPrefix) learnedKey {
	return learnedKey{routeKey{nic: nic}, a}
}

// OnAutoGenAddress returns who hears of the lifetimes of an address that netstack makes.
func (d *discovery) OnAutoGenAddress(nic tcpip.NICID, a tcpip.AddressWithPrefix) stack.AddressDispatcher {
	return &generated{d, addressOf(nic, a)}
}

// OnAutoGenAddressInvalidated takes an address away that netstack has removed.
func (d *discovery) OnAutoGenAddressInvalidated(nic tcpip.NICID, a tcpip.AddressWithPrefix) {
	d.update(addressOf(nic, a), func(x *learned) { x.valid = false })
}

// generated hears of an address that came from a prefix.
type generated struct {
	d *discovery
	k learnedKey
}

// OnChanged notes the address and its lifetimes; netstack removes it when its time is over.
func (g *generated) OnChanged(l stack.AddressLifetimes, _ stack.AddressAssignmentState) {
	now := g.d.n.Stack.Clock().NowMonotonic()
	left := func(until tcpip.MonotonicTime) uint32 {
		if until == (tcpip.MonotonicTime{}) || until == tcpip.MonotonicTimeInfinite() {
			return Forever
		}
		return uint32(max(until.Sub(now), 0) / time.Second)
	}
	note := AddressNote{Proto: linux.IFAPROT_KERNEL_RA, Flags: linux.IFA_F_MANAGETEMPADDR}
	note.Life = Lifetime{Limited: true, Valid: left(l.ValidUntil), Preferred: left(l.PreferredUntil), Changed: wait.Now()}
	if l.Deprecated {
		note.Flags |= linux.IFA_F_DEPRECATED
		note.Life.Preferred = 0
	}
	g.d.update(g.k, func(x *learned) { x.valid, x.changed, x.note = true, true, note })
}

// OnRemoved does nothing: OnAutoGenAddressInvalidated is called, too.
func (*generated) OnRemoved(stack.AddressRemovalReason) {}

// What else netstack tells is of no use here: addresses are used at once, there is no DHCPv6, and
// as on Linux name servers are no matter of the kernel.

// OnDuplicateAddressDetectionResult does nothing.
func (*discovery) OnDuplicateAddressDetectionResult(tcpip.NICID, tcpip.Address, stack.DADResult) {}

// OnAutoGenAddressDeprecated does nothing: generated hears of it.
func (*discovery) OnAutoGenAddressDeprecated(tcpip.NICID, tcpip.AddressWithPrefix) {}

// OnRecursiveDNSServerOption does nothing.
func (*discovery) OnRecursiveDNSServerOption(tcpip.NICID, []tcpip.Address, time.Duration) {}

// OnDNSSearchListOption does nothing.
func (*discovery) OnDNSSearchListOption(tcpip.NICID, []string, time.Duration) {}

// OnDHCPv6Configuration does nothing.
func (*discovery) OnDHCPv6Configuration(tcpip.NICID, ipv6.DHCPv6ConfigurationFromNDPRA) {}
