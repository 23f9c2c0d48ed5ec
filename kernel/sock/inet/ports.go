package inet

import (
	"sync"
	"time"

	"hardtack/kernel/kern"
)

// The range of ports that connect takes from (net.ipv4.ip_local_port_range).
const (
	firstPort = 32768
	lastPort  = 60999
)

// Users share the ports of that range. A socket claims one when it is bound, or sends
// without being bound, and gives it back when it is closed.
var (
	tcpPorts = kern.NewPool(lastPort - firstPort + 1)
	udpPorts = kern.NewPool(lastPort - firstPort + 1)
)

// A socket's claim.
const (
	unclaimed    = iota
	nothingToPay // its port is not of the range
	claimed
)

// claim charges the socket's user for a port, or for any with port 0, unless it has one.
// The register of ports decides about root.
func (s *inetSock) claim(p *kern.Pool, port uint16) bool {
	if port != 0 && (port < firstPort || port > lastPort) {
		s.claimed.CompareAndSwap(unclaimed, nothingToPay)
		return true
	}
	if s.claimed.Load() == claimed || port == 0 && s.claimed.Load() == nothingToPay {
		return true
	}
	if s.claimed.Swap(claimed) == claimed {
		return true
	}
	if s.user.UID == 0 {
		p.Force(s.user, 1)
	} else if !p.Charge(s.user, 1) {
		s.claimed.Store(unclaimed)
		return false
	}
	return true
}

// giveBack ends a claim.
func (s *inetSock) giveBack(p *kern.Pool) {
	if s.claimed.Swap(unclaimed) == claimed {
		p.Release(s.user, 1)
	}
}

// timeWait is how long a closed connection remembers its ports.
const timeWait = 3 * time.Second

// portSet hands out local ports to connections within this machine. netstack
// keeps its own register for the others: equal numbers there do not collide,
// since the remote ends differ.
type portSet struct {
	mu   sync.Mutex
	used [(lastPort - firstPort + 64) / 64]uint64 // guarded by mu
	next uint32                                   // guarded by mu
}

func (s *portSet) init() { s.next = randSourceUint32() % (lastPort - firstPort + 1) }

// take returns a free port, or 0.
func (s *portSet) take(unfit func(uint16) bool) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range lastPort - firstPort + 1 {
		i := s.next
		if s.next++; s.next > lastPort-firstPort {
			s.next = 0
		}
		if s.used[i/64]>>(i%64)&1 == 0 && !unfit(uint16(firstPort+i)) {
			s.used[i/64] |= 1 << (i % 64)
			return uint16(firstPort + i)
		}
	}
	return 0
}

// pick returns the next port in turn for bind to port 0, whoever has it.
func (s *portSet) pick() uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.next
	if s.next++; s.next > lastPort-firstPort {
		s.next = 0
	}
	return uint16(firstPort + i)
}

// put gives a port back.
func (s *portSet) put(p uint16) {
	i := uint32(p) - firstPort
	s.mu.Lock()
	s.used[i/64] &^= 1 << (i % 64)
	s.mu.Unlock()
}
