package monitor

import (
	"errors"
	"io"
	"sync/atomic"

	"hardtack/idl/monitor"
)

// Sizes of channels. Each end keeps at most a window of bytes that wait for the peer, and
// one of bytes that wait for its reader.
const (
	Window      = 64 << 10
	chunk       = 496 // bytes of a message
	maxChannels = 1024
	maxName     = 64
)

// Errors of channels.
var (
	// ErrDied says that the other end's kernel has ended, or broke the rules.
	ErrDied = errors.New("monitor: the other cluster has ended")
	// ErrClosed says that an end is closed.
	ErrClosed = errors.New("monitor: the channel is closed")
	ErrTaken  = errors.New("monitor: the name is taken")
)

// Who is a process at the end of a channel.
type Who = monitor.Who

// Channel is an end of a stream of bytes to a process of another cluster. Its methods do
// not block: who waits has Notify tell when to look again.
type Channel struct {
	p     *peer
	mine  uint32      // its number in this kernel
	far   int         // the cluster at the other end; immutable once it is open, as are the next
	At    monitor.Who // who has the other end, as that kernel says
	rings *Rings      // nil if there are none
	has   []uint32    // the frames that both kernels agreed on, of who has opened it

	// All guarded by p.mu.
	theirs uint32 // its number in the other
	open   bool   // theirs is known
	in     buffer
	out    buffer
	credit int  // bytes that the peer takes yet
	read   int  // bytes read here of which the peer does not know
	told   bool // the peer knows that this end is closed
	shut   bool // this end is closed
	ended  error
	gone   atomic.Bool // shut or ended; read freely
	queued bool        // in p.work
	notify func()      // after each change that a waiter might want

	answer *monitor.Opened // of a channel that this kernel passes on: what the peer is to hear
	opened *monitor.Opened // of one that the first cluster passes on: what it has said
	bell   func()          // after the other end has rung, and the end
}

// buffer is a queue of bytes.
type buffer struct {
	b    []byte
	size int // of the array that b is the end of
}

func (q *buffer) len() int { return len(q.b) }

func (q *buffer) put(b []byte) {
	room := cap(q.b)
	if q.b = append(q.b, b...); cap(q.b) > room { // another array
		q.size = cap(q.b)
	}
}

func (q *buffer) take(n int) (b []byte) {
	b = q.b[:n]
	if q.b = q.b[n:]; len(q.b) == 0 {
		*q = buffer{}
	}
	return b
}

// Kept is how many bytes of memory hold what waits at this end.
func (c *Channel) Kept() int {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	return c.in.size + c.out.size
}

// Peer is the number of the cluster at the other end.
func (c *Channel) Peer() int { return c.far }

// Notify has f called, which must not block, whenever the channel may be ready.
func (c *Channel) Notify(f func()) {
	c.p.mu.Lock()
	c.notify = f
	c.p.mu.Unlock()
}

// Ready says whether Read and Write would do something, and whether the other end is gone.
func (c *Channel) Ready() (in, out, gone bool) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	gone = c.ended != nil || c.shut
	return gone || c.in.len() > 0, gone || c.out.len() < Window, gone
}

// Read takes what has come; 0 if nothing has. io.EOF says that the other end is closed,
// ErrDied that its kernel has ended; what came before is read before.
func (c *Channel) Read(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	switch {
	case c.shut:
		return 0, ErrClosed
	case c.in.len() == 0:
		return 0, c.ended
	}
	n := copy(b, c.in.take(min(len(b), c.in.len())))
	if c.read += n; c.read >= Window/4 && c.ended == nil {
		c.p.queue(c)
	}
	return n, nil
}

// Write takes what there is room for, which may be nothing.
func (c *Channel) Write(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	switch {
	case c.shut, c.ended == io.EOF:
		return 0, ErrClosed
	case c.ended != nil:
		return 0, c.ended
	}
	n := min(len(b), Window-c.out.len())
	c.out.put(b[:n])
	c.p.queue(c)
	return n, nil
}

// Close ends the channel. What was written arrives before the end.
func (c *Channel) Close() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.notify = nil
	c.close()
}

// close is Close with p.mu held.
func (c *Channel) close() {
	if c.shut {
		return
	}
	c.shut = true
	c.gone.Store(true)
	if c.rings != nil {
		c.rings.Put()
	}
	c.tellBell()
	c.read += c.in.len() // the peer may be waiting to write more
	c.in = buffer{}
	if c.ended != nil {
		c.out = buffer{}
	}
	c.p.queue(c)
}

// end says that nothing comes any more; p.mu is held.
func (c *Channel) end(why error) {
	if c.ended == nil {
		c.ended = why
		c.gone.Store(true)
		c.out = buffer{}
		if c.shut {
			c.p.queue(c)
		}
		c.tell()
		c.tellBell()
	}
}

func (c *Channel) tell() {
	if c.notify != nil {
		c.notify()
	}
}

// next is the message that the peer should get now, nil if there is none; p.mu is held.
func (c *Channel) next() monitor.Msg {
	switch n := min(c.out.len(), c.credit, chunk); {
	case !c.open || c.told:
	case c.answer != nil:
		m := c.answer
		c.answer = nil
		return m
	case n > 0:
		c.credit -= n
		return &monitor.Data{Number: c.theirs, Bytes: c.out.take(n)}
	case c.shut && c.out.len() == 0:
		c.told = true
		if c.ended != nil {
			c.p.forget(c)
		}
		return &monitor.Closed{Number: c.theirs}
	case c.read >= Window/4:
		n := c.read
		c.read = 0
		return &monitor.Taken{Number: c.theirs, Bytes: uint32(n)}
	}
	return nil
}
