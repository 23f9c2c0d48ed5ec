package inet

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
)

// Tapped is a packet that passes an interface, as a Tap sees it. Its bytes are the
// Tap's only during the call.
type Tapped struct {
	Frame     []byte // from the link header on
	Interface *Interface
	Protocol  uint16 // the Ethernet type, or ETH_P_802_2
	Type      uint8  // PACKET_*
	Partial   bool   // its checksum is not complete
	Checked   bool   // its checksum was found to be right
}

// LinkHeaderLen is the length of the link header of every interface, lo's too.
const LinkHeaderLen = header.EthernetMinimumSize

// A Tap hears of every packet that passes an interface (AF_PACKET). It is called with
// netstack's locks held and must not call netstack.
type Tap interface {
	Tap(p *Tapped)
	// InterfaceDown says that an interface passes nothing any more.
	InterfaceDown(index int32)
}

// taps lists the Taps; the list is immutable, nil without any.
type taps struct {
	mu   sync.Mutex
	list atomic.Pointer[[]Tap] // written with mu held
}

// AddTap begins to tell t of packets. While there is a Tap, all packets take the
// ordinary way through netstack, as with raw sockets.
func (n *Net) AddTap(t Tap) {
	n.taps.mu.Lock()
	defer n.taps.mu.Unlock()
	var list []Tap
	if old := n.taps.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, t)
	n.taps.list.Store(&list)
	n.raw.Add(1)
}

// RemoveTap ends it; a call that has begun may still come.
func (n *Net) RemoveTap(t Tap) {
	n.taps.mu.Lock()
	defer n.taps.mu.Unlock()
	old := n.taps.list.Load()
	if old == nil || !slices.Contains(*old, t) {
		return
	}
	n.raw.Add(-1)
	list := slices.DeleteFunc(slices.Clone(*old), func(x Tap) bool { return x == t })
	if len(list) == 0 {
		n.taps.list.Store(nil)
		return
	}
	n.taps.list.Store(&list)
}

// AfterFunc calls f after a time. All such calls come one after the other, and f must not
// wait.
func (n *Net) AfterFunc(d time.Duration, f func()) tcpip.Timer { return new(clock).AfterFunc(d, f) }

// Tapped reports whether there is a Tap.
func (n *Net) Tapped() bool { return n.taps.list.Load() != nil }

// tap tells all Taps but one of a packet.
func (n *Net) tap(p *Tapped, but Tap) {
	list := n.taps.list.Load()
	if list == nil {
		return
	}
	for _, t := range *list {
		if t != but {
			t.Tap(p)
		}
	}
}

// TapIn tells the Taps of a frame that came in by an interface.
func (n *Net) TapIn(index int32, frame []byte, typ tcpip.PacketType, checked bool) {
	if i := n.InterfaceByIndex(index); i != nil && len(frame) >= LinkHeaderLen {
		n.tap(&Tapped{Frame: frame, Interface: i, Protocol: EtherType(frame), Type: packetType(typ), Checked: checked}, nil)
	}
}

// TapOut tells the Taps of a frame that leaves by an interface.
func (n *Net) TapOut(index int32, frame []byte, partial bool) {
	n.tapOut(index, frame, 0, partial, nil)
}

func (n *Net) tapOut(index int32, frame []byte, proto uint16, partial bool, sender Tap) {
	if i := n.InterfaceByIndex(index); i != nil && len(frame) >= LinkHeaderLen {
		if proto == 0 || proto == linux.ETH_P_ALL {
			proto = EtherType(frame)
		}
		n.tap(&Tapped{Frame: frame, Interface: i, Protocol: proto, Type: linux.PACKET_OUTGOING, Partial: partial}, sender)
	}
}

// packetType is netstack's packet type as a PACKET_*.
func packetType(t tcpip.PacketType) uint8 {
	switch t {
	case tcpip.PacketBroadcast:
		return linux.PACKET_BROADCAST
	case tcpip.PacketMulticast:
		return linux.PACKET_MULTICAST
	case tcpip.PacketOtherHost:
		return linux.PACKET_OTHERHOST
	}
	return linux.PACKET_HOST
}

// EtherType returns the protocol of a frame.
func EtherType(frame []byte) uint16 {
	if t := binary.BigEndian.Uint16(frame[12:]); t >= 0x600 {
		return t
	}
	return linux.ETH_P_802_2
}

// SendFrame sends a frame that a Tap has made; it does not hear of it itself.
func (n *Net) SendFrame(i *Interface, frame []byte, proto uint16, sender Tap) linux.Errno {
	n.tapOut(i.Index, frame, proto, false, sender)
	if i.send == nil || !i.send(frame) {
		return linux.ENOBUFS
	}
	return 0
}

// A frameSender is a link endpoint that takes frames made elsewhere.
type frameSender interface{ SendFrame(frame []byte) bool }

// SendFrame receives a frame on lo, as everything that is sent there.
func (l *loopback) SendFrame(frame []byte) bool {
	typ := tcpip.PacketOtherHost
	switch dst := [6]byte(frame); {
	case dst == [6]byte{}:
		typ = tcpip.PacketHost
	case dst[0]&1 != 0: // lo has no broadcast address
		typ = tcpip.PacketMulticast
	}
	l.net.TapIn(LoopbackNIC, frame, typ, false)
	d := l.d.Load()
	if d == nil || typ == tcpip.PacketOtherHost {
		return true
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame[LinkHeaderLen:])})
	p.PktType = typ
	l.deliver(*d, tcpip.NetworkProtocolNumber(EtherType(frame)), p)
	return true
}

// tapped tells the Taps of a packet that is sent and received on lo.
func (l *loopback) tapped(p *stack.PacketBuffer) {
	b := make([]byte, LinkHeaderLen, LinkHeaderLen+p.Size())
	binary.BigEndian.PutUint16(b[12:], uint16(p.NetworkProtocolNumber))
	for _, part := range p.AsSlices() {
		b = append(b, part...)
	}
	i := l.net.InterfaceByIndex(LoopbackNIC)
	out := Tapped{Frame: b, Interface: i, Protocol: EtherType(b), Type: linux.PACKET_OUTGOING, Partial: true}
	in := out
	in.Type = linux.PACKET_HOST
	l.net.tap(&out, nil)
	l.net.tap(&in, nil)
}

// deliver hands a packet to netstack.
func (l *loopback) deliver(d stack.NetworkDispatcher, proto tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	if !l.net.Refuses(LoopbackNIC, proto, p) {
		d.DeliverNetworkPacket(proto, p)
	}
	p.DecRef()
}
