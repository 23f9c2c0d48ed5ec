package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"hardtack/msg/internal/ring"
)

// errFull: what is unacknowledged does not fit into a new ring at once.
var errFull = errors.New("msg: the new ring is full")

// errTorn: a reference to bulk memory that is none. Its slot is being written
// again, so the message was acknowledged; or the peer has written into our ring,
// and will miss it.
var errTorn = errors.New("msg: acknowledged meanwhile")

// fill copies into b what was in the rings before it.
func (c *Conn) fill(b *binding) error {
	for len(b.from) > 0 {
		if err := c.resend(b.from[0], b); err != nil {
			return err
		}
		b.from = b.from[1:]
	}
	return nil
}

// fillLater goes on with fill as the peer makes room.
func (c *Conn) fillLater(b *binding) {
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		time.Sleep(wait)
		c.mu.Lock()
		done := c.err != nil || c.cur != b
		if !done {
			err := c.fill(b)
			done = err == nil
			if err != nil && err != errFull {
				c.mu.Unlock()
				c.fail(err)
				return
			}
		}
		c.mu.Unlock()
		if done {
			return
		}
	}
}

// resend copies into b the messages of a ring that b has not had. A message
// whose last fragment is not there yet waits: its owner will look again.
func (c *Conn) resend(from *ring.Tx, b *binding) (err error) {
	wake := false
	defer func() {
		if wake {
			wakePeer(b.tx, b.shared, b.hands)
		}
	}()
	type slot struct {
		h    ring.Head
		body Slot
	}
	var whole []slot
	next := from.Unread(b.tx.Seq(), func(seq uint64, h ring.Head, body *Slot) {
		whole = append(whole, slot{h, *body})
		if err != nil || h.Flags&ring.More != 0 {
			return
		}
		if b.tx.Room < len(whole) {
			if _, err = b.tx.Refill(); err == nil && b.tx.Room < len(whole) {
				err = errFull
			}
			if err != nil {
				return
			}
		}
		b.tx.SetSeq(seq) // what is between was acknowledged
		for i := range whole {
			s := &whole[i]
			*b.tx.Body() = s.body
			if s.h.Flags&ring.Bulk != 0 {
				if err = c.resendBulk(b, s.body[:min(s.h.N, SlotBytes)]); err == errTorn {
					err, whole = nil, whole[:0]
					b.tx.SetSeq(seq + 1)
					return
				} else if err != nil {
					return
				}
			}
			wake = b.tx.Publish(s.h.Num, s.h.Flags, s.h.N) || wake
		}
		whole = whole[:0]
	})
	// All may have been acknowledged since the peer said what it had.
	if err == nil && next > b.tx.Seq() {
		b.tx.SetSeq(next)
	}
	return err
}

// resendBulk copies the body that ref refers to.
func (c *Conn) resendBulk(b *binding, ref []byte) error {
	if len(ref) != bulkRefBytes {
		return errTorn
	}
	id := binary.LittleEndian.Uint32(ref)
	var body []byte
	for _, p := range append(b.pools, c.pool) { // the last of the number is the newest
		if p.id == id && p.mem != nil {
			body, _ = p.find(ref)
		}
	}
	if body == nil {
		return errTorn
	}
	if b.bulk.mem == nil {
		n := MinBulk
		for _, p := range append(b.pools, c.pool) {
			n = max(n, len(p.mem))
		}
		c.lastPool++
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond) // mu is held
		defer cancel()
		r, err := b.announce(ctx, c.lastPool, n)
		if err == errLink || errors.Is(err, context.DeadlineExceeded) { // until the next bind, or the peer takes frames
			return errFull
		}
		if err != nil {
			return err
		}
		b.bulk.replace(c.lastPool, r)
	}
	if !b.bulk.fits(b.tx, len(body)) {
		if _, err := b.tx.Refill(); err != nil {
			return &PeerError{err.Error()}
		}
		if !b.bulk.fits(b.tx, len(body)) {
			return errFull
		}
	}
	copy(b.bulk.at(len(body)), body)
	b.bulk.put(b.tx, b.tx.Body(), len(body))
	return nil
}

// errLink: the link is lost.
var errLink = errors.New("msg: the link is lost")

// announce makes a bulk pool for sending and tells the peer. If the link is lost
// it ends the link and returns errLink.
func (b *binding) announce(ctx context.Context, id uint32, n int) (Region, error) {
	r, file, err := b.shared.NewBulk(n)
	if err != nil {
		return r, fmt.Errorf("msg: bulk pool of %d bytes: %w", n, err)
	}
	if b.car != nil {
		b.car.pool(id, r)
		return r, nil
	}
	var files []*os.File
	if file != nil {
		defer file.Close()
		files = []*os.File{file}
	}
	if err := b.link.Send(ctx, bulkFrame(id, n), files); err != nil {
		if l, ok := b.shared.(*local); ok {
			l.forget(r)
		}
		if cerr := ctx.Err(); cerr != nil {
			return r, cerr
		}
		if !errors.Is(err, io.EOF) { // otherwise control will hear of it
			b.link.Close()
		}
		return r, errLink
	}
	return r, nil
}
