package netif

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
)

const (
	fin, syn, psh, ack = 1, 2, 8, 16
)

// A piece is a segment as it is sent or delivered.
type piece struct {
	seq, ack uint32
	flags    byte
	data     string
	options  string
	valid    bool // somebody has looked at the checksum
}

// frame is the piece on the wire.
func (p piece) frame() netdev.Frame {
	be := binary.BigEndian
	b := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}, make([]byte, ip4Size+tcpSize)...)
	b = append(append(b, p.options...), p.data...)
	h, t := b[ethSize:], b[ethSize+ip4Size:]
	h[0], h[8], h[9] = 0x45, 64, 6
	be.PutUint16(h[2:], uint16(len(h)))
	copy(h[12:], []byte{10, 9, 0, 2, 10, 9, 0, 1})
	be.PutUint16(h[10:], ^checksum.Checksum(h[:ip4Size], 0))
	be.PutUint16(t, 1000)
	be.PutUint16(t[2:], 2000)
	be.PutUint32(t[4:], p.seq)
	be.PutUint32(t[8:], p.ack)
	t[12], t[13] = byte((tcpSize+len(p.options))/4)<<4, p.flags
	pseudo := append(append([]byte{}, h[12:20]...), 0, 6, byte(len(t)>>8), byte(len(t)))
	be.PutUint16(t[16:], ^checksum.Checksum(t, checksum.Checksum(pseudo, 0)))
	return netdev.Frame{Parts: [][]byte{b}}
}

// transport keeps what is delivered to it.
type transport struct {
	stack.TransportDispatcher
	got []piece
}

func (d *transport) DeliverTransportPacket(_ tcpip.TransportProtocolNumber, p *stack.PacketBuffer) stack.TransportPacketDisposition {
	t := p.TransportHeader().Slice()
	be := binary.BigEndian
	d.got = append(d.got, piece{
		be.Uint32(t[4:]), be.Uint32(t[8:]), t[13],
		string(p.Data().AsRange().ToSlice()), string(t[tcpSize:]), p.RXChecksumValidated,
	})
	return stack.TransportPacketHandled
}

// receiveAll gives frames to an interface at once.
func receiveAll(frames []netdev.Frame) []piece {
	l := &Link{net: inet.New(inet.Config{Rand: rand.Reader}), host: [6]byte{2, 0, 0, 0, 0, 1}, rxPackets: new(tcpip.StatCounter), rxBytes: new(tcpip.StatCounter)}
	l.own4.Store(0x0a0900ff_0a090001)
	d := new(transport)
	for at := 0; at < len(frames); {
		n := l.receiveFast(d, frames[at:])
		if n == 0 {
			return nil
		}
		at += n
	}
	if int(l.rxPackets.Value()) != len(frames) {
		return nil
	}
	return d.got
}

func TestSegmentsAreMerged(t *testing.T) {
	full := string(bytes.Repeat([]byte("x"), 100))
	stamp := "\x01\x01\x08\x0a\x00\x00\x00\x05\x00\x00\x00\x06"
	later := "\x01\x01\x08\x0a\x00\x00\x00\x07\x00\x00\x00\x08"
	sack := "\x01\x01\x05\x0a\x00\x00\x01\x00\x00\x00\x02\x00"
	data := func(seq uint32, flags byte, data string) piece {
		return piece{seq, 7, flags, data, stamp, false}
	}
	// checked is a segment that was alone, but the checksum is known from the attempt.
	checked := func(p piece) piece { p.valid = true; return p }
	only := func(seq, n uint32, options string) piece { return piece{seq, n, ack, "", options, false} }
	damaged := data(100, ack, full).frame()
	damaged.Parts[0][80] ^= 1
	for name, c := range map[string]struct {
		in   []piece
		raw  []netdev.Frame // instead
		want []piece
	}{
		"in order": {
			in:   []piece{data(0, ack, full), data(100, ack, full), data(200, ack|psh, "end")},
			want: []piece{{0, 7, ack | psh, full + full + "end", stamp, true}},
		},
		"across zero": {
			in:   []piece{data(0xffffffce, ack, full), data(50, ack, full)},
			want: []piece{{0xffffffce, 7, ack, full + full, stamp, true}},
		},
		"a push ends it": {
			in:   []piece{data(0, ack|psh, full), data(100, ack, full), data(200, ack, full)},
			want: []piece{checked(data(0, ack|psh, full)), {100, 7, ack, full + full, stamp, true}},
		},
		"a short one ends it": {
			in:   []piece{data(0, ack, full), data(100, ack, "short"), data(105, ack, full)},
			want: []piece{{0, 7, ack, full + "short", stamp, true}, data(105, ack, full)},
		},
		"a longer one does not follow": {
			in: []piece{data(0, ack, "short"), data(5, ack, full)}, want: []piece{checked(data(0, ack, "short")), data(5, ack, full)},
		},
		"a gap":   {in: []piece{data(0, ack, full), data(101, ack, full)}, want: []piece{checked(data(0, ack, full)), data(101, ack, full)}},
		"a FIN":   {in: []piece{data(0, ack, full), data(100, ack|fin, full)}, want: []piece{checked(data(0, ack, full)), data(100, ack|fin, full)}},
		"another": {in: []piece{data(0, ack, full), {100, 8, ack, full, stamp, false}}, want: []piece{checked(data(0, ack, full)), {100, 8, ack, full, stamp, false}}},
		"another time": {
			in: []piece{data(0, ack, full), {100, 7, ack, full, later, false}}, want: []piece{checked(data(0, ack, full)), {100, 7, ack, full, later, false}},
		},
		"damaged": {
			raw:  []netdev.Frame{data(0, ack, full).frame(), damaged, data(200, ack, full).frame(), data(300, ack, full).frame()},
			want: []piece{checked(data(0, ack, full)), {100, 7, ack, string(damaged.Parts[0][66:]), stamp, false}, {200, 7, ack, full + full, stamp, true}},
		},
		"acknowledgements":    {in: []piece{only(9, 10, stamp), only(9, 20, later), only(9, 30, later)}, want: []piece{only(9, 30, later)}},
		"the same twice":      {in: []piece{only(9, 10, stamp), only(9, 10, stamp)}, want: []piece{only(9, 10, stamp), only(9, 10, stamp)}},
		"an older time":       {in: []piece{only(9, 10, later), only(9, 20, stamp)}, want: []piece{only(9, 10, later), only(9, 20, stamp)}},
		"selective":           {in: []piece{only(9, 10, sack), only(9, 20, sack)}, want: []piece{only(9, 10, sack), only(9, 20, sack)}},
		"one before data":     {in: []piece{only(0, 7, stamp), data(0, ack, full)}, want: []piece{only(0, 7, stamp), data(0, ack, full)}},
		"a handshake's begin": {in: []piece{{0, 0, syn, "", "", false}, {0, 0, syn, "", "", false}}, want: []piece{{0, 0, syn, "", "", false}, {0, 0, syn, "", "", false}}},
	} {
		frames := c.raw
		for _, p := range c.in {
			frames = append(frames, p.frame())
		}
		got := receiveAll(frames)
		for i := range got {
			if got[i].data == "" {
				got[i].valid = false
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %d packets, want %d: %+v", name, len(got), len(c.want), got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: packet %d is %+v, want %+v", name, i, got[i], c.want[i])
			}
		}
	}
}

// Whatever comes, no byte is lost or moved, and a packet is no longer than IPv4 allows.
func TestMergingKeepsBytes(t *testing.T) {
	rng := mrand.New(mrand.NewPCG(3, 4))
	for range 300 {
		var frames []netdev.Frame
		want := map[uint32]string{}
		seq := rng.Uint32()
		for range 1 + rng.IntN(64) {
			if rng.IntN(8) == 0 {
				seq += rng.Uint32N(3)
			}
			b := make([]byte, []int{1400, 1400, 1400, 1000, 1}[rng.IntN(5)])
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			flags := byte(ack)
			if rng.IntN(6) == 0 {
				flags |= psh
			}
			frames = append(frames, piece{seq, 1, flags, string(b), "", false}.frame())
			want[seq] = string(b)
			seq += uint32(len(b))
		}
		have := 0
		for _, p := range receiveAll(frames) {
			if len(p.data)+ip4Size+tcpSize > 65535 {
				t.Fatal("a packet of", len(p.data))
			}
			for at := p.seq; len(p.data) > 0; have++ {
				w, ok := want[at]
				if !ok || len(w) > len(p.data) || p.data[:len(w)] != w {
					t.Fatal("bytes moved")
				}
				p.data = p.data[len(w):]
				at += uint32(len(w))
			}
		}
		if have != len(frames) {
			t.Fatalf("%d of %d segments", have, len(frames))
		}
	}
}
