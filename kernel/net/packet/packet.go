// Package packet implements AF_PACKET: sockets that receive and send whole packets of an
// interface. A socket is one of the network's Taps; without Taps, the network does no
// extra work.
//
// Lock order: groups.mu, Sock.mu, then wait.Queue's. A packet is delivered with
// netstack's locks held, so nothing here calls netstack while it holds Sock.mu.
package packet

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/bpf"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
)

// Sock is a packet socket.
type Sock struct {
	sock.Base
	net   *inet.Net             // immutable
	group atomic.Pointer[group] // that shares packets; set once, with groups.mu held
	stamp atomic.Int64          // when a packet was last received, as CLOCK_REALTIME; 0 for none
	drops atomic.Uint32         // packets for which there was no room, since PACKET_STATISTICS asked

	mu        sync.Mutex
	index     int32           // the interface it is bound to, 0 for all; guarded by mu
	num       uint16          // the protocol; guarded by mu
	running   bool            // it hears of packets; guarded by mu
	closed    bool            // guarded by mu
	queue     []*message      // guarded by mu
	used      int             // bytes of the queue, as they count; guarded by mu
	packets   uint32          // queued since PACKET_STATISTICS asked; guarded by mu
	flags     map[int32]int32 // options that are ints; guarded by mu
	members   []member        // guarded by mu
	ring      *ring           // to receive; guarded by mu
	txRing    *ring           // to send; guarded by mu
	area      *area           // the memory of both; guarded by mu
	filterBuf bpf.Packet      // guarded by mu
}

// message is a packet in the queue; immutable.
type message struct {
	data   []byte
	from   sock.Addr
	when   int64 // CLOCK_REALTIME
	length int   // of the whole packet
	net    int   // where the network header lies
	status uint32
}

// overhead is what a packet in a queue counts beyond its bytes.
const overhead = 512

// Create makes a socket of the family.
func Create(c *caller.Ctx, _, typ, protocol int32) (sock.Socket, linux.Errno) {
	if !c.Cred().Has(creds.CapNetRaw) {
		return nil, linux.EPERM
	}
	if typ != linux.SOCK_RAW && typ != linux.SOCK_DGRAM || inet.Default == nil {
		return nil, linux.ESOCKTNOSUPPORT
	}
	s := &Sock{net: inet.Default, flags: map[int32]int32{}}
	s.Init(c, linux.AF_PACKET, typ, 0)
	s.Filters = true
	s.num = swap16(uint16(protocol))
	all.Add(s)
	if s.num != 0 {
		s.running = true
		s.net.AddTap(s)
	}
	return s, 0
}

func swap16(v uint16) uint16 { return v<<8 | v>>8 }

// Tap takes a packet that passes an interface, if the socket wants it.
func (s *Sock) Tap(p *inet.Tapped) {
	f := s.Opt.Filter()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || !s.running || s.index != 0 && s.index != p.Interface.Index,
		s.num != linux.ETH_P_ALL && (s.num != p.Protocol || p.Type == linux.PACKET_OUTGOING),
		p.Type == linux.PACKET_OUTGOING && s.flags[linux.PACKET_IGNORE_OUTGOING] != 0:
		return
	}
	data, net := p.Frame, inet.LinkHeaderLen
	if s.Type == linux.SOCK_DGRAM {
		data, net = data[net:], 0
	}
	keep := len(data)
	if f != nil {
		keep = min(keep, int(f.Run(s.view(p, data))))
		if s.filterBuf = (bpf.Packet{}); keep == 0 {
			return
		}
	}
	s.packets++
	if s.take(p, data[:keep], len(data), net) {
		if s.ring == nil || s.ring.blocks == nil { // a block is announced when it is full
			s.Q.Notify(wait.In | wait.RdNorm)
		}
		return
	}
	s.packets--
	s.drops.Add(1)
}

// view is a packet as a filter sees it; called with mu held.
func (s *Sock) view(p *inet.Tapped, data []byte) *bpf.Packet {
	s.filterBuf = bpf.Packet{
		Data: data, Network: p.Frame[inet.LinkHeaderLen:], Link: p.Frame, Protocol: p.Protocol, Type: p.Type,
		HaType: p.Interface.HardwareType(), IfIndex: p.Interface.Index, Random: uint32(random.Uint64()),
	}
	return &s.filterBuf
}

// take puts a packet into the ring or the queue; called with mu held.
func (s *Sock) take(p *inet.Tapped, data []byte, length, net int) bool {
	m := message{when: clocks.Realtime(), length: length, net: net, status: linux.TP_STATUS_USER}
	switch {
	case p.Partial:
		m.status |= linux.TP_STATUS_CSUMNOTREADY
	case p.Checked && p.Type != linux.PACKET_OUTGOING:
		m.status |= linux.TP_STATUS_CSUM_VALID
	}
	putAddr(&m.from, p.Interface, p.Protocol, p.Type, p.Frame[6:12])
	switch r := s.ring; {
	case r != nil && r.blocks != nil:
		return s.putBlock(r, &m, data, flowHash(p))
	case r != nil:
		if s.drops.Load() != 0 {
			m.status |= linux.TP_STATUS_LOSING
		}
		return r.put(&m, data, s.Type == linux.SOCK_RAW)
	}
	if s.used+len(data)+overhead > int(s.Opt.RcvBuf.Load()) {
		return false
	}
	m.data = append([]byte(nil), data...)
	s.queue = append(s.queue, &m)
	s.used += len(data) + overhead
	return true
}

// putAddr makes a struct sockaddr_ll.
func putAddr(a *sock.Addr, i *inet.Interface, proto uint16, typ uint8, mac []byte) {
	a.Len = linux.SizeofSockaddrLl
	b := a.B[:a.Len]
	clear(b)
	b[0] = linux.AF_PACKET
	binary.BigEndian.PutUint16(b[2:], proto)
	if i != nil {
		binary.LittleEndian.PutUint32(b[4:], uint32(i.Index))
		binary.LittleEndian.PutUint16(b[8:], i.HardwareType())
		b[11] = byte(copy(b[12:], mac))
	}
	b[10] = typ
}

// InterfaceDown tells the sockets bound to an interface.
func (s *Sock) InterfaceDown(index int32) {
	s.mu.Lock()
	tell := s.index == index && s.running
	s.mu.Unlock()
	if tell {
		s.SetError(linux.ENETDOWN)
	}
}

// Bind is bind(2): the protocol and the interface, of which 0 is every one.
func (s *Sock) Bind(_ *caller.Ctx, _ *vfs.File, _ *vfs.FSContext, a *sock.Addr) linux.Errno {
	if a.Len < linux.SizeofSockaddrLl || a.Family() != linux.AF_PACKET {
		return linux.EINVAL
	}
	num, index := binary.BigEndian.Uint16(a.B[2:]), int32(binary.LittleEndian.Uint32(a.B[4:]))
	var i *inet.Interface
	if index != 0 {
		if i = s.net.InterfaceByIndex(index); i == nil {
			return linux.ENODEV
		}
	}
	if s.group.Load() != nil {
		return linux.EINVAL
	}
	s.mu.Lock()
	if num == 0 {
		num = s.num
	}
	changed := num != s.num || index != s.index
	was := s.running
	s.num, s.index = num, index
	down := num != 0 && changed && i != nil && !i.Up()
	if changed {
		s.running = num != 0 && !down
	}
	now := s.running
	s.mu.Unlock()
	switch {
	case now && !was:
		s.net.AddTap(s)
	case was && !now:
		s.net.RemoveTap(s)
	}
	if down {
		s.SetError(linux.ENETDOWN)
	}
	return 0
}

// LocalAddr is getsockname(2).
func (s *Sock) LocalAddr(a *sock.Addr) linux.Errno {
	s.mu.Lock()
	index, num := s.index, s.num
	s.mu.Unlock()
	i := s.net.InterfaceByIndex(index)
	if i == nil {
		putAddr(a, nil, num, 0, nil)
		a.Len = linux.SizeofSockaddrLl - 8
		return 0
	}
	putAddr(a, i, num, 0, i.MAC[:])
	a.Len -= 2
	return 0
}

// PeerAddr, Listen, Accept, Connect and Shutdown are not for packet sockets.
func (s *Sock) PeerAddr(*sock.Addr) linux.Errno { return linux.EOPNOTSUPP }

func (s *Sock) Listen(*caller.Ctx, int) linux.Errno { return linux.EOPNOTSUPP }

func (s *Sock) Accept(*caller.Ctx, bool, uint32) (*vfs.File, linux.Errno) {
	return nil, linux.EOPNOTSUPP
}

func (s *Sock) Connect(*caller.Ctx, *vfs.FSContext, *sock.Addr, bool) linux.Errno {
	return linux.EOPNOTSUPP
}

func (s *Sock) Shutdown(*caller.Ctx, int32) linux.Errno { return linux.EOPNOTSUPP }

// Ready is what poll(2) sees.
func (s *Sock) Ready(*vfs.File) wait.Events {
	ev := wait.Out | wait.WrNorm | wait.WrBand
	if s.HasError() {
		ev |= wait.Err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 || s.ring != nil && s.ring.filled() {
		ev |= wait.In | wait.RdNorm
	}
	return ev
}

// Release closes the socket.
func (s *Sock) Release(*vfs.File) {
	all.Remove(s)
	s.leave()
	s.net.RemoveTap(s)
	s.mu.Lock()
	s.closed, s.queue = true, nil
	for i := range s.members {
		s.promiscuous(&s.members[i], -1)
	}
	s.members = nil
	a, r := s.area, s.ring
	s.area, s.ring, s.txRing = nil, nil, nil
	s.mu.Unlock()
	if r != nil && r.blocks != nil && r.blocks.timer != nil {
		r.blocks.timer.Stop()
	}
	if a != nil {
		a.free()
	}
}

// Ioctl knows how long the next packet is, and the requests about interfaces.
func (s *Sock) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case linux.SIOCINQ:
		s.mu.Lock()
		n := 0
		if len(s.queue) > 0 {
			n = len(s.queue[0].data)
		}
		s.mu.Unlock()
		return sock.CopyOutInt(c, arg, int32(n))
	case linux.SIOCOUTQ:
		return sock.CopyOutInt(c, arg, 0)
	case linux.SIOCGSTAMP, linux.SIOCGSTAMPNS:
		ns := s.stamp.Load()
		if ns == 0 {
			return 0, linux.ENOENT
		}
		return inet.CopyOutStamp(c, cmd, arg, ns)
	}
	return s.net.PacketIoctl(c, cmd, arg)
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
