package stack

import (
	"encoding/binary"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Connections with one peer share a Route: looking for one is a tenth of what accepting a
// connection costs, and a Route knows the neighbor and the way of plain packets.

// sharedRoute is a route without a reference. Immutable.
type sharedRoute struct {
	route         *Route
	changes       uint64
	nic           tcpip.NICID
	local, remote tcpip.Address
}

// sharedRoutes are the routes found last, by the peer's address.
type sharedRoutes [64]atomic.Pointer[sharedRoute]

// SharedRoute is FindRoute, except that others may have the route too.
func (s *Stack) SharedRoute(nic tcpip.NICID, local, remote tcpip.Address, proto tcpip.NetworkProtocolNumber) (*Route, tcpip.Error) {
	if proto != header.IPv4ProtocolNumber || local.Len() != 4 || remote.Len() != 4 || header.IsV4MulticastAddress(remote) || remote == header.IPv4Broadcast {
		return s.FindRoute(nic, local, remote, proto, false)
	}
	to := remote.As4()
	h := binary.LittleEndian.Uint32(to[:]) * 0x9e3779b1
	slot := &s.demux.routes[h>>26]
	changes := routeChanges.Load()
	if k := slot.Load(); k != nil && k.changes == changes && k.nic == nic && k.local == local && k.remote == remote && k.route.TryAcquire() {
		return k.route, nil
	}
	r, err := s.FindRoute(nic, local, remote, proto, false)
	if err == nil {
		slot.Store(&sharedRoute{r, changes, nic, local, remote})
	}
	return r, err
}
