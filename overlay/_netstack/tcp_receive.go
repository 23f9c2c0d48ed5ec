package tcp

import (
	"encoding/binary"
	"io"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Header prediction (Van Jacobson). Nearly all segments are what the connection expects:
// the next data or acknowledgements of new data, with the usual options, while nothing is
// lost, closed, or out of order. Such a segment comes here from the interface (see
// stack.PlainReceiver). What else is plain is queued from there, and everything else goes the
// general way. The sender's half is the general one.

// plainRoom is the memory of a received segment's data.
type plainRoom struct {
	bytes []byte
	class int
}

// plainSizes are the sizes of such memory; longer ones are made as they are needed.
var plainSizes = [...]int{256, 1024, 2048}

var plainRooms [len(plainSizes)]sync.Pool // of *plainRoom

func newPlainRoom(n int) *plainRoom {
	class := 0
	for class < len(plainSizes) && n > plainSizes[class] {
		class++
	}
	if class == len(plainSizes) {
		return &plainRoom{make([]byte, n), class}
	}
	if r, ok := plainRooms[class].Get().(*plainRoom); ok {
		return r
	}
	return &plainRoom{make([]byte, plainSizes[class]), class}
}

func (r *plainRoom) release() {
	if r.class < len(plainSizes) {
		plainRooms[r.class].Put(r)
	}
}

// newRoom gives memory of n bytes for the segment's data. The smallest stays with the segment
// when that is used again, which saves a turn of the pools.
func (s *segment) newRoom(n int) *plainRoom {
	if r := s.spare; r != nil && n <= plainSizes[0] {
		s.spare = nil
		return r
	}
	return newPlainRoom(n)
}

// freeRoom gives up the memory of the segment's data.
func (s *segment) freeRoom() {
	if s.room.class == 0 && s.spare == nil {
		s.spare = s.room
		return
	}
	s.room.release()
}

// plainData are the data of a segment that has no packet. They are read under the lock of
// the endpoint.
type plainData struct {
	data []byte
	room *plainRoom  // nil without data
	nic  tcpip.NICID // that it came from
}

func (p *plainData) readTo(dst io.Writer, peek bool) (int, error) {
	if len(p.data) == 0 {
		return 0, nil
	}
	n, err := dst.Write(p.data)
	if !peek {
		p.data = p.data[n:]
	}
	return n, err
}

// ReceivePlain implements stack.PlainReceiver.
func (e *Endpoint) ReceivePlain(nic tcpip.NICID, b []byte, valid bool) bool {
	t := b[header.IPv4MinimumSize:]
	if header.TCPFlags(t[13]) == header.TCPFlagSyn {
		return e.EndpointState() == StateListen && !e.Gate.Asks() && (valid || validChecksum(b)) && e.plainSYN(nic, b)
	}
	if header.TCPFlags(t[13])&^(header.TCPFlagPsh|header.TCPFlagFin) != header.TCPFlagAck || t[12]&0xf != 0 ||
		e.Gate.Asks() || !valid && !validChecksum(b) {
		return false
	}
	if e.EndpointState() == StateEstablished && t[13]&uint8(header.TCPFlagFin) == 0 && !e.isOwnedByUser() && e.TryLock() {
		took := e.predicted(t)
		e.mu.Unlock()
		if took {
			return true
		}
	}
	return e.unpredicted(nic, t)
}

// unpredicted queues a segment with the usual options, as the dispatcher does, if it is one
// that only looks at its numbers, flags and data: the last of a handshake, a FIN, one that
// is out of order, or one that comes while a program has the endpoint.
func (e *Endpoint) unpredicted(nic tcpip.NICID, t []byte) bool {
	if state := e.EndpointState(); state != StateSynRecv && (!state.connected() || state == StateTimeWait) {
		return false
	}
	head, options, ok := usualOptions(t)
	if !ok {
		return false
	}
	s := e.plainSegment(t, options)
	defer s.DecRef()
	s.id, s.nic = e.TransportEndpointInfo.ID, nic
	s.window = seqnum.Size(binary.BigEndian.Uint16(t[14:]))
	s.take(t[head:])
	e.queueNow(s)
	return true
}

// queueNow queues a segment and has it processed.
func (e *Endpoint) queueNow(s *segment) {
	if e.enqueueSegment(s) && !e.isOwnedByUser() && !e.processNow() {
		e.protocol.dispatcher.selectProcessor(s.id).queueEndpoint(e)
	}
}

// plainSYN takes the SYN, without data, of a connection that may begin; b is the packet.
func (e *Endpoint) plainSYN(nic tcpip.NICID, b []byte) bool {
	be, t := binary.BigEndian, b[header.IPv4MinimumSize:]
	head := int(t[12]>>4) * 4
	if head != len(t) || head < header.TCPMinimumSize {
		return false
	}
	s := e.plainSegment(t, header.TCPOptions{})
	defer s.DecRef()
	s.id = stack.TransportEndpointID{
		LocalPort: be.Uint16(t[2:]), LocalAddress: tcpip.AddrFrom4([4]byte(b[16:])),
		RemotePort: be.Uint16(t), RemoteAddress: tcpip.AddrFrom4([4]byte(b[12:])),
	}
	s.nic = nic
	s.window = seqnum.Size(be.Uint16(t[14:]))
	s.room = s.newRoom(head - header.TCPMinimumSize)
	s.options = s.room.bytes[:copy(s.room.bytes, t[header.TCPMinimumSize:])]
	if !e.protocol.left.hears(e, s) {
		e.queueNow(s)
	}
	return true
}

// nicID is the interface that a segment came from.
func (s *segment) nicID() tcpip.NICID {
	if s.pkt == nil {
		return s.nic
	}
	return s.pkt.NICID
}

// netProto is the protocol that a segment came by: what is plain comes by IPv4.
func (s *segment) netProto() tcpip.NetworkProtocolNumber {
	if s.pkt == nil {
		return header.IPv4ProtocolNumber
	}
	return s.pkt.NetworkProtocolNumber
}

// usualOptions reads the options of a segment if they are none, or timestamps as everybody
// writes them, and says where data begins.
func usualOptions(t []byte) (head int, o header.TCPOptions, ok bool) {
	const stamp = header.TCPOptionNOP<<24 | header.TCPOptionNOP<<16 | header.TCPOptionTS<<8 | header.TCPOptionTSLength
	be := binary.BigEndian
	head = int(t[12]>>4) * 4
	switch {
	case head > len(t):
		return 0, o, false
	case head == header.TCPMinimumSize:
		return head, o, true
	case head == header.TCPMinimumSize+stampSize && be.Uint32(t[header.TCPMinimumSize:]) == stamp:
		return head, header.TCPOptions{TS: true, TSVal: be.Uint32(t[24:]), TSEcr: be.Uint32(t[28:])}, true
	}
	return 0, o, false
}

// plainSegment makes a segment of a header whose checksum is right, and counts it.
func (e *Endpoint) plainSegment(t []byte, options header.TCPOptions) *segment {
	e.stack.StatsOf().TCP.ValidSegmentsReceived.Increment()
	e.stats.SegmentsReceived.Increment()
	s := newSegment()
	s.sequenceNumber, s.ackNumber = seqnum.Value(binary.BigEndian.Uint32(t[4:])), seqnum.Value(binary.BigEndian.Uint32(t[8:]))
	s.flags = header.TCPFlags(t[13])
	s.parsedOptions = options
	s.rcvdTime = e.stack.Clock().NowMonotonic()
	s.csumValid = true
	return s
}

// take copies a segment's data.
func (s *segment) take(data []byte) {
	if len(data) == 0 {
		return
	}
	s.room = s.newRoom(len(data))
	s.data = s.room.bytes[:copy(s.room.bytes, data)]
	s.dataMemSize = len(s.room.bytes)
}

// validChecksum verifies a segment's checksum; b is the packet.
func validChecksum(b []byte) bool {
	t := b[header.IPv4MinimumSize:]
	sum := uint32(len(t)) + uint32(ProtocolNumber)
	for i := 12; i < header.IPv4MinimumSize; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return checksum.Checksum(t, uint16(sum>>16+sum)) == 0xffff
}

// predicted processes a segment if it is one that was expected.
//
// +checklocks:e.mu
func (e *Endpoint) predicted(t []byte) bool {
	be := binary.BigEndian
	head, options, ok := usualOptions(t)
	if !ok || e.EndpointState() != StateEstablished || options.TS != e.SendTSOk || options.TS && int32(options.TSVal-e.recentTimestamp()) < 0 {
		return false
	}
	r, snd, data := e.rcv, e.snd, t[head:]
	seq, ack := seqnum.Value(be.Uint32(t[4:])), seqnum.Value(be.Uint32(t[8:]))
	n := seqnum.Size(len(data))
	if seq != r.RcvNxt || !snd.SndUna.LessThanEq(ack) || !ack.LessThanEq(snd.SndNxt) || n == 0 && ack == snd.SndUna ||
		snd.FastRecovery.Active || snd.state != tcpip.Open || snd.zeroWindowProbing || e.SACKPermitted && e.scoreboard.Sacked() != 0 ||
		r.closed || len(r.pendingRcvdSegments) != 0 || !r.acceptable(seq, n) || !e.segmentQueue.empty() ||
		n != 0 && e.receiveMemUsed() > int(e.ops.GetReceiveBufferSize()) {
		return false
	}
	s := e.plainSegment(t, options)
	defer s.DecRef()
	s.window = seqnum.Size(be.Uint16(t[14:])) << snd.SndWndScale

	snd.maxWnd = max(snd.maxWnd, snd.SndWnd, s.window) // as receiver.admit
	if options.TS {
		e.updateRecentTimestamp(options.TSVal, snd.MaxSentAck, seq)
	}
	r.lastRcvdAckTime = s.rcvdTime
	if n != 0 {
		s.take(data)
		s.setOwner(e, recvQ)
		r.consumeSegment(s, seq, n)
		r.updateRTT(s.rcvdTime)
	}
	if ack != snd.SndUna || s.window != snd.SndWnd {
		forward := ack != snd.SndUna
		snd.handleRcvdSegment(s)
		if forward {
			e.confirmReachable(s.rcvdTime)
		}
	} else {
		snd.DupAckCount = 0
	}
	if r.RcvNxt != snd.MaxSentAck && !e.delayAck() {
		snd.sendAck()
	}
	e.resetKeepaliveTimer(true)
	return true
}

// confirmEvery is how often the neighbor hears that a connection goes forward. It takes the
// neighbor's timer, which runs for at least 15 seconds.
const confirmEvery = time.Second

// confirmReachable tells the neighbor that the peer has got what was sent.
//
// +checklocks:e.mu
func (e *Endpoint) confirmReachable(now tcpip.MonotonicTime) {
	if now.Sub(e.confirmed) >= confirmEvery {
		e.confirmed = now
		e.route.ConfirmReachable()
	}
}
