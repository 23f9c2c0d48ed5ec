package inet

import (
	"slices"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// What a listener makes connections wait for: room in its queue, as Linux does
// by not answering, and data (TCP_DEFER_ACCEPT).

// lateJoin is what a connection within the machine is made of.
type lateJoin struct {
	l    *TCP
	dst  tcpip.Address     // where it goes
	here tcpip.FullAddress // where it comes from
}

// synTime is how long connect waits for an answer.
const synTime = int64(127 * time.Second)

// joinLate connects the sockets that wait for room, until there is none.
func (l *TCP) joinLate(c *caller.Ctx) {
	for {
		l.mu.Lock()
		if len(l.late) == 0 || l.state.Load() != stListening || len(l.pending) > l.backlog {
			l.mu.Unlock()
			return
		}
		s := l.late[0]
		l.late = l.late[1:]
		if len(l.late) == 0 {
			l.late = nil
		}
		l.mu.Unlock()
		s.mu.Lock()
		e := linux.Errno(0)
		if s.state.Load() == stLate && s.to != nil && s.to.l == l {
			e = s.join(c, s.to)
		}
		s.mu.Unlock()
		if e != 0 && e != linux.EAGAIN {
			s.giveUp(e)
		}
		if e != 0 {
			return
		}
	}
}

// waitLate is connect while the socket waits for room; again says that this is
// not the call that began it.
func (s *TCP) waitLate(c *caller.Ctx, nonblock, again bool) linux.Errno {
	if nonblock {
		if again {
			return linux.EALREADY
		}
		return linux.EINPROGRESS
	}
	timeout, own := s.Opt.SndTimeo.Load(), false
	if timeout == 0 {
		timeout, own = synTime, true
	}
	e := s.Block(c, wait.Out|wait.Err|wait.Hup, timeout, func() linux.Errno {
		switch s.state.Load() {
		case stLate:
			return linux.EAGAIN
		case stLocal:
			return 0
		}
		if e := s.TakeError(); e != 0 {
			return e
		}
		return linux.ECONNREFUSED
	})
	switch {
	case e == linux.EAGAIN && own:
		s.giveUp(0)
		return linux.ETIMEDOUT
	case e == linux.EAGAIN:
		return linux.EINPROGRESS
	case e == 0:
		s.mu.Lock()
		s.begun = false
		s.mu.Unlock()
	case e == linux.EINTR && own:
		return linux.ERESTARTSYS
	}
	return e
}

// giveUp ends the wait for room, with an error to report where e is one.
func (s *TCP) giveUp(e linux.Errno) {
	s.mu.Lock()
	var l *TCP
	if s.to != nil {
		l = s.to.l
	}
	was := s.state.CompareAndSwap(stLate, stFresh) || s.state.Load() == stClosed
	if was {
		s.putPort()
		s.to = nil
	}
	s.mu.Unlock()
	if !was || l == nil {
		return
	}
	l.mu.Lock()
	l.late = slices.DeleteFunc(l.late, func(x *TCP) bool { return x == s })
	l.mu.Unlock()
	if e != 0 {
		s.SetError(e)
	}
	s.Q.Notify(evIn | evOut | wait.Hup)
}

// readyIdle is what poll sees of a socket without an endpoint of netstack.
func (s *TCP) readyIdle(state int32) wait.Events {
	ev := wait.Events(0)
	if state != stLate {
		ev = evOut | wait.Hup
	}
	if state != stLate && s.shut.Load()&idleRd != 0 {
		ev |= evIn | wait.RdHup
	}
	switch {
	case !s.HasError():
	case s.spent.Load():
		ev |= wait.Err
	default:
		ev |= evIn | evOut | wait.Err | wait.Hup | wait.RdHup
	}
	return ev
}

// deferredBit in TCP.shut says that the other end is not in the listener's queue yet.
const deferredBit uint32 = 4

// deferOne keeps the far end x of s from accept until s sends something, or for
// so many seconds; called with s.mu and l.mu held.
func (l *TCP) deferOne(s, x *TCP, sec int32) {
	s.to = &lateJoin{l: l}
	s.shut.Or(deferredBit)
	l.deferred = append(l.deferred, x)
	time.AfterFunc(time.Duration(sec)*time.Second, s.undefer)
}

// undefer hands the far end of s to accept.
func (s *TCP) undefer() {
	if s.shut.And(^deferredBit)&deferredBit == 0 {
		return
	}
	s.mu.Lock()
	l := s.to.l
	s.mu.Unlock()
	x := s.far.Load()
	l.mu.Lock()
	i := slices.Index(l.deferred, x)
	if i >= 0 {
		l.deferred = slices.Delete(l.deferred, i, i+1)
		l.pending = append(l.pending, x)
	}
	l.mu.Unlock()
	if i >= 0 {
		l.Q.Notify(evIn)
	}
}

// unlisten is shutdown of a listener: it becomes an unconnected socket, which
// keeps the port that bind was asked for.
func (s *TCP) unlisten() linux.Errno {
	s.mu.Lock()
	if !s.state.CompareAndSwap(stListening, stFresh) {
		s.mu.Unlock()
		return linux.ENOTCONN
	}
	s.net.removeListener(s)
	p := s.ep.Swap(nil)
	p.close()
	if !s.bindPort {
		s.unindex()
	} else {
		to := tcpip.FullAddress{NIC: s.bound.NIC, Addr: s.bound.Addr, Port: s.bound.Port}
		if q, e := s.endpoint(); e == 0 {
			q.Bind(to)
		}
	}
	s.mu.Unlock()
	s.dropPending()
	s.Q.Notify(evIn | evOut | wait.Hup | wait.RdHup)
	return 0
}

// closesFirst is called when s sends its FIN to x: the end that does so first
// keeps its port in FIN_WAIT2, and in TIME_WAIT once the other has closed, too.
func (s *TCP) closesFirst(x *TCP) {
	if s.shut.Load()&shutWr != 0 {
		return
	}
	if !s.fin.Load() {
		s.first.Store(true)
		return
	}
	if x.first.Load() {
		s.net.waits.add(x, timeWaitTime)
	}
}

// finWait has a socket that is closed before the other end keep its port.
func (s *TCP) finWait() {
	sec := int64(linux.DefaultTCPFinWait2Second)
	if l := s.linger2.Load(); l != 0 {
		sec = int64(l)
	}
	if sec > 0 {
		s.finTime.Store(wait.Now() + sec*1e9)
	}
}

// inFinWait describes the closed other end of s while that is in FIN_WAIT2.
func (s *TCP) inFinWait() (o owner, ok bool) {
	x := s.far.Load()
	if x == nil || x.fin.Load() || x.finTime.Load() < wait.Now() {
		return o, false
	}
	return owner{
		addr: x.hereAddr, port: x.herePort, v6: x.v6, over: true,
		reuseAddr: x.Opt.Has(sock.ReuseAddr), reusePort: x.Opt.Has(sock.ReusePort),
	}, true
}
