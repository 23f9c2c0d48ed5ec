package inet

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
	"hardtack/kernel/base/random"
	"hardtack/kernel/net/bpf"
)

// gate says which packets a socket receives: netstack asks it for each packet, with locks
// held, so that it looks at nothing that can change. A socket without such options has
// none.
type gate struct {
	kind     gateKind
	sendTTL  uint8                                 // of what the socket sends over IPv4, for the other end of a connection within the machine
	sendHops uint8                                 // and over IPv6
	minTTL   uint8                                 // IP_MINTTL
	minHops  uint8                                 // IPV6_MINHOPCOUNT
	few      [2]bool                               // IP_MULTICAST_ALL, IPV6_MULTICAST_ALL are off
	keepSyn  uint8                                 // TCP_SAVE_SYN
	joined   []membership                          // with their sources; nil where those do not matter
	filter   *bpf.Program                          // SO_ATTACH_FILTER
	deny     uint32                                // ICMP_FILTER
	admits   func(*stack.PacketBuffer) (int, bool) // admit, or nil to take all
	passed   atomic.Uint64                         // of a connection within the machine: the position up to which it was let through
}

// gateKind is where the packets begin that a socket's filter sees.
type gateKind uint8

const (
	gateUDP gateKind = iota
	gatePing
	gateRaw4
	gateRaw6
	gateTCP
)

// fourDeaf is the gate of a new socket of IPv6: it gets packets to groups of IPv4 only if it
// has joined them.
var fourDeaf = func() *gate {
	g := &gate{few: [2]bool{true, false}}
	g.admits = g.admit
	return g
}()

// looks reports whether the gate needs to see packets.
func (g *gate) looks() bool { return g != nil && (g.admits != nil || g.keepSyn != 0) }

// gated is an endpoint of netstack that asks a gate.
type gated interface {
	SetGate(admit func(*stack.PacketBuffer) (int, bool), keepFirst bool)
	First(look bool) (headers []byte, link int)
}

// regate makes the socket's gate anew after an option changed; called with mu held.
func (s *inetSock) regate() {
	g := s.newGate()
	old := s.rules.Swap(g)
	if p := s.ep.Load(); p != nil {
		g.tell(p.Endpoint)
	}
	if t, ok := s.self.(*TCP); ok {
		t.noteGate(old, g)
	}
}

// tell gives the gate to an endpoint; nil for none.
func (g *gate) tell(ep tcpip.Endpoint) {
	x, ok := ep.(gated)
	switch {
	case !ok:
	case g == nil:
		x.SetGate(nil, false)
	default:
		x.SetGate(g.admits, g.keepSyn != 0)
	}
}

// newGate returns what the options ask for, nil if that is nothing; called with mu held.
func (s *inetSock) newGate() *gate {
	g := &gate{filter: s.Opt.Filter()}
	plain := g.filter == nil
	g.minTTL, g.minHops = uint8(s.getKept(keptMinTTL)), uint8(s.getKept(keptMinHops))
	if s.Type == linux.SOCK_STREAM {
		g.kind = gateTCP
		g.sendTTL, g.sendHops = uint8(max(s.ip.ttl, 0)), uint8(max(s.ip.hops, 0))
		if t, ok := s.self.(*TCP); ok {
			g.keepSyn = t.opt.saveSyn
		}
		plain = plain && g.minTTL == 0 && g.minHops == 0 && g.keepSyn == 0 && s.ip.ttl < 0 && s.ip.hops < 0
	} else {
		switch {
		case s.isUDP():
		case s.Type != linux.SOCK_RAW:
			g.kind = gatePing
		case s.v6:
			g.kind = gateRaw6
		default:
			g.kind = gateRaw4
		}
		if d, ok := s.self.(*Datagram); ok {
			g.deny = d.icmpFilter.Load()
		}
		for i := range s.ip.joined {
			plain = plain && !s.ip.joined[i].picks()
		}
		g.few = [2]bool{s.getKept(keptAll4) == 0, s.v6 && s.getKept(keptAll6) == 0}
		if plain = plain && g.deny == 0; plain && g.few == fourDeaf.few && len(s.ip.joined) == 0 {
			return fourDeaf
		}
		plain = plain && g.few == [2]bool{}
		g.joined = slices.Clone(s.ip.joined)
	}
	if plain {
		return nil
	}
	if s.Type != linux.SOCK_STREAM || g.filter != nil || g.minTTL != 0 || g.minHops != 0 {
		g.admits = g.admit
	}
	return g
}

// admit returns how many bytes of a packet readers get, and false to drop it.
func (g *gate) admit(p *stack.PacketBuffer) (int, bool) {
	six := p.NetworkProtocolNumber == header.IPv6ProtocolNumber
	if g.kind == gateTCP {
		if g.tooFar(six, p.NetworkHeader().Slice()) {
			return 0, false
		}
	} else if !g.hears(six, p) || g.denies(p) {
		return 0, false
	}
	if g.filter == nil {
		return math.MaxInt, true
	}
	return g.pass(p)
}

// tooFar reports whether a packet has passed too many hops.
func (g *gate) tooFar(six bool, h []byte) bool {
	if six {
		return header.IPv6(h).HopLimit() < g.minHops
	}
	return header.IPv4(h).TTL() < g.minTTL
}

// hears reports whether the socket wants a packet that may be for a multicast group, from
// its source. Ping sockets have no groups.
func (g *gate) hears(six bool, p *stack.PacketBuffer) bool {
	if g.kind == gatePing {
		return true
	}
	h := p.NetworkHeader().Slice()
	if six && h[24] != 0xff || !six && h[16]>>4 != 0xe {
		return true
	}
	var to, from tcpip.Address
	if six {
		to, from = header.IPv6(h).DestinationAddress(), header.IPv6(h).SourceAddress()
	} else {
		to, from = header.IPv4(h).DestinationAddress(), header.IPv4(h).SourceAddress()
	}
	for i := len(g.joined) - 1; i >= 0; i-- { // the newest first
		if m := &g.joined[i]; m.addr == to && (six || m.nic == p.NICID) {
			return m.hears(from)
		}
	}
	return !six && !g.few[0] || six && !g.few[1]
}

// denies is ICMP_FILTER.
func (g *gate) denies(p *stack.PacketBuffer) bool {
	if g.deny == 0 {
		return false
	}
	h := p.TransportHeader().Slice()
	return len(h) > 0 && h[0] < 32 && g.deny>>h[0]&1 != 0
}

// views are the packets that filters look at, in one piece.
var views = sync.Pool{New: func() any { return new(view) }}

type view struct {
	packet bpf.Packet
	bytes  []byte
}

// pass has the filter judge a packet.
func (g *gate) pass(p *stack.PacketBuffer) (int, bool) {
	v := views.Get().(*view)
	defer views.Put(v)
	b := append(v.bytes[:0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(p.NetworkProtocolNumber>>8), byte(p.NetworkProtocolNumber))
	link := len(p.LinkHeader().Slice())
	if link == LinkHeaderLen {
		b = b[:0]
	}
	for _, part := range p.AsSlices() {
		b = append(b, part...)
	}
	transport := LinkHeaderLen + len(p.NetworkHeader().Slice())
	data := transport + len(p.TransportHeader().Slice())
	v.bytes = b
	begin := transport
	if g.kind == gateRaw4 {
		begin = LinkHeaderLen
	}
	k := &v.packet
	*k = bpf.Packet{Data: b[begin:], Network: b[LinkHeaderLen:], Link: b, Protocol: uint16(p.NetworkProtocolNumber),
		Type: packetType(p.PktType), HaType: linux.ARPHRD_LOOPBACK, IfIndex: int32(p.NICID), Random: uint32(random.Uint64())}
	if p.NICID != LoopbackNIC {
		k.HaType = linux.ARPHRD_ETHER
	}
	n := int(g.filter.Run(k))
	if n == 0 {
		return 0, false
	}
	if g.kind == gateUDP || g.kind == gateTCP { // the header stays whatever the filter says
		return max(n-(data-transport), 0), true
	}
	return n, true
}
