package tcp

import (
	"encoding/binary"
	"math"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Segments of IPv4 to one station, where the device does not cut them, are built in one
// piece of memory each, from the headers to the data (see stack.Path). What is sent and
// when is decided as before; only the way out is shorter.

// stampSize is the option of timestamps as everybody writes it, with two no-operations.
const stampSize = 12

// sendPlain sends a segment of the connection with the data of another, nil for none; done
// is false if it must go through the layers.
//
// +checklocks:e.mu
func (e *Endpoint) sendPlain(s *segment, flags header.TCPFlags, seq, ack seqnum.Value, rcvWnd seqnum.Size) (err tcpip.Error, done bool) {
	if e.gso.Type != stack.GSONone && e.gso.Type != stack.GSOGvisor || e.rcv == nil ||
		e.rcv.pendingRcvdSegments.Len() > 0 && flags&header.TCPFlagAck != 0 {
		return nil, false // perhaps with selective acknowledgements
	}
	p := e.route.Path()
	if p == nil {
		return nil, false
	}
	tf := tcpFields{
		id: e.TransportEndpointInfo.ID, tos: e.sendTOS, ttl: calculateTTL(e.route, e.ipv4TTL, e.ipv6HopLimit),
		flags: flags, seq: seq, ack: ack, rcvWnd: rcvWnd, txHash: e.txHash,
		df: e.pmtud == tcpip.PMTUDiscoveryWant || e.pmtud == tcpip.PMTUDiscoveryDo || e.pmtud == tcpip.PMTUDiscoveryProbe,
	}
	var options [stampSize]byte
	if e.SendTSOk {
		options[0], options[1] = header.TCPOptionNOP, header.TCPOptionNOP
		header.EncodeTSOption(e.tsValNow(), e.recentTimestamp(), options[2:])
		tf.opts = options[:]
	}
	var pkt *stack.PacketBuffer
	var data []byte
	if s != nil {
		pkt, data = s.pkt, s.data
	}
	if err, done = sendPlain(p, &tf, pkt, data, &e.gso); !done {
		return nil, false
	}
	if err != nil {
		e.stats.SendErrors.SegmentSendToNetworkFailed.Increment()
	} else {
		e.stats.SegmentsSent.Increment()
	}
	return err, true
}

// sendPlain sends the segments that a packet's data makes, or bytes without a packet, at
// least one.
func sendPlain(p *stack.Path, tf *tcpFields, pkt *stack.PacketBuffer, bytes []byte, gso *stack.GSO) (err tcpip.Error, done bool) {
	left := len(bytes)
	var data stack.DataReader
	if pkt != nil {
		left, data = pkt.Data().Size(), pkt.ReadData()
	}
	most := left
	if gso.Type == stack.GSOGvisor {
		most = min(most, int(gso.MSS))
	}
	head := header.TCPMinimumSize + len(tf.opts)
	if header.IPv4MinimumSize+head+most > p.MTU() || most == 0 && left != 0 {
		return nil, false
	}
	window := uint16(min(tf.rcvWnd, math.MaxUint16))
	be := binary.BigEndian
	f := stack.NewOutFrame(stack.PathHeaders + head + most)
	defer f.Release()
	f.Hash = tf.txHash
	for seq := tf.seq; ; {
		n := min(left, most)
		f.Bytes = f.Bytes[:stack.PathHeaders+head+n]
		t := f.Bytes[stack.PathHeaders:]
		be.PutUint16(t, tf.id.LocalPort)
		be.PutUint16(t[2:], tf.id.RemotePort)
		be.PutUint32(t[4:], uint32(seq))
		be.PutUint32(t[8:], uint32(tf.ack))
		t[12], t[13] = uint8(head/4)<<4, uint8(tf.flags)
		be.PutUint16(t[14:], window)
		be.PutUint32(t[16:], 0) // the checksum, and no urgent data
		copy(t[header.TCPMinimumSize:], tf.opts)
		if pkt == nil {
			bytes = bytes[copy(t[head:], bytes):]
		} else if n > 0 {
			data.Read(t[head:])
		}
		be.PutUint16(t[16:], ^checksum.Checksum(t, p.Pseudo(ProtocolNumber, len(t))))
		if !p.Send(f, ProtocolNumber, tf.tos, tf.ttl, tf.df) {
			p.Stats.TCP.SegmentSendErrors.Increment()
			return &tcpip.ErrNoBufferSpace{}, true
		}
		p.Stats.TCP.SegmentsSent.Increment()
		if tf.flags&header.TCPFlagRst != 0 {
			p.Stats.TCP.ResetsSent.Increment()
		}
		seq = seq.Add(seqnum.Size(n))
		if left -= n; left == 0 {
			return nil, true
		}
	}
}
