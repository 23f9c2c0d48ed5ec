package netif

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/kernel/net/netdev"
)

// Plain packets, which are most, leave and come without a packet of netstack: see the
// overlay's stack_path.go and stack_flow.go.

// plainDeliverer is netstack as the overlay has it: it hands a packet, from the IP header on,
// to its endpoint, or returns false if it must go the general way.
type plainDeliverer interface {
	DeliverPlain(nic tcpip.NICID, packet []byte, valid bool) bool
}

// plainFrame is what a frame needs on its way to the device. It stays with the memory of
// the frame, which is used again.
type plainFrame struct {
	frames [1]netdev.Frame
	parts  [1][]byte
}

// TakesFrames reports whether frames may come without a packet of netstack: programs that
// look at packets get those.
func (l *Link) TakesFrames() bool { return !l.net.Tapped() && !l.down.Load() }

// WriteFrame sends a frame of a flow and reports whether there was room. What kept points to
// stays with the frame's memory.
func (l *Link) WriteFrame(frame []byte, flow uint32, kept *any) bool {
	s, _ := (*kept).(*plainFrame)
	if s == nil {
		s = new(plainFrame)
		s.frames[0].Parts = s.parts[:]
		*kept = s
	}
	s.parts[0], s.frames[0].Hash = frame, flow
	return l.transmit(s.frames[:]) == 1
}
