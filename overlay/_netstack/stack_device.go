package stack

import "gvisor.dev/gvisor/pkg/tcpip"

// byDevice are the endpoints with an address, by the device that they are bound to: nearly
// always one, bound to none. A map for that one is larger than what it held.
type byDevice struct {
	device tcpip.NICID
	first  *multiPortEndpoint // nil without
	more   map[tcpip.NICID]*multiPortEndpoint
	room   multiPortEndpoint // what first is made of
}

func (b *byDevice) get(device tcpip.NICID) (*multiPortEndpoint, bool) {
	if b.first != nil && b.device == device {
		return b.first, true
	}
	ep, ok := b.more[device]
	return ep, ok
}

// fresh makes an endpoint that is not among them yet.
func (b *byDevice) fresh(d *transportDemuxer, net tcpip.NetworkProtocolNumber, transport tcpip.TransportProtocolNumber) *multiPortEndpoint {
	ep := &b.room
	if b.first != nil {
		ep = new(multiPortEndpoint)
	}
	ep.demux, ep.netProto, ep.transProto = d, net, transport
	return ep
}

func (b *byDevice) set(device tcpip.NICID, ep *multiPortEndpoint) {
	if b.first == nil {
		b.device, b.first = device, ep
		return
	}
	if b.more == nil {
		b.more = make(map[tcpip.NICID]*multiPortEndpoint)
	}
	b.more[device] = ep
}

func (b *byDevice) remove(device tcpip.NICID) {
	if b.first != nil && b.device == device {
		b.first = nil
		return
	}
	delete(b.more, device)
}

func (b *byDevice) empty() bool { return b.first == nil && len(b.more) == 0 }

func (b *byDevice) all() []*multiPortEndpoint {
	var all []*multiPortEndpoint
	if b.first != nil {
		all = append(all, b.first)
	}
	for _, ep := range b.more {
		all = append(all, ep)
	}
	return all
}
