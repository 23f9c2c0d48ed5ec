package stack

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Raw endpoints of transport protocols that the stack does not implement.

// bareProtocols are the endpoints of such protocols. Entries are never removed.
type bareProtocols struct {
	m sync.Map // of protocolIDs to *transportEndpoints
}

func (b *bareProtocols) find(ids protocolIDs) (*transportEndpoints, bool) {
	if v, ok := b.m.Load(ids); ok {
		return v.(*transportEndpoints), true
	}
	return nil, false
}

// add returns the entry, and makes it if there is none.
func (b *bareProtocols) add(ids protocolIDs) *transportEndpoints {
	v, _ := b.m.LoadOrStore(ids, &transportEndpoints{})
	return v.(*transportEndpoints)
}

// hears reports whether an endpoint receives packets of a protocol. If so, the sender is
// not told that the protocol is unreachable.
func (b *bareProtocols) hears(net tcpip.NetworkProtocolNumber, trans tcpip.TransportProtocolNumber) bool {
	eps, ok := b.find(protocolIDs{net, trans})
	if !ok {
		return false
	}
	eps.mu.RLock()
	defer eps.mu.RUnlock()
	return len(eps.rawEndpoints) > 0
}
