package msg

import (
	"context"
	"sync"
	"sync/atomic"

	"hardtack/msg/internal/ring"
)

// Slot is the body of a slot, to be filled by an encoder.
type Slot = [SlotBytes]byte

// Reasons for a Conn's owners to leave the hot path.
const (
	attnShared = 1 << iota // sending takes sendMu
	attnClosed             // err is set
	attnSend               // a new ring is waiting for the sending owner
	attnRecv               // a new ring is waiting for the receiving owner
	attnTrace              // somebody watches
	attnFence              // every message needs a barrier after it
	attnMade               // always, but in a Conn that nobody has made
)

// Conn is one end of a connection. See the package comment for who may call
// what when.
type Conn struct {
	// Read by both owners, written rarely.
	attn   atomic.Uint32
	limits []limit // by message number; immutable
	iface  *Interface
	opts   *Options // perhaps of all connections of a server; immutable
	inbox  *inbox
	id     uint64
	_      [64]byte

	send sender // the sending owner's
	_    [64]byte
	recv receiver // the receiving owner's
	_    [64]byte

	sendMu sendLock // taken by Begin, released by Commit, after Share

	binding chan struct{} // full while this end dials, or is dialled, again

	mu      sync.Mutex
	session              // guarded by mu
	err     error        // why it is closed; guarded by mu
	tracer  func(Record) // guarded by mu
	done    chan struct{}
}

// limit is the length that a body may have.
type limit struct{ min, max uint32 }

// Interface returns what the connection speaks.
func (c *Conn) Interface() *Interface { return c.iface }

// Begin waits for room and returns the slot that the next message goes to. The
// caller fills it and calls Commit.
func (c *Conn) Begin(ctx context.Context) (*Slot, error) {
	if c != nil && ctx != nil && c.attn.Load()&^attnFence == attnMade { // first: when shared, the rest takes the lock
		if t := c.send.tx; t.Room > 0 {
			return t.Body(), nil
		}
	}
	return c.begin(ctx)
}

// Commit sends what was put into the slot: message num with a body of n bytes.
func (c *Conn) Commit(num uint16, n int) {
	if c.send.tx.Publish(num, 0, n) || c.attn.Load() != attnMade {
		c.committed(num, n)
	}
}

// Next waits for a message and returns its number and body. The body is valid
// until the next call. The number is one of the interface's, and the length
// within that message's limits.
func (c *Conn) Next(ctx context.Context) (num uint16, body []byte, err error) {
	if c == nil || ctx == nil || c.attn.Load()&^attnFence != attnMade {
		return c.next(ctx)
	}
	r := c.recv.rx
	if h, ok := r.PeekPlain(); ok && !c.recv.slow {
		d, sound := ring.Split(h)
		if sound && int(d.Num) < len(c.limits) {
			if l := &c.limits[d.Num]; uint32(d.N) >= l.min && uint32(d.N) <= l.max {
				c.recv.in = *r.Body()
				if r.Consume(h) {
					c.recv.shared.Wake()
				}
				return d.Num, c.recv.in[:d.N], nil
			}
		}
	}
	return c.next(ctx)
}
