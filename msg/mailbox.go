package msg

import (
	"context"
	"errors"
	"iter"

	"hardtack/lock/core"
)

// A mailbox is the messages of a Caller's connection that are no replies, from their
// arrival to their delivery.
//
// Its order is that in which they came, and one goroutine at a time delivers: the one in
// Run or Messages if there is one, else whichever has received the message. What it
// delivers to may make calls itself. While it waits for a reply nobody makes room here,
// so that nobody may wait for room: the reply comes behind what is received now.
type mailbox struct {
	queue      []unasked
	bytes      int                                        // of the bodies of all that is queued
	delivering bool                                       // somebody does
	deliverer  uintptr                                    // which goroutine: core.Self
	calling    int                                        // calls that it has under way
	decode     func(num uint16, body []byte) (any, error) // once Messages was called
}

// unasked is a message that is no reply.
type unasked struct {
	deliver func() // nil:
	m       any    // for Messages
	bytes   int
}

const (
	// maxQueued is how many messages wait for their delivery before nothing more is
	// received until one was delivered.
	maxQueued = 256
	// maxHeld and maxHeldBytes bound what may come while the one who delivers waits for a
	// reply.
	maxHeld      = 1 << 16
	maxHeldBytes = 64 << 20
)

// errFlooded ends the call whose wait would take in more.
var errFlooded = errors.New("msg: too many messages have come while what handles them waits for a reply")

// unasked takes a message in, and reports whether the caller, who has the turn, is to
// deliver it after giving the turn up; running says that it is in Run or Messages.
func (k *Caller) unasked(ctx context.Context, num uint16, body []byte, running bool) (ours bool, err error) {
	u := unasked{bytes: len(body)}
	k.mu.Lock()
	decode := k.mail.decode
	drop := decode != nil && !k.running && len(k.mail.queue) >= maxQueued
	k.mu.Unlock()
	switch {
	case drop:
		return false, nil
	case decode != nil:
		u.m, err = decode(num, body)
	case k.other != nil:
		u.deliver, err = k.other(num, body)
	default:
		return false, nil
	}
	if err != nil {
		return false, k.c.Fail(err)
	}
	return k.push(ctx, u, running)
}

// push queues a message, and reports what unasked does. It waits while too many are
// queued.
func (k *Caller) push(ctx context.Context, u unasked, running bool) (ours bool, err error) {
	in := &k.mail
	k.mu.Lock()
	defer k.mu.Unlock()
	in.queue = append(in.queue, u)
	in.bytes += u.bytes
	if k.running && !in.delivering && !running {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
	for {
		ours = !in.delivering && k.running == running && (running || in.decode == nil)
		switch {
		case len(in.queue) < maxQueued || ours || !k.running && in.decode != nil:
			if ours { // from now on, lest nobody does: Run may begin or end
				in.delivering, in.deliverer = true, core.Self()
			}
			return ours, nil
		case !in.delivering || in.calling == 0:
		case len(in.queue) >= maxHeld || in.bytes >= maxHeldBytes:
			return false, errFlooded
		default:
			return false, nil
		}
		k.mu.Unlock()
		select {
		case <-k.space:
		case <-k.c.Done():
		case <-ctx.Done():
			err = ctx.Err()
		}
		k.mu.Lock()
		if err != nil || k.c.Err() != nil {
			return false, err
		}
	}
}

// pop takes the first message out for its delivery. Whoever it gives one to goes on
// until there is none, or calls stop. The lock is held.
func (k *Caller) pop() (u unasked, ok bool) {
	in := &k.mail
	if len(in.queue) == 0 {
		in.queue, in.delivering = nil, false
		return u, false
	}
	in.delivering, in.deliverer = true, core.Self()
	u = in.queue[0]
	in.queue[0] = unasked{}
	in.queue = in.queue[1:]
	in.bytes -= u.bytes
	k.roomy()
	return u, true
}

// nested tells whether a call that begins is one of the goroutine that delivers, and
// notes it; who ends the call takes it back. The lock is held.
func (k *Caller) nested() bool {
	in := &k.mail
	if !in.delivering || in.deliverer != core.Self() {
		return false
	}
	in.calling++
	k.roomy()
	return true
}

// roomy wakes who waits for room.
func (k *Caller) roomy() {
	select {
	case k.space <- struct{}{}:
	default:
	}
}

// deliver delivers what is queued, which is the caller's to do if push has told so;
// else somebody may do it already.
func (k *Caller) deliver(ours bool) {
	for {
		k.mu.Lock()
		if k.mail.delivering && !ours || k.mail.decode != nil {
			k.mu.Unlock()
			return
		}
		u, ok := k.pop()
		k.mu.Unlock()
		if !ok {
			return
		}
		u.deliver()
		ours = true
	}
}

// enter is the begin of Run and Messages; leave is the end.
func (k *Caller) enter() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running {
		return errors.New("msg: another goroutine is in Run or All")
	}
	k.running = true
	return nil
}

func (k *Caller) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = false
	if k.mail.decode != nil {
		k.mail.delivering = false
	}
	k.roomy()
}

// Run receives and delivers, whether or not a call waits, until the connection or
// ctx ends. It returns nil when either end has closed the connection, otherwise why
// it ended; ctx's error leaves the connection as it was. One goroutine at a time may
// be in Run; calls may be made meanwhile, and cost one switch between goroutines
// more.
func (k *Caller) Run(ctx context.Context) error {
	k.made("Run")
	needContext(ctx, "Run")
	if err := k.enter(); err != nil {
		return err
	}
	defer k.leave()
	for ours := false; ; {
		k.deliver(ours)
		more, err := false, error(nil)
		if ours, more, err = k.step(ctx); !more {
			if err == nil {
				k.deliver(false)
			}
			return err
		}
	}
}

// step receives until there is something to deliver; ours is what push told. It reports
// whether there may be more, and if not, why; nil: either end has closed the connection.
func (k *Caller) step(ctx context.Context) (ours, more bool, err error) {
	select {
	case <-k.turn:
	case <-k.wake:
		return false, true, nil
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
	_, err = k.receive(ctx, nil)
	k.turn <- struct{}{}
	switch {
	case err == errQueued:
		return true, true, nil
	case errors.Is(err, ErrPeerClosed), errors.Is(err, ErrClosed):
		return false, false, nil
	}
	return false, false, err
}

// Messages is Run as an iterator, for a Caller that was made without a function: the
// messages that are no replies, until either end closes the connection. Any other error
// is yielded, and is the last. The loop may make calls, and be left and begun again: of
// what comes while nobody is in it the first 256 messages are kept, from the call of
// Messages on. What came before that was dropped.
func Messages[M any](ctx context.Context, k *Caller, decode func(num uint16, body []byte) (M, error)) iter.Seq2[M, error] {
	k.made("All")
	needContext(ctx, "All")
	if k.other != nil {
		panic("msg: All of a Client whose messages go to a function: make it with NewClient(conn, nil)")
	}
	k.mu.Lock()
	k.mail.decode = func(num uint16, body []byte) (any, error) { return decode(num, body) }
	k.mu.Unlock()
	return func(yield func(M, error) bool) {
		var none M
		if err := k.enter(); err != nil {
			yield(none, err)
			return
		}
		defer k.leave()
		for more, err := true, error(nil); ; _, more, err = k.step(ctx) {
			for {
				k.mu.Lock()
				u, ok := k.pop()
				k.mu.Unlock()
				if !ok {
					break
				}
				if !yield(u.m.(M), nil) {
					return
				}
			}
			if err != nil {
				yield(none, err)
			}
			if !more {
				return
			}
		}
	}
}

// made panics where the Caller was not made by NewCaller.
func (k *Caller) made(method string) {
	if k == nil || k.c == nil {
		panic("msg: " + method + " of a zero Caller or Client: make it with NewCaller or NewClient")
	}
}
