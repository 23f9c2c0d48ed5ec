package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// client is a connection of ours to the guest, which sends again what is lost. It keeps
// what comes in order only, so the guest has to do the same.
type client struct {
	c             *cable
	address       [4]byte
	local, remote uint16
	una, next     uint32 // of ours: the first not acknowledged, and the next to send
	theirs        uint32 // the next of the guest's
	stamp         uint32 // the guest's clock
	open, ended   bool
	reset         bool
	pending       []byte // from una on
	got           []byte
	sends         func(frame []byte) // puts a packet on the cable
}

const (
	clientMSS    = 1400
	clientWindow = 16 * clientMSS
	again        = 150 * time.Millisecond
)

func newClient(c *cable, address [4]byte, local, remote uint16) *client {
	return &client{c: c, address: address, local: local, remote: remote, una: 7, next: 7,
		sends: func(p []byte) { c.write(typeIPv4, p) }}
}

func (x *client) send(flags byte, seq uint32, data []byte) {
	s := segment{flags: flags, seq: seq, ack: x.theirs, window: 60000, data: data}
	if flags&flagSYN != 0 {
		s.options = []byte{2, 4, clientMSS >> 8, clientMSS & 255}
		s.ack = 0
	}
	// Without timestamps a timeout that has grown shrinks only by a segment that was not
	// sent again, and a connection that loses much takes hours.
	s.setOption("ts", "", uint32(time.Now().UnixMilli()), x.stamp)
	x.sends(x.c.packet(x.address, 0, protoTCP, 16, s.bytes(x.local, x.remote)))
}

// take handles a segment of the guest's.
func (x *client) take(b []byte) {
	s, ok := parseSegment(b)
	if !ok {
		return
	}
	if stamp, _, ok := s.timestamps(); ok && (!x.open || int32(s.seq-x.theirs) <= 0 && int32(stamp-x.stamp) > 0) {
		x.stamp = stamp
	}
	if s.flags&flagRST != 0 {
		x.reset = true
		return
	}
	if s.flags&flagSYN != 0 {
		if !x.open && s.ack == x.una+1 {
			x.open, x.theirs = true, s.seq+1
			x.una++
			x.next = x.una
		}
		x.send(flagACK, x.next, nil)
		return
	}
	if n := int32(s.ack - x.una); s.flags&flagACK != 0 && n > 0 && int(n) <= len(x.pending) {
		x.pending = x.pending[n:]
		x.una = s.ack
		if int32(x.next-x.una) < 0 {
			x.next = x.una
		}
	}
	if len(s.data) == 0 && s.flags&flagFIN == 0 {
		return
	}
	if had := int(int32(x.theirs - s.seq)); had >= 0 && had <= len(s.data) {
		x.got = append(x.got, s.data[had:]...)
		x.theirs += uint32(len(s.data) - had)
		if s.flags&flagFIN != 0 {
			x.theirs++
			x.ended = true
		}
	}
	x.send(flagACK, x.next, nil)
}

// push sends what the window has room for.
func (x *client) push() {
	for x.open {
		at := int(x.next - x.una)
		n := min(len(x.pending)-at, clientMSS, clientWindow-at)
		if n <= 0 {
			return
		}
		x.send(flagACK|flagPSH, x.next, x.pending[at:at+n])
		x.next += uint32(n)
	}
}

// until plays the connection until something holds; what is not acknowledged is sent again. It
// gives up when the guest has sent nothing for so long.
func (x *client) until(limit time.Duration, holds func() bool) error {
	old := x.c.segments
	defer func() { x.c.segments = old }()
	x.c.segments = func(_ byte, to [4]byte, b []byte) {
		if to == x.address && be.Uint16(b[2:]) == x.local && be.Uint16(b) == x.remote {
			x.take(b)
		} else if old != nil {
			old(0, to, b)
		}
	}
	x.c.heard = time.Now()
	for last := time.Now(); !holds(); {
		if x.reset {
			return errors.New("the guest reset the connection")
		}
		if time.Since(x.c.heard) > limit {
			return fmt.Errorf("nothing for %v: open %v, %d bytes not acknowledged, %d received", limit, x.open, len(x.pending), len(x.got))
		}
		x.push()
		had := x.una + x.theirs
		err := x.c.receive(time.Now().Add(again))
		if err != nil && !errors.Is(err, errQuiet) {
			return err
		}
		if x.una+x.theirs != had {
			last = time.Now()
		} else if time.Since(last) >= again {
			last = time.Now()
			if x.next = x.una; !x.open {
				x.send(flagSYN, x.una, nil)
			}
		}
	}
	return nil
}

// dial opens it.
func (x *client) dial(limit time.Duration) error {
	x.send(flagSYN, x.una, nil)
	return x.until(limit, func() bool { return x.open })
}

// echo sends bytes and compares what comes back.
func (x *client) echo(limit time.Duration, data []byte) error {
	x.got = nil
	x.pending = append(x.pending, data...)
	if err := x.until(limit, func() bool { return len(x.got) >= len(data) }); err != nil {
		return err
	}
	if !bytes.Equal(x.got, data) {
		at := 0
		for at < len(data) && data[at] == x.got[at] {
			at++
		}
		return fmt.Errorf("%d bytes came for %d, different from byte %d on", len(x.got), len(data), at)
	}
	return nil
}

// hangUp ends it without waiting.
func (x *client) hangUp() { x.send(flagRST|flagACK, x.next, nil) }

// A spoiler is a switch between us and the guest that loses, doubles, swaps and damages
// packets of both directions, each with a probability.
type spoiler struct {
	r        *rand.Rand
	rate     float64
	held     [2][]byte
	pass     [2]func(p []byte)
	lost     int
	damaged  int
	doubled  int
	reversed int
}

// packet passes one on, or not.
func (s *spoiler) packet(direction int, p []byte) {
	pass := s.pass[direction]
	if s.r.Float64() < s.rate {
		s.lost++
		return
	}
	if s.r.Float64() < s.rate {
		s.damaged++
		p = bytes.Clone(p)
		p[s.r.IntN(len(p))] ^= byte(1 << s.r.IntN(8))
	}
	if held := s.held[direction]; held != nil {
		s.held[direction] = nil
		s.reversed++
		pass(p)
		pass(held)
		return
	}
	if s.r.Float64() < s.rate {
		s.held[direction] = bytes.Clone(p)
		return
	}
	pass(p)
	if s.r.Float64() < s.rate {
		s.doubled++
		pass(p)
	}
}
