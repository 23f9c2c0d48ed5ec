package unix

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Send is sendmsg(2). Flags that mean nothing here are ignored, as on Linux.
func (s *Sock) Send(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 && (s.Type != linux.SOCK_STREAM || m.V.Len() == 0) {
		return 0, linux.EOPNOTSUPP
	}
	if m.To != nil && m.To.Len == 0 {
		m.To = nil
	}
	if s.Type != linux.SOCK_STREAM {
		return s.sendMessage(c, f, m)
	}
	p := s.peer.Load()
	if m.To != nil {
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
	done, e := s.put(p, m, anc)
	if e == 0 {
		if done == 0 { // without bytes nothing goes
			s.undo(anc)
			return 0, 0
		}
		m.Rights = nil
		p.Q.Notify(evIn)
		if m.V.Len() == 0 {
			return done, 0
		}
		anc = anc.Rest()
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
	return s.sendRest(c, p, m, anc, done)
}

// sendRest sends what there was no room for, as the reader makes some; done is how much
// went before.
func (s *Sock) sendRest(c *caller.Ctx, p *Sock, m *sock.Msg, anc *sock.Ancillary, done int) (int, linux.Errno) {
	for {
		n := 0
		e := s.Block(c, wait.Out, s.Opt.SndTimeo.Load(), func() (e linux.Errno) {
			n, e = s.put(p, m, anc)
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
		m.Rights, anc = nil, anc.Rest()
		p.Q.Notify(evIn)
		if done += n; m.V.Len() == 0 {
			return done, 0
		}
	}
}

// put writes what there is room for to the peer of a stream.
func (s *Sock) put(p *Sock, m *sock.Msg, anc *sock.Ancillary) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB == 0 {
		return p.in.Write(m.V, s.limit(), anc)
	}
	n, e := p.in.WriteUrgent(m.V, s.limit(), anc)
	if e == 0 {
		p.Q.Notify(wait.Pri)
		if f := p.File(); f != nil {
			f.SignalUrgent()
		}
	}
	return n, e
}

// sendMessage is Send of a datagram or seqpacket.
func (s *Sock) sendMessage(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	p := s.peer.Load()
	if m.To != nil && s.dgram() {
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
	if m.V.Len() > s.limit()-messageOverhead {
		return 0, linux.EMSGSIZE
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
		n, e = p.in.WriteMessage(m.V, sock.Message{Limit: s.limit(), Queue: s.queueFor(p), Anc: anc, From: &s.name, Filter: p.Opt.Filter()})
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
	if e == linux.EPIPE && s.dgram() && p.state.Load() == stClosed {
		s.peer.CompareAndSwap(p, nil)
		e = linux.ECONNREFUSED
	}
	if e == sock.Filtered {
		s.undo(anc)
		return n, 0 // the files stay the message's, which gives them back
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

// messageOverhead is what Linux keeps of the send buffer for itself.
const messageOverhead = 32

// queueFor returns how many messages of s may wait at p: any number between two peers.
func (s *Sock) queueFor(p *Sock) int {
	if p == s || p.peer.Load() == s {
		return 0
	}
	return p.queue
}

// ancillary makes what goes with a message; nil for nothing. From here on the
// files count as under way.
func (s *Sock) ancillary(c *caller.Ctx, m *sock.Msg, p *Sock) (*sock.Ancillary, linux.Errno) {
	asked := s.Opt.Has(sock.PassCred) || p.Opt.Has(sock.PassCred) || p.File() == nil
	if len(m.Rights) == 0 && !m.HasCred && !asked {
		return nil, 0
	}
	a := &sock.Ancillary{Rights: m.Rights, User: c.User(), Cred: m.Cred, HasCred: m.HasCred || asked}
	if asked && !m.HasCred {
		cr := c.Cred()
		a.Cred = linux.Ucred{PID: c.PID, UID: cr.UID, GID: cr.GID}
	}
	if len(m.Rights) > 0 {
		if !a.HasCred {
			a.Cred.PID = c.PID // to whom they are charged
		}
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
func (s *Sock) brokenPipe(c *caller.Ctx, m *sock.Msg) linux.Errno {
	if m.Flags&linux.MSG_NOSIGNAL == 0 && s.Type == linux.SOCK_STREAM {
		caller.SignalSelf(c, int(linux.SIGPIPE))
	}
	return linux.EPIPE
}

func nonblock(f *vfs.File, m *sock.Msg) bool {
	return m.Flags&linux.MSG_DONTWAIT != 0 || f != nil && f.NonBlock()
}

// Recv is recvmsg(2).
func (s *Sock) Recv(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return s.recvUrgent(m)
	}
	return s.recv(c, m.V, m, m.Flags, nonblock(f, m))
}

// recvUrgent is Recv with MSG_OOB.
func (s *Sock) recvUrgent(m *sock.Msg) (int, linux.Errno) {
	switch {
	case s.Type != linux.SOCK_STREAM:
		return 0, linux.EOPNOTSUPP
	case s.state.Load() != stConnected || s.Opt.Has(sock.OOBInline):
		return 0, linux.EINVAL
	}
	n, e := s.in.ReadUrgent(m.V, m.Flags&linux.MSG_PEEK != 0)
	if e == 0 {
		m.OutFlags |= linux.MSG_OOB
	}
	return n, e
}

// recv takes a message, or what there is of a stream, into v. What else the
// message carries goes to m; without m it is dropped.
func (s *Sock) recv(c *caller.Ctx, v *uio.Vec, m *sock.Msg, flags int32, nonblock bool) (int, linux.Errno) {
	if !s.dgram() && s.state.Load() != stConnected {
		if s.Type == linux.SOCK_STREAM {
			return 0, linux.EINVAL
		}
		return 0, linux.ENOTCONN
	}
	var g sock.Got
	target := s.target(v.Len(), flags)
	e := s.read(v, &g, flags)
	if e == 0 && (g.N >= target || nonblock || enough(v, &g, flags)) {
		if g.EOF && nonblock && s.dgram() {
			return 0, linux.EAGAIN // Linux looks for a shutdown only when it waits
		}
		return s.finish(m, &g, flags), 0
	}
	if e != 0 && (e != linux.EAGAIN || nonblock) {
		return 0, e
	}
	for {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), func() linux.Errno { return s.read(v, &g, flags) })
		if e != 0 {
			if g.N > 0 {
				return s.finish(m, &g, flags), 0
			}
			return 0, e
		}
		if g.N >= target || enough(v, &g, flags) {
			return s.finish(m, &g, flags), 0
		}
	}
}

// target is how many bytes a receive of a stream waits for.
func (s *Sock) target(n int, flags int32) int {
	if flags&linux.MSG_WAITALL == 0 {
		n = min(n, int(s.Opt.RcvLowat.Load()))
	}
	return max(n, 1)
}

// enough says whether a read that waits for more ends here: at the end, behind a
// message or files, or when the place is full.
func enough(v *uio.Vec, g *sock.Got, flags int32) bool {
	return g.EOF || g.Packet || v.Len() == 0 || flags&linux.MSG_PEEK != 0 || g.Anc != nil && len(g.Anc.Rights) > 0
}

// read is one attempt: EAGAIN when nothing is there.
func (s *Sock) read(v *uio.Vec, g *sock.Got, flags int32) linux.Errno {
	h := sock.How{Limit: linux.DefaultSocketBuffer, Peek: flags&linux.MSG_PEEK != 0, Creds: s.Opt.Has(sock.PassCred),
		Inline: s.Opt.Has(sock.OOBInline)}
	if p := s.peer.Load(); p != nil {
		h.Limit = p.limit()
	}
	peekOff := s.peekOff.Load()
	if h.Peek && peekOff > 0 {
		h.Skip = int(peekOff)
	}
	before := g.N
	e := s.in.Receive(v, h, g)
	if e != 0 && g.Packet && !h.Peek { // taken, and cannot be handed out: its files go, as on Linux
		s.deliver(nil, g.Anc, false)
		g.Anc = nil
	}
	if g.Room {
		s.tellSenders()
	}
	if peekOff >= 0 && e == 0 {
		s.movePeekOff(h.Peek, g, before)
	}
	if e == linux.EAGAIN || g.EOF {
		if err := s.TakeError(); err != 0 {
			return err
		}
		if e == linux.EAGAIN && s.shut.Load()&shutRd != 0 {
			g.EOF = true
			return 0
		}
	}
	return e
}

// movePeekOff keeps SO_PEEK_OFF true: peeks move it on, and what is read moves it back.
func (s *Sock) movePeekOff(peek bool, g *sock.Got, before int) {
	n := int32(g.N - before)
	if peek {
		s.peekOff.Add(n)
		return
	}
	if g.Packet {
		n = int32(g.Size)
	}
	for {
		old := s.peekOff.Load()
		if old < 0 || s.peekOff.CompareAndSwap(old, max(old-n, 0)) {
			return
		}
	}
}

// overflowID is nobody, where the sender's identity is unknown.
const overflowID = 65534

// deliver hands what came with a message to the receiver.
func (s *Sock) deliver(m *sock.Msg, a *sock.Ancillary, peek bool) {
	if m == nil {
		if !peek && a != nil {
			dropAll([]*sock.Ancillary{a})
		}
		return
	}
	if s.Opt.Has(sock.PassCred) {
		m.HasCred, m.Cred = true, linux.Ucred{UID: overflowID, GID: overflowID}
		if a != nil && a.HasCred {
			m.Cred = a.Cred
		}
	}
	if a == nil || len(a.Rights) == 0 {
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
func (s *Sock) finish(m *sock.Msg, g *sock.Got, flags int32) int {
	if g.Packet || g.Sender {
		s.deliver(m, g.Anc, flags&linux.MSG_PEEK != 0)
	}
	done := g.N
	if g.Packet && flags&linux.MSG_TRUNC != 0 {
		done = g.Size
	}
	if m == nil {
		return done
	}
	if g.Trunc {
		m.OutFlags |= linux.MSG_TRUNC
	}
	if m.WantFrom {
		s.putSender(m, g)
	}
	return done
}

// putSender tells the sender's name as it is now; nothing where it has none.
func (s *Sock) putSender(m *sock.Msg, g *sock.Got) {
	m.From.Len = 0
	from := g.From
	if p := s.peer.Load(); s.Type == linux.SOCK_STREAM && p != nil && !g.EOF {
		from = &p.name
	}
	if from != nil {
		if a := from.Load(); a != nil {
			m.From = *a
		}
	}
}
