package msg

import (
	"context"
	"encoding/binary"
	"sync"
)

// Caller lets any number of goroutines have calls in flight on one connection.
// It owns both directions. There is no goroutine that receives: whoever waits
// and finds nobody receiving does so, for all, until its own reply has come;
// a lone caller so polls the ring itself.
type Caller struct {
	c *Conn

	turn chan struct{} // one token: the right to receive

	mu    sync.Mutex
	next  uint32
	calls map[uint32]*Pending // guarded by mu
	free  *Pending            // guarded by mu
	other func(num uint16, body []byte)
}

// Pending is a call in flight.
type Pending struct {
	caller *Caller
	id     uint32
	num    uint16 // of the reply
	held   bool   // Wait returned the ring's copy, and holds the turn
	body   []byte // copy of the reply, if another received it
	caps   []Cap
	done   chan struct{} // one token: body is there
	next   *Pending
}

// CallBytes is what stands before the fields of a call and a reply: its number.
const CallBytes = 4

// NewCaller makes a caller of a connection, whose Next belongs to it from then
// on. Messages that are no replies go to other, one at a time; it may be nil.
func NewCaller(c *Conn, other func(num uint16, body []byte)) *Caller {
	c.Share()
	k := &Caller{c: c, turn: make(chan struct{}, 1), calls: make(map[uint32]*Pending), other: other}
	k.turn <- struct{}{}
	return k
}

// Conn is the connection.
func (k *Caller) Conn() *Conn { return k.c }

// Start registers a call whose reply is message num. The caller sends the
// message with the call's ID and then waits, or gives up by Done.
func (k *Caller) Start(num uint16) *Pending {
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
	return p
}

// ID is what the body of the call starts with.
func (p *Pending) ID() uint32 { return p.id }

// Wait waits for the reply and returns its body after the number of the call.
// It and what Caps returns are valid until Done, which must follow soon and
// before anything else is done with the connection.
func (p *Pending) Wait(ctx context.Context) ([]byte, error) {
	k := p.caller
	select {
	case <-p.done:
		return p.body, nil
	default:
	}
	select {
	case <-p.done:
		return p.body, nil
	case <-k.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-p.done: // the last to receive had it
		k.turn <- struct{}{}
		return p.body, nil
	default:
	}
	body, err := p.receive(ctx)
	if err != nil {
		k.turn <- struct{}{}
		return nil, err
	}
	p.held, p.caps = true, k.c.Caps()
	return body, nil
}

// receive receives for all until the reply to p comes. The caller has the turn.
func (p *Pending) receive(ctx context.Context) ([]byte, error) {
	k := p.caller
	for {
		num, body, err := k.c.Next(ctx)
		if err != nil {
			return nil, err
		}
		if m := k.c.iface.Message(num); m.Kind != Reply {
			if k.other != nil {
				k.other(num, body)
			}
			continue
		}
		if len(body) < CallBytes {
			return nil, k.c.Fail(BadBody(k.c.iface.Message(num).Name, "shorter than the number of a call"))
		}
		id := binary.LittleEndian.Uint32(body)
		k.mu.Lock()
		q := k.calls[id]
		if q != nil && q.num != num {
			k.mu.Unlock()
			return nil, k.c.Fail(BadBody(k.c.iface.Message(num).Name, "not the reply to that call"))
		}
		delete(k.calls, id)
		if q == p {
			k.mu.Unlock()
			return body[CallBytes:], nil
		}
		if q != nil { // nil if nobody waits any more
			q.body, q.caps = append(q.body[:0], body[CallBytes:]...), k.c.Caps()
			q.done <- struct{}{}
		}
		k.mu.Unlock()
	}
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
	select {
	case <-p.done:
		closeAll(p.caps)
		p.caps = nil
	default:
	}
	p.next, k.free = k.free, p
}
