package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The two ends of the cable.
var (
	ourMAC   = [6]byte{0x52, 0x55, 10, 0, 2, 2}
	guestMAC = [6]byte{0x52, 0x54, 0, 0x12, 0x34, 0x56} // QEMU's default
	ourIP    = [4]byte{10, 0, 2, 2}
	guestIP  = [4]byte{10, 0, 2, 15}
	be       = binary.BigEndian
)

const (
	ethSize = 14
	ipSize  = 20

	typeIPv4  = 0x0800
	typeARP   = 0x0806
	protoICMP = 1
	protoTCP  = 6
	protoUDP  = 17

	controlPort = 7000
	echoPort    = 7001
	ourControl  = 6999
)

var errQuiet = errors.New("nothing came")

// cable is our end: QEMU's stream of frames, each after its length.
type cable struct {
	c     net.Conn
	r     *bufio.Reader
	ipID  uint16
	pings uint16

	segments func(tos byte, from [4]byte, b []byte) // takes the guest's segments
	spoil    func(p []byte)                         // takes them before, if it is there
	answers  []string                               // of the agent
	ponged   uint16
	heard    time.Time // when the guest's last segment came
}

// write sends a frame.
func (c *cable) write(kind uint16, body []byte) {
	f := be.AppendUint32(nil, uint32(ethSize+len(body)))
	f = append(append(f, guestMAC[:]...), ourMAC[:]...)
	c.c.Write(append(be.AppendUint16(f, kind), body...)) // a cable that was pulled shows when we read
}

// packet is an IPv4 packet; what it holds has its checksum at an offset, 0 for none.
func (c *cable) packet(from [4]byte, tos, proto byte, checksumAt int, body []byte) []byte {
	c.ipID++
	p := []byte{0x45, tos}
	p = be.AppendUint16(p, uint16(ipSize+len(body)))
	p = be.AppendUint16(p, c.ipID)
	p = append(p, 0x40, 0, 64, proto, 0, 0)
	p = append(append(p, from[:]...), guestIP[:]...)
	be.PutUint16(p[10:], ^sum(p, 0))
	p = append(p, body...)
	if checksumAt > 0 {
		be.PutUint16(p[ipSize+checksumAt:], 0)
		be.PutUint16(p[ipSize+checksumAt:], ^checksum(p, proto))
	}
	return p
}

// checksum is the sum of a packet's payload with its pseudo header.
func checksum(p []byte, proto byte) uint16 {
	body := p[ipSize:]
	if proto == protoICMP {
		return sum(body, 0)
	}
	return sum(body, uint32(proto)+uint32(len(body))+uint32(sum(p[12:20], 0)))
}

// sum is the Internet checksum's.
func sum(b []byte, start uint32) uint16 {
	s := uint64(start)
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(be.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// receive takes one frame.
func (c *cable) receive(deadline time.Time) error {
	c.c.SetReadDeadline(deadline)
	head, err := c.r.Peek(4)
	if err == nil {
		n := 4 + int(be.Uint32(head))
		var f []byte
		if f, err = c.r.Peek(n); err == nil {
			f = append([]byte(nil), f[4:]...)
			c.r.Discard(n)
			c.frame(f)
			return nil
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errQuiet
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the machine pulled the cable")
	}
	return err
}

func (c *cable) frame(f []byte) {
	if len(f) < ethSize {
		return
	}
	b := f[ethSize:]
	switch be.Uint16(f[12:]) {
	case typeARP:
		if len(b) >= 28 && be.Uint16(b[6:]) == 1 && [4]byte(b[24:]) != guestIP && b[24] == 10 {
			a := append([]byte{0, 1, 8, 0, 6, 4, 0, 2}, ourMAC[:]...)
			c.write(typeARP, append(append(a, b[24:28]...), b[8:18]...))
		}
	case typeIPv4:
		if total := 0; len(b) >= ipSize && b[0] == 0x45 {
			if total = int(be.Uint16(b[2:])); total >= ipSize && total <= len(b) {
				c.ip(b[:total])
			}
		}
	}
}

func (c *cable) ip(p []byte) {
	b := p[ipSize:]
	switch proto := p[9]; {
	case proto == protoICMP && len(b) >= 8 && b[0] == 0:
		c.ponged = be.Uint16(b[6:])
	case proto == protoUDP && len(b) >= 8 && be.Uint16(b[2:]) == ourControl:
		c.answers = append(c.answers, string(b[8:]))
	case proto == protoTCP && len(b) >= tcpSize && c.segments != nil:
		if checksum(p, protoTCP) != 0xffff {
			panic(fmt.Sprintf("the guest's checksum is wrong: % x", p))
		}
		c.heard = time.Now()
		if c.spoil != nil {
			c.spoil(p)
		} else {
			c.deliver(p)
		}
	}
}

// deliver hands a TCP packet on if nobody damaged it.
func (c *cable) deliver(p []byte) {
	if sum(p[:ipSize], 0) == 0xffff && checksum(p, protoTCP) == 0xffff {
		c.segments(p[1], [4]byte(p[16:20]), p[ipSize:])
	}
}

// until receives until something holds.
func (c *cable) until(limit time.Duration, holds func() bool) error {
	for deadline := time.Now().Add(limit); !holds(); {
		if err := c.receive(deadline); err != nil {
			return err
		}
	}
	return nil
}

// pingAgain is when a ping is sent again: where SYN-ACKs that are sent again fill the ring of a
// slow machine, an answer is dropped.
const pingAgain = 5 * time.Second

// fence returns when the guest has taken all that was sent before.
func (c *cable) fence(limit time.Duration) (err error) {
	for ; limit > 0; limit -= pingAgain {
		c.pings++
		c.write(typeIPv4, c.packet(ourIP, 0, protoICMP, 2, []byte{8, 0, 0, 0, 't', 't', byte(c.pings >> 8), byte(c.pings)}))
		if err = c.until(pingAgain, func() bool { return c.ponged == c.pings }); err == nil {
			break
		}
	}
	return err
}

// ask sends the agent a line and returns its answer.
func (c *cable) ask(limit time.Duration, line string) (string, error) {
	c.answers = nil
	u := be.AppendUint16(nil, ourControl)
	u = be.AppendUint16(u, controlPort)
	u = be.AppendUint16(u, uint16(8+len(line)))
	u = append(append(u, 0, 0), line...)
	c.write(typeIPv4, c.packet(ourIP, 0, protoUDP, 6, u))
	if err := c.until(limit, func() bool { return len(c.answers) > 0 }); err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	return c.answers[0], nil
}
