package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// Urgent data of connections within the machine; netstack has none. A read stops before
// the urgent byte and the next one passes it, as in package sock.

// Bits of TCP.shut that have poll and recv look closer.
const (
	urgentBit uint32 = 16 // an urgent byte has come
	lowatBit  uint32 = 32 // SO_RCVLOWAT is more than 1
)

// sendUrgent sends v, whose last byte is urgent, to x.
func (s *TCP) sendUrgent(x *TCP, v *uio.Vec) (int, linux.Errno) {
	x.shut.Or(urgentBit)
	n, e := x.in.WriteUrgent(v, s.flowLimit(), nil)
	if e == 0 && n > 0 && v.Len() == 0 {
		x.Q.Notify(wait.Pri)
		if f := x.File(); f != nil {
			f.SignalUrgent()
		}
	}
	return n, e
}

// recvUrgent is Recv with MSG_OOB.
func (s *TCP) recvUrgent(m *sock.Msg) (int, linux.Errno) {
	switch {
	case s.state.Load() == stListening:
		return 0, linux.ENOTCONN
	case s.far.Load() == nil || s.Opt.Has(sock.OOBInline):
		return 0, linux.EINVAL
	}
	empty := m.V.Len() == 0
	n, e := s.in.ReadUrgent(m.V, m.Flags&linux.MSG_PEEK != 0)
	if e == 0 {
		m.OutFlags |= linux.MSG_OOB
		if empty {
			m.OutFlags |= linux.MSG_TRUNC
			n = 0
		}
	}
	return n, e
}

// readableAtLeast is what poll says of reading where SO_RCVLOWAT is set or urgent data has
// come.
func (s *TCP) readableAtLeast() (ev wait.Events) {
	now, urgent := s.in.ReadableAtLeast(int(s.Opt.RcvLowat.Load()), s.Opt.Has(sock.OOBInline))
	if now {
		ev |= evIn
	}
	if urgent {
		ev |= wait.Pri
	}
	if s.zeroCopied() {
		ev |= wait.Err
	}
	return ev
}

// moreToRead is what TCP_INQ tells: the bytes that wait, and one for the end.
func (s *TCP) moreToRead() int32 {
	if s.far.Load() != nil {
		return int32(s.in.NextLen()) + b2i(s.fin.Load())
	}
	p := s.ep.Load()
	if p == nil {
		return 0
	}
	n, _ := p.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
	return int32(max(n, 0))
}

// unacknowledged is how much of what was sent to s its receive buffer could not take: the
// rest TCP would have acknowledged.
func (s *TCP) unacknowledged() int {
	return max(s.in.Used()-int(s.Opt.RcvBuf.Load()), 0)
}
