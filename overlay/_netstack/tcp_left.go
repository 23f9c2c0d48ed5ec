package tcp

import (
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/internal/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/ports"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Left is what is left of a connection whose socket is closed: first its endpoint, and in
// TIME_WAIT only what an answer needs. The endpoint ends then, with its buffers, timers and
// registration. It is charged to a user for as long as it waits, so it is small.
//
// Lock order: Endpoint.mu, leftovers.mu.
type Left struct {
	endpoint atomic.Pointer[Endpoint] // until TIME_WAIT or the end
	waits    atomic.Bool              // in TIME_WAIT; set under leftovers.mu

	p          *protocol
	next, prev *Left               // guarded by leftovers.mu
	deadline   tcpip.MonotonicTime // guarded by leftovers.mu

	// What follows is written before the connection is listed.

	id     stack.TransportEndpointID
	dest   tcpip.FullAddress // of the port's reservation, as are nets, device and flags
	nets   []tcpip.NetworkProtocolNumber
	device tcpip.NICID
	flags  ports.Flags

	reserved  bool // the port is
	stamped   bool // segments carry timestamps
	df        bool
	ttl, tos  uint8
	net       tcpip.NetworkProtocolNumber
	window    seqnum.Size
	seq, ack  seqnum.Value
	mark      uint32
	hash      uint32
	offset    tcp.TSOffset
	recent    uint32              // the peer's last timestamp; guarded by leftovers.mu
	heard     tcpip.MonotonicTime // when that came; guarded by leftovers.mu
	challenge tcpip.MonotonicTime // when an old SYN was answered last; guarded by leftovers.mu
}

// leftBytes is about what a connection in TIME_WAIT takes: this, its place in the map of
// those, and the reservation of its port.
const leftBytes = 768

// leftGrain is how much longer a connection may wait, so that many end at once.
const leftGrain = 20 * time.Millisecond

// leftovers are the connections in TIME_WAIT. All wait for the same time, so a list in the
// order of their coming does for the timer. Their number is bounded by what is charged for
// them.
type leftovers struct {
	n           atomic.Int64
	mu          sync.Mutex
	by          map[stack.TransportEndpointID]*Left // guarded by mu
	first, last *Left                               // guarded by mu
	timer       tcpip.Timer                         // guarded by mu; made at the first use
	armed       bool                                // guarded by mu
}

// Leave says that the socket is closed: whoever calls keeps what is returned, not the
// endpoint. It is nil if nothing is left.
func (e *Endpoint) Leave() interface {
	State() uint32
	Abort()
} {
	e.LockUser()
	defer e.UnlockUser()
	if state := e.EndpointState(); !state.connected() && !state.connecting() {
		return nil
	}
	if e.left == nil {
		e.left = &Left{p: e.protocol}
		e.left.endpoint.Store(e)
	}
	l := e.left
	if e.EndpointState() == StateTimeWait {
		e.leaveLocked()
	}
	return l
}

// leaveLocked ends the endpoint in TIME_WAIT, and leaves what answers for it.
//
// +checklocks:e.mu
func (e *Endpoint) leaveLocked() {
	l, t := e.left, &e.protocol.left
	_, window := e.rcv.getSendParams()
	l.id, l.dest = e.TransportEndpointInfo.ID, e.boundDest.full()
	l.nets, l.device, l.flags, l.reserved = e.effectiveNetProtos, e.boundBindToDevice, e.boundPortFlags, e.isPortReserved
	l.stamped, l.offset, l.recent, l.heard = e.SendTSOk, e.TSOffset, e.RecentTS, e.recentTSTime
	l.df = e.pmtud == tcpip.PMTUDiscoveryWant || e.pmtud == tcpip.PMTUDiscoveryDo || e.pmtud == tcpip.PMTUDiscoveryProbe
	l.ttl, l.tos = calculateTTL(e.route, e.ipv4TTL, e.ipv6HopLimit), e.sendTOS
	l.net, l.window, l.seq, l.ack = e.route.NetProto(), window, e.snd.SndNxt, e.rcv.RcvNxt
	l.mark, l.hash, l.challenge = e.ops.GetMark(), e.txHash, e.lastOutOfWindowAckTime
	e.isPortReserved = false // l keeps the port
	e.left = nil
	// It is listed before the endpoint goes: there is always one that answers.
	old := t.add(l, e.getTimeWaitDuration())
	l.endpoint.Store(nil)
	if old != nil {
		old.release()
	}
	e.transitionToStateCloseLocked()
}

// ended says that the endpoint has ended otherwise.
//
// +checklocks:e.mu
func (e *Endpoint) ended() {
	if e.left != nil {
		e.left.endpoint.Store(nil)
		e.left = nil
	}
}

// State is the state of the connection.
func (l *Left) State() uint32 {
	switch e := l.endpoint.Load(); {
	case e != nil:
		return uint32(e.EndpointState())
	case l.waits.Load():
		return uint32(StateTimeWait)
	default:
		return uint32(StateClose)
	}
}

// Bytes is about how much memory the connection takes.
func (l *Left) Bytes() int64 {
	switch e := l.endpoint.Load(); {
	case e != nil:
		toSend, _, _ := e.Queued()
		return endpointBytes + toSend
	case l.waits.Load():
		return leftBytes
	default:
		return 0
	}
}

// Abort ends the connection: one in TIME_WAIT without a word, as Linux does.
func (l *Left) Abort() {
	if e := l.endpoint.Load(); e != nil {
		e.Abort()
	}
	t := &l.p.left
	t.mu.Lock()
	gone := t.drop(l)
	t.mu.Unlock()
	if gone {
		l.release()
	}
}

// release gives the port back. The connection is not listed any more.
func (l *Left) release() {
	if l.reserved {
		l.p.stack.ReleasePort(ports.Reservation{Networks: l.nets, Transport: ProtocolNumber, Addr: l.id.LocalAddress,
			Port: l.id.LocalPort, Flags: l.flags, BindToDevice: l.device, Dest: l.dest})
	}
}

// add lists a connection. What had its addresses before is returned.
func (t *leftovers) add(l *Left, d time.Duration) (old *Left) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old = t.by[l.id]; old != nil {
		t.drop(old)
	}
	if t.by == nil {
		t.by = map[stack.TransportEndpointID]*Left{}
	}
	t.by[l.id] = l
	t.n.Add(1)
	l.waits.Store(true)
	t.push(l, d)
	if !t.armed {
		t.arm(d)
	}
	return old
}

// arm sets the timer; called with mu held.
func (t *leftovers) arm(d time.Duration) {
	d = max(d, 0) + leftGrain
	if t.timer == nil {
		t.timer = t.first.p.stack.Clock().AfterFunc(d, t.expire)
	} else {
		t.timer.Reset(d)
	}
	t.armed = true
}

// push puts a connection at the list's end; called with mu held.
func (t *leftovers) push(l *Left, d time.Duration) {
	l.deadline = l.p.stack.Clock().NowMonotonic().Add(d)
	if l.prev = t.last; l.prev != nil {
		l.prev.next = l
	} else {
		t.first = l
	}
	t.last = l
}

// unlink takes a connection out of the list; called with mu held.
func (t *leftovers) unlink(l *Left) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		t.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		t.last = l.prev
	}
	l.next, l.prev = nil, nil
}

// drop ends a connection, whose port is still to be released, and reports whether it was
// listed; called with mu held.
func (t *leftovers) drop(l *Left) bool {
	if !l.waits.Load() {
		return false
	}
	t.unlink(l)
	delete(t.by, l.id)
	t.n.Add(-1)
	l.waits.Store(false)
	return true
}

// expire is the timer: it ends those that have waited for long enough.
func (t *leftovers) expire() {
	var over *Left // linked by next
	t.mu.Lock()
	t.armed = false
	for l := t.first; l != nil; l = t.first {
		left := l.deadline.Sub(l.p.stack.Clock().NowMonotonic())
		if left > 0 {
			t.arm(left)
			break
		}
		t.drop(l)
		l.next, over = over, l
	}
	if t.first == nil {
		t.by = nil // a map does not shrink
	}
	t.mu.Unlock()
	for l := over; l != nil; {
		next := l.next
		l.next = nil
		l.release()
		l = next
	}
}

// holds reports whether a connection in TIME_WAIT has these addresses.
func (t *leftovers) holds(id stack.TransportEndpointID) bool {
	if t.n.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.by[id] != nil
}

// reuse ends the connection with these addresses for a new one of this machine, if its
// peer was last heard of at least a second ago: the new one's timestamps are higher then.
func (t *leftovers) reuse(id stack.TransportEndpointID) bool {
	t.mu.Lock()
	l := t.by[id]
	if l == nil || l.p.stack.Clock().NowMonotonic().Sub(l.heard) < time.Second {
		t.mu.Unlock()
		return false
	}
	t.drop(l)
	t.mu.Unlock()
	l.release()
	return true
}

// forget ends the connections with the peers that match, and returns how many there were.
func (t *leftovers) forget(match func(tcpip.Address) bool) (n int) {
	var all []*Left
	t.mu.Lock()
	for l := t.first; l != nil; l = l.next {
		all = append(all, l)
	}
	t.mu.Unlock()
	for _, l := range all {
		if match(l.id.RemoteAddress) {
			l.Abort()
			n++
		}
	}
	return n
}

// ForgetTimeWaits ends the connections in TIME_WAIT with the peers that match. Nothing is
// sent.
func (p *protocol) ForgetTimeWaits(match func(tcpip.Address) bool) int { return p.left.forget(match) }

// TimeWaits is the number of connections in TIME_WAIT whose sockets are closed.
func (p *protocol) TimeWaits() int { return int(p.left.n.Load()) }

// hears takes a segment for a connection in TIME_WAIT. found is the endpoint that the
// segment comes to otherwise, if any: it gets a SYN that begins a new connection.
func (t *leftovers) hears(found stack.TransportEndpoint, s *segment) bool {
	if t.n.Load() == 0 {
		return false
	}
	to, _ := found.(*Endpoint)
	if to != nil {
		if state := to.EndpointState(); state.connected() || state.connecting() {
			return false
		}
	}
	t.mu.Lock()
	l := t.by[s.id]
	if l == nil || l.device != 0 && l.device != s.nicID() {
		t.mu.Unlock()
		return false
	}
	if s.flags.Contains(header.TCPFlagSyn) && !s.flags.Contains(header.TCPFlagRst) && l.ack.LessThan(s.sequenceNumber) {
		again := to != nil && to.EndpointState() == StateListen && t.drop(l)
		t.mu.Unlock()
		if again {
			l.release()
		}
		return !again
	}
	var options [maxOptionSize]byte
	fields, answer := l.answer(s, &options)
	t.mu.Unlock()
	if answer {
		l.send(fields)
	}
	return true
}

// answer handles a segment like handleTimeWaitSegment, and says what is to be sent; called
// with leftovers.mu held.
func (l *Left) answer(s *segment, options *[maxOptionSize]byte) (f tcpFields, ok bool) {
	seq, t := s.sequenceNumber, &l.p.left
	now := l.p.stack.Clock().NowMonotonic()
	switch {
	case s.flags.Contains(header.TCPFlagRst):
		return f, false // RFC 1337
	case s.flags.Contains(header.TCPFlagSyn):
		var limit stack.TCPInvalidRateLimitOption
		if err := l.p.stack.Option(&limit); err != nil || s.payloadSize() == 0 && l.challenge != (tcpip.MonotonicTime{}) && now.Sub(l.challenge) < time.Duration(limit) {
			return f, false
		}
		if s.payloadSize() == 0 {
			l.challenge = now
		}
		ok = true
	case !s.flags.Contains(header.TCPFlagAck):
		return f, false
	default:
		if l.stamped && s.parsedOptions.TS && seqnum.Value(l.recent).LessThan(seqnum.Value(s.parsedOptions.TSVal)) && seq.LessThanEq(l.ack) {
			l.recent, l.heard = s.parsedOptions.TSVal, now
		}
		if seq.Add(1) == l.ack && s.flags.Contains(header.TCPFlagFin) {
			t.unlink(l) // the peer has not got the acknowledgement: wait again
			t.push(l, l.p.timeWait())
			ok = true
		} else {
			ok = seq != l.ack || s.payloadSize() != 0
		}
	}
	if !ok {
		return f, false
	}
	f = tcpFields{id: l.id, ttl: l.ttl, tos: l.tos, flags: header.TCPFlagAck, seq: l.seq, ack: l.ack,
		rcvWnd: l.window, txHash: l.hash, df: l.df}
	if l.stamped {
		n := header.EncodeNOP(options[:])
		n += header.EncodeNOP(options[n:])
		n += header.EncodeTSOption(l.offset.TSVal(now), l.recent, options[n:])
		f.opts = options[:n]
	}
	return f, true
}

// send sends an acknowledgement.
func (l *Left) send(f tcpFields) {
	route, err := l.p.stack.SharedRoute(l.device, l.id.LocalAddress, l.id.RemoteAddress, l.net)
	if err != nil {
		return
	}
	defer route.Release()
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
		ReserveHeaderBytes: header.TCPMinimumSize + int(route.MaxHeaderLength()) + len(f.opts), Mark: l.mark})
	defer pkt.DecRef()
	_ = sendTCP(route, f, pkt, stack.GSO{}, nil)
}
