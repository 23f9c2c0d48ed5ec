package unix

import (
	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/sock"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
	"hardtack/kernel/wait"
)

// Flags that Send and Recv take; MSG_OOB data does not exist here.
const (
	sendFlags = linux.MSG_DONTWAIT | linux.MSG_NOSIGNAL | linux.MSG_EOR | linux.MSG_MORE | linux.MSG_CONFIRM |
		linux.MSG_DONTROUTE | linux.MSG_BATCH | linux.MSG_CMSG_CLOEXEC | linux.MSG_WAITALL | linux.MSG_TRUNC | linux.MSG_CTRUNC | linux.MSG_PEEK
)

// Send is sendmsg(2).
func (s *Sock) Send(c *kern.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&^int32(sendFlags) != 0 {
		return 0, linux.EOPNOTSUPP
	}
	if s.dgram() {
		return s.sendDatagram(c, f, m)
	}
	p := s.peer.Load()
	if m.To != nil && s.Type == linux.SOCK_STREAM {
		if p != nil {
			return 0, linux.EISCONN
		}
		return 0, linux.EOPNOTSUPP
	}
	if p == nil {
		return 0, linux.ENOTCONN
	}
	if s.shut.Load()&shutWr != 0 {
		return 0, s.brokenPipe(c, m)
	}
	anc, e := s.ancillary(c, m, p)
	if e != 0 {
		return 0, e
	}
	done, e := p.in.Write(m.V, s.limit(), anc, nil)
	if e == 0 {
		m.Rights = nil
		p.Q.Notify(evIn)
		if m.V.Len() == 0 || s.Type != linux.SOCK_STREAM {
			return done, 0
		}
		anc = nil
	} else if e != linux.EAGAIN {
		s.undo(anc)
		if e == linux.EPIPE {
			e = s.brokenPipe(c, m)
		}
		return 0, e
	}
	if nonblock(f, m) {
		if done > 0 {
			return done, 0
		}
		s.undo(anc)
		return 0, linux.EAGAIN
	}
	// The rest waits for the reader.
	for {
		n := 0
		e = s.Block(c, wait.Out, s.Opt.SndTimeo.Load(), func() (e linux.Errno) {
			n, e = p.in.Write(m.V, s.limit(), anc, nil)
			return e
		})
		if e != 0 {
			s.undo(anc)
			if done > 0 {
				return done, 0
			}
			if e == linux.EPIPE {
				e = s.brokenPipe(c, m)
			}
			return 0, e
		}
		m.Rights, anc = nil, nil
		p.Q.Notify(evIn)
		if done += n; m.V.Len() == 0 || s.Type != linux.SOCK_STREAM {
			return done, 0
		}
	}
}

func (s *Sock) sendDatagram(c *kern.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	p := s.peer.Load()
	if m.To != nil {
		var e linux.Errno
		if p, e = s.find(c, m.FS, m.To); e != 0 {
			return 0, e
		}
	}
	if p == nil {
		return 0, linux.ENOTCONN
	}
	if s.shut.Load()&shutWr != 0 || p.shut.Load()&shutRd != 0 {
		return 0, s.brokenPipe(c, m)
	}
	if q := p.peer.Load(); q != nil && q != s {
		return 0, linux.EPERM
	}
	if s.Opt.Has(sock.PassCred) && s.name.Load() == nil {
		if e := s.autobind(); e != 0 {
			return 0, e
		}
	}
	anc, e := s.ancillary(c, m, p)
	if e != 0 {
		return 0, e
	}
	n := 0
	try := func() (e linux.Errno) {
		n, e = p.in.Write(m.V, s.limit()-datagramOverhead, anc, s.name.Load())
		return e
	}
	if e = try(); e == linux.EAGAIN {
		p.addSender(s)
		if nonblock(f, m) {
			e = try()
		} else {
			e = s.Block(c, wait.Out, s.Opt.SndTimeo.Load(), func() linux.Errno {
				e := try()
				if e == linux.EAGAIN {
					p.addSender(s)
					e = try()
				}
				return e
			})
		}
	}
	if e == linux.EPIPE && p.state.Load() == stClosed {
		s.peer.CompareAndSwap(p, nil)
		e = linux.ECONNREFUSED
	}
	if e != 0 {
		s.undo(anc)
		if e == linux.EPIPE {
			e = s.brokenPipe(c, m)
		}
		return 0, e
	}
	m.Rights = nil
	p.Q.Notify(evIn)
	return n, 0
}

// datagramOverhead is what Linux keeps of the send buffer for itself.
const datagramOverhead = 32

// ancillary makes what goes with a message; nil for nothing. From here on the
// files count as under way.
func (s *Sock) ancillary(c *kern.Ctx, m *sock.Msg, p *Sock) (*sock.Ancillary, linux.Errno) {
	if len(m.Rights) == 0 && !m.HasCred && !s.Opt.Has(sock.PassCred) && !p.Opt.Has(sock.PassCred) {
		return nil, 0
	}
	a := &sock.Ancillary{Rights: m.Rights, User: c.User(), Cred: m.Cred, HasCred: true}
	if !m.HasCred {
		cr := c.Cred()
		a.Cred = linux.Ucred{PID: c.PID, UID: cr.UID, GID: cr.GID}
	}
	if len(m.Rights) > 0 {
		if e := launched(c, a.User, m.Rights, m.MaxFiles); e != 0 {
			return nil, e
		}
	}
	return a, 0
}

// undo forgets an ancillary part that was not sent; its files are the caller's.
func (s *Sock) undo(a *sock.Ancillary) {
	if a != nil {
		landed(a)
	}
}

// brokenPipe is the answer to a send that nobody will read.
func (s *Sock) brokenPipe(c *kern.Ctx, m *sock.Msg) linux.Errno {
	if m.Flags&linux.MSG_NOSIGNAL == 0 && s.Type == linux.SOCK_STREAM {
		kern.SignalSelf(c, int(linux.SIGPIPE))
	}
	return linux.EPIPE
}

func nonblock(f *vfs.File, m *sock.Msg) bool {
	return m.Flags&linux.MSG_DONTWAIT != 0 || f != nil && f.NonBlock()
}

// Recv is recvmsg(2).
func (s *Sock) Recv(c *kern.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	if m.Flags&linux.MSG_ERRQUEUE != 0 {
		return 0, linux.EAGAIN
	}
	return s.recv(c, m.V, m, m.Flags, nonblock(f, m))
}

// recv takes a message, or what there is of a stream, into v. What else the
// message carries goes to m; without m it is dropped.
func (s *Sock) recv(c *kern.Ctx, v *uio.Vec, m *sock.Msg, flags int32, nonblock bool) (int, linux.Errno) {
	if !s.dgram() && s.state.Load() != stConnected {
		if s.Type == linux.SOCK_STREAM {
			return 0, linux.EINVAL
		}
		return 0, linux.ENOTCONN
	}
	g, e := s.read(v, m, flags)
	done := g.N
	if e == 0 && (flags&linux.MSG_WAITALL == 0 || nonblock || enough(v, &g, flags)) {
		return s.finish(m, &g, flags, done), 0
	}
	if e != 0 && (e != linux.EAGAIN || nonblock) {
		return 0, e
	}
	for {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), func() (e linux.Errno) {
			g, e = s.read(v, m, flags)
			return e
		})
		if e != 0 {
			if done > 0 {
				return done, 0
			}
			return 0, e
		}
		done += g.N
		if flags&linux.MSG_WAITALL == 0 || enough(v, &g, flags) {
			return s.finish(m, &g, flags, done), 0
		}
	}
}

// enough says whether a read with MSG_WAITALL ends here: at the end, behind a
// message or files, or when the place is full.
func enough(v *uio.Vec, g *sock.Got, flags int32) bool {
	return g.EOF || g.Packet || v.Len() == 0 || flags&linux.MSG_PEEK != 0 || g.Anc != nil && len(g.Anc.Rights) > 0
}

// read is one attempt: EAGAIN when nothing is there.
func (s *Sock) read(v *uio.Vec, m *sock.Msg, flags int32) (sock.Got, linux.Errno) {
	peek := flags&linux.MSG_PEEK != 0
	limit := linux.DefaultSocketBuffer
	if p := s.peer.Load(); p != nil {
		limit = p.limit()
	}
	g, e := s.in.Read(v, limit, peek)
	if g.Room {
		s.tellSenders()
	}
	switch {
	case g.Anc != nil:
		s.deliver(m, g.Anc, peek)
	case e == 0 && m != nil && !g.EOF && !m.HasCred && s.Opt.Has(sock.PassCred):
		m.HasCred, m.Cred = true, linux.Ucred{UID: overflowID, GID: overflowID}
	}
	if e == linux.EAGAIN || g.EOF {
		if err := s.TakeError(); err != 0 {
			return g, err
		}
		if e == linux.EAGAIN && s.shut.Load()&shutRd != 0 {
			return sock.Got{EOF: true}, 0
		}
	}
	return g, e
}

// overflowID is nobody, where the sender's identity is unknown.
const overflowID = 65534

// deliver hands an ancillary part to the receiver.
func (s *Sock) deliver(m *sock.Msg, a *sock.Ancillary, peek bool) {
	if m == nil {
		if !peek {
			dropAll([]*sock.Ancillary{a})
		}
		return
	}
	if s.Opt.Has(sock.PassCred) {
		m.HasCred, m.Cred = true, a.Cred
	}
	if len(a.Rights) == 0 {
		return
	}
	if peek {
		m.Rights = append([]*vfs.File(nil), a.Rights...)
		for _, f := range m.Rights {
			f.Get()
		}
		return
	}
	landed(a)
	m.Rights = append(m.Rights, a.Rights...)
}

// finish fills what the caller is told about a message, and returns its length.
func (s *Sock) finish(m *sock.Msg, g *sock.Got, flags int32, done int) int {
	if g.Packet && flags&linux.MSG_TRUNC != 0 {
		done = g.Size
	}
	if m == nil {
		return done
	}
	if g.Packet {
		if s.Type == linux.SOCK_SEQPACKET {
			m.OutFlags |= linux.MSG_EOR
		}
		if g.Trunc {
			m.OutFlags |= linux.MSG_TRUNC
		}
	}
	if m.WantFrom && s.dgram() {
		m.From.Len = 0
		if g.From != nil {
			m.From = *g.From
		}
	}
	return done
}
