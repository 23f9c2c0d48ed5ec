package network

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A socket that is not connected looks for a route for each datagram, two thirds of what
// sending one cost. It mostly sends to where it sent before, so the last route is kept
// until something changes that routes depend on.

// lastRoute is the route found last, without a reference. Immutable.
type lastRoute struct {
	route   *stack.Route
	changes uint64
	routeKey
}

// routeKey is what the search depends on. The addresses are those of the call, of the
// socket, and of the other machine.
type routeKey struct {
	nic                  tcpip.NICID
	local, bound, remote tcpip.Address
	loop                 bool
}

// keptRoutes is part of an endpoint.
type keptRoutes struct{ last atomic.Pointer[lastRoute] }

// plainRoute reports whether a route depends on a key only: groups have settings of their
// own.
func plainRoute(proto tcpip.NetworkProtocolNumber, to tcpip.Address) bool {
	return proto == header.IPv4ProtocolNumber && to.Len() == 4 && !header.IsV4MulticastAddress(to) && to != header.IPv4Broadcast
}

// acquire returns the kept route with a reference, or nil.
func (k *keptRoutes) acquire(key routeKey) *stack.Route {
	l := k.last.Load()
	if l == nil || l.changes != stack.RouteChanges() || l.routeKey != key || !l.route.TryAcquire() {
		return nil
	}
	return l.route
}
