package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// maxErrors bounds the errors of the network that wait in one socket's queue
// (IP_RECVERR); beyond it the oldest are dropped.
const maxErrors = 64

// NotifyEvent passes an event of netstack on; the bits are the same.
func (s *inetSock) NotifyEvent(ev waiter.EventMask) {
	if ev&waiter.EventErr != 0 {
		if p := s.ep.Load(); p != nil && p.errs.Add(1) > maxErrors {
			p.errs.Add(-1)
			p.SocketOptions().DequeueErr()
		}
	}
	s.Q.Notify(wait.Events(ev))
}

// recvError is recvmsg with MSG_ERRQUEUE.
func (s *Datagram) recvError(m *sock.Msg) (int, linux.Errno) {
	if s.takeZeroCopies(m) {
		return 0, 0
	}
	if n, e, ok := s.takeStamp(m); ok {
		return n, e
	}
	p := s.ep.Load()
	x := p.SocketOptions().DequeueErr()
	if x == nil {
		return 0, linux.EAGAIN
	}
	p.errs.Store(max(p.errs.Load()-1, 0))
	if p.SocketOptions().PeekErr() == nil { // the queue has told it
		p.LastError()
		p.told.Store(true)
	}
	data := x.Payload.AsSlice()
	n, e := m.V.CopyOut(data[:min(len(data), m.V.Len())])
	if e != 0 {
		return 0, e
	}
	m.OutFlags |= linux.MSG_ERRQUEUE
	if n < len(data) {
		m.OutFlags |= linux.MSG_TRUNC
	}
	m.From.Len = 0
	if m.WantFrom {
		putAddr(&m.From, x.Dst, s.v6)
	}
	m.HasError = true
	m.Error = sock.ExtendedError{
		Errno: errno(x.Err), Origin: uint8(x.Cause.Origin()), Type: x.Cause.Type(), Code: x.Cause.Code(), Info: x.Cause.Info(), V6: s.v6,
	}
	if x.Cause.Origin().IsICMPErr() {
		putAddr(&m.Error.Offender, tcpip.FullAddress{Addr: x.Offender.Addr}, s.v6)
	}
	return n, 0
}

// stampTime answers SIOCGSTAMP and SIOCGSTAMPNS: when the last datagram came.
func (s *Datagram) stampTime() (int64, linux.Errno) {
	if ns := s.stamp.Load(); ns != 0 {
		return ns, 0
	}
	return 0, linux.ENOENT
}
