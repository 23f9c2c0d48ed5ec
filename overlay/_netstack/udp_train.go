package udp

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A train is several datagrams of one length, and perhaps a shorter last one, that are sent
// as one packet to the machine itself (UDP_SEGMENT of Linux). Its PacketBuffer has that
// length in GSOOptions. An endpoint that does not take trains receives the datagrams.

// trains says whether an endpoint takes trains (UDP_GRO of Linux).
type trains struct{ on atomic.Bool }

// SetTrains changes it.
func (t *trains) SetTrains(on bool) { t.on.Store(on) }

// trainSender is what a train is read from. It is asked for the length of the datagrams.
type trainSender interface{ TrainSize() uint16 }

// trainReader is a reader that wants to know the length of the datagrams, 0 for a datagram
// that came alone.
type trainReader interface{ SetTrainSize(uint16) }

// handleTrain receives the datagrams of a train.
func (e *endpoint) handleTrain(id stack.TransportEndpointID, pkt *stack.PacketBuffer) {
	size := int(pkt.GSOOptions.MSS)
	network, transport := pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice()
	if len(transport) < header.UDPMinimumSize {
		return
	}
	for data := pkt.Data().AsRange().ToSlice(); len(data) > 0; {
		n := min(size, len(data))
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: len(network) + header.UDPMinimumSize,
			Payload:            buffer.MakeWithData(data[:n]),
		})
		data = data[n:]
		udp := header.UDP(p.TransportHeader().Push(header.UDPMinimumSize))
		copy(udp, transport)
		udp.SetLength(uint16(header.UDPMinimumSize + n))
		copy(p.NetworkHeader().Push(len(network)), network)
		p.NetworkProtocolNumber, p.TransportProtocolNumber = pkt.NetworkProtocolNumber, ProtocolNumber
		p.PktType, p.NICID, p.RXChecksumValidated = pkt.PktType, pkt.NICID, true
		e.HandlePacket(id, p)
		p.DecRef()
	}
}
