package unix

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Listen is listen(2).
func (s *Sock) Listen(c *caller.Ctx, backlog int) linux.Errno {
	if s.dgram() {
		return linux.EOPNOTSUPP
	}
	if s.name.Load() == nil {
		return linux.EINVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Load() != stListening && !s.state.CompareAndSwap(stOpen, stListening) {
		return linux.EINVAL
	}
	grown := backlog > s.backlog
	s.backlog = backlog
	s.cred.Store(&credPair{own: ucred(c)})
	if grown {
		s.Q.Notify(evOut)
	}
	return 0
}

// Accept is accept(2).
func (s *Sock) Accept(c *caller.Ctx, nonblock bool, flags uint32) (*vfs.File, linux.Errno) {
	if s.dgram() {
		return nil, linux.EOPNOTSUPP
	}
	var x *Sock
	try := func() linux.Errno {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.state.Load() != stListening {
			return linux.EINVAL
		}
		if len(s.pending) == 0 {
			if s.shut.Load()&shutRd != 0 && !nonblock { // Linux looks only when it waits
				return linux.EINVAL
			}
			return linux.EAGAIN
		}
		x = s.pending[0]
		s.pending[0] = nil
		s.pending = s.pending[1:]
		return 0
	}
	e := try()
	if e == linux.EAGAIN && !nonblock {
		e = s.BlockExclusive(c, wait.In, s.Opt.RcvTimeo.Load(), try)
	}
	if e != 0 {
		return nil, e
	}
	s.Q.Notify(evOut) // room for another connection
	x.UID, x.GID = c.Cred().FSUID, c.Cred().FSGID
	return sock.NewFile(x, flags), 0
}

// Connect is connect(2).
func (s *Sock) Connect(c *caller.Ctx, fs *vfs.FSContext, a *sock.Addr, nonblock bool) linux.Errno {
	if s.dgram() {
		return s.associate(c, fs, a)
	}
	if a.Family() != linux.AF_UNIX {
		return linux.EINVAL
	}
	if s.Opt.Has(sock.PassCred) && s.name.Load() == nil {
		if e := s.autobind(); e != 0 {
			return e
		}
	}
	l, e := s.find(c, fs, a)
	if e != 0 {
		return e
	}
	// The other end exists at once; accept only gives it a file.
	x, _ := newSock(c, s.Type, 0)
	x.Opt.Set(sock.PassCred, l.Opt.Has(sock.PassCred))
	x.name.Store(l.name.Load())
	x.peer.Store(s)
	x.state.Store(stConnected)
	own := ucred(c)
	try := func() linux.Errno {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.state.Load() != stListening || l.shut.Load()&shutRd != 0 {
			return linux.ECONNREFUSED
		}
		if len(l.pending) > l.backlog {
			return linux.EAGAIN
		}
		if !s.state.CompareAndSwap(stOpen, stConnecting) {
			if s.state.Load() == stConnected {
				return linux.EISCONN
			}
			return linux.EINVAL
		}
		listener := l.cred.Load().own
		s.cred.Store(&credPair{own, listener})
		x.cred.Store(&credPair{listener, own})
		s.peer.Store(x)
		if !s.state.CompareAndSwap(stConnecting, stConnected) {
			return linux.EBADF // closed by another thread meanwhile
		}
		l.pending = append(l.pending, x)
		return 0
	}
	e = try()
	if e == linux.EAGAIN && !nonblock {
		e = l.Block(c, wait.Out, s.Opt.SndTimeo.Load(), try)
	}
	if e != 0 {
		all.remove(x)
		return e
	}
	l.Q.Notify(evIn)
	s.Q.Notify(evOut)
	return 0
}

// associate is connect of a datagram socket: it only says where send goes.
func (s *Sock) associate(c *caller.Ctx, fs *vfs.FSContext, a *sock.Addr) linux.Errno {
	var p *Sock
	if a.Family() != linux.AF_UNSPEC {
		if a.Family() != linux.AF_UNIX {
			return linux.EINVAL
		}
		if s.Opt.Has(sock.PassCred) && s.name.Load() == nil {
			if e := s.autobind(); e != 0 {
				return e
			}
		}
		var e linux.Errno
		if p, e = s.find(c, fs, a); e != 0 {
			return e
		}
		if q := p.peer.Load(); q != nil && q != s {
			return linux.EPERM
		}
	}
	if p == nil {
		s.state.CompareAndSwap(stConnected, stOpen)
	} else {
		s.state.CompareAndSwap(stOpen, stConnected)
	}
	if old := s.peer.Swap(p); old != nil && old != p {
		// What waits is not for the new association; the old peer hears of the loss.
		lost, rights := s.in.Purge()
		if lost > 0 && old.peer.Load() == s && old.state.Load() != stClosed {
			old.SetError(linux.ECONNRESET)
		}
		dropAll(rights)
		s.tellSenders()
	}
	s.Q.Notify(evOut)
	return 0
}
