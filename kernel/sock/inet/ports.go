package inet

import (
	"sync"
	"time"
)

// The range of ports that connect takes from (net.ipv4.ip_local_port_range).
const (
	firstPort = 32768
	lastPort  = 60999
)

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

// put gives a port back.
func (s *portSet) put(p uint16) {
	i := uint32(p) - firstPort
	s.mu.Lock()
	s.used[i/64] &^= 1 << (i % 64)
	s.mu.Unlock()
}
