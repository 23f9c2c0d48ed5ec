package inet

import (
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// inetSock is what sockets of all protocols have.
type inetSock struct {
	sock.Base
	net  *Net           // immutable
	user *accounts.User // who made it, and is charged for what it keeps; immutable

	claimed atomic.Uint32 // a port that user is charged for
	indexed uint16        // in Net.bound; written with Net.binding held
	v6      bool          // immutable: AF_INET6
	v6Only  atomic.Bool   // IPV6_V6ONLY, as in ip

	freeBind atomic.Bool  // IP_FREEBIND or IP_TRANSPARENT, as in ip
	peekOff  atomic.Int32 // SO_PEEK_OFF of UDP

	mu sync.Mutex
	ip ipOptions                // guarded by mu
	ep atomic.Pointer[netPoint] // set once, under mu
	// rules say which packets to receive; nil for all. Written with mu held.
	rules atomic.Pointer[gate]
	zero  atomic.Pointer[zeroCopies]

	next, prev *inetSock // guarded by net.all.mu
	self       shown     // immutable: the socket that this is part of
}

// netPoint is an endpoint of netstack and its queue, which passes events on to
// the socket's.
type netPoint struct {
	tcpip.Endpoint
	wq    *waiter.Queue
	entry waiter.Entry
	told  atomic.Bool  // SO_ERROR has told its error
	errs  atomic.Int32 // how many errors have come and were not taken, at most
	plain plainTaker   // nil without; immutable
}

// netEvents are those that netstack may announce.
const netEvents = waiter.EventIn | waiter.EventOut | waiter.EventErr | waiter.EventHUp |
	waiter.EventRdNorm | waiter.EventWrNorm | waiter.EventRdHUp

func (s *inetSock) init(c *caller.Ctx, n *Net, domain, typ, protocol int32) {
	s.Init(c, domain, typ, protocol)
	s.net, s.v6, s.user = n, domain == linux.AF_INET6, c.User()
}

// netProto is the network protocol of the socket's family.
func (s *inetSock) netProto() tcpip.NetworkProtocolNumber {
	if s.v6 {
		return ipv6.ProtocolNumber
	}
	return ipv4.ProtocolNumber
}

// attach gives the socket its endpoint; called with mu held or before the
// socket is shared.
func (s *inetSock) attach(ep tcpip.Endpoint, wq *waiter.Queue) *netPoint {
	p := &netPoint{Endpoint: ep, wq: wq}
	s.applyBase(ep)
	s.ip.applyAll(ep, s.v6)
	if g := s.rules.Load(); g != nil {
		g.tell(ep)
	}
	p.plain, _ = ep.(plainTaker)
	p.entry.Init(s, netEvents)
	wq.EventRegister(&p.entry)
	s.ep.Store(p)
	return p
}

func (p *netPoint) close() {
	p.Close()
	p.wq.EventUnregister(&p.entry)
}

// TCP is a stream socket. Its fields are in an order that leaves no holes: a connection
// within the machine makes two, and the next size of the allocator is more expensive.
type TCP struct {
	inetSock
	state atomic.Int32
	held  atomic.Bool // MSG_MORE holds data back
	opt   tcpOptions  // guarded by mu

	// A connection within the machine (local.go).
	*localEnd                     // immutable once far is set; nil before
	far       atomic.Pointer[TCP] // the other end; set once, and taken away by connect to AF_UNSPEC
	to        *lateJoin           // guarded by mu: what a late or deferred connection needs
	port      uint16              // to give back to net.ports; 0 for none
	begun     bool                // guarded by mu: connect said EINPROGRESS
	bindPort  bool                // guarded by mu: bind was asked for a port
	shut      atomic.Uint32       // shutRd, shutWr
	fin       atomic.Bool         // the other end has said that it sends no more
	cut       atomic.Bool         // the other end is gone and one write was lost to it
	first     atomic.Bool         // this end has sent its FIN first
	spent     atomic.Bool         // a connection within the machine was cut by connect: the next goes through netstack
	hold      holding             // what TCP_CORK and MSG_MORE keep back

	corked      atomic.Bool  // TCP_CORK, as in opt
	inq         atomic.Bool  // TCP_INQ, as in opt
	linger2     atomic.Int32 // TCP_LINGER2, as in opt
	deferAccept atomic.Int32 // TCP_DEFER_ACCEPT, as in opt

	*listening // a listening socket's; set by the first listen, guarded by mu
}

// localEnd is what only an end of a connection within the machine has.
type localEnd struct {
	in       sock.Flow
	hereAddr tcpip.Address // own address; immutable
	herePort uint16        // its port; immutable
	finTime  atomic.Int64  // until when it keeps its port, closed before the other end
}

func newLocalEnd(u *accounts.User, here tcpip.FullAddress) *localEnd {
	e := &localEnd{hereAddr: here.Addr, herePort: here.Port}
	e.in.InitFlow(u, false)
	return e
}

// here is the own address of an end of a connection within the machine.
func (s *TCP) here() tcpip.FullAddress {
	return tcpip.FullAddress{Addr: s.hereAddr, Port: s.herePort}
}

// listening is what only a socket that listens has.
type listening struct {
	backlog     int               // guarded by mu
	pending     []*TCP            // guarded by mu: local connections to accept
	late        []*TCP            // guarded by mu: sockets that wait for room among them
	deferred    []*TCP            // guarded by mu: TCP_DEFER_ACCEPT, no data yet
	bound       tcpip.FullAddress // immutable while listening: where
	boundV6Only bool              // immutable while listening
}

// States of a TCP.
const (
	stFresh      int32 = iota // no connection; bound if ep is set
	stConnecting              // netstack shakes hands
	stRemote                  // connected through netstack
	stLocal                   // connected within the machine
	stListening
	stClosed
	stLate // waits until a listener of this machine has room
)

const (
	shutRd uint32 = 1
	shutWr uint32 = 2

	evIn  = wait.In | wait.RdNorm
	evOut = wait.Out | wait.WrNorm
)

func (n *Net) newTCP(c *caller.Ctx, domain int32) *TCP {
	s := n.bareTCP(c, domain)
	s.ip.init()
	s.opt.init()
	n.all.add(&s.inetSock)
	return s
}

// bareTCP returns a socket without options, since its listener's follow, and which
// Net.all does not have yet.
func (n *Net) bareTCP(c *caller.Ctx, domain int32) *TCP {
	s := &TCP{}
	s.init(c, n, domain, linux.SOCK_STREAM, linux.IPPROTO_TCP)
	s.self = s
	s.Filters = true
	return s
}

// endpoint returns the socket's endpoint and makes it if need be; called with
// mu held.
func (s *TCP) endpoint() (*netPoint, linux.Errno) {
	if p := s.ep.Load(); p != nil {
		return p, 0
	}
	wq := new(waiter.Queue)
	ep, err := s.net.Stack.NewEndpoint(tcp.ProtocolNumber, s.netProto(), wq)
	if err != nil {
		return nil, errno(err)
	}
	s.opt.applyAll(ep)
	return s.attach(ep, wq), 0
}

// Bind is bind(2).
func (s *TCP) Bind(c *caller.Ctx, _ *vfs.File, _ *vfs.FSContext, a *sock.Addr) linux.Errno {
	fa, e := s.bindAddr(c, a)
	if e != 0 {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() != stFresh {
		return linux.EINVAL
	}
	if !s.claim(tcpPorts, fa.Port) {
		return linux.EADDRINUSE
	}
	fresh := s.ep.Load() == nil
	p, e := s.endpoint()
	if e != 0 {
		return e
	}
	if a, _ := p.GetLocalAddress(); a.Port != 0 {
		return linux.EINVAL
	}
	want := fa.Port
	r, _ := s.span()
	if e := s.bindTo(fa, r, s.ip.v6only, p.Bind); e != 0 {
		if fresh { // it may try again
			s.ep.Store(nil)
			p.close()
		}
		return e
	}
	s.bindPort = want != 0
	return 0
}

// bindAddr decodes and checks the address of bind.
func (s *inetSock) bindAddr(c *caller.Ctx, a *sock.Addr) (tcpip.FullAddress, linux.Errno) {
	if a.Family() == linux.AF_UNSPEC && !s.v6 && a.Len >= linux.SizeofSockaddrIn && [4]byte(a.B[4:8]) == [4]byte{} {
		a.B[0] = linux.AF_INET // as Linux, for old programs
	}
	fa, e := parseAddr(a, s.v6)
	if e != 0 {
		return fa, e
	}
	if mapped(fa.Addr) && s.onlyV6() {
		return fa, linux.EINVAL
	}
	if header.IsV6LinkLocalUnicastAddress(fa.Addr) {
		switch d := tcpip.NICID(s.Opt.BindToDevice.Load()); {
		case fa.NIC == 0 && d == 0:
			return fa, linux.EINVAL
		case fa.NIC != 0 && s.net.InterfaceByIndex(int32(fa.NIC)) == nil:
			return fa, linux.ENODEV
		}
	}
	if fa.Port != 0 && int64(fa.Port) < settings.UnprivilegedPorts.Get() && !c.Cred().Has(creds.CapNetBindService) {
		return fa, linux.EACCES
	}
	return fa, 0
}

// Listen is listen(2).
func (s *TCP) Listen(c *caller.Ctx, backlog int) linux.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.state.Load(); st != stFresh && st != stListening {
		return linux.EINVAL
	}
	p, e := s.endpoint()
	if e != 0 {
		return e
	}
	if !s.claim(tcpPorts, 0) {
		return linux.EADDRINUSE
	}
	if s.state.Load() == stFresh {
		a, _ := p.GetLocalAddress()
		if a.Port == 0 {
			r, _ := s.span()
			if e := s.bindTo(a, r, s.ip.v6only, p.Bind); e != 0 {
				return e
			}
		} else {
			s.net.binding.Lock()
			defer s.net.binding.Unlock()
			if s.bindConflict(a, s.ip.v6only) {
				return linux.EADDRINUSE
			}
		}
	}
	// Linux lets one more wait than the backlog says.
	if e := errno(p.Endpoint.Listen(backlog + 1)); e != 0 {
		return e
	}
	if s.listening == nil {
		s.listening = new(listening)
	}
	s.backlog = backlog
	if s.state.Swap(stListening) != stListening {
		s.bound, _ = p.GetLocalAddress()
		s.boundV6Only = s.ip.v6only
		s.net.addListener(s)
	}
	return 0
}

// Accept is accept(2).
func (s *TCP) Accept(c *caller.Ctx, nonblock bool, flags uint32) (*vfs.File, linux.Errno) {
	x, e := s.tryAccept(c)
	if e == linux.EAGAIN && !nonblock {
		x, e = s.waitAccept(c)
	}
	if e != 0 {
		return nil, e
	}
	return sock.NewFile(x, flags), 0
}

// waitAccept waits until there is a connection to accept.
func (s *TCP) waitAccept(c *caller.Ctx) (x *TCP, e linux.Errno) {
	e = s.BlockExclusive(c, wait.In, s.Opt.RcvTimeo.Load(), func() (e linux.Errno) {
		x, e = s.tryAccept(c)
		return e
	})
	return x, e
}

func (s *TCP) tryAccept(c *caller.Ctx) (*TCP, linux.Errno) {
	s.mu.Lock()
	if s.state.Load() != stListening {
		s.mu.Unlock()
		return nil, linux.EINVAL
	}
	if len(s.pending) > 0 {
		x := s.pending[0]
		s.pending[0] = nil
		if len(s.pending) == 1 {
			s.pending = s.pending[:0] // the next has its place already
		} else {
			s.pending = s.pending[1:]
		}
		late := s.late != nil
		s.mu.Unlock()
		pendingPool.Get().Release(x.user, 1)
		if late {
			s.joinLate(c)
		}
		return x, 0
	}
	p := s.ep.Load()
	s.mu.Unlock()
	ep, wq, err := p.Accept(nil)
	if err != nil {
		return nil, errno(err)
	}
	x := s.net.bareTCP(c, s.Domain)
	s.inherit(x)
	s.net.all.add(&x.inetSock)
	x.opt.applyAll(ep)
	x.attach(ep, wq)
	x.state.Store(stRemote)
	return x, 0
}

// inherit gives a new connection its listener's options.
func (s *TCP) inherit(x *TCP) {
	x.Opt.Inherit(&s.Opt)
	s.mu.Lock()
	x.opt, x.ip = s.opt, s.ip
	x.corked.Store(x.opt.cork)
	s.mu.Unlock()
	if s.rules.Load() != nil {
		x.mu.Lock()
		x.regate()
		x.mu.Unlock()
	}
}

// Ready is what poll(2) sees.
func (s *TCP) Ready(*vfs.File) wait.Events {
	if x := s.far.Load(); x != nil {
		return s.readyLocal(x)
	}
	p := s.ep.Load()
	switch st := s.state.Load(); {
	case p == nil || st == stLate:
		return s.readyIdle(st)
	case st == stListening && s.hasPending():
		return evIn
	}
	ev := s.readyRemote(p)
	if s.shut.Load()&zeroBit != 0 && s.zeroCopied() {
		ev |= wait.Err
	}
	return ev
}

// hasPending reports whether a listener has a connection within the machine to accept.
func (s *TCP) hasPending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listening != nil && len(s.pending) > 0
}

// readyRemote is Ready of a socket that has an endpoint of netstack.
func (s *TCP) readyRemote(p *netPoint) wait.Events {
	ev := wait.Events(p.Readiness(netEvents)) & wait.Events(netEvents)
	switch tcp.EndpointState(p.State()) {
	case tcp.StateInitial, tcp.StateBound:
		return s.readyIdle(stFresh)
	case tcp.StateListen:
		ev &= evIn
	case tcp.StateError:
		ev &^= wait.Err
		if !p.told.Load() {
			ev |= wait.Err
		}
	case tcp.StateClose, tcp.StateTimeWait:
		ev &^= wait.Err
	case tcp.StateEstablished:
		if ev&evIn != 0 && s.shut.Load()&lowatBit != 0 {
			if n, _ := p.GetSockOptInt(tcpip.ReceiveQueueSizeOption); n < int(s.Opt.RcvLowat.Load()) {
				ev &^= evIn
			}
		}
	}
	return ev
}

// Shutdown is shutdown(2).
func (s *TCP) Shutdown(_ *caller.Ctx, how int32) linux.Errno {
	if x := s.far.Load(); x != nil {
		return s.shutdownLocal(x, how)
	}
	p := s.ep.Load()
	switch st := s.state.Load(); {
	case st == stListening && how == linux.SHUT_WR:
		return 0
	case st == stListening:
		return s.unlisten()
	case st == stLate:
		s.giveUp(0)
		return 0
	case p == nil || st == stFresh:
		s.shutIdle(how)
		return linux.ENOTCONN
	}
	flags := tcpip.ShutdownFlags(0)
	if how != linux.SHUT_WR {
		flags |= tcpip.ShutdownRead
	}
	if how != linux.SHUT_RD {
		flags |= tcpip.ShutdownWrite
	}
	var err tcpip.Error
	s.net.together(func() {
		if how != linux.SHUT_RD {
			s.push(p)
		}
		err = p.Endpoint.Shutdown(flags)
	})
	return errno(err)
}

// push sends what TCP_CORK, MSG_MORE or Nagle's rule holds back: a FIN follows,
// and netstack would let it wait behind.
func (s *TCP) push(p *netPoint) {
	s.mu.Lock()
	cork, nodelay := s.opt.cork, s.opt.nodelay
	s.mu.Unlock()
	if cork || s.held.Load() {
		p.SocketOptions().SetCorkOption(false)
	}
	if !nodelay {
		p.SocketOptions().SetDelayOption(false)
	}
}

// Release closes the socket: its file is gone.
func (s *TCP) Release(*vfs.File) {
	was := s.state.Swap(stClosed)
	s.net.all.remove(&s.inetSock)
	s.giveBack(tcpPorts)
	s.unindex()
	if was == stListening {
		s.net.removeListener(s)
		s.dropPending()
	}
	if was == stLocal {
		s.closeLocal(s.far.Load(), s.Opt.Linger.Load() == 1)
	}
	if was == stLate {
		s.giveUp(0)
	}
	s.mu.Lock()
	p := s.ep.Load()
	s.mu.Unlock()
	if p != nil {
		if l := s.Opt.Linger.Load(); l == 1 {
			p.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: true})
		} else {
			p.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: l > 0, Timeout: time.Duration(l-1) * time.Second})
			// The last data and the FIN are to arrive together: an end that
			// has read all closes at once otherwise, and the FINs cross.
			s.net.together(func() {
				s.push(p)
				p.close()
			})
			s.net.abandon(s.user, p)
			return
		}
		p.close()
	}
}

// Read is recv without flags.
func (s *TCP) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	return s.recv(c, v, 0, f.NonBlock())
}

// Write is send without flags.
func (s *TCP) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	return s.send(c, v, 0, f.NonBlock())
}

// Send is sendmsg(2); an address given for a connected socket is ignored, as in Linux.
func (s *TCP) Send(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	const rare = linux.MSG_OOB | linux.MSG_FASTOPEN | linux.MSG_ZEROCOPY
	if m.Flags&rare != 0 {
		return s.sendRare(c, f, m)
	}
	return s.send(c, m.V, m.Flags, f.NonBlock() || m.Flags&linux.MSG_DONTWAIT != 0)
}

// Recv is recvmsg(2).
func (s *TCP) Recv(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&(linux.MSG_OOB|linux.MSG_ERRQUEUE) != 0 {
		if m.Flags&linux.MSG_ERRQUEUE == 0 {
			return s.recvUrgent(m)
		}
		if s.takeZeroCopies(m) {
			return 0, 0
		}
		return 0, linux.EAGAIN
	}
	n, e := s.recv(c, m.V, m.Flags, f.NonBlock() || m.Flags&linux.MSG_DONTWAIT != 0)
	if e == 0 && s.inq.Load() {
		m.HasInq, m.Inq = true, s.moreToRead()
	}
	return n, e
}
