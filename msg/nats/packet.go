package nats

import (
	"encoding/binary"
	"fmt"

	"hardtack/msg"
)

// Packets are the payloads of NATS messages, little endian:
//
//	 0  u8   kind
//	 1  u8   version
//	 2  u16  0
//	 4  u32  0
//	 8  u64  seq   number of this frame, from 1 (data, end)
//	16  u64  ack   all frames up to this one have arrived
//	24  u64  done  all frames up to this one were taken by the program
//	32  payload: the frame (data), a peerID (open, accept), words (refuse),
//	    the name of the sender's server (ping, pong)
//
// Subjects are PREFIX.p.PROCESS.l.LINK for links, PREFIX.p.PROCESS.ping for
// pings, and PREFIX.s.NAME for listeners. PROCESS and LINK are 128 random bits
// in hex. The reply subject of all packets to PEER is PREFIX.p.PROCESS.n.PEER.LINK
// (LINK being 0 for pings): it says who sends, and there arrive pongs, and what
// the server says in a peer's place.
const (
	packetVersion = 1
	headerSize    = 32
	maxPacket     = headerSize + msg.MaxFrame
)

type kind uint8

const (
	kindOpen   kind = iota + 1 // to a listener
	kindAccept                 // its answer
	kindRefuse                 // its answer, or a process's for a link that it does not have
	kindData                   // a frame
	kindEnd                    // numbered as a frame: there are no more
	kindAck                    // only ack and done
	kindMissed                 // the same, and frames after ack are wanted again
	kindPing
	kindPong
)

type packet struct {
	kind           kind
	seq, ack, done uint64
	payload        []byte
}

func (p *packet) append(b []byte) []byte {
	b = append(b, byte(p.kind), packetVersion, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, p.seq)
	b = binary.LittleEndian.AppendUint64(b, p.ack)
	b = binary.LittleEndian.AppendUint64(b, p.done)
	return append(b, p.payload...)
}

// decode reads what anybody may have sent. The payload is part of b.
func decode(b []byte) (packet, error) {
	switch {
	case len(b) < headerSize || len(b) > maxPacket:
		return packet{}, fmt.Errorf("a packet of %d bytes", len(b))
	case b[1] != packetVersion:
		return packet{}, fmt.Errorf("packet version %d, not %d", b[1], packetVersion)
	case binary.LittleEndian.Uint32(b[4:]) != 0 || b[2] != 0 || b[3] != 0:
		return packet{}, fmt.Errorf("a packet with something in its unused bytes")
	}
	p := packet{
		kind:    kind(b[0]),
		seq:     binary.LittleEndian.Uint64(b[8:]),
		ack:     binary.LittleEndian.Uint64(b[16:]),
		done:    binary.LittleEndian.Uint64(b[24:]),
		payload: b[headerSize:],
	}
	if p.kind < kindOpen || p.kind > kindPong {
		return packet{}, fmt.Errorf("packet kind %d", p.kind)
	}
	if p.done > p.ack || len(p.payload) > 0 && p.kind >= kindEnd && p.kind < kindPing || len(p.payload) > 64 && p.kind >= kindPing {
		return packet{}, fmt.Errorf("packet of kind %d with ack %d, done %d and %d bytes", p.kind, p.ack, p.done, len(p.payload))
	}
	return p, nil
}

// peerID names one end of a link: 32 hex digits of the process, 32 of the link.
type peerID struct{ process, link string }

const idLen = 32

func (id peerID) append(b []byte) []byte { return append(append(b, id.process...), id.link...) }

func decodePeerID(b []byte) (peerID, error) {
	if len(b) != 2*idLen || !isHex(b) {
		return peerID{}, fmt.Errorf("not the identity of a link: %q", b[:min(len(b), 2*idLen)])
	}
	return peerID{string(b[:idLen]), string(b[idLen:])}, nil
}

func isHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
