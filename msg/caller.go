package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
)

// Caller lets any number of goroutines have calls in flight on one connection.
// It owns both directions. No goroutine receives while nobody waits, unless one
// does so in Run: whoever waits for a reply and finds nobody receiving does so, for
// all, until its own reply has come; a lone caller so polls the ring itself.
type Caller struct {
	c     *Conn
	other func(num uint16, body []byte) (deliver func(), err error)

	turn  chan struct{} // one token: the right to receive
	space chan struct{} // full after a message was delivered
	wake  chan struct{} // full when Run has something to deliver

	mu      sync.Mutex
	next    uint32
	calls   map[uint32]*Pending // guarded by mu
	free    *Pending            // guarded by mu
	mail    mailbox             // guarded by mu
	running bool                // somebody is in Run or Messages; guarded by mu
	givenUp []uint32            // calls of which the peer is to be told; guarded by mu
	telling bool                // somebody does; guarded by mu
}

// Pending is a call in flight.
type Pending struct {
	caller *Caller
	id     uint32
	num    uint16 // of the reply
	held   bool   // Wait returned the ring's copy, and holds the turn
	left   bool   // Wait returned before the reply
	nested bool   // the goroutine that delivers messages made it
	body   []byte // copy of the reply, if another received it
	err    error  // or the error that came instead
	caps   []Cap
	done   chan struct{} // one token: body or err is there
	next   *Pending
}

// CallBytes is what stands before the fields of a call and a reply: its number.
const CallBytes = 4

// NewCaller makes a caller of a connection, whose Next belongs to it from then
// on. Messages that are no replies go to other, which decodes one before the next is
// received; what it returns delivers the message to the program, one at a time, in
// order, and may make calls itself. An error closes the connection. other may be
// nil: then such messages are dropped, unless Messages takes them.
func NewCaller(c *Conn, other func(num uint16, body []byte) (deliver func(), err error)) *Caller {
	c.made("NewCaller with")
	c.Share()
	c.recv.own = true
	k := &Caller{c: c, other: other, calls: make(map[uint32]*Pending),
		turn: make(chan struct{}, 1), space: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	return k
}

// Conn is the connection.
func (k *Caller) Conn() *Conn { return k.c }

// Start registers a call whose reply is message num. The caller sends the
// message with the call's ID and then waits, or gives up by Done.
func (k *Caller) Start(num uint16) *Pending {
	k.made("a call")
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.free
	if p != nil {
		k.free = p.next
	} else {
		p = &Pending{caller: k, done: make(chan struct{}, 1)}
	}
	for k.next++; k.calls[k.next] != nil; k.next++ {
	}
	p.id, p.num = k.next, num
	k.calls[p.id] = p
	p.nested = k.nested()
	return p
}

// ID is what the body of the call starts with.
func (p *Pending) ID() uint32 { return p.id }

// Wait waits for the reply and returns its body after the number of the call.
// It and what Caps returns are valid until Done, which must follow soon and
// before anything else is done with the connection. A call that failed at the
// other end is a *CallError. When ctx ends first, Wait returns its error, and the
// context of the call's handler at the other end ends too.
func (p *Pending) Wait(ctx context.Context) ([]byte, error) {
	needContext(ctx, "a call")
	k := p.caller
	for {
		select {
		case <-p.done:
			return p.body, p.err
		default:
		}
		select {
		case <-p.done:
			return p.body, p.err
		case <-k.turn:
		case <-ctx.Done():
			p.left = true
			return nil, ctx.Err()
		}
		select {
		case <-p.done: // the last to receive had it
			k.turn <- struct{}{}
			return p.body, p.err
		default:
		}
		body, err := k.receive(ctx, p)
		if err == nil {
			p.held, p.caps = true, k.c.Caps()
			return body, nil
		}
		k.turn <- struct{}{}
		if err == errQueued {
			k.deliver(true)
			continue
		}
		p.left = err == errFlooded || ctx.Err() != nil && k.c.Err() == nil && !isCallError(err)
		return nil, err
	}
}

func isCallError(err error) bool { _, ok := err.(*CallError); return ok }

// errQueued: a message is to be delivered, by whoever has received it.
var errQueued = errors.New("msg: a message is queued")

// receive receives for all until the reply to p comes; p may be nil. The caller
// has the turn.
func (k *Caller) receive(ctx context.Context, p *Pending) (body []byte, err error) {
	for {
		num, body, err := k.c.Next(ctx)
		if err != nil {
			return nil, err
		}
		switch m := k.c.iface.Message(num); {
		case num == numGivenUp: // this end serves no calls
		case num == numFailed:
			e, err := k.failed(body, p)
			if err != nil {
				return nil, k.c.Fail(err)
			}
			if e != nil {
				return nil, e
			}
		case m.Kind != Reply:
			if ours, err := k.unasked(ctx, num, body, p == nil); err != nil {
				return nil, err
			} else if ours {
				return nil, errQueued
			}
		default:
			if len(body) < CallBytes {
				return nil, k.c.Fail(BadBody(m.Name, "shorter than the number of a call"))
			}
			mine, err := k.answered(num, body, p)
			if err != nil {
				return nil, k.c.Fail(err)
			}
			if mine {
				return body[CallBytes:], nil
			}
		}
	}
}

// answered gives a reply to whoever waits for it, and reports whether that is p.
func (k *Caller) answered(num uint16, body []byte, p *Pending) (mine bool, err error) {
	id := binary.LittleEndian.Uint32(body)
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.calls[id]
	if q != nil && q.num != num {
		return false, BadBody(k.c.iface.Message(num).Name, "not the reply to that call")
	}
	delete(k.calls, id)
	if q == nil { // nobody waits any more
		return false, nil
	}
	if q != p {
		q.body, q.caps = append(q.body[:0], body[CallBytes:]...), k.c.Caps()
		q.done <- struct{}{}
	}
	return q == p, nil
}

// failed gives an error reply to whoever waits for it. It is returned if that is p.
func (k *Caller) failed(body []byte, p *Pending) (mine *CallError, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.calls[binary.LittleEndian.Uint32(body)]
	name := ""
	if q != nil {
		name = k.c.iface.Message(q.num).Name
	}
	e, err := k.c.failure(body, name)
	if err != nil || q == nil {
		return nil, err
	}
	delete(k.calls, q.id)
	if q == p {
		return e, nil
	}
	q.err = e
	q.done <- struct{}{}
	return nil, nil
}

// Caps returns what came with the reply.
func (p *Pending) Caps() []Cap {
	caps := p.caps
	p.caps = nil
	return caps
}

// Done ends the call, whether it has succeeded or not. p must not be used after.
func (p *Pending) Done() {
	k := p.caller
	closeAll(p.caps)
	p.caps = nil
	if p.held {
		p.held = false
		k.turn <- struct{}{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.calls, p.id)
	if p.nested {
		p.nested = false
		k.mail.calling--
	}
	select {
	case <-p.done:
		closeAll(p.caps)
		p.caps = nil
	default:
		if p.left && k.c.calls {
			k.giveUp(p.id)
		}
	}
	p.left, p.err = false, nil
	p.next, k.free = k.free, p
}

// giveUp has the peer told that nobody waits for a call. Whoever gave it up waits for
// nothing, not for room either, so a goroutine does that. The lock is held.
func (k *Caller) giveUp(id uint32) {
	k.givenUp = append(k.givenUp, id)
	if k.telling {
		return
	}
	k.telling = true
	go func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		for len(k.givenUp) > 0 {
			id := k.givenUp[0]
			k.givenUp = k.givenUp[1:]
			k.mu.Unlock()
			err := k.c.tellGivenUp(context.Background(), id)
			k.mu.Lock()
			if err != nil { // the connection has ended
				k.givenUp = nil
			}
		}
		k.telling = false
	}()
}
