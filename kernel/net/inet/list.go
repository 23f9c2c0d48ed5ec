package inet

import (
	"reflect"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// register lists the sockets.
type register struct {
	mu    sync.Mutex
	first *inetSock // guarded by mu
}

func (r *register) add(s *inetSock) {
	r.mu.Lock()
	if s.next = r.first; s.next != nil {
		s.next.prev = s
	}
	r.first = s
	r.mu.Unlock()
}

// remove takes a socket out; a second time does nothing.
func (r *register) remove(s *inetSock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case r.first == s:
		r.first = s.next
	default:
		return
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.next, s.prev = nil, nil
}

// list returns all sockets there are.
func (r *register) list() (socks []*inetSock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := r.first; s != nil; s = s.next {
		socks = append(socks, s)
	}
	return socks
}

// shown is what a socket tells of itself.
type shown interface {
	sock.Socket
	queues() (tx, rx int)
	linuxState() int
}

// Info describes a socket for /proc/net/tcp, udp and raw.
type Info struct {
	Type, Protocol int32
	V6             bool
	Local, Peer    sock.Addr // sockaddr_in or sockaddr_in6
	State          int       // TCP_*
	TxQueue        int
	RxQueue        int
	UID            uint32
	Ino            uint64
}

// Each calls fn for every socket.
func (n *Net) Each(fn func(*Info)) {
	for _, s := range n.all.list() {
		i := Info{Type: s.Type, Protocol: s.Protocol, V6: s.v6, UID: s.UID, Ino: s.Ino, State: s.self.linuxState()}
		s.self.LocalAddr(&i.Local)
		if s.self.PeerAddr(&i.Peer) != 0 {
			putAddr(&i.Peer, tcpip.FullAddress{}, s.v6)
		}
		i.TxQueue, i.RxQueue = s.self.queues()
		fn(&i)
	}
}

func (s *TCP) queues() (tx, rx int) {
	if x := s.far.Load(); x != nil {
		return x.unacknowledged(), s.in.Used()
	}
	if s.state.Load() == stListening {
		s.mu.Lock()
		defer s.mu.Unlock()
		return 0, len(s.pending)
	}
	if p := s.ep.Load(); p != nil {
		rx, _ = p.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
	}
	return 0, max(rx, 0)
}

func (s *Datagram) queues() (tx, rx int) {
	rx, _ = s.ep.Load().GetSockOptInt(tcpip.ReceiveQueueSizeOption)
	return 0, max(rx, 0)
}

// linuxState of a datagram socket says whether it is connected.
func (s *Datagram) linuxState() int {
	if _, err := s.ep.Load().GetRemoteAddress(); err == nil {
		return linux.TCP_ESTABLISHED
	}
	return linux.TCP_CLOSE
}

// What a socket takes, in bytes.
var (
	SizeOfTCP      = int(reflect.TypeFor[TCP]().Size())
	SizeOfDatagram = int(reflect.TypeFor[Datagram]().Size())
)
