package inet

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/net/sock"
)

// applyBase tells an endpoint the options of SOL_SOCKET that it looks at.
func (s *inetSock) applyBase(ep tcpip.Endpoint) {
	so := ep.SocketOptions()
	o := &s.Opt
	if o.Has(sock.ReuseAddr) {
		so.SetReuseAddress(true)
	}
	if o.Has(sock.ReusePort) {
		so.SetReusePort(true)
	}
	if o.Has(sock.KeepAlive) {
		so.SetKeepAlive(true)
	}
	if o.Has(sock.Broadcast) {
		so.SetBroadcast(true)
	}
	if d := o.BindToDevice.Load(); d != 0 {
		so.SetBindToDevice(d)
	}
	set := o.BufSet.Load()
	if set&1 != 0 {
		so.SetReceiveBufferSize(int64(o.RcvBuf.Load()/2), true)
	}
	if set&2 != 0 {
		so.SetSendBufferSize(int64(o.SndBuf.Load()/2), true)
	}
}

// setSocket is setsockopt at SOL_SOCKET.
func (s *inetSock) setSocket(c *caller.Ctx, name int32, val []byte) linux.Errno {
	switch name {
	case linux.SO_BINDTODEVICE:
		return s.bindToDevice(c, val)
	case linux.SO_BINDTOIFINDEX, linux.SO_PEEK_OFF, linux.SO_ATTACH_FILTER, linux.SO_RCVLOWAT:
		v, e := sock.Int(val)
		switch {
		case e != 0:
			return e
		case name == linux.SO_BINDTOIFINDEX:
			return s.bindToIndex(c, v)
		case name == linux.SO_PEEK_OFF && s.isUDP():
			s.peekOff.Store(v)
			return 0
		case name == linux.SO_RCVLOWAT && s.Type == linux.SOCK_STREAM:
			return s.setLowat(v)
		}
	}
	if e := s.SetSocketOpt(c, name, val); e != 0 {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == linux.SO_ATTACH_FILTER || name == linux.SO_DETACH_FILTER {
		s.regate()
	}
	p := s.ep.Load()
	if p == nil {
		return 0
	}
	so, o := p.SocketOptions(), &s.Opt
	switch name {
	case linux.SO_REUSEADDR:
		so.SetReuseAddress(o.Has(sock.ReuseAddr))
	case linux.SO_REUSEPORT:
		so.SetReusePort(o.Has(sock.ReusePort))
	case linux.SO_KEEPALIVE:
		so.SetKeepAlive(o.Has(sock.KeepAlive))
	case linux.SO_BROADCAST:
		so.SetBroadcast(o.Has(sock.Broadcast))
	case linux.SO_RCVBUF, linux.SO_RCVBUFFORCE:
		so.SetReceiveBufferSize(int64(o.RcvBuf.Load()/2), true)
	case linux.SO_SNDBUF, linux.SO_SNDBUFFORCE:
		so.SetSendBufferSize(int64(o.SndBuf.Load()/2), true)
	}
	return 0
}

// bindToDevice is SO_BINDTODEVICE, with a name.
func (s *inetSock) bindToDevice(c *caller.Ctx, val []byte) linux.Errno {
	index := int32(0)
	if name := cstring(val[:min(len(val), linux.IFNAMSIZ-1)]); name != "" {
		i := s.net.interfaceByName(name)
		if i == nil {
			return linux.ENODEV
		}
		index = i.Index
	}
	return s.bindToIndex(c, index)
}

// bindToIndex has the socket use one interface only, or all with 0.
func (s *inetSock) bindToIndex(c *caller.Ctx, index int32) linux.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Opt.BindToDevice.Load() != 0 && !c.Cred().Has(creds.CapNetRaw):
		return linux.EPERM
	case index < 0:
		return linux.EINVAL
	}
	s.Opt.BindToDevice.Store(index)
	if p := s.ep.Load(); p != nil && s.net.InterfaceByIndex(index) != nil || p != nil && index == 0 {
		return errno(p.SocketOptions().SetBindToDevice(index))
	}
	return 0
}

// getSocket is getsockopt at SOL_SOCKET.
func (s *inetSock) getSocket(name int32, val []byte) (int, linux.Errno) {
	switch name {
	case linux.SO_ERROR:
		e := s.TakeError()
		if p := s.ep.Load(); e == 0 && p != nil {
			if e = errno(p.LastError()); e != 0 {
				p.LastError() // netstack keeps a failed connect twice
				p.told.Store(true)
			}
		}
		return sock.PutInt(val, int32(e)), 0
	case linux.SO_BINDTODEVICE:
		if d := s.Opt.BindToDevice.Load(); d != 0 {
			if i := s.net.InterfaceByIndex(d); i != nil {
				//maxlive:len 16 because an interface's name has at most IFNAMSIZ bytes
				return copy(val, i.Name+"\x00"), 0
			}
		}
		return 0, 0
	case linux.SO_RCVBUF, linux.SO_SNDBUF:
		if s.Type == linux.SOCK_STREAM {
			return sock.PutInt(val, s.streamBuffer(name)), 0
		}
	case linux.SO_MEMINFO:
		if s.Type == linux.SOCK_STREAM {
			var b [linux.SizeofMeminfo]byte
			sock.PutInt(b[4:], s.streamBuffer(linux.SO_RCVBUF))
			sock.PutInt(b[12:], s.streamBuffer(linux.SO_SNDBUF))
			return copy(val, b[:]), 0
		}
	case linux.SO_PEEK_OFF:
		if s.isUDP() {
			return sock.PutInt(val, s.peekOff.Load()), 0
		}
	case linux.SO_PEERNAME:
		var a sock.Addr
		if s.self.PeerAddr(&a) != 0 {
			return 0, linux.ENOTCONN
		}
		return sock.PutName(val, &a)
	case linux.SO_PEERGROUPS:
		return 0, linux.ENODATA
	case linux.SO_PEERCRED:
		var b [linux.SizeofUcred]byte
		sock.PutUcred(b[:], linux.Ucred{UID: ^uint32(0), GID: ^uint32(0)})
		return copy(val, b[:]), 0
	}
	return s.GetSocketOpt(name, val)
}

// What Linux gives a stream at first, and what it grows to on lo.
const (
	firstReceiveBuffer = 131072
	firstSendBuffer    = 16384
	loopbackSendBuffer = 2626560
)

// streamBuffer is the size of a stream's buffer as getsockopt shows it: the
// connections of this machine do not grow theirs.
func (s *inetSock) streamBuffer(name int32) int32 {
	set := s.Opt.BufSet.Load()
	switch {
	case name == linux.SO_RCVBUF && set&1 == 0:
		return firstReceiveBuffer
	case name == linux.SO_RCVBUF:
		return s.Opt.RcvBuf.Load()
	case set&2 != 0:
		return s.Opt.SndBuf.Load()
	case s.self.linuxState() == linux.TCP_CLOSE || s.self.linuxState() == linux.TCP_LISTEN:
		return firstSendBuffer
	}
	return loopbackSendBuffer
}

// setLowat is SO_RCVLOWAT of a stream.
func (s *inetSock) setLowat(v int32) linux.Errno {
	most := int32(1<<31 - 1)
	if s.Opt.BufSet.Load()&1 != 0 {
		most = s.Opt.RcvBuf.Load() / 2
	} else {
		most = receiveMost / 2
	}
	switch {
	case v < 0 || v > most:
		v = most
	case v == 0:
		v = 1
	}
	s.Opt.RcvLowat.Store(v)
	if t, ok := s.self.(*TCP); ok && v > 1 {
		t.shut.Or(lowatBit)
	}
	s.Q.Notify(evIn)
	return 0
}

// receiveMost is the most that a stream's receive buffer grows to (net.ipv4.tcp_rmem).
const receiveMost = 6 << 20

// isUDP reports whether this is a socket of UDP, not a raw or an ICMP one.
func (s *inetSock) isUDP() bool {
	return s.Protocol == linux.IPPROTO_UDP && s.Type == linux.SOCK_DGRAM
}

// seconds is a whole number of seconds as a time.Duration.
func seconds(v int32) time.Duration { return time.Duration(v) * time.Second }
