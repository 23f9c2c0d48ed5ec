package ipv4

import (
	"encoding/binary"
	"math"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// TCP segments and UDP datagrams sent whole and without options, as servers send them. For
// each packet the general path looks up filter tables (there are no packet filters here)
// and interfaces by name.

// plain reports whether a packet is such a one.
func plain(r *stack.Route, p *stack.NetworkHeaderParams, pkt *stack.PacketBuffer) bool {
	return (p.Protocol == header.TCPProtocolNumber || p.Protocol == header.UDPProtocolNumber) && p.ExperimentOptionValue == 0 &&
		r.Loop() == stack.PacketOut && pkt.Size() <= math.MaxUint16-header.IPv4MinimumSize
}

// writePlain is WritePacket for plain packets.
func (e *endpoint) writePlain(r *stack.Route, p *stack.NetworkHeaderParams, pkt *stack.PacketBuffer) tcpip.Error {
	if mtu := e.nic.MTU(); pkt.GSOOptions.Type == stack.GSONone && uint32(pkt.Size())+header.IPv4MinimumSize > mtu {
		if err := e.addIPHeader(r.LocalAddress(), r.RemoteAddress(), pkt, *p, nil); err != nil {
			return err
		}
		return e.writePacket(r, pkt)
	}
	size := pkt.Size() + header.IPv4MinimumSize
	h := pkt.NetworkHeader().Push(header.IPv4MinimumSize)
	src, dst := r.LocalAddress().As4(), r.RemoteAddress().As4()
	be := binary.BigEndian
	h[0], h[1] = 0x45, p.TOS
	be.PutUint16(h[2:], uint16(size))
	if p.DF {
		be.PutUint32(h[4:], 0x4000)
	} else {
		be.PutUint32(h[4:], uint32(e.getID())<<16)
	}
	h[8], h[9] = p.TTL, uint8(p.Protocol)
	be.PutUint16(h[10:], 0)
	copy(h[12:], src[:])
	copy(h[16:], dst[:])
	sum := uint64(be.Uint32(h)) + uint64(be.Uint32(h[4:])) + uint64(be.Uint32(h[8:])) +
		uint64(be.Uint32(h[12:])) + uint64(be.Uint32(h[16:]))
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	be.PutUint16(h[10:], ^uint16(sum))
	pkt.NetworkProtocolNumber = ProtocolNumber
	if err := e.nic.WritePacket(r, pkt); err != nil {
		e.stats.ip.OutgoingPacketErrors.Increment()
		return err
	}
	e.stats.ip.PacketsSent.Increment()
	return nil
}

// NextID and CountSent are what packets need that do not come here (stack.Path).
func (e *endpoint) NextID() uint16 { return e.getID() }
func (e *endpoint) CountSent()     { e.stats.ip.PacketsSent.Increment() }
