package msg

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

// closedOn is told that the peer closed on the link of b.
func (c *Conn) closedOn(b *binding) {
	c.mu.Lock()
	if c.err == nil {
		c.final = b
	}
	c.mu.Unlock()
	c.fail(ErrPeerClosed)
}

// fail closes the connection with err, once.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	if c.local && errors.Is(err, ErrPeerGone) {
		err = ErrClosed // it went because this end said that it closes
	}
	c.err = err
	c.attn.Or(attnClosed)
	b, gone, stop := c.cur, c.gone, c.stop
	c.recv.rx.Rouse()
	c.mu.Unlock()
	close(c.done)
	leave(c)
	b.shared.Kick()
	if b.car != nil {
		b.car.stop()
	}
	if !errors.Is(err, ErrPeerClosed) { // then the link ends by itself, drained
		b.link.Close()
		if stop != nil { // what the peer sent before it closed is still served
			stop(err)
		}
	}
	if gone != nil {
		gone()
	}
}

// Fail closes the connection because of err, which a decoder returned.
func (c *Conn) Fail(err error) error {
	c.fail(err)
	return err
}

// closed is why the connection is closed, or nil.
func (c *Conn) closed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Err is why the connection is closed, or nil if it is not.
func (c *Conn) Err() error { return c.closed() }

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close closes this end. The peer still receives everything that was sent
// before; what it sent and was not received here is lost. It may be called by
// anybody and more than once. Mapped memory is returned by the collector, once
// neither owner uses the connection any more.
func (c *Conn) Close() error {
	c.made("Close of")
	c.mu.Lock()
	if c.err != nil {
		c.local = true
		link := c.cur.link
		c.mu.Unlock()
		link.Close()
		c.inbox.drop()
		return nil
	}
	c.local = true
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	bye := func() error { // on a link on which the peer finds what was sent
		c.mu.Lock()
		b := c.cur
		c.mu.Unlock()
		if b.car != nil {
			b.car.drain(c.opts.Grace)
		}
		b.link.Send(ctx, []byte{frameBye}, nil) // a peer that is gone needs none
		c.fail(ErrClosed)
		return nil
	}
	if c.oneBind(ctx, bye) != nil {
		bye()
	}
	c.inbox.drop()
	closedMapping()
	return nil
}

// closedMapping has the collector run when many connections were closed since
// it last did: it does not know how much mapped memory hangs on them.
func closedMapping() {
	if n := mappings.Add(1); n%256 == 0 {
		go runtime.GC()
	}
}

var mappings atomic.Int64
