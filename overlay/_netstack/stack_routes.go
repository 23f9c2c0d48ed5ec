package stack

import "sync/atomic"

// routeChanges counts what may change the way that packets take: routes, addresses, and
// interfaces that come up and go down.
var routeChanges atomic.Uint64

// RouteChanges returns a number that is another one after such a change.
func RouteChanges() uint64 { return routeChanges.Load() }

// TryAcquire is Acquire of a route that may be gone: it reports whether packets can still
// take it.
func (r *Route) TryAcquire() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.isValidForOutgoingRLocked() && r.localAddressEndpoint.TryIncRef()
}
