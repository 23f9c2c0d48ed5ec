// Package unix is AF_UNIX: stream, datagram and seqpacket sockets, names in the
// file system and abstract ones, and the passing of files and credentials.
//
// Each socket receives into its own Flow; sending is writing into the peer's.
// Peers find each other through atomic pointers that are set once (stream,
// seqpacket) or replaced as a whole (datagram), so the data path takes no lock
// but the Flow's.
//
// Lock order: gc.mu, Sock.mu, Flow.mu. No two Sock.mu are held at once.
package unix

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// States of a Sock.
const (
	stOpen int32 = iota
	stConnecting
	stConnected
	stListening
	stClosed
)

// Bits of Sock.shut.
const (
	shutRd uint32 = 1
	shutWr uint32 = 2
)

// Events that a peer is told.
const (
	evIn  = wait.In | wait.RdNorm
	evOut = wait.Out | wait.WrNorm | wait.WrBand
)

// Sock is a socket of AF_UNIX.
type Sock struct {
	sock.Base
	in    sock.Flow // what this socket receives
	state atomic.Int32
	shut  atomic.Uint32
	// peer is the other end of a stream or seqpacket connection, for ever; of
	// a datagram socket where send goes, replaced by connect.
	peer atomic.Pointer[Sock]
	name sock.Name // set once by bind
	cred atomic.Pointer[credPair]
	// peekOff is SO_PEEK_OFF; negative for off.
	peekOff atomic.Int32

	mu      sync.Mutex
	backlog int                // guarded by mu
	queue   int                // how many messages of strangers may wait, and one more; immutable
	pending []*Sock            // guarded by mu: connections to accept
	senders map[*Sock]struct{} // guarded by mu: datagram sockets that wait for room here
	place   vfs.Path           // guarded by mu: the node of a name in the file system; not held

	next, prev *Sock // guarded by all.mu

	inflight int // guarded by gc.mu: messages under way that carry this socket's file
}

// peerCred is what SO_PEERCRED and SO_PEERGROUPS are made of.
type peerCred struct {
	linux.Ucred
	groups []uint32
}

// credPair is the credentials of this end when it connected or listened, and those of
// the other. A listener shows its own.
type credPair struct{ own, peer peerCred }

// Create makes a socket of the family.
func Create(c *caller.Ctx, _, typ, protocol int32) (sock.Socket, linux.Errno) {
	s, e := newSock(c, typ, protocol)
	if e != 0 {
		return nil, e
	}
	return s, 0
}

func newSock(c *caller.Ctx, typ, protocol int32) (*Sock, linux.Errno) {
	if protocol != 0 && protocol != linux.AF_UNIX {
		return nil, linux.EPROTONOSUPPORT
	}
	switch typ {
	case linux.SOCK_STREAM, linux.SOCK_SEQPACKET, linux.SOCK_DGRAM:
	case linux.SOCK_RAW:
		typ = linux.SOCK_DGRAM // as Linux, for BSD's sake
	default:
		return nil, linux.ESOCKTNOSUPPORT
	}
	s := &Sock{}
	s.peekOff.Store(-1)
	s.Init(c, linux.AF_UNIX, typ, 0)
	s.Filters = true // as on Linux only messages are filtered
	s.in.InitFlow(c.User(), typ != linux.SOCK_STREAM)
	s.queue = int(max(min(settings.UnixDgramQlen.Get(), 1<<20), 1))
	all.add(s)
	return s, 0
}

// Pair makes two sockets that are connected.
func Pair(c *caller.Ctx, typ, protocol int32) (sock.Socket, sock.Socket, linux.Errno) {
	a, e := newSock(c, typ, protocol)
	if e != 0 {
		return nil, nil, e
	}
	b, _ := newSock(c, typ, protocol)
	u := ucred(c)
	a.cred.Store(&credPair{u, u})
	b.cred.Store(&credPair{u, u})
	a.peer.Store(b)
	b.peer.Store(a)
	a.state.Store(stConnected)
	b.state.Store(stConnected)
	return a, b, 0
}

// ucred is what SO_PEERCRED shows of the calling thread.
func ucred(c *caller.Ctx) peerCred {
	cr := c.Cred()
	return peerCred{linux.Ucred{PID: c.PID, UID: cr.EUID, GID: cr.EGID}, cr.Groups}
}

func (s *Sock) dgram() bool { return s.Type == linux.SOCK_DGRAM }

// limit is how many bytes of this socket may wait unread.
func (s *Sock) limit() int { return min(int(s.Opt.SndBuf.Load()), sock.MaxFlow) }

// Read is recv without flags.
func (s *Sock) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	return s.recv(c, v, nil, 0, f.NonBlock())
}

// Write is send without flags. What usually happens, bytes that fit into a
// stream without credentials, is done here.
func (s *Sock) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	done := 0
	if p := s.peer.Load(); p != nil && s.Type == linux.SOCK_STREAM && s.shut.Load()&shutWr == 0 &&
		!s.Opt.Has(sock.PassCred) && !p.Opt.Has(sock.PassCred) && p.File() != nil {
		n, e := p.in.Write(v, s.limit(), nil)
		if e == 0 {
			p.Q.Notify(evIn)
			if v.Len() == 0 {
				return n, 0
			}
			done = n
		}
	}
	m := sock.GetMsg(v)
	if done > 0 {
		m.Flags = linux.MSG_NOSIGNAL
	}
	n, e := s.Send(c, f, m)
	sock.PutMsg(m)
	if done > 0 {
		return done + n, 0
	}
	return n, e
}

// Ready is what poll(2) sees.
func (s *Sock) Ready(*vfs.File) (ev wait.Events) {
	if s.HasError() {
		ev |= wait.Err
	}
	shut := s.shut.Load()
	if shut&shutRd != 0 {
		ev |= evIn | wait.RdHup
	}
	if shut == shutRd|shutWr {
		ev |= wait.Hup
	}
	switch s.state.Load() {
	case stListening:
		s.mu.Lock()
		if len(s.pending) > 0 {
			ev |= evIn
		}
		s.mu.Unlock()
		return ev
	case stOpen, stConnecting:
		if !s.dgram() {
			return ev | evOut | wait.Hup
		}
	}
	if now, _ := s.in.Readable(); now {
		ev |= evIn
		if urgent, _ := s.in.Urgent(); urgent {
			ev |= wait.Pri
		}
	}
	p := s.peer.Load()
	switch {
	case p == nil || s.roomAt(p):
		ev |= evOut
	case s.dgram():
		p.addSender(s)
		if s.roomAt(p) {
			ev |= evOut
		}
	}
	return ev
}

// roomAt reports whether a send to p would find room.
func (s *Sock) roomAt(p *Sock) bool {
	if s.dgram() && p.peer.Load() != s {
		return p == s || !p.in.Crowded(p.queue)
	}
	return p.in.Writable(s.limit())
}

// addSender asks to be told when in has room again.
func (s *Sock) addSender(from *Sock) {
	s.mu.Lock()
	if s.senders == nil {
		s.senders = make(map[*Sock]struct{})
	}
	s.senders[from] = struct{}{}
	s.mu.Unlock()
}

// tellSenders wakes those who wait for room.
func (s *Sock) tellSenders() {
	if !s.dgram() {
		if p := s.peer.Load(); p != nil {
			p.Q.Notify(evOut)
		}
		return
	}
	s.mu.Lock()
	m := s.senders
	s.senders = nil
	s.mu.Unlock()
	for x := range m {
		x.Q.Notify(evOut)
	}
}

// Shutdown is shutdown(2); like Linux's it does not mind whether there is a
// connection. It needs no connection; only the other end of one
// notices it.
func (s *Sock) Shutdown(_ *caller.Ctx, how int32) linux.Errno {
	p := s.peer.Load()
	if s.dgram() {
		p = nil
	}
	if how != linux.SHUT_WR {
		s.shut.Or(shutRd)
		s.in.Stop(false)
		s.in.End()
		if p != nil {
			p.shut.Or(shutWr)
		}
	}
	if how != linux.SHUT_RD {
		s.shut.Or(shutWr)
		if p != nil {
			p.in.End()
			p.shut.Or(shutRd)
		}
	}
	s.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup)
	if p != nil {
		p.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup)
	}
	return 0
}

// Release closes the socket: its file is gone.
func (s *Sock) Release(*vfs.File) {
	was := s.state.Swap(stClosed)
	all.remove(s)
	s.unname()
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	var inode *vfs.Inode
	if !s.place.Zero() {
		inode = s.place.Dentry.Inode
	}
	s.mu.Unlock()
	if inode != nil {
		inode.SetPrivate(nil)
	}
	for _, x := range pending {
		if p := x.peer.Load(); p != nil {
			p.NoteError(linux.ECONNRESET)
		}
		x.Release(nil)
	}
	lost, rights := s.in.Stop(true)
	if p := s.peer.Load(); p != nil && was == stConnected && !s.dgram() {
		if lost > 0 {
			p.NoteError(linux.ECONNRESET)
		}
		p.in.End()
		p.shut.Or(shutRd | shutWr)
		p.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup)
	}
	s.tellSenders()
	dropAll(rights)
	if was == stListening {
		s.Q.Notify(evIn | evOut | wait.Hup) // those who wait to connect
	}
	collectIfNeeded()
}

// Ioctl knows how much waits; other requests are not sockets' business.
func (s *Sock) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case linux.SIOCINQ:
		if s.state.Load() == stListening {
			return 0, linux.EINVAL
		}
		return sock.CopyOutInt(c, arg, int32(s.in.NextLen()))
	case linux.SIOCOUTQ:
		n := 0
		if p := s.peer.Load(); p != nil && !s.dgram() {
			n = p.in.Used()
		}
		return sock.CopyOutInt(c, arg, int32(n))
	case linux.SIOCATMARK:
		if s.Type != linux.SOCK_STREAM {
			return 0, linux.EOPNOTSUPP
		}
		v := int32(0)
		if _, next := s.in.Urgent(); next {
			v = 1
		}
		return sock.CopyOutInt(c, arg, v)
	}
	return sock.DeviceIoctl.Call(c, cmd, arg)
}

// SetOpt is setsockopt(2).
func (s *Sock) SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	if level != linux.SOL_SOCKET {
		return linux.EOPNOTSUPP
	}
	if name == linux.SO_PEEK_OFF {
		v, e := sock.Int(val)
		if e == 0 {
			s.peekOff.Store(v)
		}
		return e
	}
	return s.SetSocketOpt(c, name, val)
}

// GetOpt is getsockopt(2).
func (s *Sock) GetOpt(_ *caller.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	if level != linux.SOL_SOCKET {
		return 0, linux.EOPNOTSUPP
	}
	switch name {
	case linux.SO_PEERCRED:
		u := linux.Ucred{UID: ^uint32(0), GID: ^uint32(0)}
		if p := s.peerCred(); p != nil {
			u = p.Ucred
		}
		var b [linux.SizeofUcred]byte
		sock.PutUcred(b[:], u)
		return copy(val, b[:]), 0
	case linux.SO_PEERGROUPS:
		return s.peerGroups(val)
	case linux.SO_PEERNAME:
		var a sock.Addr
		if s.PeerAddr(&a) != 0 {
			return 0, linux.ENOTCONN
		}
		return sock.PutName(val, &a)
	case linux.SO_PEEK_OFF:
		return sock.PutInt(val, s.peekOff.Load()), 0
	case linux.SO_ACCEPTCONN:
		v := int32(0)
		if s.state.Load() == stListening {
			v = 1
		}
		return sock.PutInt(val, v), 0
	}
	return s.GetSocketOpt(name, val)
}

// peerCred returns the credentials that SO_PEERCRED shows, or nil.
func (s *Sock) peerCred() *peerCred {
	p := s.cred.Load()
	switch {
	case p == nil:
		return nil
	case s.state.Load() == stListening:
		return &p.own
	}
	return &p.peer
}

// peerGroups is SO_PEERGROUPS: ERANGE tells how much room is needed.
func (s *Sock) peerGroups(val []byte) (int, linux.Errno) {
	p := s.peerCred()
	if p == nil {
		return 0, linux.ENODATA
	}
	n := 4 * len(p.groups)
	if n > len(val) {
		return n, linux.ERANGE
	}
	for i, g := range p.groups {
		sock.PutInt(val[4*i:], int32(g))
	}
	return n, 0
}
