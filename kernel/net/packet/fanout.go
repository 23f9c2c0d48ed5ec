package packet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/random"
	"hardtack/kernel/net/bpf"
	"hardtack/kernel/net/inet"
)

// group is sockets that share packets (PACKET_FANOUT): each packet goes to one of them. It
// is a Tap in their place.
type group struct {
	id    uint16 // immutable
	typ   uint8  // immutable
	flags uint16 // immutable: PACKET_FANOUT_FLAG_*
	most  int    // immutable: how many sockets it takes
	num   uint16 // immutable: the protocol that all are bound to
	index int32  // immutable: and the interface

	members atomic.Pointer[[]*Sock]     // immutable list; written with groups.mu held
	turn    atomic.Uint32               // of PACKET_FANOUT_LB
	roll    atomic.Uint32               // where PACKET_FANOUT_ROLLOVER last found room
	program atomic.Pointer[bpf.Program] // of PACKET_FANOUT_CBPF
}

// groups are all.
var groups struct {
	mu   sync.Mutex
	list []*group // guarded by mu
	next uint16   // guarded by mu: where PACKET_FANOUT_FLAG_UNIQUEID looks
}

// How many sockets a group takes: where the program does not say, and at most.
const (
	groupMembers = 256
	groupMost    = 1 << 16
)

// setFanout is PACKET_FANOUT with an int or a struct fanout_args.
func (s *Sock) setFanout(val []byte) linux.Errno {
	if len(val) != 4 && len(val) != 8 {
		return linux.EINVAL
	}
	g := &group{id: binary.LittleEndian.Uint16(val), typ: val[2], flags: uint16(val[3]) << 8}
	most := uint32(0)
	if len(val) == 8 {
		most = binary.LittleEndian.Uint32(val[4:])
	}
	switch {
	case g.typ > linux.PACKET_FANOUT_CBPF, // there is no eBPF
		g.typ == linux.PACKET_FANOUT_ROLLOVER && g.flags&linux.PACKET_FANOUT_FLAG_ROLLOVER != 0:
		return linux.EINVAL
	}
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if s.group.Load() != nil {
		return linux.EALREADY
	}
	if g.flags&linux.PACKET_FANOUT_FLAG_UNIQUEID != 0 {
		if g.id != 0 {
			return linux.EINVAL
		}
		for findGroup(groups.next) != nil {
			groups.next++
		}
		g.id, g.flags = groups.next, g.flags&^linux.PACKET_FANOUT_FLAG_UNIQUEID
		groups.next++
	}
	s.mu.Lock()
	g.num, g.index = s.num, s.index
	running := s.running
	s.mu.Unlock()
	old := findGroup(g.id)
	switch {
	case old == nil && most > groupMost, old != nil && (old.flags != g.flags || most != 0 && int(most) != old.most),
		!running, old != nil && (old.typ != g.typ || old.num != g.num || old.index != g.index):
		return linux.EINVAL
	case old != nil:
		g = old
	case most == 0:
		g.most = groupMembers
	default:
		g.most = int(most)
	}
	list := g.sockets()
	if len(list) >= g.most {
		return linux.ENOSPC
	}
	list = append(slices.Clone(list), s)
	s.net.RemoveTap(s)
	s.group.Store(g)
	g.members.Store(&list)
	if old == nil {
		groups.list = append(groups.list, g)
		s.net.AddTap(g)
	}
	return 0
}

// findGroup returns the group with a number, or nil; called with groups.mu held.
func findGroup(id uint16) *group {
	i := slices.IndexFunc(groups.list, func(g *group) bool { return g.id == id })
	if i < 0 {
		return nil
	}
	return groups.list[i]
}

// leave takes a socket out of its group; the last ends it.
func (s *Sock) leave() {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g := s.group.Load()
	if g == nil {
		return
	}
	list := slices.DeleteFunc(slices.Clone(g.sockets()), func(x *Sock) bool { return x == s })
	g.members.Store(&list)
	if len(list) == 0 {
		s.net.RemoveTap(g)
		groups.list = slices.DeleteFunc(groups.list, func(x *group) bool { return x == g })
	}
}

// getFanout is getsockopt of PACKET_FANOUT.
func (s *Sock) getFanout() int32 {
	g := s.group.Load()
	if g == nil {
		return 0
	}
	return int32(uint32(g.id) | uint32(g.typ)<<16 | uint32(g.flags)<<16)
}

// setFanoutData is PACKET_FANOUT_DATA: the program of PACKET_FANOUT_CBPF.
func (s *Sock) setFanoutData(c *caller.Ctx, val []byte) linux.Errno {
	g := s.group.Load()
	if g == nil || g.typ != linux.PACKET_FANOUT_CBPF {
		return linux.EINVAL
	}
	p, e := s.Opt.ReadProgram(c, val)
	if e == 0 {
		g.program.Store(p)
	}
	return e
}

func (g *group) sockets() []*Sock {
	if list := g.members.Load(); list != nil {
		return *list
	}
	return nil
}

// Tap gives a packet to one of the sockets.
func (g *group) Tap(p *inet.Tapped) {
	list := g.sockets()
	if len(list) == 0 {
		return
	}
	at := int(g.choose(p, uint32(len(list))))
	if g.typ == linux.PACKET_FANOUT_ROLLOVER || g.flags&linux.PACKET_FANOUT_FLAG_ROLLOVER != 0 && !list[at].hasRoom() {
		at = g.rollOver(list, at)
	}
	list[at].Tap(p)
}

// InterfaceDown tells all.
func (g *group) InterfaceDown(index int32) {
	for _, s := range g.sockets() {
		s.InterfaceDown(index)
	}
}

// choose returns the number of a socket. All packets come by one queue, and count as one
// processor's.
func (g *group) choose(p *inet.Tapped, n uint32) uint32 {
	switch g.typ {
	case linux.PACKET_FANOUT_HASH:
		return uint32(uint64(flowHash(p)) * uint64(n) >> 32)
	case linux.PACKET_FANOUT_LB:
		return g.turn.Add(1) % n
	case linux.PACKET_FANOUT_RND:
		return uint32(random.Uint64() % uint64(n))
	case linux.PACKET_FANOUT_CBPF:
		if f := g.program.Load(); f != nil {
			data := p.Frame[inet.LinkHeaderLen:]
			return f.Run(&bpf.Packet{Data: data, Network: data, Link: p.Frame, Protocol: p.Protocol, Type: p.Type,
				HaType: p.Interface.HardwareType(), IfIndex: p.Interface.Index, Random: uint32(random.Uint64())}) % n
		}
	}
	return 0
}

// rollOver returns the number of a socket with room, or the one that it was.
func (g *group) rollOver(list []*Sock, at int) int {
	from := int(g.roll.Load()) % len(list)
	for k := range list {
		if i := (from + k) % len(list); list[i].hasRoom() {
			g.roll.Store(uint32(i))
			return i
		}
	}
	return at
}

// hasRoom reports whether the socket can take a packet.
func (s *Sock) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.ring; {
	case r == nil:
		return s.used+overhead < int(s.Opt.RcvBuf.Load())
	case r.blocks != nil:
		return r.blocks.open || r.blockStatus(r.blocks.now) == 0
	default:
		return r.status(r.head) == 0
	}
}

// flowHash is one number for both directions of a flow.
func flowHash(p *inet.Tapped) uint32 {
	b := p.Frame[inet.LinkHeaderLen:]
	var from, to []byte
	proto, ports := byte(0), 0
	switch {
	case p.Protocol == linux.ETH_P_IP && len(b) >= 20:
		from, to, proto, ports = b[12:16], b[16:20], b[9], int(b[0]&15)*4
		if binary.BigEndian.Uint16(b[6:])&0x3fff != 0 { // a fragment
			ports = len(b)
		}
	case p.Protocol == linux.ETH_P_IPV6 && len(b) >= 40:
		from, to, proto, ports = b[8:24], b[24:40], b[6], 40
	default:
		return 0
	}
	x, y := slices.Clone(from), slices.Clone(to)
	if (proto == linux.IPPROTO_TCP || proto == linux.IPPROTO_UDP) && len(b) >= ports+4 {
		x, y = append(x, b[ports:ports+2]...), append(y, b[ports+2:ports+4]...)
	}
	if bytes.Compare(x, y) > 0 {
		x, y = y, x
	}
	h := uint32(2166136261) // FNV-1a, and a step that mixes the high bits
	for _, c := range append(append(x, y...), proto) {
		h = (h ^ uint32(c)) * 16777619
	}
	h ^= h >> 15
	return h * 2654435761
}

var _ inet.Tap = (*group)(nil)
