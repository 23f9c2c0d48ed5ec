package stack

import (
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// Raw endpoints of transport protocols that the stack does not have.

// bareProtocols are the endpoints of such protocols; an entry stays once it was made.
type bareProtocols struct {
	m sync.Map // of protocolIDs to *transportEndpoints
}

func (b *bareProtocols) find(ids protocolIDs) (*transportEndpoints, bool) {
	if v, ok := b.m.Load(ids); ok {
		return v.(*transportEndpoints), true
	}
	return nil, false
}

// add finds the entry, or makes it.
func (b *bareProtocols) add(ids protocolIDs) *transportEndpoints {
	v, _ := b.m.LoadOrStore(ids, &transportEndpoints{})
	return v.(*transportEndpoints)
}

// hears reports whether an endpoint gets packets of a protocol, so that its sender is not
// told that nobody knows it.
func (b *bareProtocols) hears(net tcpip.NetworkProtocolNumber, trans tcpip.TransportProtocolNumber) bool {
	eps, ok := b.find(protocolIDs{net, trans})
	if !ok {
		return false
	}
	eps.mu.RLock()
	defer eps.mu.RUnlock()
	return len(eps.rawEndpoints) > 0
}
