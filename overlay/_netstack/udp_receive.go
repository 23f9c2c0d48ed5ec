package udp

import (
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Plain datagrams (see stack.PlainReceiver) wait in the queue as their bytes.

// plainData are a plain datagram's; of others they are zero.
type plainData struct {
	data  []byte
	room  []byte       // its memory
	class int          // of room, see plainRooms
	users atomic.Int32 // the queue, and those that read
}

// plainRooms are the sizes of the memory of datagrams. A datagram with its memory takes no
// more than one of the general kind, which is what its socket's user is charged for.
var plainRooms = [...]int{256, 1024, 2048}

var plainPackets [len(plainRooms)]sync.Pool // of *udpPacket

// newPlain returns a packet with the data, for one user.
func newPlain(data []byte) *udpPacket {
	class := 0
	for class < len(plainRooms) && len(data) > plainRooms[class] {
		class++
	}
	var p *udpPacket
	if class < len(plainRooms) {
		if p, _ = plainPackets[class].Get().(*udpPacket); p == nil {
			p = &udpPacket{}
			p.room = make([]byte, plainRooms[class])
		}
	} else {
		p = &udpPacket{}
		p.room = make([]byte, len(data))
	}
	p.class = class
	p.data = p.room[:copy(p.room, data)]
	p.users.Store(1)
	return p
}

// size is the length of the packet's data.
func (p *udpPacket) size() int {
	if p.pkt == nil {
		return len(p.data)
	}
	return p.pkt.Data().Size()
}

// hold keeps the packet's memory until release.
func (p *udpPacket) hold() {
	if p.pkt == nil {
		p.users.Add(1)
	} else {
		p.pkt.IncRef()
	}
}

func (p *udpPacket) release() {
	if p.pkt != nil {
		p.pkt.DecRef()
		return
	}
	if p.users.Add(-1) == 0 && p.class < len(plainRooms) {
		p.peeked = false
		plainPackets[p.class].Put(p)
	}
}

// readPlain finishes a Read of a plain packet.
func (p *udpPacket) readPlain(dst io.Writer, res tcpip.ReadResult) (tcpip.ReadResult, tcpip.Error) {
	if len(p.data) > 0 {
		n, err := dst.Write(p.data)
		if n == 0 && err != nil {
			return res, &tcpip.ErrBadBuffer{}
		}
		res.Count = n
	}
	return res, nil
}

// ReceivePlain implements stack.PlainReceiver.
func (e *endpoint) ReceivePlain(nic tcpip.NICID, b []byte, valid bool) bool {
	be := binary.BigEndian
	u := b[header.IPv4MinimumSize:]
	if int(be.Uint16(u[4:])) != len(u) || e.Gate.Asks() {
		return false
	}
	if !valid && be.Uint16(u[6:]) != 0 {
		sum := uint32(len(u)) + uint32(ProtocolNumber)
		for i := 12; i < header.IPv4MinimumSize; i += 2 {
			sum += uint32(be.Uint16(b[i:]))
		}
		sum = sum>>16 + sum&0xffff
		if checksum.Checksum(u, uint16(sum>>16+sum)) != 0xffff {
			return false
		}
	}
	stats := e.stack.StatsOf()
	stats.UDP.PacketsReceived.Increment()
	e.stats.PacketsReceived.Increment()
	e.rcvMu.Lock()
	if !e.rcvReady || e.rcvClosed {
		e.rcvMu.Unlock()
		stats.UDP.ReceiveBufferErrors.Increment()
		e.stats.ReceiveErrors.ClosedReceiver.Increment()
		return true
	}
	if e.frozen || e.rcvBufSize >= int(e.ops.GetReceiveBufferSize()) {
		e.rcvMu.Unlock()
		stats.UDP.ReceiveBufferErrors.Increment()
		e.stats.ReceiveErrors.ReceiveBufferOverflow.Increment()
		return true
	}
	p := newPlain(u[header.UDPMinimumSize:])
	local := tcpip.AddrFrom4([4]byte(b[16:20]))
	p.netProto = header.IPv4ProtocolNumber
	p.senderAddress = tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4([4]byte(b[12:16])), Port: be.Uint16(u)}
	p.destinationAddress = tcpip.FullAddress{NIC: nic, Addr: local, Port: be.Uint16(u[2:])}
	p.packetInfo = tcpip.IPPacketInfo{LocalAddr: local, DestinationAddr: local, NIC: nic}
	p.tosOrTClass, p.ttlOrHopLimit = b[1], b[8]
	wasEmpty := e.rcvBufSize == 0
	e.rcvList.PushBack(p)
	e.rcvBufSize += len(p.data)
	e.rcvMu.Unlock()
	if wasEmpty {
		e.waiterQueue.Notify(waiter.ReadableEvents)
	}
	return true
}

// TakePlain takes the first datagram of the queue, if it is plain and the socket wants to
// know nothing but the sender of it. token is for FreePlain, which takes the data's memory
// back; it is nil if there is no such datagram.
func (e *endpoint) TakePlain() (data []byte, from [4]byte, port uint16, token any) {
	if e.ops.GetReceiveTOS() || e.ops.GetReceiveTTL() || e.ops.GetReceivePacketInfo() || e.ops.GetReceiveOriginalDstAddress() {
		return nil, from, 0, nil
	}
	e.lastErrorMu.Lock()
	failed := e.lastError != nil
	e.lastErrorMu.Unlock()
	if failed {
		return nil, from, 0, nil
	}
	e.rcvMu.Lock()
	p := e.rcvList.Front()
	if p == nil || p.pkt != nil {
		e.rcvMu.Unlock()
		return nil, from, 0, nil
	}
	e.rcvList.Remove(p)
	e.rcvBufSize -= len(p.data)
	e.rcvMu.Unlock()
	return p.data, p.senderAddress.Addr.As4(), p.senderAddress.Port, p
}

// FreePlain releases what TakePlain returned.
func (e *endpoint) FreePlain(token any) { token.(*udpPacket).release() }
