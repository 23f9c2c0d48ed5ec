// Package netlink is AF_NETLINK as far as programs look for interfaces,
// addresses and routes (getifaddrs, ip): NETLINK_ROUTE answers requests and
// dumps; nothing can be changed through it, and no events are announced.
//
// A request is answered while it is sent: the answers wait in the socket's Flow.
package netlink

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/sock"
	"hardtack/kernel/sock/inet"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
	"hardtack/kernel/wait"
)

// Sock is a socket of AF_NETLINK.
type Sock struct {
	sock.Base
	net    *inet.Net // immutable
	in     sock.Flow
	port   atomic.Uint32 // nl_pid; 0 before bind
	groups atomic.Uint32
}

// kernelAddr is where answers come from.
var kernelAddr = func() *sock.Addr {
	a := new(sock.Addr)
	a.Set([]byte{linux.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	return a
}()

func init() { sock.Register(linux.AF_NETLINK, create, nil) }

func create(c *kern.Ctx, _, typ, protocol int32) (sock.Socket, linux.Errno) {
	if typ != linux.SOCK_RAW && typ != linux.SOCK_DGRAM {
		return nil, linux.ESOCKTNOSUPPORT
	}
	if protocol != linux.NETLINK_ROUTE || inet.Default == nil {
		return nil, linux.EPROTONOSUPPORT
	}
	s := &Sock{net: inet.Default}
	s.Init(c, linux.AF_NETLINK, typ, protocol)
	s.in.InitFlow(c.User(), true)
	return s, 0
}

// Bind is bind(2).
func (s *Sock) Bind(c *kern.Ctx, _ *vfs.File, _ *vfs.FSContext, a *sock.Addr) linux.Errno {
	if a.Family() != linux.AF_NETLINK || a.Len < linux.SizeofSockaddrNl {
		return linux.EINVAL
	}
	pid := binary.LittleEndian.Uint32(a.B[4:])
	if pid == 0 {
		s.autobind(c)
	} else if !s.port.CompareAndSwap(0, pid) && s.port.Load() != pid {
		return linux.EINVAL
	}
	s.groups.Store(binary.LittleEndian.Uint32(a.B[8:]))
	return 0
}

// autobind takes the process's number, as Linux does for its first socket; who
// has several cannot tell them apart by it, but nobody sends to them.
func (s *Sock) autobind(c *kern.Ctx) { s.port.CompareAndSwap(0, uint32(c.PID)) }

// Listen is not for messages.
func (s *Sock) Listen(*kern.Ctx, int) linux.Errno { return linux.EOPNOTSUPP }

// Accept is not for messages.
func (s *Sock) Accept(*kern.Ctx, bool, uint32) (*vfs.File, linux.Errno) {
	return nil, linux.EOPNOTSUPP
}

// Connect is connect(2): the kernel is the only peer.
func (s *Sock) Connect(c *kern.Ctx, _ *vfs.FSContext, a *sock.Addr, _ bool) linux.Errno {
	if a.Family() == linux.AF_UNSPEC {
		return 0
	}
	if a.Family() != linux.AF_NETLINK || a.Len < linux.SizeofSockaddrNl {
		return linux.EINVAL
	}
	if binary.LittleEndian.Uint32(a.B[4:]) != 0 {
		return linux.ECONNREFUSED
	}
	s.autobind(c)
	return 0
}

// Shutdown is not for messages.
func (s *Sock) Shutdown(*kern.Ctx, int32) linux.Errno { return linux.EOPNOTSUPP }

// LocalAddr is getsockname(2).
func (s *Sock) LocalAddr(a *sock.Addr) linux.Errno {
	*a = *kernelAddr
	binary.LittleEndian.PutUint32(a.B[4:], s.port.Load())
	binary.LittleEndian.PutUint32(a.B[8:], s.groups.Load())
	return 0
}

// PeerAddr is getpeername(2).
func (s *Sock) PeerAddr(a *sock.Addr) linux.Errno {
	*a = *kernelAddr
	return 0
}

// Ready is what poll(2) sees.
func (s *Sock) Ready(*vfs.File) wait.Events {
	ev := wait.Out | wait.WrNorm
	if now, _ := s.in.Readable(); now {
		ev |= wait.In | wait.RdNorm
	}
	return ev
}

// Release closes the socket.
func (s *Sock) Release(*vfs.File) { s.in.Stop(true) }

// Ioctl knows the requests about interfaces.
func (s *Sock) Ioctl(c *kern.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd == linux.SIOCINQ {
		return sock.CopyOutInt(c, arg, int32(s.in.NextLen()))
	}
	return sock.DeviceIoctl(c, cmd, arg)
}

// SetOpt is setsockopt(2). Group memberships are taken and never used.
func (s *Sock) SetOpt(c *kern.Ctx, level, name int32, val []byte) linux.Errno {
	switch level {
	case linux.SOL_SOCKET:
		return s.SetSocketOpt(c, name, val)
	case linux.SOL_NETLINK:
		switch name {
		case linux.NETLINK_ADD_MEMBERSHIP, linux.NETLINK_DROP_MEMBERSHIP, linux.NETLINK_EXT_ACK, linux.NETLINK_GET_STRICT_CHK:
			return 0
		}
	}
	return linux.ENOPROTOOPT
}

// GetOpt is getsockopt(2).
func (s *Sock) GetOpt(_ *kern.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	if level != linux.SOL_SOCKET {
		return 0, linux.ENOPROTOOPT
	}
	return s.GetSocketOpt(name, val)
}

// Read is recv without flags.
func (s *Sock) Read(c *kern.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	m := sock.GetMsg(v)
	n, e := s.Recv(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// Write is send without flags.
func (s *Sock) Write(c *kern.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	m := sock.GetMsg(v)
	n, e := s.Send(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// maxRequest bounds the messages of one send.
const maxRequest = 16 << 10

// Send is sendmsg(2): each message in it is answered.
func (s *Sock) Send(c *kern.Ctx, _ *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	if m.To != nil && (m.To.Family() != linux.AF_NETLINK || m.To.Len < linux.SizeofSockaddrNl) {
		return 0, linux.EINVAL
	}
	if m.To != nil && binary.LittleEndian.Uint32(m.To.B[4:]) != 0 {
		return 0, linux.ECONNREFUSED
	}
	n := m.V.Len()
	if n > maxRequest {
		return 0, linux.EMSGSIZE
	}
	b := make([]byte, n)
	if _, e := m.V.CopyIn(b); e != 0 {
		return 0, e
	}
	s.autobind(c)
	for len(b) >= linux.SizeofNlMsghdr {
		size := binary.LittleEndian.Uint32(b)
		if size < linux.SizeofNlMsghdr || size > uint32(len(b)) {
			break
		}
		s.answer(b[:size])
		b = b[min(int(size+3)&^3, len(b)):]
	}
	s.Q.Notify(wait.In | wait.RdNorm)
	return n, 0
}

// Recv is recvmsg(2).
func (s *Sock) Recv(c *kern.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	if m.Flags&linux.MSG_ERRQUEUE != 0 {
		return 0, linux.EAGAIN
	}
	var g sock.Got
	try := func() (e linux.Errno) {
		g, e = s.in.Read(m.V, linux.DefaultSocketBuffer, m.Flags&linux.MSG_PEEK != 0)
		return e
	}
	e := try()
	if e == linux.EAGAIN && m.Flags&linux.MSG_DONTWAIT == 0 && !f.NonBlock() {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), try)
	}
	if e != 0 {
		return 0, e
	}
	if m.WantFrom {
		m.From = *kernelAddr
	}
	n := g.N
	if g.Trunc {
		m.OutFlags |= linux.MSG_TRUNC
		if m.Flags&linux.MSG_TRUNC != 0 {
			n = g.Size
		}
	}
	return n, 0
}
