package msg

import (
	"context"
	"runtime"
	"time"

	"hardtack/msg/internal/ring"
)

// Waiting has three stages. First spin, as long as that has paid recently: waking a
// thread on another core costs about 30 µs on either side, so a channel with messages
// more frequent than that never sleeps. If the peer is a process on the same core,
// spinning would only keep the core from it; so nap instead, in futex(2), or at a
// notification if the kernel is ours (LMP, package ump). These are the fastest ways to hand
// over the core. A peer that another kernel wakes from its nap has a core of its own; so
// nap after the spin. Then park in Go's poller, for as long as it takes.

const (
	spinBlock = 64                    // polls between two looks at everything else
	spinMax   = 50 * time.Microsecond // longest spin
	spinFails = 4                     // spins in vain before a rest
	restMin   = 64                    // waits without a spin, doubled
	restMax   = 1024                  // up to this
	// Longest nap, and so how late a cancelled context may be noticed. With a timeout
	// before the next tick of the kernel's clock, the kernel would program the
	// processor's timer each time, which in a virtual machine costs more than the rest of
	// a round trip.
	napTime  = 20 * time.Millisecond
	napYield = 4                // naps between two yields to other goroutines
	napIf    = time.Millisecond // nap if the last wait was no longer
)

// spinner decides how to wait. Spinning fails if messages are far apart, or if the peer
// needs this core to send one.
type spinner struct {
	fails, rest, next int
	last              time.Duration // of the last wait
}

func (s *spinner) paid() { s.fails, s.next, s.last = 0, 0, 0 }

func (s *spinner) failed() {
	if s.fails++; s.fails >= spinFails {
		s.fails = spinFails - 1 // one more attempt after the rest
		s.next = min(max(restMin, 2*s.next), restMax)
		s.rest = s.next
	}
}

// spin polls rx, if there is one, and now and then ready, which looks at all
// that matters. It reports whether ready came true in time.
func (c *Conn) spin(s *spinner, rx *ring.Rx, ready func() bool) bool {
	limit := spinMax
	switch {
	case c.opts.Spin < 0:
		return ready()
	case c.opts.Spin > 0:
		limit = c.opts.Spin
	case s.rest > 0:
		s.rest--
		return ready()
	}
	start := time.Now()
	for {
		for range spinBlock {
			if rx != nil && rx.Ready() {
				s.paid()
				return true
			}
		}
		if ready() {
			s.paid()
			return true
		}
		if time.Since(start) > limit {
			s.failed()
			return false
		}
		runtime.Gosched()
	}
}

// waitMessage waits until a slot is full or attention is wanted.
func (c *Conn) waitMessage(ctx context.Context) error {
	r := &c.recv
	same := r.shared.Futex() && r.rx.SameCPU()
	if !same && c.opts.Spin >= 0 && r.spin.rest == 0 {
		for range 4 * spinBlock { // the common case, before any clock is read
			if r.rx.Ready() {
				return nil
			}
		}
	}
	// Not in the middle of a message: its slots are sent again if the
	// connection is bound again before the rest has come.
	if len(r.frag) == 0 && r.rx.Flush(true) {
		r.shared.Wake()
	}
	r.ctx = ctx
	if !same && c.spin(&r.spin, r.rx, r.ready) {
		return ctx.Err()
	}
	if (same || r.hands != nil && !r.shared.Futex()) && r.spin.last < napIf && c.mayNap(ctx) {
		return nil
	}
	start := time.Now()
	defer func() { r.spin.last = time.Since(start) }()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, r.shared.Kick)()
	}
	err := r.shared.Park(r.asleep)
	r.rx.SetParked(false)
	if r.rx.Ready() {
		return nil
	}
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	return c.parked(ctx, err, attnRecv)
}

// mayNap naps, and reports whether a slot is full.
func (c *Conn) mayNap(ctx context.Context) bool {
	r := &c.recv
	if r.naps++; r.naps%napYield == 0 {
		runtime.Gosched()
	}
	limit := napTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	return c.nap(limit)
}

// nap sleeps until the peer, which is on this processor, has sent something, and
// reports whether it has.
func (c *Conn) nap(limit time.Duration) bool {
	r := &c.recv
	if r.hands != nil && r.hands.Hand() {
		return r.rx.HandNap(limit, r.ready, r.await)
	}
	return r.rx.Nap(limit, r.ready)
}

// wakePeer wakes the peer's receiving owner if it sleeps. hands may be nil.
func wakePeer(tx *ring.Tx, shared Shared, hands Handing) {
	switch s := tx.TakeParked(); {
	case s == ring.Handed && hands != nil:
		hands.Rouse()
	case s != ring.Awake:
		shared.Wake()
	}
}

// recvReady is what the receiver waits for.
func (c *Conn) recvReady() bool {
	r := &c.recv
	return r.rx.Ready() || c.attn.Load()&(attnClosed|attnRecv) != 0 || r.ctx.Err() != nil
}

// recvAsleep is recvReady for a receiver that sleeps if it is false. Whoever wakes it
// takes its flag away.
func (c *Conn) recvAsleep() bool {
	r := &c.recv
	if r.handle != nil {
		r.handle()
	}
	if c.recvReady() {
		return true
	}
	r.rx.SetParked(true)
	r.shared.Barrier()
	if r.handle != nil {
		r.handle()
	}
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
	err := s.shared.Park(s.asleep)
	s.tx.SetBlocked(false)
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	return c.parked(ctx, err, attnSend)
}

// sendReady is what the sender waits for. A wrong acknowledgement makes it
// true; room finds it again.
func (c *Conn) sendReady() bool {
	s := &c.send
	if c.attn.Load()&(attnClosed|attnSend) != 0 || s.ctx.Err() != nil {
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

// parked is what an error of Park means to the owner who looks for wanted. When
// the link was lost, the session decides; attention is or will be wanted.
func (c *Conn) parked(ctx context.Context, err error, wanted uint32) error {
	if err == nil {
		return nil
	}
	return c.awaitBind(ctx, wanted)
}
