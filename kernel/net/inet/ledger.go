package inet

import (
	"reflect"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"hardtack/kernel/base/ledger"
)

// What netstack makes for an endpoint beside the endpoint itself: its queues, options,
// timers and congestion control; a listener has a queue of connections as well.
const (
	tcpParts      = 1190
	listenerParts = 560
	udpParts      = 1392
)

// holds adds the endpoint.
func (p *netPoint) holds(s *ledger.Sum, parts int64) {
	s.Add(ledger.Sockets, ledger.Of[netPoint]()+ledger.Of[waiter.Queue]()+ledger.OfPointer(p.Endpoint)+parts)
}

// holdsOwn adds what belongs to all sockets.
func (s *inetSock) holdsOwn(sum *ledger.Sum, parts int64) {
	s.Opt.Holds(sum)
	if s.zero.Load() != nil {
		sum.Add(ledger.Sockets, ledger.Of[zeroCopies]())
	}
	if p := s.ep.Load(); p != nil {
		p.holds(sum, parts)
	}
}

// Holds adds the socket with what waits in it.
func (s *Datagram) Holds(sum *ledger.Sum) {
	sum.Add(ledger.Sockets, ledger.OfPointer(s.self))
	s.mu.Lock()
	joined := cap(s.ip.joined)
	s.mu.Unlock()
	sum.Add(ledger.Sockets, ledger.Array[membership](joined))
	s.holdsOwn(sum, udpParts)
	if p := s.ep.Load(); p != nil {
		sum.Add(ledger.Messages, s.queueBytes(p.Endpoint))
	}
	if q := s.stamps.Load(); q != nil {
		sum.Add(ledger.Messages, q.bytesHeld())
	}
}

// queueBytes is what the datagrams take that wait in the socket. netstack tells of the
// first one's length only, so the sum of lengths is read where netstack keeps it, without the
// lock that is there: one word, for an estimate.
func (s *Datagram) queueBytes(ep tcpip.Endpoint) int64 {
	most := s.waiting()
	v := reflect.ValueOf(ep)
	if most == 0 || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return most
	}
	sum := v.Elem().FieldByName("rcvBufSize")
	n, ok := s.inQueue()
	if !ok || sum.Kind() != reflect.Int {
		return most
	}
	each := (sum.Int() + n - 1) / n
	return n * (datagramCost + chunkBytes(each+datagramHeaders))
}

// What a datagram in a queue takes: netstack's structures, and a chunk of a power of two
// with its headers.
const (
	datagramCost    = 976
	datagramHeaders = 28
)

// chunkBytes is the chunk that netstack takes for n bytes.
func chunkBytes(n int64) int64 {
	size := int64(64)
	for size < n {
		size *= 2
	}
	return size
}

// Holds adds the socket with what waits for it: bytes, or connections.
func (s *TCP) Holds(sum *ledger.Sum) {
	s.holdsTCP(sum)
	var waiting []*TCP
	s.mu.Lock()
	if l := s.listening; l != nil {
		waiting = append(append(append(waiting, l.pending...), l.late...), l.deferred...)
		sum.Add(ledger.Sockets, ledger.Of[listening]()+listenerParts+ledger.Array[*TCP](cap(l.pending))+
			ledger.Array[*TCP](cap(l.late))+ledger.Array[*TCP](cap(l.deferred)))
	}
	s.mu.Unlock()
	for _, x := range waiting {
		x.holdsTCP(sum)
	}
	if p := s.far.Load(); p != nil && p.state.Load() == stClosed {
		p.holdsTCP(sum) // nobody else knows it
	}
}

func (s *TCP) holdsTCP(sum *ledger.Sum) {
	sum.Add(ledger.Sockets, ledger.Of[TCP]())
	s.holdsOwn(sum, tcpParts)
	if s.far.Load() != nil {
		sum.Add(ledger.Sockets, ledger.Of[localEnd]())
		s.in.Holds(sum)
	}
	p := s.ep.Load()
	if p == nil {
		return
	}
	if q, ok := p.Endpoint.(queuer); ok {
		toSend, received, unaccepted := q.Queued()
		sum.Add(ledger.Messages, toSend+received)
		sum.Add(ledger.Sockets, unaccepted)
	}
}
