package udp

import (
	"encoding/binary"
	"io"
	"math"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Plain datagrams: of IPv4, without control messages, to where the socket sent the last
// one. They are built in one piece of memory (see stack.Path).

// plainSender is part of an endpoint.
type plainSender struct {
	changes atomic.Uint64 // of what may change what is sent
	last    atomic.Pointer[plainWay]
}

// plainWay is what was found out for the last datagram. Immutable.
type plainWay struct {
	path      *stack.Path
	changes   uint64
	to        tcpip.FullAddress
	connected bool // there was no address
	device    int32
	localPort uint16
	toPort    uint16
	tos, ttl  uint8
	df        bool
}

// change is called after something has changed that datagrams depend on.
func (s *plainSender) change() { s.changes.Add(1) }

// plainOptions reports whether a datagram is sent as the socket's options say.
func plainOptions(o *tcpip.WriteOptions) bool {
	return !o.More && !o.EndOfRecord && o.ControlMessages == (tcpip.SendableControlMessages{})
}

// keep remembers a way; changes is what the count was before it was looked for.
func (e *endpoint) keep(info *udpPacketInfo, o *tcpip.WriteOptions, changes uint64) {
	if !plainOptions(o) {
		return
	}
	path, tos, ttl, df := info.ctx.PlainPath()
	if path == nil {
		return
	}
	w := &plainWay{path: path, changes: changes, connected: o.To == nil, device: e.ops.GetBindToDevice(),
		localPort: info.localPort, toPort: info.remotePort, tos: tos, ttl: ttl, df: df}
	if o.To != nil {
		w.to = *o.To
	}
	e.plain.last.Store(w)
}

// writePlain sends a datagram; done is false if it must go through the layers.
func (e *endpoint) writePlain(p tcpip.Payloader, o *tcpip.WriteOptions) (n int64, err tcpip.Error, done bool) {
	w := e.plain.last.Load()
	if w == nil || w.changes != e.plain.changes.Load() || w.connected != (o.To == nil) || o.To != nil && *o.To != w.to ||
		w.device != e.ops.GetBindToDevice() || !plainOptions(o) || !w.path.Valid() {
		return 0, nil, false
	}
	const head = stack.PathHeaders + header.UDPMinimumSize
	size := p.Len()
	if size > w.path.MTU()-header.IPv4MinimumSize-header.UDPMinimumSize {
		return 0, nil, false
	}
	f := stack.NewOutFrame(head + size)
	defer f.Release()
	if size > 0 {
		if _, err := io.ReadFull(p, f.Bytes[head:]); err != nil {
			return 0, &tcpip.ErrBadBuffer{}, true
		}
	}
	u := f.Bytes[stack.PathHeaders:]
	be := binary.BigEndian
	be.PutUint16(u, w.localPort)
	be.PutUint16(u[2:], w.toPort)
	be.PutUint32(u[4:], uint32(len(u))<<16)
	if !e.ops.GetNoChecksum() {
		sum := checksum.Checksum(u, w.path.Pseudo(ProtocolNumber, len(u)))
		if sum != math.MaxUint16 { // 0 says that there is no checksum
			sum = ^sum
		}
		be.PutUint16(u[6:], sum)
	}
	f.Hash = 0
	if !w.path.Send(f, ProtocolNumber, w.tos, w.ttl, w.df) {
		if err := e.net.Crowded(); err != nil {
			w.path.Stats.UDP.PacketSendErrors.Increment()
			return 0, err, true
		}
	}
	w.path.Stats.UDP.PacketsSent.Increment()
	return int64(size), nil, true
}
