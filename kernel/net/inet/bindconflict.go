package inet

import (
	"slices"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// owner is who holds a port: a socket, or a connection in TIME_WAIT.
type owner struct {
	addr                 tcpip.Address // none for all
	port                 uint16
	v6, v6only           bool
	reuseAddr, reusePort bool
	listening, over      bool // over: in TIME_WAIT
	uid                  uint32
	device               int32
}

// conflicts reports whether o cannot have its port beside x, by Linux's rules.
func (o *owner) conflicts(x *owner, udp bool) bool {
	switch {
	case o.port != x.port,
		o.device != 0 && x.device != 0 && o.device != x.device,
		o.reuseAddr && x.reuseAddr && (udp || !x.listening),
		o.reusePort && x.reusePort && (x.over || o.uid == x.uid):
		return false
	}
	return o.overlaps(x)
}

// overlaps reports whether some address belongs to both.
func (o *owner) overlaps(x *owner) bool {
	a, b := unmap(o.addr), unmap(x.addr)
	anyA, anyB := isAny(a), isAny(b)
	fourA, fourB := a.Len() == 4 || anyA && !o.v6, b.Len() == 4 || anyB && !x.v6
	switch {
	case !anyA && !anyB:
		return a == b
	case fourA && fourB, !fourA && !fourB:
		return true
	case fourA: // b is of IPv6: all of its addresses, or one of them
		return anyB && !x.v6only
	}
	return anyA && !o.v6only
}

func isAny(a tcpip.Address) bool {
	return a.Len() == 0 || a == header.IPv4Any || a == header.IPv6Any
}

// owner describes a socket of TCP or UDP; ok is false without a port.
func (s *inetSock) owner() (o owner, ok bool) {
	fa := s.ownAddr()
	if fa.Port == 0 {
		return o, false
	}
	o = owner{
		addr: fa.Addr, port: fa.Port, v6: s.v6, v6only: s.v6Only.Load(), uid: s.UID, device: s.Opt.BindToDevice.Load(),
		reuseAddr: s.Opt.Has(sock.ReuseAddr), reusePort: s.Opt.Has(sock.ReusePort),
	}
	if t, isTCP := s.self.(*TCP); isTCP {
		o.listening = t.state.Load() == stListening
		return o, t.far.Load() == nil || !t.over()
	}
	return o, true
}

// ownAddr is the socket's own address.
func (s *inetSock) ownAddr() (fa tcpip.FullAddress) {
	if t, ok := s.self.(*TCP); ok && t.far.Load() != nil {
		return t.here()
	}
	if p := s.ep.Load(); p != nil {
		fa, _ = p.GetLocalAddress()
	}
	return fa
}

// bindConflict reports whether the socket cannot have an address because of
// another socket or of a connection that is not forgotten yet. Called with
// Net.binding held.
func (s *inetSock) bindConflict(fa tcpip.FullAddress, v6only bool) bool {
	o := owner{
		addr: fa.Addr, port: fa.Port, v6: s.v6, v6only: v6only, uid: s.UID, device: s.Opt.BindToDevice.Load(),
		reuseAddr: s.Opt.Has(sock.ReuseAddr), reusePort: s.Opt.Has(sock.ReusePort),
	}
	udp := s.Type != linux.SOCK_STREAM
	if !udp && s.net.waits.conflicts(&o) {
		return true
	}
	for _, t := range s.net.bound[s.portKey(fa.Port)] {
		if x, ok := t.owner(); t != s && ok && o.conflicts(&x, udp) {
			return true
		}
	}
	if udp || s.net.conns[fa.Port].Load() == 0 {
		return false
	}
	r := &s.net.all
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := r.first; t != nil; t = t.next {
		if t == s || t.Type != linux.SOCK_STREAM {
			continue
		}
		if x, ok := t.owner(); ok && o.conflicts(&x, udp) {
			return true
		}
		if c, ok := t.self.(*TCP); ok {
			if x, ok := c.inFinWait(); ok && o.conflicts(&x, udp) {
				return true
			}
		}
	}
	return false
}

// timeWaits remembers the ports of connections that this end closed first, for
// as long as Linux does. Only the newest are kept, as with
// net.ipv4.tcp_max_tw_buckets. mu is a leaf.
type timeWaits struct {
	mu   sync.Mutex
	ring []waiting // guarded by mu
	next int       // guarded by mu: where the next goes once the ring is full
}

type waiting struct {
	until     int64
	addr      tcpip.Address
	port      uint16
	reuseAddr bool
	reusePort bool
}

const (
	maxTimeWaits = 4096
	timeWaitTime = 60e9 // ns
)

// add remembers the end s of a connection for so many nanoseconds.
func (w *timeWaits) add(s *TCP, ns int64) {
	x := waiting{wait.Now() + ns, s.hereAddr, s.herePort, s.Opt.Has(sock.ReuseAddr), s.Opt.Has(sock.ReusePort)}
	w.mu.Lock()
	if len(w.ring) < maxTimeWaits {
		w.ring = append(w.ring, x)
	} else {
		w.ring[w.next] = x
		w.next = (w.next + 1) % maxTimeWaits
	}
	w.mu.Unlock()
}

func (w *timeWaits) conflicts(o *owner) bool {
	now := wait.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.ring {
		if x := &w.ring[i]; x.port == o.port && x.until > now {
			y := owner{addr: x.addr, port: x.port, v6: x.addr.Len() == 16, reuseAddr: x.reuseAddr, reusePort: x.reusePort, over: true}
			if o.conflicts(&y, false) {
				return true
			}
		}
	}
	return false
}

// count returns how many are remembered.
func (w *timeWaits) count() (n int) {
	now := wait.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.ring {
		if w.ring[i].until > now {
			n++
		}
	}
	return n
}

// portKey is a port's place in Net.bound.
func (s *inetSock) portKey(port uint16) uint32 {
	return uint32(port) | uint32(s.Type)<<16
}

// index notes that bind gave the socket a port; called with Net.binding held.
func (s *inetSock) index(err tcpip.Error, port uint16) linux.Errno {
	if err == nil {
		k := s.portKey(port)
		s.net.bound[k] = append(s.net.bound[k], s)
		s.indexed = port
	}
	return errno(err)
}

// unindex undoes index.
func (s *inetSock) unindex() {
	if s.indexed == 0 {
		return
	}
	n := s.net
	n.binding.Lock()
	k := s.portKey(s.indexed)
	s.indexed = 0
	n.bound[k] = slices.DeleteFunc(n.bound[k], func(x *inetSock) bool { return x == s })
	if len(n.bound[k]) == 0 {
		delete(n.bound, k)
	}
	n.binding.Unlock()
}

// connected counts a connection for the ports of both ends, disconnected undoes
// that when the second end is closed.
func (s *TCP) connected(x *TCP) {
	s.net.conns[s.herePort].Add(1)
	s.net.conns[x.herePort].Add(1)
	s.net.counts.opens.Add(1)
}

func (s *TCP) disconnected(x *TCP) {
	one := s
	if x.Ino < s.Ino {
		one = x
	}
	if one.shut.Or(halfGone)&halfGone != 0 {
		s.net.conns[s.herePort].Add(-1)
		s.net.conns[x.herePort].Add(-1)
	}
}

// halfGone in TCP.shut of the older end says that one end is closed.
const halfGone uint32 = 8

// bind to port 0 tries ports in turn. Where a few neighbours are held, somebody may hold
// thousands of them, so it goes on elsewhere, and looks at all when that has not helped.
const (
	bindRun   = 8
	bindTries = 200
)

// bindTo binds an endpoint by Linux's rules, to a port of r where fa names none: to is
// netstack's bind.
func (s *inetSock) bindTo(fa tcpip.FullAddress, r span, v6only bool, to func(tcpip.FullAddress) tcpip.Error) linux.Errno {
	bind := func(fa tcpip.FullAddress) tcpip.Error { return s.bindAnywhere(fa, to) }
	s.net.binding.Lock()
	defer s.net.binding.Unlock()
	if fa.Port != 0 {
		if s.bindConflict(fa, v6only) {
			return linux.EADDRINUSE
		}
		return s.index(bind(fa), fa.Port)
	}
	for i := range bindTries + int(r.last-r.first) + 1 {
		if i < bindTries && i%bindRun == bindRun-1 {
			s.net.ports.skip(r)
		}
		try := fa
		try.Port = s.net.ports.pick(r)
		if !s.isUDP() && s.net.conns[try.Port].Load() != 0 || s.bindConflict(try, v6only) {
			continue
		}
		e := s.index(bind(try), try.Port)
		if e != linux.EADDRINUSE {
			return e
		}
	}
	return linux.EADDRINUSE
}
