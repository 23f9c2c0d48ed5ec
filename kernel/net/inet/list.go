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
	shutEnds() uint8
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
	Shut           uint8 // what was shut down: 1 receiving, 2 sending
	Device         int32 // the interface that it is bound to; 0 for none
	V6Only         bool  // IPV6_V6ONLY
	Backlog        int   // of a listener
	s              *inetSock
}

// Each calls fn for every socket.
func (n *Net) Each(fn func(*Info)) {
	for _, s := range n.all.list() {
		i := Info{s: s, Type: s.Type, Protocol: s.Protocol, V6: s.v6, UID: s.UID, Ino: s.Ino, State: s.self.linuxState()}
		s.self.LocalAddr(&i.Local)
		if s.self.PeerAddr(&i.Peer) != 0 {
			putAddr(&i.Peer, tcpip.FullAddress{}, s.v6)
		}
		i.TxQueue, i.RxQueue = s.self.queues()
		i.Shut = s.self.shutEnds()
		if t, ok := s.self.(*TCP); ok && i.State == linux.TCP_LISTEN {
			i.Backlog = t.limit()
		}
		i.Device, i.V6Only = s.Opt.BindToDevice.Load(), s.v6Only.Load()
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

// limit is how many connections may wait at a listener.
func (s *TCP) limit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listening == nil {
		return 0
	}
	return s.backlog
}

// shutEnds says which directions were shut down, by this end or by the other.
func (s *TCP) shutEnds() uint8 {
	switch s.linuxState() {
	case linux.TCP_ESTABLISHED, linux.TCP_CLOSE:
		if s.far.Load() == nil {
			return uint8(s.shut.Load() / idleRd & 3)
		}
		return uint8((s.shut.Load() | s.finBit()) & 3)
	case linux.TCP_CLOSE_WAIT:
		return uint8(shutRd)
	case linux.TCP_FIN_WAIT1, linux.TCP_FIN_WAIT2:
		return uint8(shutWr | s.shut.Load()&shutRd)
	case linux.TCP_LISTEN, linux.TCP_SYN_SENT, linux.TCP_SYN_RECV:
		return 0
	}
	return uint8(shutRd | shutWr)
}

func (s *Datagram) shutEnds() uint8 { return uint8(s.ended.Load()) }

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
