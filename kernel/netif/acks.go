package netif

import (
	"encoding/binary"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// netstack acknowledges all data at once, though the program's answer, a moment
// later, would carry the acknowledgement for nothing. So an ACK for a little
// data is held back here until a segment of the same connection follows (it is
// dropped then), two segments' worth have come, or ackDelay has passed
// (RFC 1122, 4.2.3.2). ACKs that say anything else go at once: duplicates,
// window updates, those with SACK blocks, and the first of a connection.

const (
	// ackDelay is half of what Linux takes: the answers meant here come
	// within a millisecond, on a loaded machine later.
	ackDelay = 20 * time.Millisecond
	// ackSlots connections are followed; others evict each other.
	ackSlots = 256
	// ackBytes is how much unacknowledged data ends the delay: two segments.
	ackBytes = 2 * 1448
)

// acks is the register of held acknowledgements.
type acks struct {
	mu    sync.Mutex
	slots [ackSlots]ackSlot // guarded by mu
	held  []uint8           // guarded by mu: slots that may hold a packet
	armed bool              // guarded by mu: the timer runs
	timer *time.Timer       // guarded by mu; made at first use
}

// ackSlot follows one connection.
type ackSlot struct {
	hash, ports uint32              // which
	last        uint32              // acknowledgement number last sent
	packet      *stack.PacketBuffer // held; nil for none
	listed      bool                // is in acks.held
}

// hold looks at a packet about to be sent and reports whether it is held back.
func (l *Link) hold(p *stack.PacketBuffer) bool {
	if p.TransportProtocolNumber != header.TCPProtocolNumber || p.Hash == 0 {
		return false
	}
	h := header.TCP(p.TransportHeader().Slice())
	if len(h) < header.TCPMinimumSize {
		return false
	}
	ports, ack := binary.BigEndian.Uint32(h), h.AckNumber()
	const timestampsOnly = header.TCPMinimumSize + 12
	pure := h.Flags() == header.TCPFlagAck && len(h) <= timestampsOnly && p.Data().Size() == 0 && h.WindowSize() != 0

	a := &l.acks
	a.mu.Lock()
	defer a.mu.Unlock()
	i := uint8(p.Hash)
	s := &a.slots[i]
	if s.hash != p.Hash || s.ports != ports {
		if s.packet != nil {
			l.release(s)
		}
		s.hash, s.ports, s.last = p.Hash, ports, ack
		return false
	}
	news := ack - s.last
	if s.packet != nil {
		s.packet.DecRef() // this one says more
		s.packet = nil
	}
	if !pure || news == 0 || news >= ackBytes {
		s.last = ack
		return false
	}
	s.packet = p.IncRef()
	if !s.listed {
		s.listed = true
		a.held = append(a.held, i)
	}
	if !a.armed {
		a.armed = true
		if a.timer == nil {
			a.timer = time.AfterFunc(ackDelay, l.flushAcks)
		} else {
			a.timer.Reset(ackDelay)
		}
	}
	return true
}

// release sends what a slot holds; called with acks.mu held.
func (l *Link) release(s *ackSlot) {
	p := s.packet
	s.packet = nil
	s.last = header.TCP(p.TransportHeader().Slice()).AckNumber()
	l.send(p)
	p.DecRef()
}

// flushAcks sends everything that is held; nothing is held longer than ackDelay.
func (l *Link) flushAcks() {
	a := &l.acks
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.held {
		s := &a.slots[i]
		s.listed = false
		if s.packet != nil {
			l.release(s)
		}
	}
	a.held = a.held[:0]
	a.armed = false
}
