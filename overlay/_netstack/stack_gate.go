package stack

import (
	"math"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A Gate decides which packets an endpoint receives, as Linux does before it queues one:
// filters of sockets, sources of multicast groups, packets from too far away.
type Gate struct {
	rules atomic.Pointer[gateRules]
	first atomic.Pointer[firstHeaders]
}

// firstHeaders are those of a SYN.
type firstHeaders struct {
	bytes []byte
	link  int // how many of them are the link header
}

// gateRules are what a Gate goes by; immutable.
type gateRules struct {
	admit     func(pkt *PacketBuffer) (int, bool)
	keepFirst bool
}

// SetGate changes the rules. admit returns how many bytes of a packet to take, of those
// that readers get, and whether to take it at all; it must neither wait nor call the stack,
// and nil takes all. keepFirst has the endpoints that a listener makes keep the headers of
// their SYN.
func (g *Gate) SetGate(admit func(pkt *PacketBuffer) (int, bool), keepFirst bool) {
	if admit == nil && !keepFirst {
		g.rules.Store(nil)
		return
	}
	g.rules.Store(&gateRules{admit, keepFirst})
}

// Asks reports whether there are rules.
func (g *Gate) Asks() bool { return g.rules.Load() != nil }

// Admit returns how many bytes of a packet the endpoint takes, and whether it takes it.
func (g *Gate) Admit(pkt *PacketBuffer) (int, bool) {
	if r := g.rules.Load(); r != nil && r.admit != nil {
		return r.admit(pkt)
	}
	return math.MaxInt, true
}

// Follow gives a new endpoint the rules of its listener, which received pkt.
func (g *Gate) Follow(listener *Gate, pkt *PacketBuffer) {
	r := listener.rules.Load()
	if r == nil {
		return
	}
	g.rules.Store(r)
	if !r.keepFirst || pkt == nil || header.TCP(pkt.TransportHeader().Slice()).Flags()&header.TCPFlagSyn == 0 {
		return
	}
	f := &firstHeaders{link: len(pkt.LinkHeader().Slice())}
	for _, h := range [][]byte{pkt.LinkHeader().Slice(), pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice()} {
		f.bytes = append(f.bytes, h...)
	}
	g.first.Store(f)
}

// First returns the headers of the SYN that made the endpoint, if they were kept, and how
// long its link header is. It forgets them unless they are only looked at.
func (g *Gate) First(look bool) (headers []byte, link int) {
	f := g.first.Load()
	if f == nil {
		return nil, 0
	}
	if !look {
		g.first.Store(nil)
	}
	return f.bytes, f.link
}
