package packet

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
)

// next takes the first packet out of the queue, or only looks at it.
func (s *Sock) next(peek bool) (*message, linux.Errno) {
	if e := s.TakeError(); e != 0 {
		return nil, e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, linux.EAGAIN
	}
	m := s.queue[0]
	if !peek {
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.used -= len(m.data) + overhead
	}
	return m, 0
}

// Recv is recvmsg(2).
func (s *Sock) Recv(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	const may = linux.MSG_PEEK | linux.MSG_DONTWAIT | linux.MSG_TRUNC | linux.MSG_ERRQUEUE | linux.MSG_CMSG_CLOEXEC
	if m.Flags&^may != 0 {
		return 0, linux.EINVAL
	}
	if m.Flags&linux.MSG_ERRQUEUE != 0 {
		return 0, linux.EAGAIN
	}
	peek := m.Flags&linux.MSG_PEEK != 0
	x, e := s.next(peek)
	if e == linux.EAGAIN && m.Flags&linux.MSG_DONTWAIT == 0 && !f.NonBlock() {
		e = s.Block(c, wait.In, s.Opt.RcvTimeo.Load(), func() (e linux.Errno) {
			x, e = s.next(peek)
			return e
		})
	}
	if e != 0 {
		return 0, e
	}
	n, e := m.V.CopyOut(x.data[:min(len(x.data), m.V.Len())])
	if e != 0 {
		return 0, e
	}
	s.stamp.Store(x.when)
	if n < len(x.data) {
		m.OutFlags |= linux.MSG_TRUNC
		if m.Flags&linux.MSG_TRUNC != 0 {
			n = len(x.data)
		}
	}
	if m.WantFrom {
		m.From = x.from
	}
	if s.Opt.Has(sock.Timestamp) {
		m.HasTimestamp, m.Timestamp = true, x.when
	}
	if f := s.Opt.Timestamping(); f&sock.StampSoftware != 0 && (f&sock.StampRxSoftware != 0 || m.HasTimestamp) {
		m.HasStamp, m.Stamp = true, x.when
	}
	if s.flag(linux.PACKET_AUXDATA) {
		m.HasAux = true
		clear(m.Aux[:])
		binary.LittleEndian.PutUint32(m.Aux[0:], x.status)
		binary.LittleEndian.PutUint32(m.Aux[4:], uint32(x.length))
		binary.LittleEndian.PutUint32(m.Aux[8:], uint32(len(x.data)))
		binary.LittleEndian.PutUint16(m.Aux[14:], uint16(x.net))
	}
	return n, 0
}

func (s *Sock) flag(name int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flags[name] != 0
}

// target is where a packet goes.
type target struct {
	i     *inet.Interface
	proto uint16
	mac   []byte // nil where the program names no station
}

// aim finds where to send.
func (s *Sock) aim(a *sock.Addr) (t target, e linux.Errno) {
	if a == nil || a.Len == 0 {
		s.mu.Lock()
		t.proto = s.num
		index := s.index
		s.mu.Unlock()
		t.i = s.net.InterfaceByIndex(index)
	} else {
		if a.Len < linux.SizeofSockaddrLl || a.Len < int(a.B[11])+12 {
			return t, linux.EINVAL
		}
		t.proto = binary.BigEndian.Uint16(a.B[2:])
		t.i = s.net.InterfaceByIndex(int32(binary.LittleEndian.Uint32(a.B[4:])))
		t.mac = a.B[12:18]
	}
	switch {
	case t.i == nil:
		return t, linux.ENXIO
	case !t.i.Up():
		return t, linux.ENETDOWN
	}
	return t, 0
}

// Send is sendmsg(2): with SOCK_RAW a whole frame, else what goes into one. With a ring to
// send it sends what is in that.
func (s *Sock) Send(c *caller.Ctx, _ *vfs.File, m *sock.Msg) (int, linux.Errno) {
	t, e := s.aim(m.To)
	if e != 0 {
		return 0, e
	}
	s.mu.Lock()
	ring := s.txRing != nil
	s.mu.Unlock()
	if ring {
		return s.sendRing(c, t)
	}
	n := m.V.Len()
	if e := s.mayFrame(t, n); e != 0 {
		return 0, e
	}
	b := make([]byte, n)
	if _, e := m.V.CopyIn(b); e != 0 {
		return 0, e
	}
	if b, e = s.framed(t, b); e != 0 {
		return 0, e
	}
	if e := s.sendFrame(t, b); e != 0 {
		return 0, e
	}
	return n, 0
}

// vlanLen is the tag of a virtual network, which may come on top of the MTU.
const vlanLen = 4

// mayFrame checks the length of what is to be sent.
func (s *Sock) mayFrame(t target, n int) linux.Errno {
	front := 0
	if s.Type != linux.SOCK_RAW {
		front = inet.LinkHeaderLen
	}
	switch {
	case n+front > t.i.CurrentMTU()+inet.LinkHeaderLen+vlanLen:
		return linux.EMSGSIZE
	case front != 0 && t.mac == nil && !t.i.Loopback:
		return linux.EINVAL
	case front == 0 && n < inet.LinkHeaderLen:
		return linux.EINVAL
	}
	return 0
}

// framed makes a frame of what is to be sent.
func (s *Sock) framed(t target, b []byte) ([]byte, linux.Errno) {
	if e := s.mayFrame(t, len(b)); e != 0 {
		return nil, e
	}
	if s.Type != linux.SOCK_RAW {
		h := make([]byte, inet.LinkHeaderLen, inet.LinkHeaderLen+len(b))
		copy(h, t.mac)
		copy(h[6:], t.i.MAC[:])
		binary.BigEndian.PutUint16(h[12:], t.proto)
		b = append(h, b...)
	}
	const vlan = 0x8100
	if len(b) > t.i.CurrentMTU()+inet.LinkHeaderLen && inet.EtherType(b) != vlan {
		return nil, linux.EMSGSIZE
	}
	return b, 0
}

// sendFrame sends a frame, of which neither the socket nor its group hears.
func (s *Sock) sendFrame(t target, b []byte) linux.Errno {
	sender := inet.Tap(s)
	if g := s.group.Load(); g != nil {
		sender = g
	}
	return s.net.SendFrame(t.i, b, t.proto, sender)
}
