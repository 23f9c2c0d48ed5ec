package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// Connections within the machine. Both ends know each other through far; each receives
// into its own Flow. They follow TCP's behaviour: shutdown announces a FIN (fin), a close
// with unread data or with SO_LINGER 0 resets the other end, the first write to an end
// that is gone is lost and the next fails.

// addListener lets local connections find a listening socket.
func (n *Net) addListener(s *TCP) {
	n.mu.Lock()
	p := s.bound.Port
	n.listeners[p] = append(n.listeners[p], s)
	n.heard[p/64].Or(1 << (p % 64))
	n.mu.Unlock()
}

func (n *Net) removeListener(s *TCP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[s.bound.Port]
	for i, x := range l {
		if x == s {
			l = append(l[:i:i], l[i+1:]...)
			break
		}
	}
	if len(l) == 0 {
		delete(n.listeners, s.bound.Port)
		n.heard[s.bound.Port/64].And(^(uint64(1) << (s.bound.Port % 64)))
	} else {
		n.listeners[s.bound.Port] = l
	}
}

// findListener returns who listens at an address of this machine: the socket
// bound to it, or one bound to all addresses; among equals (SO_REUSEPORT) they
// take turns.
func (n *Net) findListener(dst tcpip.Address, port uint16) *TCP {
	n.mu.RLock()
	defer n.mu.RUnlock()
	l := n.listeners[port]
	if len(l) == 1 {
		if l[0].fits(dst) == 0 {
			return nil
		}
		return l[0]
	}
	best, count := 0, 0
	for _, x := range l {
		if f := x.fits(dst); f > best {
			best, count = f, 1
		} else if f == best {
			count++
		}
	}
	if best == 0 {
		return nil
	}
	turn := int(n.rr.Add(1) % uint32(count))
	for _, x := range l {
		if x.fits(dst) == best {
			if turn == 0 {
				return x
			}
			turn--
		}
	}
	return nil
}

// fits rates how well a listener matches: 0 not at all, higher for a more specific
// address. Called with net.mu held.
func (s *TCP) fits(dst tcpip.Address) int {
	a := unmap(s.bound.Addr)
	switch {
	case a.Len() == 0 || a == header.IPv6Any || a == header.IPv4Any:
		switch {
		case !s.v6 && dst.Len() == 4:
			return 2
		case s.v6 && dst.Len() == 16:
			return 2
		case s.v6 && dst.Len() == 4 && !s.boundV6Only:
			return 1
		}
		return 0
	case a == dst:
		return 3
	}
	return 0
}

// connectLocal joins the socket to a listener of this machine; false if there is none
// with room; then the ordinary path decides what happens. Called with mu held.
func (s *TCP) connectLocal(c *caller.Ctx, fa tcpip.FullAddress) (bool, linux.Errno) {
	to := unmap(fa.Addr)
	if to.Len() == 0 {
		if to = header.IPv4Any; s.v6 {
			to = header.IPv6Any
		}
	}
	dst, src, ok := s.net.local(to)
	if !ok || s.spent.Load() || s.v6 && s.ip.v6only && dst.Len() == 4 || s.Opt.BindToDevice.Load() != 0 || s.net.Tapped() {
		return false, 0
	}
	l := s.net.findListener(dst, fa.Port)
	if l == nil || l == s || s.rules.Load().looks() || l.rules.Load().looks() { // a gate looks at packets
		return false, 0
	}
	here := tcpip.FullAddress{Addr: src}
	if p := s.ep.Load(); p != nil { // bound
		b, _ := p.GetLocalAddress()
		here.Port = b.Port
		if a := unmap(b.Addr); a.Len() != 0 && a != header.IPv4Any && a != header.IPv6Any {
			if a.Len() != dst.Len() {
				return false, 0
			}
			here.Addr = a
		}
	} else {
		if !s.claim(tcpPorts, 0) {
			return false, linux.EADDRNOTAVAIL
		}
		r, _ := s.span()
		here.Port = s.net.ports.take(r, s.net.listening)
		if here.Port == 0 {
			return false, 0
		}
		s.port = here.Port
	}
	j := lateJoin{l, dst, here}
	switch s.join(c, &j) {
	case linux.EAGAIN:
		s.to = &lateJoin{l, dst, here}
		s.state.Store(stLate)
	case linux.ENOBUFS:
		s.putPort()
		return false, linux.ENOBUFS
	case 0:
	default:
		s.putPort()
		return false, 0
	}
	return true, 0
}

// join makes the far end of a connection to a listener and puts it into the
// listener's queue. EAGAIN: there is no room; ECONNREFUSED: it no longer
// listens. Called with s.mu held.
func (s *TCP) join(c *caller.Ctx, j *lateJoin) linux.Errno {
	l := j.l
	x := s.net.bareTCP(c, l.Domain)
	x.UID, x.GID = l.UID, l.GID
	x.localEnd = newLocalEnd(x.user, tcpip.FullAddress{Addr: j.dst, Port: l.boundPort()})
	s.localEnd = newLocalEnd(s.user, j.here)
	x.state.Store(stLocal)
	x.far.Store(s)
	s.net.all.add(&x.inetSock)
	if e := l.enqueue(s, x); e != 0 {
		s.net.all.remove(&x.inetSock)
		return e
	}
	s.connected(x)
	l.Q.Notify(evIn)
	s.Q.Notify(evOut)
	return 0
}

// boundPort is the port that a listener has; it may listen anew, elsewhere, meanwhile.
func (s *TCP) boundPort() uint16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound.Port
}

// putPort gives back the port that connect took.
func (s *TCP) putPort() {
	if s.port != 0 {
		s.net.ports.put(s.port)
		s.port = 0
	}
}

// listening reports whether a port has a listener.
func (n *Net) listening(p uint16) bool {
	return n.heard[p/64].Load()>>(p%64)&1 != 0
}

// pendingPool counts connections within this machine that nobody has accepted yet; they
// outlive the socket that connected.
var pendingPool = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(max(mem.Total()/4, 4096))) }}

// enqueue puts the far end x of s into l's queue of connections; EAGAIN when it
// is full, and s will be called when there is room. (s.mu is held, too: a
// listener is never the one that connects.)
func (l *TCP) enqueue(s, x *TCP) linux.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state.Load() != stListening:
		return linux.ECONNREFUSED
	case len(l.pending) > l.backlog:
		l.late = append(l.late, s)
		return linux.EAGAIN
	case !pendingPool.Get().Charge(x.user, 1):
		return linux.ENOBUFS
	}
	x.Opt.Inherit(&l.Opt)
	x.opt, x.ip = l.opt, l.ip
	x.v6Only.Store(x.ip.v6only)
	x.corked.Store(x.opt.cork)
	x.inq.Store(x.opt.inq)
	if x.Opt.RcvLowat.Load() > 1 {
		x.shut.Or(lowatBit)
	}
	if x.opt.linger2 != 0 {
		x.linger2.Store(x.opt.linger2)
	}
	s.far.Store(x)
	s.state.Store(stLocal)
	if d := l.opt.deferAccept; d > 0 {
		l.deferOne(s, x, d)
		return 0
	}
	l.pending = append(l.pending, x)
	return 0
}

// dropPending resets connections that nobody will accept, and refuses those that wait for
// room.
func (s *TCP) dropPending() {
	s.mu.Lock()
	pending, late := append(s.pending, s.deferred...), s.late
	s.pending, s.deferred, s.late = nil, nil, nil
	s.mu.Unlock()
	for _, x := range pending {
		pendingPool.Get().Release(x.user, 1)
		x.Opt.Linger.Store(1)
		x.Release(nil)
	}
	for _, x := range late {
		x.giveUp(linux.ECONNREFUSED)
	}
}

// flowLimit is how many bytes the socket may have under way.
func (s *TCP) flowLimit() int { return int(s.Opt.SndBuf.Load()) }

func (s *TCP) sendLocal(x *TCP, v *uio.Vec, flags int32) (n int, e linux.Errno) {
	if e := s.TakeError(); e != 0 {
		return 0, e
	}
	if shut := s.shut.Load(); shut&(shutWr|deferredBit) != 0 {
		if shut&shutWr == 0 {
			n, e = s.sendNow(x, v, flags)
			s.undefer()
			return n, e
		}
		return 0, linux.EPIPE
	}
	return s.sendNow(x, v, flags)
}

// sendNow is sendLocal on a connection that accept may have.
func (s *TCP) sendNow(x *TCP, v *uio.Vec, flags int32) (n int, e linux.Errno) {
	now := true
	if flags&(linux.MSG_MORE|linux.MSG_OOB) != 0 || s.corked.Load() {
		if flags&linux.MSG_OOB != 0 {
			n, e = s.sendUrgent(x, v)
		} else {
			var held bool
			if n, held, now, e = x.in.WriteHeld(v, s.flowLimit(), loopbackSegment); held {
				s.holdBegin()
			}
		}
	} else {
		n, e = x.in.Write(v, s.flowLimit(), nil)
	}
	switch {
	case e == linux.EPIPE:
		return s.sendLost(v)
	case now && (n > 0 || e == linux.EAGAIN):
		x.Q.Notify(evIn)
	}
	return n, e
}

// sendLost is a write to an end that is gone, which TCP learns from the answer: what fits
// into the send buffer is lost, and the rest fails. An empty write gets no answer.
func (s *TCP) sendLost(v *uio.Vec) (int, linux.Errno) {
	if v.Len() == 0 && !s.cut.Load() {
		return 0, 0
	}
	if v.Len() == 0 || s.cut.Swap(true) {
		return 0, linux.EPIPE
	}
	n := min(v.Len(), s.flowLimit())
	v.Limit(v.Len() - n) // as if copied
	s.shut.Or(shutRd | shutWr)
	s.SetError(linux.EPIPE)
	return n, 0
}

// loopbackSegment is how much goes into one segment on lo.
const loopbackSegment = loopbackMTU - 52

func (s *TCP) recvLocal(x *TCP, v *uio.Vec, flags int32) (int, bool, linux.Errno) {
	if s.shut.Load()&gateBit != 0 {
		n, ok := s.letThrough(x)
		if !ok {
			return 0, false, linux.EAGAIN
		}
		if n > 0 {
			v.Limit(n)
		}
	}
	if flags&linux.MSG_TRUNC != 0 {
		n := min(v.Len(), s.in.Discard(v.Len(), flags&linux.MSG_PEEK != 0))
		if n > 0 {
			v.Limit(v.Len() - n) // as if copied
			x.Q.Notify(evOut)
			return n, false, 0
		}
	}
	var g sock.Got
	var e linux.Errno
	if s.shut.Load()&urgentBit != 0 {
		e = s.in.Receive(v, sock.How{Limit: x.flowLimit(), Peek: flags&linux.MSG_PEEK != 0, Inline: s.Opt.Has(sock.OOBInline)}, &g)
	} else {
		g, e = s.in.Read(v, x.flowLimit(), flags&linux.MSG_PEEK != 0)
	}
	if g.Room {
		x.Q.Notify(evOut)
	}
	if g.EOF && !s.fin.Load() || e == linux.EAGAIN {
		if err := s.TakeError(); err != 0 {
			return 0, false, err
		}
		if s.shut.Load()&shutRd != 0 {
			return 0, true, 0
		}
	}
	return g.N, g.EOF, e
}

// over reports whether a connection within the machine has ended: it was reset,
// or both ends have said that they send no more.
func (s *TCP) over() bool {
	return s.cut.Load() || s.shut.Load()&shutWr != 0 && s.fin.Load()
}

// finBit is shutRd when the other end sends no more.
func (s *TCP) finBit() uint32 {
	if s.fin.Load() {
		return shutRd
	}
	return 0
}

func (s *TCP) readyLocal(x *TCP) (ev wait.Events) {
	if s.HasError() {
		ev |= wait.Err | evIn
	}
	shut := s.shut.Load() | s.finBit()
	if shut&gateBit != 0 && !s.cut.Load() {
		if _, ok := s.letThrough(x); !ok {
			if x.in.Writable(s.flowLimit()) {
				ev |= evOut
			}
			return ev
		}
	}
	if shut&(urgentBit|lowatBit|zeroBit) != 0 {
		ev |= s.readableAtLeast()
	} else if now, _ := s.in.Readable(); now {
		ev |= evIn
	}
	shut &= shutRd | shutWr
	if shut&shutRd != 0 {
		ev |= evIn | wait.RdHup
	}
	if shut == shutRd|shutWr {
		ev |= wait.Hup
	}
	if shut&shutWr != 0 || x.in.Writable(s.flowLimit()) {
		ev |= evOut
	}
	return ev
}

func (s *TCP) shutdownLocal(x *TCP, how int32) linux.Errno {
	if s.over() {
		return linux.ENOTCONN
	}
	if how != linux.SHUT_WR {
		s.shut.Or(shutRd)
	}
	if how != linux.SHUT_RD {
		s.closesFirst(x)
		was := s.shut.Or(shutWr)
		x.fin.Store(true)
		x.in.End()
		x.Q.Notify(x.finEvents())
		if was&deferredBit != 0 {
			s.undefer()
		}
	}
	s.Q.Notify(evIn | evOut | wait.RdHup)
	return 0
}

// finEvents are the events at an end when the other sends no more.
func (s *TCP) finEvents() wait.Events {
	if s.shut.Load()&shutWr != 0 {
		return evIn | evOut | wait.RdHup | wait.Hup
	}
	return evIn | wait.RdHup
}

// closeLocal ends the connection to x; reset says that x is told of it by a reset.
func (s *TCP) closeLocal(x *TCP, reset bool) {
	lost, _ := s.in.Stop(true)
	if lost > 0 || reset {
		s.net.countReset(s, x)
		if !x.fin.Load() || lost > 0 {
			x.NoteError(linux.ECONNRESET)
		}
		x.cut.Store(true)
		x.shut.Or(shutRd | shutWr)
		x.in.End()
		x.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup | wait.Err)
	} else {
		s.closesFirst(x)
		if !s.fin.Load() {
			s.finWait()
		}
		x.fin.Store(true)
		x.in.End()
		x.Q.Notify(x.finEvents() | evOut)
		if s.shut.Load()&deferredBit != 0 {
			s.undefer()
		}
	}
	s.disconnected(x)
	s.putPort()
}
