package udp

import "io"

// passer is a reader that peeks at an offset (SO_PEEK_OFF of Linux), which counts from the
// first packet of the queue: it passes over packets. seen tells of an empty packet that it
// was peeked at before, since otherwise a reader would not get past it.
type passer interface {
	Pass(size int, seen bool) bool
}

// peekAt returns the packet that dst peeks at, nil for none.
//
// +checklocks:e.rcvMu
func (e *endpoint) peekAt(dst io.Writer) *udpPacket {
	p := e.rcvList.Front()
	if s, ok := dst.(passer); ok {
		for p != nil && s.Pass(p.size(), p.peeked) {
			p = p.Next()
		}
	}
	if p != nil && p.size() == 0 {
		p.peeked = true
	}
	return p
}
