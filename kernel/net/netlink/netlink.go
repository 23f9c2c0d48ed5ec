// Package netlink implements AF_NETLINK for programs that query or change interfaces,
// addresses, routes, rules and neighbours (getifaddrs, ip): NETLINK_ROUTE answers
// requests and dumps, changes what can be changed for root, and announces that to the
// members of its groups. Interfaces are neither made nor removed. NETLINK_SOCK_DIAG lists
// sockets (ss). NETLINK_KOBJECT_UEVENT can be listened to: processors come and go, no other
// device does. Programs may send each other messages.
//
// A request is answered while it is sent: the answers wait in the socket's Flow.
//
// Lock order: ports.mu, then Flow.mu. rules.mu is a leaf.
package netlink

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
)

// Sock is a socket of AF_NETLINK.
type Sock struct {
	sock.Base
	net    *inet.Net // immutable
	admin  bool      // who made it had CAP_NET_ADMIN; immutable
	in     sock.Flow
	port   atomic.Uint32 // nl_pid; 0 before bind; written under ports.mu
	name   sock.Name     // the address, as receivers see it
	groups atomic.Uint64 // memberships; bit 0 is group 1
	peer   atomic.Uint32 // the port that connect named
	flags  atomic.Uint32 // options of SOL_NETLINK, bit n for option n
}

// kernelAddr is where answers come from.
var kernelAddr = func() *sock.Addr {
	a := new(sock.Addr)
	a.Set([]byte{linux.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	return a
}()

// maxProtocol is the number of protocols that AF_NETLINK has room for.
const maxProtocol = 32

// Create makes a socket of the family.
func Create(c *caller.Ctx, _, typ, protocol int32) (sock.Socket, linux.Errno) {
	if typ != linux.SOCK_RAW && typ != linux.SOCK_DGRAM {
		return nil, linux.ESOCKTNOSUPPORT
	}
	if protocol < 0 || protocol >= maxProtocol || inet.Default == nil {
		return nil, linux.EPROTONOSUPPORT
	}
	switch protocol {
	case linux.NETLINK_ROUTE, linux.NETLINK_SOCK_DIAG, linux.NETLINK_KOBJECT_UEVENT:
	default:
		return nil, linux.EPROTONOSUPPORT
	}
	s := &Sock{net: inet.Default, admin: c.Cred().Has(creds.CapNetAdmin)}
	s.Init(c, linux.AF_NETLINK, typ, protocol)
	s.Filters = true
	s.in.InitFlow(c.User(), true)
	all.Add(s)
	return s, 0
}

// Listen is not for messages.
func (s *Sock) Listen(*caller.Ctx, int) linux.Errno { return linux.EOPNOTSUPP }

// Accept is not for messages.
func (s *Sock) Accept(*caller.Ctx, bool, uint32) (*vfs.File, linux.Errno) {
	return nil, linux.EOPNOTSUPP
}

// Connect is connect(2): it says where send goes. Only root talks to other programs.
func (s *Sock) Connect(c *caller.Ctx, _ *vfs.FSContext, a *sock.Addr, _ bool) linux.Errno {
	if a.Family() == linux.AF_UNSPEC {
		s.peer.Store(0)
		return 0
	}
	if a.Family() != linux.AF_NETLINK || a.Len < linux.SizeofSockaddrNl {
		return linux.EINVAL
	}
	port, groups := binary.LittleEndian.Uint32(a.B[4:]), binary.LittleEndian.Uint32(a.B[8:])
	if port|groups != 0 && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	s.autobind(c)
	s.peer.Store(port)
	return 0
}

// Shutdown is not for messages.
func (s *Sock) Shutdown(*caller.Ctx, int32) linux.Errno { return linux.EOPNOTSUPP }

// LocalAddr is getsockname(2).
func (s *Sock) LocalAddr(a *sock.Addr) linux.Errno {
	*a = *kernelAddr
	binary.LittleEndian.PutUint32(a.B[4:], s.port.Load())
	binary.LittleEndian.PutUint32(a.B[8:], uint32(s.groups.Load()))
	return 0
}

// PeerAddr is getpeername(2).
func (s *Sock) PeerAddr(a *sock.Addr) linux.Errno {
	*a = *kernelAddr
	binary.LittleEndian.PutUint32(a.B[4:], s.peer.Load())
	return 0
}

// Ready is what poll(2) sees.
func (s *Sock) Ready(*vfs.File) wait.Events {
	ev := wait.Out | wait.WrNorm | wait.WrBand
	if s.HasError() {
		ev |= wait.Err
	}
	if now, _ := s.in.Readable(); now {
		ev |= wait.In | wait.RdNorm
	}
	return ev
}

// Release closes the socket.
func (s *Sock) Release(*vfs.File) {
	all.Remove(s)
	s.unbind()
	s.in.Stop(true)
}

// Holds adds the socket with what waits in it.
func (s *Sock) Holds(sum *ledger.Sum) {
	sum.Add(ledger.Sockets, ledger.Of[Sock]())
	if s.name.Load() != nil {
		sum.Add(ledger.Sockets, ledger.Of[sock.Addr]())
	}
	s.Opt.Holds(sum)
	s.in.Holds(sum)
}

// Ioctl knows the requests about interfaces.
func (s *Sock) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd == linux.SIOCINQ {
		return sock.CopyOutInt(c, arg, int32(s.in.NextLen()))
	}
	return sock.DeviceIoctl.Call(c, cmd, arg)
}

// Read is recv without flags.
func (s *Sock) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	m := sock.GetMsg(v)
	n, e := s.Recv(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// Write is send without flags.
func (s *Sock) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	m := sock.GetMsg(v)
	n, e := s.Send(c, f, m)
	sock.PutMsg(m)
	return n, e
}

// maxRequest bounds the messages of one send.
const maxRequest = 16 << 10

// Send is sendmsg(2): to the kernel, which answers each message in it, or to another
// program.
func (s *Sock) Send(c *caller.Ctx, _ *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	n := m.V.Len()
	if n == 0 {
		return 0, linux.ENODATA
	}
	port, named := s.peer.Load(), m.To != nil && m.To.Len > 0
	if named {
		if m.To.Family() != linux.AF_NETLINK || m.To.Len < linux.SizeofSockaddrNl {
			return 0, linux.EINVAL
		}
		port = binary.LittleEndian.Uint32(m.To.B[4:])
		if port|binary.LittleEndian.Uint32(m.To.B[8:]) != 0 && !c.Cred().Has(creds.CapNetAdmin) {
			return 0, linux.EPERM
		}
	}
	s.autobind(c)
	if n > int(s.Opt.SndBuf.Load())-messageOverhead || n > maxRequest {
		return 0, linux.EMSGSIZE
	}
	if port != 0 {
		return s.sendTo(c, port, m)
	}
	if s.Protocol != linux.NETLINK_ROUTE && s.Protocol != linux.NETLINK_SOCK_DIAG {
		return 0, linux.ECONNREFUSED
	}
	b := make([]byte, n)
	if _, e := m.V.CopyIn(b); e != 0 {
		return 0, e
	}
	for len(b) >= linux.SizeofNlMsghdr {
		size := binary.LittleEndian.Uint32(b)
		if size < linux.SizeofNlMsghdr || size > uint32(len(b)) {
			break
		}
		s.answer(c, b[:size], named)
		b = b[min(int(size+3)&^3, len(b)):]
	}
	s.Q.Notify(wait.In | wait.RdNorm)
	return n, 0
}

// messageOverhead is what Linux keeps of the send buffer for itself.
const messageOverhead = 32

// sendTo sends a message to another program.
func (s *Sock) sendTo(c *caller.Ctx, port uint32, m *sock.Msg) (int, linux.Errno) {
	x := find(s.Protocol, port)
	if x == nil {
		return 0, linux.ECONNREFUSED
	}
	cr := c.Cred()
	n, e := x.in.WriteMessage(m.V, sock.Message{
		Limit: int(x.Opt.RcvBuf.Load()),
		Anc:   &sock.Ancillary{Cred: linux.Ucred{PID: c.PID, UID: cr.UID, GID: cr.GID}, HasCred: true},
		From:  &s.name,

		Filter: x.Opt.Filter(),
	})
	if e == sock.Filtered {
		return n, 0
	}
	if e == linux.EPIPE {
		e = linux.ECONNREFUSED
	}
	if e == 0 {
		x.Q.Notify(wait.In | wait.RdNorm)
	}
	return n, e
}

// Recv is recvmsg(2). What comes from the kernel has its credentials: zeros.
func (s *Sock) Recv(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	if m.Flags&linux.MSG_OOB != 0 {
		return 0, linux.EOPNOTSUPP
	}
	var g sock.Got
	try := func() (e linux.Errno) {
		g, e = s.in.Read(m.V, linux.DefaultSocketBuffer, m.Flags&linux.MSG_PEEK != 0)
		return e
	}
	e := s.TakeError()
	if e == 0 {
		e = try()
	}
	if e == linux.EAGAIN && m.Flags&linux.MSG_DONTWAIT == 0 && !f.NonBlock() {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), try)
	}
	if e != 0 {
		return 0, e
	}
	if m.WantFrom {
		m.From = *kernelAddr
		if g.From != nil && g.From.Load() != nil {
			m.From = *g.From.Load()
		}
	}
	if s.Opt.Has(sock.PassCred) {
		m.HasCred, m.Cred = true, linux.Ucred{}
		if g.Anc != nil {
			m.Cred = g.Anc.Cred
		}
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
