package netbench

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
	peerMAC  = [6]byte{0x52, 0x55, 10, 0, 2, 2}
	guestMAC = [6]byte{0x52, 0x54, 0, 0x12, 0x34, 0x56} // QEMU's default
	peerIP   = [4]byte{10, 0, 2, 2}
	guestIP  = [4]byte{10, 0, 2, 15}
)

const (
	ethSize = 14
	ipSize  = 20
	udpSize = 8

	typeIPv4 = 0x0800
	typeARP  = 0x0806
	protoTCP = 6
	protoUDP = 17
)

var be = binary.BigEndian

// Peer is the machine at the other end. It has one goroutine: frames are sent by Flush
// and received while somebody waits.
type Peer struct {
	c     net.Conn
	r     *bufio.Reader
	out   []byte // frames that wait for Flush
	frame []byte
	next  uint16 // the last local port that was used
	ipID  uint16
	conns map[uint16]*Conn
	udp   map[uint16][][]byte // datagrams received, by local port
	began time.Time
}

// Accept waits for QEMU to connect to a listening socket.
func Accept(l *net.UnixListener, limit time.Duration) (*Peer, error) {
	if err := l.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return &Peer{
		c: c, r: bufio.NewReaderSize(c, 1<<20), frame: make([]byte, 1<<16), next: 20000,
		conns: map[uint16]*Conn{}, udp: map[uint16][][]byte{}, began: time.Now(),
	}, nil
}

// Close pulls the cable.
func (p *Peer) Close() { p.c.Close() }

// port is a local port that was not used before, or long ago.
func (p *Peer) port() uint16 {
	for {
		if p.next++; p.next >= 60000 {
			p.next = 20001
		}
		if p.conns[p.next] == nil {
			return p.next
		}
	}
}

// Flush sends all frames at once: QEMU passes them on without a pause.
func (p *Peer) Flush() error {
	_, err := p.c.Write(p.out)
	p.out = p.out[:0]
	return err
}

// begin appends a frame with a length yet to be known; end fills it in.
func (p *Peer) begin(kind uint16) (at int) {
	at = len(p.out)
	p.out = append(p.out, 0, 0, 0, 0)
	p.out = append(append(p.out, guestMAC[:]...), peerMAC[:]...)
	p.out = be.AppendUint16(p.out, kind)
	return at
}

func (p *Peer) end(at int) { be.PutUint32(p.out[at:], uint32(len(p.out)-at-4)) }

// ip appends an IPv4 packet with the transport layer's header and data, whose checksum
// is at an offset.
func (p *Peer) ip(proto byte, checksumAt int, header, data []byte) {
	at := p.begin(typeIPv4)
	p.ipID++
	h := len(p.out)
	p.out = append(p.out, 0x45, 0)
	p.out = be.AppendUint16(p.out, uint16(ipSize+len(header)+len(data)))
	p.out = be.AppendUint16(p.out, p.ipID)
	p.out = append(p.out, 0x40, 0, 64, proto, 0, 0)
	p.out = append(append(p.out, peerIP[:]...), guestIP[:]...)
	be.PutUint16(p.out[h+10:], ^sum(p.out[h:], 0))
	t := len(p.out)
	p.out = append(append(p.out, header...), data...)
	pseudo := uint32(proto) + uint32(len(p.out)-t) + uint32(sum(peerIP[:], 0)) + uint32(sum(guestIP[:], 0))
	be.PutUint16(p.out[t+checksumAt:], ^sum(p.out[t:], pseudo))
	p.end(at)
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

// Send adds a datagram to what the next Flush sends.
func (p *Peer) Send(from, to uint16, data []byte) {
	var h [udpSize]byte
	be.PutUint16(h[:], from)
	be.PutUint16(h[2:], to)
	be.PutUint16(h[4:], uint16(udpSize+len(data)))
	p.ip(protoUDP, 6, h[:], data)
}

// errSlow says that the guest did not send what it should.
var errSlow = errors.New("the guest does not answer")

// Wait flushes and receives until a condition holds.
func (p *Peer) Wait(limit time.Duration, until func() bool) error {
	deadline := time.Now().Add(limit)
	for !until() {
		if p.r.Buffered() == 0 {
			if err := p.Flush(); err != nil {
				return err
			}
		}
		if err := p.receive(deadline); errors.Is(err, os.ErrDeadlineExceeded) {
			return errSlow
		} else if err != nil {
			return err
		}
		for _, c := range p.conns {
			if c.err != nil {
				return c.err
			}
		}
	}
	return p.Flush()
}

// receive takes one frame.
func (p *Peer) receive(deadline time.Time) error {
	p.c.SetReadDeadline(deadline)
	var size [4]byte
	if _, err := io.ReadFull(p.r, size[:]); err != nil {
		return err
	}
	n := int(be.Uint32(size[:]))
	if n > len(p.frame) {
		return fmt.Errorf("a frame of %d bytes", n)
	}
	f := p.frame[:n]
	if _, err := io.ReadFull(p.r, f); err != nil {
		return err
	}
	if n < ethSize {
		return nil
	}
	switch body := f[ethSize:]; be.Uint16(f[12:]) {
	case typeARP:
		p.arp(body)
	case typeIPv4:
		p.packet(body)
	}
	return nil
}

// arp answers who asks for us.
func (p *Peer) arp(b []byte) {
	if len(b) < 28 || be.Uint16(b[6:]) != 1 || [4]byte(b[24:]) != peerIP {
		return
	}
	at := p.begin(typeARP)
	p.out = append(p.out, 0, 1, 8, 0, 6, 4, 0, 2)
	p.out = append(append(p.out, peerMAC[:]...), peerIP[:]...)
	p.out = append(p.out, b[8:18]...)
	p.end(at)
}

// packet takes an IPv4 packet.
func (p *Peer) packet(b []byte) {
	if len(b) < ipSize || b[0] != 0x45 || [4]byte(b[16:]) != peerIP {
		return
	}
	total := int(be.Uint16(b[2:]))
	if total < ipSize || total > len(b) {
		return
	}
	proto, b := b[9], b[ipSize:total]
	switch {
	case proto == protoUDP && len(b) >= udpSize:
		port := be.Uint16(b[2:])
		if list, ok := p.udp[port]; ok {
			p.udp[port] = append(list, append([]byte(nil), b[udpSize:]...))
		}
	case proto == protoTCP && len(b) >= tcpSize:
		if c := p.conns[be.Uint16(b[2:])]; c != nil && be.Uint16(b) == c.remote {
			c.segment(b)
		}
	}
}

// Exchange sends a datagram and returns the first answer.
func (p *Peer) Exchange(from, to uint16, data []byte, limit time.Duration) ([]byte, error) {
	p.udp[from] = p.udp[from][:0]
	p.Send(from, to, data)
	if err := p.Wait(limit, func() bool { return len(p.udp[from]) > 0 }); err != nil {
		return nil, err
	}
	return p.udp[from][0], nil
}
