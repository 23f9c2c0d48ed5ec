package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Connect is connect(2).
func (s *TCP) Connect(c *caller.Ctx, _ *vfs.FSContext, a *sock.Addr, nonblock bool) linux.Errno {
	if a.Family() == linux.AF_UNSPEC {
		return s.disconnect()
	}
	fa, e := parseAddr(a, s.v6)
	s.mu.Lock()
	if state := s.state.Load(); state != stFresh { // whatever the address is
		begun := s.begun
		s.begun = s.begun && state != stLocal
		s.mu.Unlock()
		return s.connectAgain(c, fa, nonblock, state, begun)
	}
	if e != 0 {
		s.mu.Unlock()
		return e
	}
	if s.ip.v6only && mapped(fa.Addr) {
		s.mu.Unlock()
		return linux.ENETUNREACH
	}
	if done, e := s.connectLocal(c, fa); e != 0 {
		s.mu.Unlock()
		return e
	} else if done {
		late := s.state.Load() == stLate
		s.begun = nonblock
		s.mu.Unlock()
		switch {
		case late:
			return s.waitLate(c, nonblock, false)
		case nonblock:
			return linux.EINPROGRESS
		}
		return 0
	}
	if e := s.mayConnect(fa.Addr); e != 0 {
		s.mu.Unlock()
		return e
	}
	p, e := s.endpointInSpan()
	if e != 0 {
		s.mu.Unlock()
		return e
	}
	err := p.Endpoint.Connect(fa)
	if _, started := err.(*tcpip.ErrConnectStarted); !started && err != nil {
		s.mu.Unlock()
		return errno(err)
	}
	s.state.Store(stConnecting)
	s.mu.Unlock()
	if nonblock {
		return linux.EINPROGRESS
	}
	return s.finishConnect(c, fa, false)
}

// connectAgain is Connect in another state than stFresh; begun: the call before said
// EINPROGRESS.
func (s *TCP) connectAgain(c *caller.Ctx, fa tcpip.FullAddress, nonblock bool, state int32, begun bool) linux.Errno {
	switch state {
	case stConnecting, stRemote:
		return s.finishConnect(c, fa, nonblock)
	case stLocal:
		if begun {
			return 0
		}
		return linux.EISCONN
	case stLate:
		return s.waitLate(c, nonblock, true)
	case stListening:
		return linux.EISCONN
	}
	return linux.EINVAL
}

// endpointInSpan is endpoint for connect. netstack takes a port from the range of all, so
// that a socket with its own is bound before. Called with mu held.
func (s *TCP) endpointInSpan() (*netPoint, linux.Errno) {
	r, own := s.span()
	if !own || s.ep.Load() != nil {
		return s.endpoint()
	}
	p, e := s.endpoint()
	if e != 0 {
		return nil, e
	}
	if e := s.bindTo(tcpip.FullAddress{}, r, s.ip.v6only, p.Bind); e != 0 {
		s.ep.Store(nil)
		p.close()
		return nil, linux.EADDRNOTAVAIL
	}
	return p, 0
}

// mayConnect checks what netstack does not: a connection goes to one machine, and takes a
// port that the socket's user may have.
func (s *TCP) mayConnect(to tcpip.Address) linux.Errno {
	if a := unmap(to); header.IsV4MulticastAddress(a) || header.IsV6MulticastAddress(a) || s.net.isBroadcast(a) {
		return linux.ENETUNREACH
	}
	if !s.claim(tcpPorts, 0) {
		return linux.EADDRNOTAVAIL
	}
	return 0
}

// finishConnect waits for the handshake, or looks at it.
func (s *TCP) finishConnect(c *caller.Ctx, fa tcpip.FullAddress, nonblock bool) linux.Errno {
	p := s.ep.Load()
	if p == nil { // disconnected by another thread meanwhile
		return linux.ECONNABORTED
	}
	try := func() linux.Errno {
		e := errno(p.Endpoint.Connect(fa))
		switch {
		case e == 0:
			s.state.CompareAndSwap(stConnecting, stRemote)
		case e == linux.EALREADY && !nonblock:
			return linux.EAGAIN
		case e == linux.EISCONN:
			s.state.CompareAndSwap(stConnecting, stRemote)
		case e == linux.EALREADY:
		default: // it failed; the socket may try again with a new endpoint
			s.retry(p)
		}
		return e
	}
	if nonblock {
		return try()
	}
	e := s.Block(c, wait.Out|wait.Err|wait.Hup, s.Opt.SndTimeo.Load(), try)
	if e == linux.EAGAIN { // SO_SNDTIMEO
		return linux.EINPROGRESS
	}
	return e
}

// retry forgets an endpoint that failed to connect.
func (s *TCP) retry(p *netPoint) {
	s.mu.Lock()
	if s.ep.Load() == p && s.state.CompareAndSwap(stConnecting, stFresh) {
		s.ep.Store(nil)
		p.close()
	}
	s.mu.Unlock()
}
