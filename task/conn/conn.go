// Package conn lets tasks talk over connections of package msg.
//
// A msg.Conn is a pair of rings in memory, not a thing of one core: a task that is stolen
// between two receives goes on receiving where it now runs, with no forwarding between
// workers. The placement of its rings ties a connection to a core. So a Conn is a tenant
// (task.Tenant) of the seat on which it was last received from, and moves to a successor
// when that seat is removed. Its rings stay, being memory that every core reaches;
// neither the tasks nor the peer, which need not use tasks at all, see anything of it. A
// Conn made with Rebind is bound again from the successor as well, over new rings, by the
// session protocol of msg. Exported services are not tied to workers and stay as they
// are.
//
// Lock order: Conn.recv or Conn.send, then the runtime's and msg's own.
package conn

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/msg"
	"hardtack/task"
)

// A Conn is a connection that any number of tasks may send to and receive from.
type Conn struct {
	m  *msg.Conn
	rt *task.Runtime

	send sync.Mutex // the right to send
	recv sync.Mutex // the right to receive
	home *task.Seat // guarded by recv once the Conn is in use

	rebind bool                      // immutable
	moved  atomic.Pointer[task.Seat] // where Move sent it, not yet noticed
	wanted atomic.Int32              // binds asked for and not made
	moves  atomic.Int64
	failed atomic.Int64
}

// How often Receive looks for a message before it gives the core away, and how
// long a bind after a removed core may take.
const (
	looks  = 300
	limits = 10 * time.Second
)

// atOnce is for whoever does not want to wait.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// An Option is for New.
type Option func(*Conn)

// Rebind has the connection bound again, over new rings, when the core that it
// is received on has been removed: where memory is nearer to some cores than to
// others. If that fails the old rings go on to serve.
func Rebind() Option { return func(x *Conn) { x.rebind = true } }

// New makes m, which nobody else uses any more, a connection for the tasks of
// the runtime that c runs in.
func New(c task.Ctx, m *msg.Conn, options ...Option) *Conn {
	x := &Conn{m: m, rt: c.Runtime()}
	for _, o := range options {
		o(x)
	}
	if s := c.Seat(); s != nil {
		x.home = s.Attach(x)
	} else {
		x.home = x.rt.Attach(x)
	}
	return x
}

// Move gives the connection a new home after its core has been removed, and binds
// it again if that was asked for. The end that accepted asks the peer to do it.
func (x *Conn) Move(to *task.Seat) {
	x.moved.Store(to)
	x.moves.Add(1)
	if !x.rebind || x.wanted.Add(1) > 1 {
		return // the one that binds now will bind again
	}
	go func() {
		for n := int32(1); n != 0; {
			n = x.wanted.Load()
			ctx, cancel := context.WithTimeout(context.Background(), limits)
			if err := x.m.Rebind(ctx, ""); err != nil {
				x.failed.Add(1)
			}
			cancel()
			n = x.wanted.Add(-n)
		}
	}()
}

// Moves tells how often the connection's core was removed, and how many of the
// binds after it failed.
func (x *Conn) Moves() (moves, failed int64) { return x.moves.Load(), x.failed.Load() }

// lock takes mu; the core goes to others while it waits.
func lock(c task.Ctx, mu *sync.Mutex) {
	if !mu.TryLock() {
		task.Block(c, mu.Lock)
	}
}

// Receive waits for a message and gives its number and its body, which is
// appended to buf[:0]. While it waits, the core goes to other tasks.
func (x *Conn) Receive(c task.Ctx, ctx context.Context, buf []byte) (num uint16, body []byte, err error) {
	lock(c, &x.recv)
	defer x.recv.Unlock()
	x.settle(c)
	for i := 0; i < looks && !x.m.Ready(); i++ {
		if i%16 == 15 {
			runtime.Gosched()
		}
	}
	if x.m.Ready() {
		num, body, err = x.m.Next(ctx)
	} else {
		task.Block(c, func() { num, body, err = x.m.Next(ctx) })
	}
	return num, append(buf[:0], body...), err
}

// settle makes the seat on which the caller runs the connection's home.
func (x *Conn) settle(c task.Ctx) {
	if to := x.moved.Swap(nil); to != nil {
		x.home = to
	}
	if s := c.Seat(); s != nil && s != x.home && x.rt.Detach(x) {
		x.home = s.Attach(x)
	}
}

// Send sends message num. While it waits for room, the core goes to others.
func (x *Conn) Send(c task.Ctx, ctx context.Context, num uint16, body []byte) (err error) {
	lock(c, &x.send)
	defer x.send.Unlock()
	if len(body) > msg.SlotBytes {
		task.Block(c, func() {
			var to []byte
			if to, err = x.m.BeginLong(ctx, len(body)); err == nil {
				copy(to, body)
				err = x.m.CommitLong(ctx, num)
			}
		})
		return err
	}
	slot, err := x.m.Begin(atOnce) // there is room, as a rule
	if err != nil {
		task.Block(c, func() { slot, err = x.m.Begin(ctx) })
		if err != nil {
			return err
		}
	}
	copy(slot[:], body)
	x.m.Commit(num, len(body))
	return nil
}

// Close closes the connection.
func (x *Conn) Close() error {
	x.rt.Detach(x)
	return x.m.Close()
}
