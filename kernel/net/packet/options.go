package packet

import (
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/net/sock"
)

// member is what PACKET_ADD_MEMBERSHIP asked for. Only PACKET_MR_PROMISC changes what an interface
// receives: all of them take all groups.
type member struct {
	index int32
	typ   uint16
	alen  uint16
	addr  [32]byte
	count int
}

// intOption is an option that is an int.
type intOption struct {
	name        int32
	exact       bool // its length must be that of an int
	bool        bool
	least, most int32
	ring        bool // EBUSY once there is a ring
}

var intOptions = [...]intOption{
	{name: linux.PACKET_AUXDATA, bool: true},
	{name: linux.PACKET_ORIGDEV, bool: true},
	{name: linux.PACKET_COPY_THRESH, exact: true, least: -1 << 31, most: 1<<31 - 1},
	{name: linux.PACKET_VERSION, exact: true, most: linux.TPACKET_V3, ring: true},
	{name: linux.PACKET_RESERVE, exact: true, most: 1<<31 - 1, ring: true},
	{name: linux.PACKET_LOSS, exact: true, bool: true, ring: true},
	{name: linux.PACKET_TIMESTAMP, exact: true, least: -1 << 31, most: 1<<31 - 1},
	{name: linux.PACKET_IGNORE_OUTGOING, exact: true, most: 1},
	{name: linux.PACKET_QDISC_BYPASS, exact: true, bool: true},
	{name: linux.PACKET_TX_HAS_OFF, exact: true, bool: true},
}

func findInt(name int32) *intOption {
	for i := range intOptions {
		if intOptions[i].name == name {
			return &intOptions[i]
		}
	}
	return nil
}

// SetOpt is setsockopt(2).
func (s *Sock) SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno {
	switch {
	case level == linux.SOL_SOCKET:
		return s.SetSocketOpt(c, name, val)
	case level != linux.SOL_PACKET:
		return linux.ENOPROTOOPT
	case name == linux.PACKET_ADD_MEMBERSHIP || name == linux.PACKET_DROP_MEMBERSHIP:
		return s.setMember(name == linux.PACKET_ADD_MEMBERSHIP, val)
	case name == linux.PACKET_RX_RING || name == linux.PACKET_TX_RING:
		return s.setRing(c, val, name == linux.PACKET_TX_RING)
	case name == linux.PACKET_FANOUT:
		return s.setFanout(val)
	case name == linux.PACKET_FANOUT_DATA:
		return s.setFanoutData(c, val)
	}
	o := findInt(name)
	if o == nil {
		return linux.ENOPROTOOPT
	}
	v, e := sock.Int(val)
	if e != 0 || o.exact && len(val) != 4 {
		return linux.EINVAL
	}
	if o.bool {
		v = b2i(v != 0)
	} else if v < o.least || v > o.most {
		return linux.EINVAL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.ring && s.area != nil {
		return linux.EBUSY
	}
	if name != linux.PACKET_TX_HAS_OFF || s.area == nil {
		s.flags[name] = v
	}
	return 0
}

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// GetOpt is getsockopt(2).
func (s *Sock) GetOpt(_ *caller.Ctx, level, name int32, val []byte) (int, linux.Errno) {
	switch {
	case level == linux.SOL_SOCKET:
		return s.GetSocketOpt(name, val)
	case level != linux.SOL_PACKET:
		return 0, linux.ENOPROTOOPT
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case linux.PACKET_STATISTICS:
		var b [12]byte
		drops := s.drops.Swap(0)
		sock.PutInt(b[:], int32(s.packets+drops))
		sock.PutInt(b[4:], int32(drops))
		s.packets = 0
		if s.flags[linux.PACKET_VERSION] != linux.TPACKET_V3 {
			return copy(val, b[:8]), 0
		}
		if r := s.ring; r != nil && r.blocks != nil {
			sock.PutInt(b[8:], int32(r.blocks.frozen))
			r.blocks.frozen = 0
		}
		return copy(val, b[:]), 0
	case linux.PACKET_HDRLEN:
		v, e := sock.Int(val)
		if e != 0 || v < linux.TPACKET_V1 || v > linux.TPACKET_V3 {
			return 0, linux.EINVAL
		}
		return sock.PutInt(val, int32(headerLen(v))), 0
	case linux.PACKET_FANOUT:
		return sock.PutInt(val, s.getFanout()), 0
	case linux.PACKET_COPY_THRESH:
		return 0, linux.ENOPROTOOPT
	}
	if findInt(name) == nil {
		return 0, linux.ENOPROTOOPT
	}
	return sock.PutInt(val, s.flags[name]), 0
}

// setMember is PACKET_ADD_MEMBERSHIP and PACKET_DROP_MEMBERSHIP with a struct packet_mreq.
func (s *Sock) setMember(add bool, val []byte) linux.Errno {
	if len(val) < linux.SizeofPacketMreq {
		return linux.EINVAL
	}
	val = val[:min(len(val), linux.SizeofPacketMreqMax)]
	m := member{typ: uint16(val[4]) | uint16(val[5])<<8, alen: uint16(val[6]) | uint16(val[7])<<8, count: 1}
	m.index, _ = sock.Int(val)
	if len(val) < int(m.alen)+8 {
		return linux.EINVAL
	}
	copy(m.addr[:m.alen], val[8:])
	if add {
		i := s.net.InterfaceByIndex(m.index)
		switch {
		case i == nil:
			return linux.ENODEV
		case int(m.alen) > len(i.MAC),
			(m.typ == linux.PACKET_MR_MULTICAST || m.typ == linux.PACKET_MR_UNICAST) && int(m.alen) != len(i.MAC):
			return linux.EINVAL
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return linux.EBADF
	}
	at := slices.IndexFunc(s.members, func(x member) bool { x.count = 1; return x == m })
	switch {
	case add && at >= 0:
		s.members[at].count++
	case add && len(s.members) >= maxMembers:
		return linux.ENOBUFS
	case add:
		s.members = append(s.members, m)
		s.promiscuous(&m, 1)
	case at >= 0:
		if s.members[at].count--; s.members[at].count == 0 {
			s.members = slices.Delete(s.members, at, at+1)
			s.promiscuous(&m, -1)
		}
	}
	return 0
}

// promiscuous has the interface of a membership count it, if it is for all frames.
func (s *Sock) promiscuous(m *member, delta int32) {
	if i := s.net.InterfaceByIndex(m.index); i != nil && m.typ == linux.PACKET_MR_PROMISC {
		i.AddPromiscuous(delta)
	}
}

// maxMembers bounds the memberships of a socket.
const maxMembers = 1024
