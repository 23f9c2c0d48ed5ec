package inet

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"hardtack/kernel/base/accounts"
)

// queued bounds the memory of datagrams that wait in sockets. netstack bounds the bytes
// in one socket, but not what a datagram costs beside its bytes, nor all sockets
// together. What is sent, less what is read, is counted here, roughly. When that is
// much, all sockets are looked at. Those of users who have more than their share get no
// more datagrams until they are read.
type queued struct {
	shares accounts.Shares
	about  atomic.Int64 // bytes that wait, at most
	next   atomic.Int64 // how many of them call for a look
	mu     sync.Mutex   // held by the one that looks; taken before netstack's locks
}

// packetCost is what a datagram takes of the kernel's heap beside its bytes, about;
// maxDatagram is the most bytes that one has.
const (
	packetCost  = 1024
	maxDatagram = 64 << 10
)

func (q *queued) init(limit int64) {
	q.shares = accounts.SharesOf(limit)
	q.next.Store(limit / 2)
}

// Waits counts a packet that a socket may keep.
func (n *Net) Waits(bytes int) {
	q := &n.queued
	if q.about.Add(packetCost+int64(bytes)) > q.next.Load() && q.mu.TryLock() {
		total := n.look()
		q.about.Store(total)
		q.next.Store(max(q.shares.Max/2, total+q.shares.Max/16))
		q.mu.Unlock()
	}
}

// look finds out what waits, and shuts the queues of users who have too much.
func (n *Net) look() (total int64) {
	var all []*Datagram
	have := map[*accounts.User]int64{}
	for _, s := range n.all.list() {
		d, ok := s.self.(*Datagram)
		if !ok {
			continue
		}
		cost := d.waiting()
		if cost == 0 {
			d.reopen()
			continue
		}
		all = append(all, d)
		have[d.user] += cost
		total += cost
	}
	for _, d := range all {
		if n.queued.shares.Grant(have[d.user], total, d.user.UID == 0) {
			d.reopen()
		} else {
			d.shutQueue()
		}
	}
	return total
}

// inQueue returns how many datagrams wait in a socket, about; false for none.
func (s *Datagram) inQueue() (int64, bool) {
	p := s.ep.Load()
	stats, ok := p.Stats().(*tcpip.TransportEndpointStats)
	if !ok || p.Readiness(waiter.EventIn) == 0 {
		return 0, false
	}
	n := stats.PacketsReceived.Value()
	if s.isUDP() { // it counts them before it drops some
		n -= stats.ReceiveErrors.ReceiveBufferOverflow.Value() + stats.ReceiveErrors.ClosedReceiver.Value()
	}
	return max(int64(n-s.taken.Load()), 1), true
}

// waiting is the memory of the datagrams that wait in a socket, at most.
func (s *Datagram) waiting() int64 {
	left, ok := s.inQueue()
	if !ok {
		return 0
	}
	room := max(s.ep.Load().SocketOptions().GetReceiveBufferSize(), s.shut.Load())
	return left*packetCost + min(left*maxDatagram, room+maxDatagram)
}

// took counts a datagram that was read. A queue that was shut opens when it is empty.
func (s *Datagram) took(bytes int) {
	s.taken.Add(1)
	s.net.queued.about.Add(-packetCost - int64(bytes))
	if s.shut.Load() != 0 && s.ep.Load().Readiness(waiter.EventIn) == 0 {
		s.reopen()
	}
}

// shutQueue lets no more datagrams in.
func (s *Datagram) shutQueue() {
	so := s.ep.Load().SocketOptions()
	if n := so.GetReceiveBufferSize(); n != 0 {
		s.shut.Store(n)
		so.SetReceiveBufferSize(0, false)
	}
}

// reopen undoes shutQueue, unless the program has set a size itself meanwhile.
func (s *Datagram) reopen() {
	n := s.shut.Swap(0)
	if so := s.ep.Load().SocketOptions(); n != 0 && so.GetReceiveBufferSize() == 0 {
		so.SetReceiveBufferSize(n, false)
	}
}
