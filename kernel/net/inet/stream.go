package inet

import (
	"errors"
	"io"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// xfer is a transfer as netstack sees it: a Payloader to send from, a Writer to
// receive into.
type xfer struct {
	v       *uio.Vec
	discard bool   // MSG_TRUNC: count, do not copy
	left    int    // of what may be discarded
	whole   bool   // a message: what does not fit is lost
	peeks   bool   // at the offset skip, over as many messages as it takes
	skip    int    // bytes to pass over first
	off     int    // what skip was when a message was found
	n       int    // bytes copied out
	train   uint16 // the length of a train's datagrams; see the overlay's udp_train.go
}

var xfers = sync.Pool{New: func() any { return new(xfer) }}

func getXfer(v *uio.Vec) *xfer {
	x := xfers.Get().(*xfer)
	*x = xfer{v: v}
	return x
}

func putXfer(x *xfer) {
	x.v = nil
	xfers.Put(x)
}

var errFault = errors.New("bad user address")

// Pass passes over a message; see the overlay's udp_peek.go. seen: it is empty, and was
// peeked at before.
func (x *xfer) Pass(size int, seen bool) bool {
	if x.peeks && x.skip >= size && (x.skip > 0 || seen) {
		x.skip -= size
		x.off = x.skip
		return true
	}
	return false
}

// TrainSize and SetTrainSize tell the length of a train's datagrams.
func (x *xfer) TrainSize() uint16     { return x.train }
func (x *xfer) SetTrainSize(n uint16) { x.train = n }

// Len is how much there is to send.
func (x *xfer) Len() int { return x.v.Len() }

// Read takes bytes to send.
func (x *xfer) Read(p []byte) (int, error) {
	if x.v.Len() == 0 {
		return 0, io.EOF
	}
	n, e := x.v.CopyIn(p)
	if e != 0 {
		return n, errFault
	}
	return n, nil
}

// Write gives received bytes; a short count says that the place is full.
func (x *xfer) Write(p []byte) (int, error) {
	if x.discard {
		n := min(x.left, len(p))
		x.left -= n
		x.n += n
		if n < len(p) {
			return n, io.ErrShortWrite
		}
		return n, nil
	}
	if x.skip > 0 {
		n := min(x.skip, len(p))
		x.skip -= n
		if p = p[n:]; len(p) == 0 {
			return n, nil
		}
		m, err := x.Write(p)
		return n + m, err
	}
	n, e := x.v.CopyOut(p)
	x.n += n
	switch {
	case e != 0:
		return n, errFault
	case n < len(p) && x.whole:
		return len(p), nil
	case n < len(p):
		return n, io.ErrShortWrite
	}
	return n, nil
}

// send moves v out, blocking until all of it has gone unless nonblock.
func (s *TCP) send(c *caller.Ctx, v *uio.Vec, flags int32, nonblock bool) (int, linux.Errno) {
	n, e := s.trySend(v, flags)
	if n > 0 && v.Len() == 0 {
		return n, 0
	}
	if e == 0 && v.Len() == 0 {
		return 0, 0
	}
	if (e == 0 || e == linux.EAGAIN) && !nonblock {
		for {
			m := 0
			e = s.Block(c, wait.Out|wait.Hup, s.Opt.SndTimeo.Load(), func() (e linux.Errno) {
				if n > 0 && s.HasError() {
					return linux.EPIPE // that is for the next call to tell
				}
				m, e = s.trySend(v, flags)
				return e
			})
			n += m
			if e != 0 || v.Len() == 0 {
				break
			}
		}
	}
	if n > 0 {
		return n, 0
	}
	if e == linux.EPIPE && flags&linux.MSG_NOSIGNAL == 0 {
		caller.SignalSelf(c, int(linux.SIGPIPE))
	}
	return 0, e
}

// trySend sends what there is room for.
func (s *TCP) trySend(v *uio.Vec, flags int32) (int, linux.Errno) {
	if x := s.far.Load(); x != nil {
		return s.sendLocal(x, v, flags)
	}
	p := s.ep.Load()
	if s.state.Load() == stLate {
		return 0, linux.EAGAIN
	}
	if p == nil {
		if e := s.TakeError(); e != 0 {
			return 0, e
		}
		return 0, linux.EPIPE
	}
	more := flags&linux.MSG_MORE != 0
	if more {
		s.holdBack(p)
	}
	x := getXfer(v)
	n, err := p.Endpoint.Write(x, tcpip.WriteOptions{Atomic: true, More: more})
	putXfer(x)
	if !more && s.held.Load() {
		s.letGo(p)
	}
	if err != nil {
		return 0, errno(err)
	}
	return int(n), 0
}

// holdBack makes netstack wait for full segments (MSG_MORE), until the next
// write without it.
func (s *TCP) holdBack(p *netPoint) {
	if !s.held.Swap(true) {
		p.SocketOptions().SetCorkOption(true)
	}
}

func (s *TCP) letGo(p *netPoint) {
	if s.held.Swap(false) {
		s.mu.Lock()
		cork := s.opt.cork
		s.mu.Unlock()
		if !cork {
			p.SocketOptions().SetCorkOption(false)
		}
	}
}

// recv moves what has come into v, blocking until there is something (with
// MSG_WAITALL, until v is full) unless nonblock.
func (s *TCP) recv(c *caller.Ctx, v *uio.Vec, flags int32, nonblock bool) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, s.awaitData(c, nonblock)
	}
	n, eof, e := s.tryRecv(v, flags)
	if n > 0 && (flags&linux.MSG_WAITALL == 0 && n >= int(s.Opt.RcvLowat.Load()) || v.Len() == 0 || nonblock) || eof || e != 0 && e != linux.EAGAIN || flags&linux.MSG_PEEK != 0 && n > 0 {
		return n, e
	}
	if nonblock {
		return n, e
	}
	for {
		m := 0
		e = s.Block(c, wait.In|wait.RdHup, s.Opt.RcvTimeo.Load(), func() (e linux.Errno) {
			m, eof, e = s.tryRecv(v, flags)
			return e
		})
		n += m
		if e != 0 || eof || flags&linux.MSG_WAITALL == 0 && n >= int(s.Opt.RcvLowat.Load()) || v.Len() == 0 || flags&linux.MSG_PEEK != 0 {
			break
		}
	}
	if n > 0 {
		return n, 0
	}
	return 0, e
}

// awaitData is a receive of nothing: it waits as one of something would.
func (s *TCP) awaitData(c *caller.Ctx, nonblock bool) linux.Errno {
	switch s.state.Load() {
	case stListening:
		return linux.ENOTCONN
	case stFresh:
		_, e := s.notConnected()
		return e
	}
	ready := func() linux.Errno {
		if s.Ready(nil)&(wait.In|wait.RdHup|wait.Hup|wait.Err) != 0 {
			return 0
		}
		return linux.EAGAIN
	}
	if e := ready(); e == 0 || nonblock {
		return e
	}
	return s.Block(c, wait.In|wait.RdHup, s.Opt.RcvTimeo.Load(), ready)
}

// moderateFrom is how much a read must find for the receive window to be tuned:
// small exchanges need no tuning.
const moderateFrom = 16 << 10

// tryRecv takes what is there; eof when nothing more will come.
func (s *TCP) tryRecv(v *uio.Vec, flags int32) (n int, eof bool, e linux.Errno) {
	if x := s.far.Load(); x != nil {
		return s.recvLocal(x, v, flags)
	}
	p := s.ep.Load()
	if s.state.Load() == stLate {
		return 0, false, linux.EAGAIN
	}
	if p == nil {
		eof, e := s.notConnected()
		return 0, eof, e
	}
	x := getXfer(v)
	if flags&linux.MSG_TRUNC != 0 {
		x.discard, x.left = true, v.Len()
	}
	r, err := p.Endpoint.Read(x, tcpip.ReadOptions{Peek: flags&linux.MSG_PEEK != 0})
	putXfer(x)
	switch err.(type) {
	case nil:
		if flags&linux.MSG_TRUNC != 0 {
			v.Limit(v.Len() - r.Count) // as if copied
		}
		if r.Count >= moderateFrom {
			p.ModerateRecvBuf(r.Count)
		}
		return r.Count, false, 0
	case *tcpip.ErrClosedForReceive:
		return 0, true, 0
	case *tcpip.ErrNotConnected:
		eof, e := s.notConnected()
		return 0, eof, e
	}
	return 0, false, errno(err)
}
