package tcp

import (
	"io"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// What a short write sends waits in one piece of memory, like what is received: a packet with
// its views and chunks, made and taken apart, cost more than sending it. A segment that has
// to go through the layers becomes a packet then.

// plainWrite is the longest such write.
const plainWrite = 2048

// queuePlain takes n bytes to send, at most plainWrite.
//
// +checklocks:e.mu
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) queuePlain(p tcpip.Payloader, n int) (*segment, int, tcpip.Error) {
	s := newSegment()
	s.room = s.newRoom(n)
	n, err := io.ReadFull(p, s.room.bytes[:n])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		s.DecRef()
		return nil, 0, &tcpip.ErrBadBuffer{}
	}
	if n == 0 {
		s.DecRef()
		return nil, 0, nil
	}
	e.sndQueueInfo.SndBufUsed += n
	if tail := e.plainTail(s.room.bytes[:n]); tail != nil {
		s.DecRef()
		return tail, n, nil
	}
	s.id = e.TransportEndpointInfo.ID
	s.rcvdTime = e.stack.Clock().NowMonotonic()
	s.data, s.dataMemSize = s.room.bytes[:n], len(s.room.bytes)
	s.setOwner(e, sendQ)
	e.snd.writeList.PushBack(s)
	return s, n, nil
}

// plainTail is lengthenTail of some bytes.
//
// +checklocks:e.mu
// +checklocks:e.sndQueueInfo.sndQueueMu
func (e *Endpoint) plainTail(data []byte) *segment {
	tail := e.tailFor(len(data))
	switch {
	case tail == nil:
	case tail.pkt != nil:
		tail.addView(data, e.snd.MaxPayloadSize)
	case len(tail.data)+len(data) <= cap(tail.data):
		tail.data = append(tail.data, data...)
	default:
		// The next piece of memory has place for as much again.
		room, size := tail.room, len(tail.data)+len(data)
		tail.room = newPlainRoom(min(2*size, max(e.snd.MaxPayloadSize, size)))
		tail.data = append(append(tail.room.bytes[:0], tail.data...), data...)
		tail.dataMemSize = len(tail.room.bytes)
		room.release()
	}
	return tail
}

// capLength cuts a segment's data.
func (s *segment) capLength(n int) {
	if s.pkt == nil {
		s.data = s.data[:min(n, len(s.data))]
		return
	}
	s.pkt.Data().CapLength(n)
}

// packet makes a segment that e sends a packet, if it is none yet.
func (s *segment) packet(e *Endpoint) *stack.PacketBuffer {
	if s.pkt == nil {
		o := stack.PacketBufferOptions{Mark: e.ops.GetMark()}
		if len(s.data) > 0 {
			o.Payload = buffer.MakeWithData(s.data)
		}
		s.pkt = stack.NewPacketBuffer(o)
		s.dataMemSize = s.pkt.MemSize()
		if s.room != nil {
			s.freeRoom()
			s.plainData = plainData{}
		}
	}
	return s.pkt
}
