package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

	"hardtack/abi/linux"
)

// Addresses and routes that programs change (netlink).

// GiveAddress gives an interface an address, and a route to the machines that share its prefix.
func (n *Net) GiveAddress(index int32, a tcpip.AddressWithPrefix) linux.Errno {
	for _, own := range n.Addresses(index) {
		if own.Address == a.Address {
			return linux.EEXIST
		}
	}
	if err := n.AddAddress(index, a.Address, a.PrefixLen); err != nil {
		return errno(err)
	}
	if r := (tcpip.Route{Destination: a.Subnet(), NIC: tcpip.NICID(index)}); !n.hasRoute(&r) {
		n.Stack.AddRoute(r)
	}
	return 0
}

// TakeAddress takes an address from an interface; it returns how it was given.
func (n *Net) TakeAddress(index int32, a tcpip.Address) (tcpip.AddressWithPrefix, bool) {
	left := false
	var gone tcpip.AddressWithPrefix
	for _, own := range n.Addresses(index) {
		if own.Address == a {
			gone = own
		}
	}
	if gone.Address.Len() == 0 || n.Stack.RemoveAddress(tcpip.NICID(index), a) != nil {
		return gone, false
	}
	for _, own := range n.Addresses(index) {
		left = left || own.Subnet() == gone.Subnet()
	}
	if !left {
		n.TakeRoute(&tcpip.Route{Destination: gone.Subnet(), NIC: tcpip.NICID(index)})
	}
	return gone, true
}

// hasRoute reports whether there is a route to the same destination; one with an interface
// or a gateway must have the same.
func (n *Net) hasRoute(r *tcpip.Route) bool {
	for _, x := range n.Routes() {
		if sameRoute(&x, r) {
			return true
		}
	}
	return false
}

func sameRoute(x, want *tcpip.Route) bool {
	return x.Destination == want.Destination && (want.NIC == 0 || x.NIC == want.NIC) &&
		(want.Gateway.Len() == 0 || x.Gateway == want.Gateway)
}

// GiveRoute adds a route, whose interface is found if it has none.
func (n *Net) GiveRoute(r *tcpip.Route, replace bool) linux.Errno {
	if r.NIC == 0 {
		if r.Gateway.Len() == 0 {
			return linux.ENODEV
		}
		p, e := n.PathTo(r.Gateway)
		if e != 0 || p.Gateway.Len() != 0 || p.Local {
			return linux.ENETUNREACH
		}
		r.NIC = tcpip.NICID(p.Index)
	}
	any := tcpip.Route{Destination: r.Destination}
	switch has := n.hasRoute(&any); {
	case has && !replace:
		return linux.EEXIST
	case has:
		n.Stack.RemoveRoutes(func(x tcpip.Route) bool { return sameRoute(&x, &any) })
	}
	n.Stack.AddRoute(*r)
	return 0
}

// TakeRoute takes a route away; r becomes what it was.
func (n *Net) TakeRoute(r *tcpip.Route) linux.Errno {
	found := false
	want := *r
	n.Stack.RemoveRoutes(func(x tcpip.Route) bool {
		if found || !sameRoute(&x, &want) {
			return false
		}
		*r, found = x, true
		return true
	})
	if !found {
		return linux.ESRCH
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
	proto := ipv4.ProtocolNumber
	if a.Len() == 16 {
		proto = ipv6.ProtocolNumber
	}
	r, err := n.Stack.FindRoute(0, tcpip.Address{}, a, proto, false)
	if err != nil {
		return p, linux.ENETUNREACH
	}
	defer r.Release()
	p = Path{Index: int32(r.NICID()), From: r.LocalAddress()}
	if hop := r.NextHop(); hop != a {
		p.Gateway = hop
	}
	return p, 0
}
