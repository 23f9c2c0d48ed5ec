package inet

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

// The range of ports that connect takes from at first (net.ipv4.ip_local_port_range).
const (
	firstPort = 32768
	lastPort  = 60999
)

// Users share the ports of the range. A socket claims one when it is bound, or sends
// without being bound, and gives it back when it is closed.
var (
	tcpPorts = accounts.NewPool(lastPort - firstPort + 1)
	udpPorts = accounts.NewPool(lastPort - firstPort + 1)
)

// A socket's claim.
const (
	unclaimed    = iota
	nothingToPay // its port is not of the range
	claimed
)

// claim charges the socket's user for a port, or for any with port 0, unless it has one.
// The register of ports decides about root.
func (s *inetSock) claim(p *accounts.Pool, port uint16) bool {
	if r := &s.net.ports; port != 0 && (int32(port) < r.first.Load() || int32(port) > r.last.Load()) {
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
func (s *inetSock) giveBack(p *accounts.Pool) {
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
	first, last atomic.Int32 // the range that connect takes from (net.ipv4.ip_local_port_range)

	mu       sync.Mutex
	used     [1 << 16 / 64]uint64 // guarded by mu
	reserved [1 << 16 / 64]uint64 // net.ipv4.ip_local_reserved_ports; guarded by mu
	next     int32                // guarded by mu
	nextOwn  int32                // next for ranges that sockets have of their own; guarded by mu
}

// turn returns the port to try next, from which a search goes round r; called with mu
// held. A socket's own range has another: the ports after it would be taken often.
func (s *portSet) turn(r span) *int32 {
	t := &s.next
	if r.first != s.first.Load() || r.last != s.last.Load() {
		t = &s.nextOwn
	}
	if *t < r.first || *t > r.last {
		*t = r.first
	}
	return t
}

func (s *portSet) init() {
	s.first.Store(firstPort)
	s.last.Store(lastPort)
	s.next = firstPort + int32(randSourceUint32()%(lastPort-firstPort+1))
}

// span is the range that a socket's ports come from where it has named none.
type span struct{ first, last int32 }

var localPortRange = keptIndex(linux.IPPROTO_IP, linux.IP_LOCAL_PORT_RANGE)

// span returns the socket's: IP_LOCAL_PORT_RANGE narrows that of all. own: it has set one.
// Called with mu held.
func (s *inetSock) span() (r span, own bool) {
	r = span{s.net.ports.first.Load(), s.net.ports.last.Load()}
	v := uint32(s.getKept(localPortRange))
	lo, hi := int32(v&0xffff), int32(v>>16)
	all := r
	if all.first <= lo && lo <= all.last {
		r.first = lo
	}
	if all.first <= hi && hi <= all.last {
		r.last = hi
	}
	return r, v != 0
}

// take returns a free port, or 0.
func (s *portSet) take(r span, unfit func(uint16) bool) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range r.last - r.first + 1 {
		t := s.turn(r)
		i := *t
		*t++
		if (s.used[i/64]|s.reserved[i/64])>>(i%64)&1 == 0 && !unfit(uint16(i)) {
			s.used[i/64] |= 1 << (i % 64)
			return uint16(i)
		}
	}
	return 0
}

// pick returns the next port in turn for bind to port 0, whoever has it.
func (s *portSet) pick(r span) uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int32(0)
	for range r.last - r.first + 1 {
		t := s.turn(r)
		i = *t
		*t++
		if s.reserved[i/64]>>(i%64)&1 == 0 {
			break
		}
	}
	return uint16(i)
}

// skip has pick go on at another place of r.
func (s *portSet) skip(r span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.turn(r) = r.first + int32(randSourceUint32()%uint32(r.last-r.first+1))
}

// put gives a port back.
func (s *portSet) put(p uint16) {
	s.mu.Lock()
	s.used[p/64] &^= 1 << (p % 64)
	s.mu.Unlock()
}

// PortRange returns which ports connect takes from.
func (n *Net) PortRange() (first, last int64) {
	return int64(n.ports.first.Load()), int64(n.ports.last.Load())
}

// SetPortRange changes it.
func (n *Net) SetPortRange(first, last int64) linux.Errno {
	if first < 1 || last > 65535 || first > last {
		return linux.EINVAL
	}
	n.ports.mu.Lock()
	defer n.ports.mu.Unlock()
	n.ports.first.Store(int32(first))
	n.ports.last.Store(int32(last))
	n.Stack.SetPortRange(uint16(first), uint16(last))
	tcpPorts.SetMax(last - first + 1)
	udpPorts.SetMax(last - first + 1)
	return 0
}

// ReservedPorts returns the ports that connect does not take, a bit each.
func (n *Net) ReservedPorts() [1 << 16 / 64]uint64 {
	n.ports.mu.Lock()
	defer n.ports.mu.Unlock()
	return n.ports.reserved
}

// SetReservedPorts changes them.
func (n *Net) SetReservedPorts(ports [1 << 16 / 64]uint64) {
	n.ports.mu.Lock()
	n.ports.reserved = ports
	n.ports.mu.Unlock()
}
