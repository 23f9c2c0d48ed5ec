package netbench

import (
	"fmt"
	"time"
)

const (
	tcpSize = 20
	mss     = 1460
	// segment is what one holds beside the timestamps.
	segmentSize = 1448
	ourScale    = 7
	ourWindow   = 0xfff0 // × 128: 8 MiB

	flagFIN = 1
	flagSYN = 2
	flagRST = 4
	flagPSH = 8
	flagACK = 16
)

// Conn is a connection that we open. It has the options of Linux's: timestamps, window
// scaling, and selective acknowledgements, of which a cable without loss sends none. An
// acknowledgement goes with the next segment, or alone for the second full segment.
type Conn struct {
	p             *Peer
	local, remote uint16

	sent, acked uint32 // next number to be sent; acknowledged so far
	window      int    // of the guest
	scale       int
	next        uint32 // number expected of the guest
	echo        uint32 // the guest's last timestamp
	owed        int    // bytes without an acknowledgement

	Open, Finished bool
	Data           []byte // received and not yet taken
	Received       int    // bytes, taken or not
	Keep           bool   // Data is wanted
	Again          int    // segments that were sent again
	err            error
}

// Dial adds a SYN to what the next Flush sends.
func (p *Peer) Dial(port uint16) *Conn {
	c := &Conn{p: p, local: p.port(), remote: port, Keep: true}
	c.sent = uint32(c.local) * 65537
	c.acked = c.sent
	p.conns[c.local] = c
	c.send(flagSYN, nil)
	c.sent++
	return c
}

// send adds one segment.
func (c *Conn) send(flags byte, data []byte) {
	h := make([]byte, tcpSize, 40)
	be.PutUint16(h, c.local)
	be.PutUint16(h[2:], c.remote)
	be.PutUint32(h[4:], c.sent)
	be.PutUint32(h[8:], c.next)
	h[13] = flags
	be.PutUint16(h[14:], ourWindow)
	now := uint32(time.Since(c.p.began).Milliseconds()) + 1
	if flags&flagSYN != 0 {
		h = append(h, 2, 4, mss>>8, mss&255, 4, 2, 8, 10)
		h = be.AppendUint32(be.AppendUint32(h, now), 0)
		h = append(h, 1, 3, 3, ourScale)
	} else {
		h = append(h, 1, 1, 8, 10)
		h = be.AppendUint32(be.AppendUint32(h, now), c.echo)
	}
	h[12] = byte(len(h)/4) << 4
	c.p.ip(protoTCP, 16, h, data)
	if flags&flagACK != 0 {
		c.owed = 0
	}
}

// Room is how many bytes the guest takes now.
func (c *Conn) Room() int { return c.window - int(c.sent-c.acked) }

// Write adds data to what the next Flush sends.
func (c *Conn) Write(data []byte) {
	for len(data) > 0 {
		n := min(len(data), segmentSize)
		flags := byte(flagACK)
		if n == len(data) {
			flags |= flagPSH
		}
		c.send(flags, data[:n])
		c.sent += uint32(n)
		data = data[n:]
	}
}

// Close adds a FIN, which acknowledges all.
func (c *Conn) Close() {
	c.send(flagFIN|flagACK, nil)
	c.sent++
}

// Forget lets the port be used again.
func (c *Conn) Forget() { delete(c.p.conns, c.local) }

// Acknowledge adds a bare acknowledgement, if one is owed.
func (c *Conn) Acknowledge() {
	if c.owed > 0 {
		c.send(flagACK, nil)
	}
}

// segment takes one of the guest's.
func (c *Conn) segment(b []byte) {
	off := int(b[12]>>4) * 4
	if off < tcpSize || off > len(b) {
		c.err = fmt.Errorf("a segment with a header of %d bytes", off)
		return
	}
	flags, seq, data := b[13], be.Uint32(b[4:]), b[off:]
	if flags&flagRST != 0 {
		c.err = fmt.Errorf("the guest reset the connection from port %d to %d", c.local, c.remote)
		return
	}
	c.options(b[tcpSize:off])
	if flags&flagACK != 0 {
		if ack := be.Uint32(b[8:]); int32(ack-c.acked) > 0 {
			c.acked = ack
		}
		c.window = int(be.Uint16(b[14:]))
		if flags&flagSYN == 0 {
			c.window <<= c.scale
		}
	}
	if flags&flagSYN != 0 {
		if c.Open {
			c.again()
			return
		}
		c.next, c.Open = seq+1, true
		c.owed = 1
		return
	}
	if len(data) == 0 && flags&flagFIN == 0 {
		return
	}
	if seq != c.next {
		c.again()
		return
	}
	c.next += uint32(len(data))
	c.Received += len(data)
	if c.Keep {
		c.Data = append(c.Data, data...)
	}
	c.owed += len(data)
	if flags&flagFIN != 0 {
		c.next++
		c.owed++
		c.Finished = true
	}
	if c.owed >= 2*segmentSize {
		c.send(flagACK, nil)
	}
}

// again answers a segment that we had before.
func (c *Conn) again() {
	c.Again++
	c.send(flagACK, nil)
}

// options reads the timestamp and the window's scale.
func (c *Conn) options(o []byte) {
	for len(o) > 0 && o[0] != 0 {
		if o[0] == 1 {
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			return
		}
		switch {
		case o[0] == 8 && o[1] == 10:
			c.echo = be.Uint32(o[2:])
		case o[0] == 3 && o[1] == 3:
			c.scale = int(min(o[2], 14))
		}
		o = o[o[1]:]
	}
}
