package msg

import (
	"context"
	"fmt"

	"hardtack/msg/internal/barrier"
	"hardtack/msg/internal/ring"
)

// sender is the sending owner's half of a Conn.
type sender struct {
	tx     *ring.Tx
	shared Shared
	hands  Handing
	bound  *binding
	locked bool   // sendMu is held, from Begin to Commit
	n      int    // length of the message begun by BeginLong
	long   []byte // where it is encoded, if it is neither in a slot nor in bulk
	inBulk bool
	bulk   bulkTx
	spin   spinner

	// What these, of which Park gets the second, wait for.
	ready, asleep func() bool
	ctx           context.Context
	slots         int // as many free slots,
	bytes         int // and as many free bytes in bulk

	out      []filesOut // messages with descriptors, the oldest first
	filesOut int        // and all their descriptors
}

// filesOut is a message whose descriptors the peer may not have taken yet.
type filesOut struct {
	slot  uint32 // slots sent up to its end
	files int
}

// maxFilesOut is how many descriptors may be under way to the peer, which has them
// open until it receives their messages. A connection that is bound again at the same
// moment may have a message more.
const maxFilesOut = 64

// Share makes sending safe for any number of goroutines, by a lock that is
// taken from Begin to Commit. It must be called before the first of them sends.
func (c *Conn) Share() { c.attn.Or(attnShared) }

// begin is Begin when there is no room or somebody wants attention.
func (c *Conn) begin(ctx context.Context) (*Slot, error) {
	if err := c.room(ctx, 1, 0); err != nil {
		return nil, err
	}
	return c.send.tx.Body(), nil
}

// room takes the lock if there is one and waits for free slots and bytes of
// bulk. Without an error the lock stays taken.
func (c *Conn) room(ctx context.Context, slots, bytes int) error {
	c.made("sending on")
	needContext(ctx, "sending")
	s := &c.send
	if c.attn.Load()&attnShared != 0 {
		if err := c.sendMu.lock(ctx); err != nil {
			return err
		}
		s.locked = true
	}
	for {
		if c.attn.Load()&(attnClosed|attnSend) != 0 {
			if err := c.attendSend(ctx); err != nil {
				c.unlock()
				return err
			}
		}
		if s.tx.Room >= slots && (bytes == 0 || s.bulk.fits(s.tx, bytes)) {
			return nil
		}
		if _, err := s.tx.Refill(); err != nil {
			c.fail(&PeerError{err.Error()})
			continue
		}
		if bytes > len(s.bulk.mem) && s.bulk.empty(s.tx) {
			err := c.growBulk(ctx, bytes)
			if err == errLink {
				err = c.awaitBind(ctx, attnSend)
			}
			if err != nil {
				c.unlock()
				return err
			}
			continue
		}
		if s.tx.Room >= slots && (bytes == 0 || s.bulk.fits(s.tx, bytes)) {
			return nil
		}
		if err := c.waitRoom(ctx, slots, bytes); err != nil {
			c.unlock()
			return err
		}
	}
}

// roomNow reports whether nobody sends and so many slots are free.
func (c *Conn) roomNow(slots int) bool {
	if !c.sendMu.state.CompareAndSwap(sendFree, sendHeld) {
		return false
	}
	defer c.sendMu.unlock()
	if c.send.tx.Room < slots {
		c.send.tx.Refill() // an error is told by who sends next
	}
	return c.send.tx.Room >= slots
}

func (c *Conn) unlock() {
	if c.send.locked {
		c.send.locked = false
		c.sendMu.unlock()
	}
}

// committed is the rest of Commit when the receiver sleeps or somebody wants
// attention.
func (c *Conn) committed(num uint16, n int) {
	s := &c.send
	attn := c.attn.Load()
	if attn == attnMade|attnFence {
		if barrier.Self(); !s.tx.Parked() {
			return
		}
	}
	if attn&attnTrace != 0 {
		c.trace(true, num, s.tx.Last()[:n])
	}
	c.finish(s.tx.Parked())
}

// finish ends the sending of a message.
func (c *Conn) finish(wake bool) {
	if c.attn.Load()&attnFence != 0 {
		barrier.Self()
		wake = c.send.tx.Parked()
	}
	if wake {
		wakePeer(c.send.tx, c.send.shared, c.send.hands)
	}
	if c.attn.Load()&attnSend != 0 {
		c.resendAfter() // an error is told by the next Begin
	}
	c.unlock()
}

// BeginLong waits for room for a body of n bytes, whatever its length, and
// returns where to encode it. All n bytes must be written before CommitLong.
func (c *Conn) BeginLong(ctx context.Context, n int) ([]byte, error) {
	s := &c.send
	if n <= SlotBytes {
		slot, err := c.Begin(ctx)
		if err != nil {
			return nil, err
		}
		s.n = n
		return slot[:n], nil
	}
	c.made("sending on")
	if n > c.opts.MaxBody {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, n, c.opts.MaxBody)
	}
	if n < BulkBytes {
		if slots := (n + SlotBytes - 1) / SlotBytes; c.attn.Load() != attnMade || s.tx.Room < slots {
			if err := c.room(ctx, slots, 0); err != nil {
				return nil, err
			}
		}
		if s.long == nil {
			s.long = make([]byte, BulkBytes)
		}
		s.n = n
		return s.long[:n], nil
	}
	if c.attn.Load() != attnMade || s.tx.Room < 1 || !s.bulk.fits(s.tx, n) {
		if err := c.room(ctx, 1, n); err != nil {
			return nil, err
		}
	}
	s.n, s.inBulk = n, true
	return s.bulk.at(n), nil
}

// Abandon gives up the message that Begin or BeginLong began.
func (c *Conn) Abandon() {
	c.send.inBulk = false
	c.unlock()
}

// CommitLong sends what BeginLong made room for: message num, with caps in the
// order of its cap fields. Without caps it does not fail. Files stay the
// caller's; ends belong to the peer once the message was sent.
func (c *Conn) CommitLong(ctx context.Context, num uint16, caps ...Cap) error {
	s := &c.send
	flags, files := uint8(0), 0
	if len(caps) > 0 {
		var err error
		if files, err = c.sendCaps(ctx, caps); err != nil {
			c.Abandon()
			return err
		}
		flags = ring.Caps
	}
	n, wake := s.n, false
	switch {
	case s.inBulk:
		s.inBulk = false
		if c.attn.Load()&attnTrace != 0 {
			c.trace(true, num, s.bulk.at(n))
		}
		s.bulk.put(s.tx, s.tx.Body(), n)
		wake = s.tx.Publish(num, flags|ring.Bulk, bulkRefBytes)
	case n <= SlotBytes:
		wake = s.tx.Publish(num, flags, n)
		if c.attn.Load()&attnTrace != 0 {
			c.trace(true, num, s.tx.Last()[:n])
		}
	default:
		if c.attn.Load()&attnTrace != 0 {
			c.trace(true, num, s.long[:n])
		}
		for at := 0; at < n; {
			k := copy(s.tx.Body()[:], s.long[at:n])
			f := flags
			if at > 0 {
				f |= ring.Cont
			}
			at += k
			if at < n {
				f |= ring.More
			}
			wake = s.tx.Publish(num, f, k)
		}
	}
	if files > 0 {
		s.out = append(s.out, filesOut{s.tx.Sent(), files})
		s.filesOut += files
	}
	if wake || c.attn.Load() != attnMade {
		c.finish(wake)
	}
	return nil
}

// awaitFiles waits until n more descriptors may be sent: a message's count until its
// last slot is acknowledged. It does not wait while the connection is to be bound again,
// closed or traced, since a message that has been begun comes first.
func (c *Conn) awaitFiles(ctx context.Context, n int) error {
	s := &c.send
	for len(s.out) > 0 && s.filesOut+n > maxFilesOut {
		if _, err := s.tx.Refill(); err != nil {
			return nil // the next Begin says what is wrong
		}
		acked := s.tx.Acked()
		for len(s.out) > 0 && int32(acked-s.out[0].slot) >= 0 {
			s.filesOut -= s.out[0].files
			s.out = s.out[1:]
		}
		if len(s.out) == 0 || s.filesOut+n <= maxFilesOut || c.attn.Load()&(attnClosed|attnSend) != 0 {
			return nil
		}
		if err := c.waitRoom(ctx, s.tx.Slots()-int(s.tx.Sent()-s.out[0].slot), 0); err != nil {
			return err
		}
	}
	return nil
}

// growBulk replaces the bulk pool, which holds nothing, by one for messages of
// n bytes.
func (c *Conn) growBulk(ctx context.Context, n int) error {
	s := &c.send
	c.mu.Lock()
	c.lastPool++
	id := c.lastPool
	c.mu.Unlock()
	r, err := s.bound.announce(ctx, id, poolSize(n, c.opts.MaxBody))
	if err != nil {
		return err
	}
	s.bulk.replace(id, r)
	c.mu.Lock()
	c.pool = s.bulk.pool()
	c.mu.Unlock()
	return nil
}

// sendCaps sends what comes with the next message, and says how many descriptors
// that is.
func (c *Conn) sendCaps(ctx context.Context, caps []Cap) (n int, err error) {
	s := &c.send
	if !s.bound.link.CanPass() {
		return 0, ErrNoCaps
	}
	frame, files, err := capsFrame(s.tx.Seq(), caps)
	if err != nil {
		return 0, err
	}
	if err := c.awaitFiles(ctx, len(files)); err != nil {
		return 0, err
	}
	for link := Link(nil); ; { // any link of the session will do
		c.mu.Lock()
		next := c.cur.link
		c.mu.Unlock()
		if next == link {
			return 0, fmt.Errorf("%w: %w", ErrPeerGone, err)
		}
		link = next
		if err = link.Send(ctx, frame, files); err == nil {
			break
		}
		if cerr := ctx.Err(); cerr != nil {
			return 0, cerr
		}
	}
	for _, k := range caps {
		if k.End != nil {
			k.End.sent()
		}
	}
	return len(files), nil
}
