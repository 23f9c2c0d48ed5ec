package inet

import (
	"encoding/binary"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// sentStamps are the times at which datagrams were sent (SO_TIMESTAMPING), which the error
// queue tells. A datagram is handed to its interface before send returns, so that all its
// times are known then. mu is a leaf.
type sentStamps struct {
	mu    sync.Mutex
	next  uint32      // the number of the next datagram; guarded by mu
	bytes int         // of data in the queue; guarded by mu
	queue []sentStamp // guarded by mu
}

type sentStamp struct {
	kind   uint32 // SCM_TSTAMP_*
	number uint32
	when   int64
	data   []byte // what was sent, with its headers
}

// maxStamps bounds the queue, and so does the socket's receive buffer; what is sent
// beyond has no stamps.
const maxStamps = 128

// setStamping notes a change of SO_TIMESTAMPING from the flags that were.
func (s *Datagram) setStamping(old int32) {
	now := s.Opt.Timestamping()
	if now&sock.StampTx == 0 && s.stamps.Load() == nil {
		return
	}
	s.stamps.CompareAndSwap(nil, new(sentStamps))
	if now&sock.StampOptID != 0 && old&sock.StampOptID == 0 {
		q := s.stamps.Load()
		q.mu.Lock()
		q.next = 0
		q.mu.Unlock()
	}
}

// sendStamped is sendWhole of a socket that may want to know when.
func (s *Datagram) sendStamped(c *caller.Ctx, v *uio.Vec, o tcpip.WriteOptions, nonblock bool) (int, linux.Errno) {
	flags, q := s.Opt.Timestamping(), s.stamps.Load()
	mark := v.Mark()
	n, e := s.sendWhole(c, v, o, nonblock)
	if e != 0 {
		return n, e
	}
	x := sentStamp{when: clocks.Realtime()}
	if flags&sock.StampOptID != 0 {
		q.mu.Lock()
		x.number = q.next
		q.next++
		q.mu.Unlock()
	}
	if flags&sock.StampTx == 0 {
		return n, 0
	}
	if flags&sock.StampOptTSOnly == 0 {
		payload := make([]byte, n)
		v.Reset(mark)
		if _, e := v.CopyIn(payload); e != 0 {
			return n, 0
		}
		x.data = s.framed(payload, o.To)
	}
	room := int(s.Opt.RcvBuf.Load())
	q.mu.Lock()
	for _, k := range [...]struct {
		flag int32
		kind uint32
	}{{sock.StampTxSched, linux.SCM_TSTAMP_SCHED}, {sock.StampTxSoftware, linux.SCM_TSTAMP_SND}} {
		if x.kind = k.kind; flags&k.flag != 0 && len(q.queue) < maxStamps && q.bytes+len(x.data) <= room {
			q.queue = append(q.queue, x)
			q.bytes += len(x.data)
		}
	}
	q.mu.Unlock()
	s.Q.Notify(wait.Err)
	return n, 0
}

// framed puts the headers in front of what was sent that it had on the link.
func (s *Datagram) framed(payload []byte, to *tcpip.FullAddress) []byte {
	p := s.ep.Load()
	from, _ := p.GetLocalAddress()
	var dst tcpip.FullAddress
	if to != nil {
		dst = *to
	} else {
		dst, _ = p.GetRemoteAddress()
	}
	if a := unmap(from.Addr); a.Len() == 0 || a == header.IPv4Any || a == header.IPv6Any {
		if way, e := s.net.PathTo(unmap(dst.Addr)); e == 0 {
			from.Addr = way.From
		}
	}
	if s.isUDP() {
		udp := make([]byte, header.UDPMinimumSize, header.UDPMinimumSize+len(payload))
		binary.BigEndian.PutUint16(udp, from.Port)
		binary.BigEndian.PutUint16(udp[2:], dst.Port)
		binary.BigEndian.PutUint16(udp[4:], uint16(header.UDPMinimumSize+len(payload)))
		payload = append(udp, payload...)
	}
	packet := payload
	if !s.includesHeader() {
		packet = s.networkHeader(from, dst, payload)
	}
	frame := make([]byte, LinkHeaderLen, LinkHeaderLen+len(packet))
	binary.BigEndian.PutUint16(frame[12:], linux.ETH_P_IP)
	if unmap(dst.Addr).Len() == 16 {
		binary.BigEndian.PutUint16(frame[12:], linux.ETH_P_IPV6)
	}
	return append(frame, packet...)
}

func (s *Datagram) includesHeader() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ip.hdrIncl
}

// bytesHeld is what the queue takes of the kernel's heap.
func (q *sentStamps) bytesHeld() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := ledger.Of[sentStamps]() + ledger.Array[sentStamp](cap(q.queue))
	for i := range q.queue {
		n += ledger.Size(int64(cap(q.queue[i].data)))
	}
	return n
}

// hasStamps reports whether the error queue has times to tell.
func (s *Datagram) hasStamps() bool {
	q := s.stamps.Load()
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queue) > 0
}

// takeStamp tells the first time in the error queue; false without one.
func (s *Datagram) takeStamp(m *sock.Msg) (n int, e linux.Errno, ok bool) {
	const origin = 4 // SO_EE_ORIGIN_TIMESTAMPING
	q := s.stamps.Load()
	if q == nil {
		return 0, 0, false
	}
	q.mu.Lock()
	if len(q.queue) == 0 {
		q.mu.Unlock()
		return 0, 0, false
	}
	x := q.queue[0]
	q.bytes -= len(x.data)
	q.queue[0] = sentStamp{}
	if q.queue = q.queue[1:]; len(q.queue) == 0 {
		q.queue = nil
	}
	q.mu.Unlock()
	n, e = m.V.CopyOut(x.data[:min(len(x.data), m.V.Len())])
	if e != 0 {
		return 0, e, true
	}
	m.OutFlags |= linux.MSG_ERRQUEUE
	if n < len(x.data) {
		m.OutFlags |= linux.MSG_TRUNC
	}
	m.From.Len = 0
	if s.Opt.Timestamping()&sock.StampSoftware != 0 {
		m.HasStamp, m.Stamp = true, x.when
	}
	m.HasError, m.Error = true, sock.ExtendedError{Errno: linux.ENOMSG, Origin: origin, Info: x.kind, Data: x.number, V6: s.v6}
	m.TTL, m.TOS = -1, -1
	return n, 0, true
}

// networkHeader makes the IP header that a datagram came with, as far as it is known.
func (s *Datagram) networkHeader(from, to tcpip.FullAddress, payload []byte) []byte {
	src, dst := unmap(from.Addr), unmap(to.Addr)
	if src.Len() == 16 {
		h := make([]byte, header.IPv6MinimumSize, header.IPv6MinimumSize+len(payload))
		if dst.Len() != 16 {
			dst = src
		}
		header.IPv6(h).Encode(&header.IPv6Fields{PayloadLength: uint16(len(payload)), TransportProtocol: header.UDPProtocolNumber, HopLimit: linux.DefaultTTL, SrcAddr: src, DstAddr: dst})
		return append(h, payload...)
	}
	if src.Len() != 4 {
		return payload
	}
	if dst.Len() != 4 {
		dst = src
	}
	h := make([]byte, header.IPv4MinimumSize, header.IPv4MinimumSize+len(payload))
	header.IPv4(h).Encode(&header.IPv4Fields{TotalLength: uint16(len(h) + len(payload)), TTL: linux.DefaultTTL, Protocol: uint8(header.UDPProtocolNumber), SrcAddr: src, DstAddr: dst})
	return append(h, payload...)
}
