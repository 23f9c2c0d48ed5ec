package stack

import "gvisor.dev/gvisor/pkg/tcpip"

// byDevice are the endpoints with an address, by the device that they are bound to: nearly
// always one, bound to none. A map for that one is larger than what it held.
type byDevice struct {
	device tcpip.NICID // of the first
	has    bool        // the first
	more   map[tcpip.NICID]*multiPortEndpoint
	first  multiPortEndpoint
}

func (b *byDevice) get(device tcpip.NICID) (*multiPortEndpoint, bool) {
	if b.has && b.device == device {
		return &b.first, true
	}
	ep, ok := b.more[device]
	return ep, ok
}

// fresh makes an endpoint that is not among them yet.
func (b *byDevice) fresh(d *transportDemuxer, net tcpip.NetworkProtocolNumber, transport tcpip.TransportProtocolNumber) *multiPortEndpoint {
	ep := &b.first
	if b.has {
		ep = new(multiPortEndpoint)
	}
	ep.demux, ep.netProto, ep.transProto = d, uint16(net), uint8(transport)
	return ep
}

func (b *byDevice) set(device tcpip.NICID, ep *multiPortEndpoint) {
	if ep == &b.first {
		b.device, b.has = device, true
		return
	}
	if b.more == nil {
		b.more = make(map[tcpip.NICID]*multiPortEndpoint)
	}
	b.more[device] = ep
}

func (b *byDevice) remove(device tcpip.NICID) {
	if b.has && b.device == device {
		b.has = false
		return
	}
	delete(b.more, device)
}

func (b *byDevice) empty() bool { return !b.has && len(b.more) == 0 }

func (b *byDevice) all() []*multiPortEndpoint {
	var all []*multiPortEndpoint
	if b.has {
		all = append(all, &b.first)
	}
	for _, ep := range b.more {
		all = append(all, ep)
	}
	return all
}

// ids are the protocols of an endpoint.
func (ep *multiPortEndpoint) ids() protocolIDs {
	return protocolIDs{tcpip.NetworkProtocolNumber(ep.netProto), tcpip.TransportProtocolNumber(ep.transProto)}
}
