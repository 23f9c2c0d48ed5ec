package stack

import (
	"encoding/binary"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A plain packet that is received is one of IPv4 without options, whole, and for one
// station. It goes from the interface to the endpoint without a PacketBuffer, if the
// endpoint can do with its bytes, as is usual.

// PlainReceiver is an endpoint that takes such packets.
type PlainReceiver interface {
	// ReceivePlain takes a packet, from the IP header to its end, whose transport header
	// is there as far as it has a fixed size. valid: its checksum is known to be right.
	// It returns false, and has done nothing, if the packet must go through the layers.
	ReceivePlain(nic tcpip.NICID, packet []byte, valid bool) bool
}

// flow is whom the packets of a flow go to. Immutable.
type flow struct {
	flowKey
	to     PlainReceiver
	change uint32 // of the port, when it was found out
}

type flowKey struct {
	src, dst, ports uint32
	nic             tcpip.NICID
	protocol        tcpip.TransportProtocolNumber
}

const flowSlots = 1024

func (k *flowKey) hash() uint32 {
	h := uint64(k.src^uint32(k.protocol)<<24)<<32 | uint64(k.ports)
	h *= 0x9e3779b97f4a7c15
	return uint32(h>>32) ^ k.dst
}

// flowTable remembers the receivers of the flows that were seen last. A datagram may go to
// several endpoints, by how they are bound: each change at a port makes what is known of it
// void. A segment's only other receiver is a listener, so that its flow is void when its
// connection ends.
type flowTable struct {
	slots  [flowSlots]atomic.Pointer[flow]
	seen   [flowSlots]atomic.Uint32 // hashes of flows that came once
	change [256]atomic.Uint32       // by the low byte of the port
	filled [256]atomic.Bool         // slots may have flows to the port
}

// changed is called after an endpoint was registered with an address, or unregistered.
func (t *flowTable) changed(protocol tcpip.TransportProtocolNumber, id TransportEndpointID) {
	port := uint8(id.LocalPort)
	if protocol == header.TCPProtocolNumber {
		if id.RemotePort == 0 || id.LocalAddress.Len() != 4 || id.RemoteAddress.Len() != 4 {
			return
		}
		src, dst := id.RemoteAddress.As4(), id.LocalAddress.As4()
		k := flowKey{src: binary.BigEndian.Uint32(src[:]), dst: binary.BigEndian.Uint32(dst[:]),
			ports: uint32(id.RemotePort)<<16 | uint32(id.LocalPort), protocol: protocol}
		at := k.hash() % flowSlots
		if f := t.slots[at].Load(); f != nil && f.ports == k.ports && f.src == k.src {
			t.slots[at].CompareAndSwap(f, nil)
		}
		return
	}
	t.change[port].Add(1)
	if !t.filled[port].Swap(false) {
		return
	}
	for i := range t.slots {
		if f := t.slots[i].Load(); f != nil && uint8(f.ports) == port && f.protocol == protocol {
			t.slots[i].CompareAndSwap(f, nil)
		}
	}
}

// DeliverPlain hands a plain packet to its endpoint; packet is as for ReceivePlain. False
// says that the packet must go through the layers.
func (s *Stack) DeliverPlain(nic tcpip.NICID, packet []byte, valid bool) bool {
	be := binary.BigEndian
	k := flowKey{src: be.Uint32(packet[12:]), dst: be.Uint32(packet[16:]), ports: be.Uint32(packet[header.IPv4MinimumSize:]),
		nic: nic, protocol: tcpip.TransportProtocolNumber(packet[9])}
	t, hash := &s.demux.flows, k.hash()
	at := hash % flowSlots
	f := t.slots[at].Load()
	if f != nil && f.flowKey == k && f.change == t.change[uint8(k.ports)].Load() {
		return f.to.ReceivePlain(nic, packet, valid)
	}
	if k.protocol == header.TCPProtocolNumber && packet[header.IPv4MinimumSize+13] == uint8(header.TCPFlagSyn) {
		t.seen[at].Store(hash)
		to := s.findReceiver(k)
		return to != nil && to.ReceivePlain(nic, packet, valid)
	}
	if t.seen[at].Load() != hash { // it may never come again
		t.seen[at].Store(hash)
		return false
	}
	if f = s.findFlow(k); f == nil {
		return false
	}
	if !f.to.ReceivePlain(nic, packet, valid) {
		return false
	}
	t.filled[uint8(k.ports)].Store(true)
	t.slots[at].Store(f)
	return true
}

func (s *Stack) findFlow(k flowKey) *flow {
	change := s.demux.flows.change[uint8(k.ports)].Load() // before the search
	to := s.findReceiver(k)
	if to == nil {
		return nil
	}
	return &flow{k, to, change}
}

func (s *Stack) findReceiver(k flowKey) PlainReceiver {
	be := binary.BigEndian
	var src, dst [4]byte
	be.PutUint32(src[:], k.src)
	be.PutUint32(dst[:], k.dst)
	id := TransportEndpointID{LocalPort: uint16(k.ports), LocalAddress: tcpip.AddrFrom4(dst),
		RemotePort: uint16(k.ports >> 16), RemoteAddress: tcpip.AddrFrom4(src)}
	to, _ := s.demux.findTransportEndpoint(header.IPv4ProtocolNumber, k.protocol, id, k.nic).(PlainReceiver)
	return to
}
