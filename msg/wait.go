package msg

import (
	"context"
	"runtime"
	"time"

	"hardtack/msg/internal/ring"
)

// Waiting: spin while that has been paying, then park. A wake across cores
// costs some 30 µs on either side of it, so a channel whose messages come
// closer together than that never parks, and one on which nothing comes parks
// soon and burns nothing.

// How long an owner spins at most and at least, in polls (of about 1 ns, or
// 50 ns when the peer's line comes in between) between two looks at the
// scheduler.
const (
	spinBlock = 64 // polls between two calls of Gosched
	spinMax   = 50 * time.Microsecond
	spinMin   = time.Microsecond
	spinRest  = 256 // waits before an owner on the peer's core tries again
)

// spinner adapts how long an owner spins.
type spinner struct {
	budget time.Duration
	rest   int // waits for which not to spin at all
	wasted int // spins in a row that a short sleep followed
}

// spun notes a spin that paid.
func (s *spinner) spun(d time.Duration) {
	s.wasted = 0
	s.budget = min(spinMax, max(s.budget, 4*d))
}

// slept notes a sleep of d that followed a spin of s.budget. If it was short,
// spinning longer would have caught the message; unless the peer needed this
// core to send it, in which case no spin ever does.
func (s *spinner) slept(d time.Duration) {
	switch {
	case s.rest > 0:
		s.rest--
	case d > 4*spinMax:
		s.budget = max(spinMin, s.budget/2)
	case d < s.budget:
		if s.wasted++; s.wasted >= 4 {
			s.wasted, s.rest, s.budget = 0, spinRest, spinMin
		}
	default:
		s.budget = min(spinMax, 2*s.budget)
	}
}

// spin polls rx, if there is one, and now and then ready, which looks at all
// that matters. It reports whether ready came true in time.
func (c *Conn) spin(s *spinner, rx *ring.Rx, ready func() bool) bool {
	limit := s.budget
	if c.opts.Spin < 0 {
		return ready()
	}
	if c.opts.Spin != 0 {
		limit = c.opts.Spin
	} else if s.rest > 0 {
		return ready()
	}
	start := time.Now()
	for {
		for range spinBlock {
			if rx != nil && rx.Ready() {
				s.spun(time.Since(start))
				return true
			}
		}
		if ready() {
			s.spun(time.Since(start))
			return true
		}
		if time.Since(start) > limit {
			return false
		}
		runtime.Gosched()
	}
}

// waitMessage waits until a slot is full or attention is wanted.
func (c *Conn) waitMessage(ctx context.Context) error {
	r := &c.recv
	if r.rx.Ready() {
		return nil
	}
	for i := 0; i < 4*spinBlock && c.opts.Spin >= 0; i++ { // the common case, before any clock is read
		if r.rx.Ready() {
			return nil
		}
	}
	if r.rx.Flush(true) {
		r.shared.Wake()
	}
	r.ctx = ctx
	if c.spin(&r.spin, r.rx, r.ready) {
		return ctx.Err()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, r.shared.Kick)()
	}
	start := time.Now()
	err := r.shared.Park(r.asleep)
	r.rx.SetParked(false)
	r.spin.slept(time.Since(start))
	if r.rx.Ready() {
		return nil
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	return c.parked(err)
}

// recvReady is what the receiver waits for.
func (c *Conn) recvReady() bool {
	r := &c.recv
	return r.rx.Ready() || c.attn.Load()&(attnClosed|attnBind) != 0 || r.ctx.Err() != nil
}

// recvAsleep is recvReady for a receiver that sleeps if it is false. Who wakes it
// takes its flag away.
func (c *Conn) recvAsleep() bool {
	r := &c.recv
	if c.recvReady() {
		return true
	}
	r.rx.SetParked(true)
	r.shared.Barrier()
	return c.recvReady()
}

// sendAsleep is sendReady for a sender that sleeps if it is false.
func (c *Conn) sendAsleep() bool {
	s := &c.send
	if c.sendReady() {
		return true
	}
	s.tx.SetBlocked(true)
	s.shared.Barrier()
	return c.sendReady()
}

// waitRoom waits until there may be room, or attention is wanted.
func (c *Conn) waitRoom(ctx context.Context, slots, bytes int) error {
	s := &c.send
	s.ctx, s.slots, s.bytes = ctx, slots, bytes
	if c.spin(&s.spin, nil, s.ready) {
		return ctx.Err()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, s.shared.Kick)()
	}
	start := time.Now()
	err := s.shared.Park(s.asleep)
	s.tx.SetBlocked(false)
	s.spin.slept(time.Since(start))
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	return c.parked(err)
}

// sendReady is what the sender waits for. A wrong acknowledgement makes it
// true; room finds it again.
func (c *Conn) sendReady() bool {
	s := &c.send
	if c.attn.Load()&(attnClosed|attnBind) != 0 || s.ctx.Err() != nil {
		return true
	}
	if _, err := s.tx.Refill(); err != nil {
		return true
	}
	if s.bytes > len(s.bulk.mem) {
		return s.bulk.empty(s.tx)
	}
	return s.tx.Room >= s.slots && (s.bytes == 0 || s.bulk.fits(s.tx, s.bytes))
}

// parked is what an error of Park means. When the link was lost, the session
// decides; attention is or will be wanted.
func (c *Conn) parked(err error) error {
	if err == nil || c.attn.Load()&(attnClosed|attnBind) != 0 {
		return nil
	}
	select {
	case <-c.changed():
		return nil
	case <-c.done:
		return nil
	}
}
