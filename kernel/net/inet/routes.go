package inet

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

	"hardtack/abi/linux"
)

// Routes that programs change (netlink, ioctl). netstack's table decides: of the routes
// with the longest prefix it takes the first. What Linux shows of a route beyond that,
// and its metric, by which routes of one prefix are ordered, is kept beside it.

// RouteNote is what netstack does not keep of a route.
type RouteNote struct {
	Metric       uint32
	Proto, Scope uint8
}

// Nowhere is the interface of routes of a type that lead nowhere, RTN_BLACKHOLE and the
// like; see the overlay's stack_refuse.go. 0 for other types.
func Nowhere(typ uint8) tcpip.NICID {
	if typ >= linux.RTN_BLACKHOLE && typ <= linux.RTN_THROW {
		return -tcpip.NICID(typ)
	}
	return 0
}

// TypeOf returns a route's type.
func TypeOf(r *tcpip.Route) uint8 {
	if r.NIC < 0 {
		return uint8(-r.NIC)
	}
	return linux.RTN_UNICAST
}

// routeKey says which route a note is about.
type routeKey struct {
	dst tcpip.Subnet
	via tcpip.Address
	nic tcpip.NICID
}

func keyOf(r *tcpip.Route) routeKey { return routeKey{r.Destination, r.Gateway, r.NIC} }

// MetricUser6 and metricKernel6 are the metrics of IPv6 routes: of those that programs add, and of those to addresses' prefixes.
const MetricUser6, metricKernel6 = 1024, 256

// NoteOf returns what is kept of a route.
func (n *Net) NoteOf(r *tcpip.Route) RouteNote {
	n.mu.RLock()
	x, ok := n.notes[keyOf(r)]
	n.mu.RUnlock()
	if ok {
		return x
	}
	x = RouteNote{Proto: linux.RTPROT_KERNEL, Scope: linux.RT_SCOPE_LINK}
	six := r.Destination.ID().Len() == 16
	if six {
		x.Metric, x.Scope = metricKernel6, linux.RT_SCOPE_UNIVERSE
	}
	if r.Gateway.Len() != 0 {
		x.Proto, x.Scope = linux.RTPROT_BOOT, linux.RT_SCOPE_UNIVERSE
		if six {
			x.Metric = MetricUser6
		}
	}
	return x
}

// noteRoute keeps what is known of a route, or forgets it.
func (n *Net) noteRoute(r *tcpip.Route, x *RouteNote) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if x == nil {
		delete(n.notes, keyOf(r))
		return
	}
	n.notes[keyOf(r)] = *x
}

// placeRoute puts a route in front of, or behind, those of its prefix and metric. Called
// with changing held.
func (n *Net) placeRoute(r tcpip.Route, x RouteNote, last bool) {
	list := n.Stack.GetRouteTable()
	at := slices.IndexFunc(list, func(o tcpip.Route) bool {
		if o.Destination.Prefix() != r.Destination.Prefix() {
			return o.Destination.Prefix() < r.Destination.Prefix()
		}
		m := n.NoteOf(&o).Metric
		return m > x.Metric || m == x.Metric && !last
	})
	if at < 0 {
		at = len(list)
	}
	n.noteRoute(&r, &x)
	n.Stack.SetRouteTable(slices.Insert(list, at, r))
}

// dropRoutes takes routes away, and says which. Called with changing held.
func (n *Net) dropRoutes(which func(*tcpip.Route) bool) (gone []tcpip.Route, notes []RouteNote) {
	n.Stack.RemoveRoutes(func(r tcpip.Route) bool {
		if !which(&r) {
			return false
		}
		gone = append(gone, r)
		return true
	})
	for i := range gone {
		notes = append(notes, n.NoteOf(&gone[i]))
		n.noteRoute(&gone[i], nil)
	}
	return gone, notes
}

// connected adds the route to an address's prefix, if there is none. Called with changing held.
func (n *Net) connected(by By, i *Interface, a tcpip.AddressWithPrefix) {
	r := tcpip.Route{Destination: a.Subnet(), NIC: tcpip.NICID(i.Index)}
	own := n.AddressNoteOf(i.Index, a.Address)
	if !i.Up() || own.Flags&linux.IFA_F_NOPREFIXROUTE != 0 || slices.ContainsFunc(n.Routes(), func(x tcpip.Route) bool { return keyOf(&x) == keyOf(&r) }) {
		return
	}
	x := n.NoteOf(&r)
	if own.Metric != 0 {
		x.Metric = own.Metric
	}
	n.placeRoute(r, x, true)
	if !i.Loopback {
		n.tell(Event{By: by, Note: x, Type: linux.RTM_NEWROUTE, Interface: i, Route: r})
	}
}

// GiveRoute adds a route, whose interface is found if it has none; flags are NLM_F_*.
func (n *Net) GiveRoute(by By, r *tcpip.Route, x RouteNote, flags uint16) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	return n.giveRoute(by, r, x, flags)
}

// giveRoute is GiveRoute with changing held.
func (n *Net) giveRoute(by By, r *tcpip.Route, x RouteNote, flags uint16) linux.Errno {
	if e := n.checkRoute(r, x); e != 0 {
		return e
	}
	equal := func(o *tcpip.Route) bool { return o.Destination == r.Destination && n.NoteOf(o).Metric == x.Metric }
	list := n.Routes()
	first := slices.IndexFunc(list, func(o tcpip.Route) bool { return equal(&o) })
	if first >= 0 && flags&linux.NLM_F_EXCL != 0 {
		return linux.EEXIST
	}
	same := slices.ContainsFunc(list, func(o tcpip.Route) bool { return keyOf(&o) == keyOf(r) })
	switch {
	case first >= 0 && flags&linux.NLM_F_REPLACE != 0:
		old := keyOf(&list[first])
		switch {
		case old == keyOf(r) && n.NoteOf(r) == x:
			return 0
		case same && old != keyOf(r):
			return linux.EEXIST
		}
		n.dropRoutes(func(o *tcpip.Route) bool { return keyOf(o) == old })
	case first < 0 && flags&linux.NLM_F_CREATE == 0:
		return linux.ENOENT
	case same:
		return linux.EEXIST
	case flags&linux.NLM_F_CREATE == 0:
		return linux.ENOENT
	}
	n.placeRoute(*r, x, flags&linux.NLM_F_APPEND != 0)
	n.tell(Event{By: by, Note: x, Type: linux.RTM_NEWROUTE, Interface: n.InterfaceByIndex(int32(r.NIC)), Route: *r})
	return 0
}

// checkRoute checks where a route leads, and finds its interface. Called with changing held.
func (n *Net) checkRoute(r *tcpip.Route, x RouteNote) linux.Errno {
	if r.NIC < 0 {
		if r.Gateway.Len() != 0 {
			return linux.EINVAL
		}
		return 0
	}
	i := n.InterfaceByIndex(int32(r.NIC))
	if r.SourceHint.Len() != 0 && n.Stack.CheckLocalAddress(0, protocolOf(r.SourceHint), r.SourceHint) == 0 {
		return linux.EINVAL
	}
	switch {
	case r.NIC != 0 && i == nil:
		return linux.ENODEV
	case r.Gateway.Len() == 0 && i == nil:
		return linux.ENODEV
	case i != nil && !i.Up():
		return linux.ENETDOWN
	case r.Gateway.Len() == 0:
		return 0
	case x.Scope >= linux.RT_SCOPE_LINK:
		return linux.ENETUNREACH
	}
	if _, _, own := n.local(r.Gateway); own && (i == nil || i.Loopback) {
		r.NIC = LoopbackNIC
		return 0
	}
	for _, o := range n.Routes() { // the gateway must be on the link
		if o.NIC > 0 && o.Gateway.Len() == 0 && o.Destination.Contains(r.Gateway) && (r.NIC == 0 || r.NIC == o.NIC) {
			r.NIC = o.NIC
			return 0
		}
	}
	if r.Gateway.Len() == 16 {
		if i != nil && header.IsV6LinkLocalUnicastAddress(r.Gateway) {
			return 0
		}
		return linux.EHOSTUNREACH
	}
	return linux.ENETUNREACH
}

// protocolOf returns the network protocol of an address.
func protocolOf(a tcpip.Address) tcpip.NetworkProtocolNumber {
	if a.Len() == 16 {
		return ipv6.ProtocolNumber
	}
	return ipv4.ProtocolNumber
}

// Wanted says which route to take away: what is 0 may be anything.
type Wanted struct {
	Route        tcpip.Route
	Metric       uint32
	Proto, Scope uint8 // Scope RT_SCOPE_NOWHERE for any
	Type         uint8
}

func (n *Net) wanted(o *tcpip.Route, w *Wanted) bool {
	x, r := n.NoteOf(o), &w.Route
	return o.Destination == r.Destination && (r.NIC == 0 || o.NIC == r.NIC) && (r.Gateway.Len() == 0 || o.Gateway == r.Gateway) &&
		(r.SourceHint.Len() == 0 || o.SourceHint == r.SourceHint) &&
		(w.Type == 0 || TypeOf(o) == w.Type) && (w.Metric == 0 || x.Metric == w.Metric) && (w.Proto == 0 || x.Proto == w.Proto) &&
		(w.Scope == linux.RT_SCOPE_NOWHERE || x.Scope == w.Scope)
}

// TakeRoute takes the first route away that is wanted.
func (n *Net) TakeRoute(by By, w Wanted) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	return n.takeRoute(by, w)
}

// takeRoute is TakeRoute with changing held.
func (n *Net) takeRoute(by By, w Wanted) linux.Errno {
	list := n.Routes()
	at := slices.IndexFunc(list, func(o tcpip.Route) bool { return n.wanted(&o, &w) })
	if at < 0 {
		return linux.ESRCH
	}
	key := keyOf(&list[at])
	gone, notes := n.dropRoutes(func(o *tcpip.Route) bool { return keyOf(o) == key })
	for k, r := range gone {
		n.tell(Event{By: by, Type: linux.RTM_DELROUTE, Interface: n.InterfaceByIndex(int32(r.NIC)), Route: r, Note: notes[k]})
	}
	return 0
}

// Path is the way that a packet takes.
type Path struct {
	Index   int32         // of the interface
	From    tcpip.Address // the source address
	Gateway tcpip.Address // none where the destination is on the link
	Local   bool          // the destination is this machine
}

// PathTo returns the way to an address.
func (n *Net) PathTo(a tcpip.Address) (p Path, e linux.Errno) {
	if _, src, local := n.local(a); local {
		return Path{Index: LoopbackNIC, From: src, Local: true}, 0
	}
	r, err := n.Stack.FindRoute(0, tcpip.Address{}, a, protocolOf(a), false)
	if err != nil {
		return p, errno(err)
	}
	defer r.Release()
	p = Path{Index: int32(r.NICID()), From: r.LocalAddress()}
	if hop := r.NextHop(); hop != a {
		p.Gateway = hop
	}
	return p, 0
}
