package msg

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"hardtack/msg/internal/ring"
)

// receiver is the receiving owner's half of a Conn.
type receiver struct {
	rx     *ring.Rx
	shared Shared
	hands  Handing // or nil
	await  func(time.Duration)
	slow   bool            // something of the below keeps Next from the hot path:
	held   bool            // the message last handed out is still in bulk;
	heldH  uint64          // this is its header
	resume bool            // after a new bind, messages may come again
	in     [SlotBytes]byte // copy of a slot
	frag   []byte          // fragments so far
	bulk   *bulkRx
	caps   []Cap // of the message last handed out
	own    bool  // messages of this package's own are handed out: a Caller or ServeCalls receives
	spin   spinner
	naps   int

	ready, asleep func() bool // Park gets the second
	handle        func()      // serves what is there, before the receiver sleeps, or instead of waking it; or nil
	ctx           context.Context
}

// Caps returns what came with the message last received, in the order of its
// cap fields. They are the caller's to close.
func (c *Conn) Caps() []Cap {
	caps := c.recv.caps
	c.recv.caps = nil
	return caps
}

// Ready reports whether Next would return a message without waiting.
func (c *Conn) Ready() bool { return c.recv.rx.Ready() }

// next is Next for all but a whole message in a slot that is there.
func (c *Conn) next(ctx context.Context) (num uint16, body []byte, err error) {
	c.made("receiving on")
	needContext(ctx, "receiving")
	r := &c.recv
	c.release()
	for {
		if c.attn.Load()&(attnClosed|attnRecv) != 0 {
			if err := c.attendRecv(); err != nil {
				return 0, nil, err
			}
		}
		h, ok := r.rx.Peek()
		if !ok {
			if err := c.waitMessage(ctx); err != nil {
				return 0, nil, err
			}
			continue
		}
		again := false
		if r.resume {
			if again, err = c.again(h); err != nil {
				return 0, nil, c.Fail(err)
			}
			r.rx.Skip = again
		}
		var whole bool
		num, body, whole, err = c.take(ctx, h)
		switch {
		case err == errAgain:
		case err != nil:
			if _, peer := err.(*PeerError); peer {
				c.fail(err)
			}
			return 0, nil, err
		case !whole:
		case again:
			c.release()
			r.rx.Skip = false
		default:
			if c.attn.Load()&attnTrace != 0 {
				c.trace(false, num, body)
			}
			if num > MaxMessages && !r.own {
				if err := c.own(num, body); err != nil {
					return 0, nil, err
				}
				continue
			}
			return num, body, nil
		}
	}
}

// again reports whether the message with header h was delivered before the
// connection was bound again.
func (c *Conn) again(h uint64) (bool, error) {
	r := &c.recv
	old, ahead := ring.Behind(h, r.rx.Seq)
	if ahead {
		return false, &PeerError{"messages are missing after a new bind"}
	}
	r.resume = old
	r.slow = r.resume || r.held
	return old, nil
}

// release gives back the bulk memory of the message last handed out.
func (c *Conn) release() {
	r := &c.recv
	if r.held {
		r.held, r.slow = false, r.resume
		wake := r.rx.Consume(r.heldH)
		if r.rx.Flush(true) || wake {
			r.shared.Wake()
		}
	}
	if r.caps != nil {
		c.closeCaps()
	}
}

func (c *Conn) closeCaps() {
	for _, k := range c.recv.caps {
		k.Close()
	}
	c.recv.caps = nil
}

// take takes the slot with header h. whole says that a message is complete.
func (c *Conn) take(ctx context.Context, h uint64) (num uint16, body []byte, whole bool, err error) {
	r := &c.recv
	d, sound := ring.Split(h)
	if !sound {
		return 0, nil, false, &PeerError{fmt.Sprintf("slot header %#x", h)}
	}
	lim, own := ownLimit(d.Num)
	switch {
	case own && d.Flags&(ring.Caps|ring.Bulk) != 0:
		return 0, nil, false, &PeerError{fmt.Sprintf("flags %#x with %s", d.Flags, c.nameOf(d.Num))}
	case own:
	case int(d.Num) >= len(c.limits) || d.Num == 0:
		return 0, nil, false, &PeerError{fmt.Sprintf("message %d of %d", d.Num, len(c.limits)-1)}
	default:
		lim = c.limits[d.Num]
	}
	if (d.Flags&ring.Cont != 0) != (len(r.frag) > 0) || d.Flags&ring.Bulk != 0 && d.Flags&(ring.More|ring.Cont) != 0 {
		return 0, nil, false, &PeerError{fmt.Sprintf("flags %#x after %d bytes", d.Flags, len(r.frag))}
	}
	r.in = *r.rx.Body()
	body = r.in[:d.N]
	if d.Flags&ring.Bulk != 0 {
		if body, err = c.bulkBody(ctx, body); err != nil {
			return 0, nil, false, err
		}
	} else if d.Flags&(ring.More|ring.Cont) != 0 {
		if d.Flags&ring.More != 0 && d.N != SlotBytes || len(r.frag)+d.N >= BulkBytes {
			return 0, nil, false, &PeerError{fmt.Sprintf("fragment of %d bytes after %d", d.N, len(r.frag))}
		}
		if r.frag == nil {
			r.frag = make([]byte, 0, BulkBytes)
		}
		r.frag = append(r.frag, body...)
		if d.Flags&ring.More != 0 {
			if r.rx.Consume(h) {
				r.shared.Wake()
			}
			return 0, nil, false, nil
		}
		body, r.frag = r.frag, r.frag[:0]
	}
	if n := uint64(len(body)); n < uint64(lim.min) || n > uint64(lim.max) || n > uint64(c.opts.MaxBody) && !own {
		return 0, nil, false, &PeerError{fmt.Sprintf("%s of %d bytes, not %d to %d", c.nameOf(d.Num), n, lim.min, lim.max)}
	}
	if d.Flags&ring.Caps != 0 && !r.rx.Skip {
		if r.caps, err = c.recvCaps(ctx, c.iface.Message(d.Num)); err != nil {
			if d.Flags&ring.Cont != 0 { // the last slot will be looked at again
				r.frag = body[:len(body)-d.N]
			}
			return 0, nil, false, err
		}
	}
	if d.Flags&ring.Bulk != 0 {
		r.held, r.slow, r.heldH = true, true, h
	} else if r.rx.Consume(h) {
		r.shared.Wake()
	}
	return d.Num, body, true, nil
}

// bulkBody finds a body in bulk memory, of which the control goroutine may
// still have to hear.
func (c *Conn) bulkBody(ctx context.Context, ref []byte) ([]byte, error) {
	r := &c.recv
	if len(ref) < 4 {
		return nil, &PeerError{"a reference to bulk memory of the wrong length"}
	}
	if id := binary.LittleEndian.Uint32(ref); r.bulk == nil || r.bulk.id != id {
		b, err := c.awaitBulk(ctx, id)
		if err != nil {
			return nil, err
		}
		r.bulk = b
	}
	body, bad := r.bulk.find(ref)
	if bad != "" {
		return nil, &PeerError{bad}
	}
	if len(body) < BulkBytes {
		return nil, &PeerError{fmt.Sprintf("%d bytes in bulk memory", len(body))}
	}
	return body, nil
}
