package msg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"hardtack/msg/internal/ring"
)

// Rebind moves the connection to a new link, made by dialling addr, which may
// belong to another driver; "" is where it was. Messages under way arrive
// exactly once and in order. The end that accepted asks its peer to dial, and
// does not wait for that.
func (c *Conn) Rebind(ctx context.Context, addr string) error {
	c.made("Rebind of")
	needContext(ctx, "Rebind")
	return c.oneBind(ctx, func() error { return c.rebindTo(ctx, addr, nil) })
}

// oneBind serializes binds.
func (c *Conn) oneBind(ctx context.Context, bind func() error) error {
	select {
	case c.binding <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.binding }()
	return bind()
}

// rebindTo is Rebind, one at a time. With a link given it does nothing if
// that is not the connection's any more.
func (c *Conn) rebindTo(ctx context.Context, addr string, from Link) error {
	c.mu.Lock()
	link, dialled, err := c.cur.link, c.dialled, c.err
	if from != nil && from != link {
		c.mu.Unlock()
		return nil
	}
	if addr == "" {
		addr = c.addr
	}
	tok := c.token
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case addr == "":
		return errors.New("msg: this connection cannot be bound again: it has no address")
	case !dialled:
		return link.Send(ctx, append([]byte{frameMove}, addr...), nil)
	}
	next, err := dialLink(ctx, addr, c.rings())
	if err == nil {
		if err = c.opts.allowPeer(next, 0); err != nil { // before it hears the token
			next.Close()
		}
	}
	if err != nil {
		return err
	}
	c.startMove()
	defer c.endMove()
	mine := c.greeting(frameHello, tok, next)
	theirs, err := greet(ctx, next, &mine)
	if err != nil {
		next.Close()
		return err
	}
	b, err := bind(next, theirs)
	if err != nil {
		next.Close()
		return err
	}
	if err := c.rebind(b, theirs.delivered); err != nil {
		return err
	}
	c.mu.Lock()
	c.addr = addr
	c.mu.Unlock()
	return nil
}

// rings is how large rings must be to take over what the present ones hold.
func (c *Conn) rings() Rings {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx, _ := c.cur.shared.Pages()
	r := c.opts.rings(c.iface)
	r.Pages = max(r.Pages, len(tx)/ring.PageBytes)
	return r
}

// startMove says that a bind is being made: when the old link ends, that need
// not be the end of the connection. endMove says that it is made, or failed.
func (c *Conn) startMove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moving == 0 {
		c.settled = make(chan struct{})
	}
	c.moving++
}

func (c *Conn) endMove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moving--; c.moving == 0 {
		close(c.settled)
	}
}

// left reports whether the connection has moved away from b, after waiting for
// a move that is being made.
func (c *Conn) left(b *binding) bool {
	for {
		c.mu.Lock()
		left, moving, settled := c.cur != b, c.moving, c.settled
		c.mu.Unlock()
		if left || moving == 0 {
			return left
		}
		<-settled
	}
}

// rebind moves the session to a new link. peerHas is what the peer had been
// delivered when it greeted.
func (c *Conn) rebind(b *binding, peerHas uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		b.link.Close()
		return c.err
	}
	old := c.cur
	// From here on, an owner that publishes into its ring checks this next.
	c.attn.Or(attnSend | attnRecv)
	old.shared.Barrier()
	b.tx.SetSeq(peerHas)
	// An owner that has not moved to the old binding yet may have one more message in its
	// own ring, which it will copy itself.
	b.from, old.from, b.before = append(old.from, old.tx), nil, old.ended
	b.pools = append(old.pools, c.pool, old.bulk.pool())
	if err := c.fill(b); err != nil && err != errFull {
		b.link.Close()
		return err
	} else if err != nil {
		go c.fillLater(b)
	}
	b.tx.Refill()
	c.cur, c.pending = b, b
	c.serve(b)
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
	// The old link ends when both ends have said so, because descriptors may be under
	// way.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if old.car != nil {
		old.car.stop()
	}
	if c.dialled && !b.bound {
		b.link.Send(ctx, []byte{frameBound}, nil) // if that fails, control will know
	}
	if err := old.link.Send(ctx, []byte{frameLeft}, nil); err != nil && !errors.Is(err, io.EOF) {
		old.link.Close()
	}
	c.inbox.mu.Lock()
	c.inbox.tell()
	c.inbox.mu.Unlock()
	old.shared.Kick()
	c.send.shared.Kick()
	c.recv.shared.Kick()
	c.recv.rx.Rouse()
	b.shared.Wake()
	return nil
}

// awaitBind waits, after a link was lost, for the next bind of the owner who
// looks for wanted.
func (c *Conn) awaitBind(ctx context.Context, wanted uint32) error {
	c.mu.Lock()
	change := c.nextBind()
	now := c.attn.Load()&(attnClosed|wanted) != 0
	c.mu.Unlock()
	if now {
		return nil
	}
	select {
	case <-change:
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// nextBind is closed at the next bind. Needs mu.
func (c *Conn) nextBind() <-chan struct{} {
	if c.change == nil {
		c.change = make(chan struct{})
	}
	return c.change
}

// attendSend does what is requested of the sending owner.
func (c *Conn) attendSend(ctx context.Context) error {
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		err := c.trySend()
		if err != errFull {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(wait)
	}
}

// resendAfter is attendSend after a message was sent. A peer that has bound the
// connection again and then takes nothing may hold the sender for as long as one that
// has lost its link, no longer.
func (c *Conn) resendAfter() {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
	defer cancel()
	if err := c.attendSend(ctx); err != nil && err == ctx.Err() {
		c.fail(fmt.Errorf("%w: it takes nothing on the link that it has made", ErrPeerGone))
	}
}

// trySend takes up a pending binding, if there is room for what this owner has
// not sent yet.
func (c *Conn) trySend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	b := c.pending
	if b == nil || b.sending {
		return nil
	}
	err := c.fill(b)
	if err == nil {
		err = c.resend(c.send.tx, b)
	}
	if err != nil {
		return err
	}
	b.sending, b.pools = true, nil
	c.attn.And(^uint32(attnSend))
	c.takeSend(b)
	if b.bulk.mem != nil {
		c.pool = b.bulk.pool()
	}
	c.settle(b)
	return nil
}

// attendRecv does what is requested of the receiving owner. Messages that were received
// before the connection closed are handed out first, unless it was closed here.
func (c *Conn) attendRecv() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.nextRecv(); b != nil && !c.local {
		c.takeRecv(b)
		c.recv.resume, c.recv.slow = true, true
		if b == c.pending {
			b.recving = true
			c.attn.And(^uint32(attnRecv))
			c.settle(b)
		}
	}
	var wrong *PeerError
	if c.err == nil || !c.local && c.recv.rx.Ready() && !errors.As(c.err, &wrong) {
		return nil
	}
	return c.err
}

// unread reports whether a connection that was closed, and that nobody has received
// on, holds what attendRecv lets an owner have.
func (c *Conn) unread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	rx := c.recv.rx
	if b := c.nextRecv(); b != nil {
		rx = b.rx
	}
	var wrong *PeerError
	return !c.local && rx.Ready() && !errors.As(c.err, &wrong)
}

// nextRecv is the binding that the receiving owner is to take up, or nil. A peer
// that closed without making a bind that it had begun never wrote into the new
// ring: then that is the one before, once more. Needs mu.
func (c *Conn) nextRecv() *binding {
	switch b := c.pending; {
	case c.final != nil && c.final.rx != c.recv.rx:
		return c.final
	case c.final == nil && b != nil && !b.recving:
		return b
	}
	return nil
}

// settle forgets a pending binding that both owners have taken up.
func (c *Conn) settle(b *binding) {
	if b.sending && b.recving {
		c.pending = nil
	}
}

// lost is told by the control goroutine that a link broke that may come back.
func (c *Conn) lost(link Link, cause error) {
	c.mu.Lock()
	if c.err != nil || c.cur.link != link {
		c.mu.Unlock()
		return
	}
	change, dialled, addr := c.nextBind(), c.dialled, c.addr
	c.mu.Unlock()
	grace, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
	defer cancel()
	if !dialled {
		select {
		case <-change:
		case <-c.done:
		case <-grace.Done():
			c.fail(fmt.Errorf("%w: %w", ErrPeerGone, cause))
		}
		return
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := c.oneBind(grace, func() error { return c.rebindTo(grace, addr, link) })
		if err == nil || c.closed() != nil {
			return
		}
		select {
		case <-c.done:
			return
		case <-grace.Done():
			c.fail(fmt.Errorf("%w: %w; dialling again: %w", ErrPeerGone, cause, err))
			return
		case <-time.After(wait):
		}
	}
}

// moveTo handles the peer's request to be reached elsewhere. Of requests that come while
// one is handled, only the last counts.
func (c *Conn) moveTo(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dialled {
		return
	}
	c.moveAddr, c.moveAsked = addr, true
	if !c.mover {
		c.mover = true
		go c.move()
	}
}

func (c *Conn) move() {
	for {
		c.mu.Lock()
		addr := c.moveAddr
		if !c.moveAsked || c.err != nil {
			c.mover = false
			c.mu.Unlock()
			return
		}
		c.moveAsked = false
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
		c.Rebind(ctx, addr) // if it cannot be done, the old link stays
		cancel()
	}
}
