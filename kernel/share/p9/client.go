// Package p9 is a client of the protocol 9P2000.L, which a host serves its folders with.
//
// Each request has a slot of the transport, and the slot's number is its tag: many can be
// under way, and a reply belongs to the request whose slot it came to. A caller that is
// killed while it waits gives its request up: the server is told by Tflush, and the slot is
// used again when the reply to the request itself has come, since until then the server may
// write to it. What such a request may have opened is closed then. Who asks on nobody's
// behalf (pages that are written back) gives up after Patience.
//
// Nothing that a server says is believed: sizes, types and tags of replies are compared
// with what was asked, texts and counts with what there is room for; EIO says that they
// were wrong.
//
// Locks: Client.mu is a leaf, but for the transport's own lock.
package p9

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// Transport carries messages: driver/virtio/p9.
type Transport interface {
	Tag() string
	// Slots is how many large slots there are; as many small ones follow.
	Slots() int
	// MaxSize is the largest message.
	MaxSize() int
	// Buffer is a slot's memory.
	Buffer(slot int) []byte
	// Submit sends the first bytes of a slot; the reply comes to offset at.
	Submit(slot, request, at, in int) bool
	// Start sets who hears of replies and their sizes; slot -1: no more come.
	Start(done func(slot, n int))
}

// Patience is how long somebody without a program waits for a reply.
const Patience = time.Minute

// States of a request.
const (
	idle  = iota
	sent  // somebody waits for the reply
	lost  // nobody does any more
	ended // the reply is there
)

// request is one slot.
type request struct {
	encoder
	slot    int // immutable
	at      int // where the reply begins
	in      int // room for the reply
	state   atomic.Int32
	n       int // of the reply; -1: there is none
	made    uint32
	sleeper *wait.Sleeper
}

// Client is one conversation with a server.
type Client struct {
	t        Transport  // immutable
	requests []*request // immutable; by slot
	msize    int        // immutable once Begin has returned

	mu       sync.Mutex
	free     []*request      // guarded by mu
	waiting  []*wait.Sleeper // for a free slot; guarded by mu
	flushing []bool          // by slot: its small slot is in use; guarded by mu
	broken   bool            // guarded by mu; no reply comes any more
	nextFID  uint32          // guarded by mu
	freeFIDs []uint32        // guarded by mu
	dead     []uint32        // to be clunked; guarded by mu
	reaper   bool            // a goroutine clunks them; guarded by mu
}

// New returns a client over a transport; Begin is next.
func New(t Transport) *Client {
	c := &Client{t: t, flushing: make([]bool, t.Slots())}
	for i := range t.Slots() {
		r := &request{slot: i}
		c.requests = append(c.requests, r)
		c.free = append(c.free, r)
	}
	t.Start(c.done)
	return c
}

// sleepers are for those who wait on nobody's behalf.
var sleepers = sync.Pool{New: func() any { return new(wait.Sleeper) }}

// waiter is who waits: a thread, or nobody in particular.
type waiter struct {
	c        *caller.Ctx
	s        *wait.Sleeper
	deadline int64
}

func waiterOf(c *caller.Ctx) waiter {
	if c != nil && c.Mem != nil {
		return waiter{c, &c.Sleeper, wait.NoDeadline}
	}
	return waiter{nil, sleepers.Get().(*wait.Sleeper), wait.Now() + int64(Patience)}
}

// sleep ends when the waiter was woken; the errno says why it should give up.
func (w *waiter) sleep() linux.Errno {
	if w.s.SleepUninterruptible(w.deadline) == wait.TimedOut {
		return linux.EIO
	}
	if caller.Killed(w.c) {
		return linux.EINTR
	}
	return 0
}

func (w *waiter) end() {
	if w.c == nil {
		w.s.Retire()
		sleepers.Put(w.s)
	}
}

// begin gets a slot for a request.
func (c *Client) begin(w *waiter, kind uint8) (*request, linux.Errno) {
	for {
		w.s.Arm()
		c.mu.Lock()
		if c.broken {
			c.mu.Unlock()
			return nil, linux.EIO
		}
		if n := len(c.free); n > 0 {
			r := c.free[n-1]
			c.free = c.free[:n-1]
			c.mu.Unlock()
			r.start(c.t.Buffer(r.slot), kind)
			return r, 0
		}
		//maxlive:len 65536 because a thread waits once
		c.waiting = append(c.waiting, w.s)
		c.mu.Unlock()
		e := w.sleep()
		c.mu.Lock()
		gone := true
		for i, s := range c.waiting {
			if s == w.s {
				c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
				gone = false
				break
			}
		}
		if e != 0 {
			if gone { // a slot was meant for this one
				c.wakeOne()
			}
			c.mu.Unlock()
			return nil, e
		}
		c.mu.Unlock()
	}
}

// start begins a request in a slot's memory.
func (r *request) start(b []byte, kind uint8) {
	r.encoder = encoder{b: b}
	r.made = NoFID
	r.u32(0)
	r.u8(kind)
	if kind == tversion {
		r.u16(noTag)
	} else {
		r.u16(uint16(r.slot))
	}
}

// wakeOne wakes who waits for a slot; mu is held.
func (c *Client) wakeOne() {
	if len(c.waiting) > 0 && len(c.free) > 0 {
		s := c.waiting[0]
		c.waiting = append(c.waiting[:0], c.waiting[1:]...)
		s.Wake()
	}
}

// release gives a slot back.
func (c *Client) release(r *request) {
	r.state.Store(idle)
	c.mu.Lock()
	c.free = append(c.free, r) //maxlive:len 16 because a transport has that many slots
	c.wakeOne()
	c.mu.Unlock()
}

// call sends a request and waits for its reply, which has room for data bytes beside
// what every reply may have.
func (c *Client) call(w *waiter, r *request, data int) (decoder, linux.Errno) {
	kind, n := r.b[4], r.encoder.n
	if r.full || n > c.size() {
		return decoder{}, linux.ENAMETOOLONG
	}
	r.at = (n + 63) &^ 63
	r.in = min(len(r.b)-r.at, c.size(), max(data, 4<<10)+overhead)
	le.PutUint32(r.b, uint32(n))
	r.sleeper = w.s
	w.s.Arm()
	r.state.Store(sent)
	if !c.t.Submit(r.slot, n, r.at, r.in) && r.state.CompareAndSwap(sent, ended) {
		return decoder{}, linux.EIO
	}
	for r.state.Load() != ended {
		if e := w.sleep(); e != 0 && r.state.CompareAndSwap(sent, lost) {
			c.flush(r)
			return decoder{lost: true}, e
		}
		w.s.Arm()
	}
	return r.reply(kind)
}

// size is the largest message.
func (c *Client) size() int {
	if c.msize == 0 {
		return 4 << 10 // before both sides have agreed
	}
	return c.msize
}

// reply checks a reply and returns what is in it.
func (r *request) reply(kind uint8) (decoder, linux.Errno) {
	if r.n < headerSize || r.n > r.in {
		return decoder{}, linux.EIO
	}
	d := decoder{b: r.b[r.at:][:r.n]}
	size, is, tag := int(d.u32()), d.u8(), d.u16()
	want := uint16(r.slot)
	if kind == tversion {
		want = noTag
	}
	if size < headerSize || size > r.n || tag != want {
		return decoder{}, linux.EIO
	}
	d.b = d.b[:size-headerSize]
	switch is {
	case kind + 1:
		return d, 0
	case rlerror:
		if e := d.u32(); !d.bad && e > 0 && e <= maxErrno {
			return decoder{}, linux.Errno(e)
		}
	}
	return decoder{}, linux.EIO
}

// maxErrno is the last that Linux has for programs.
const maxErrno = 133

// finish ends a request: the slot is free again, unless its reply is still to come. It
// returns e, or EIO if the reply was not what it should be.
func (c *Client) finish(w *waiter, r *request, d *decoder, e linux.Errno) linux.Errno {
	w.end()
	if r == nil || d.lost {
		return e
	}
	if e == 0 && d.bad {
		e = linux.EIO
	}
	c.release(r)
	return e
}

// flush tells the server that nobody waits for a request any more.
func (c *Client) flush(r *request) {
	c.mu.Lock()
	busy := c.flushing[r.slot] || c.broken
	c.flushing[r.slot] = true
	c.mu.Unlock()
	if busy {
		return
	}
	small := c.t.Slots() + r.slot
	b := c.t.Buffer(small)
	e := encoder{b: b}
	e.u32(headerSize + 2)
	e.u8(tflush)
	e.u16(uint16(small))
	e.u16(uint16(r.slot))
	c.t.Submit(small, e.n, len(b)/2, len(b)/2)
}

// done hears of a reply, in an interrupt's goroutine.
func (c *Client) done(slot, n int) {
	switch {
	case slot < 0:
		c.breakDown()
	case slot >= len(c.requests):
		if slot -= len(c.requests); slot < len(c.flushing) {
			c.mu.Lock()
			c.flushing[slot] = false
			c.mu.Unlock()
		}
	default:
		c.requests[slot].finished(c, n)
	}
}

// finished notes the reply to a request, or with a size below 0 that none comes.
func (r *request) finished(c *Client, n int) {
	if r.state.Load() == sent {
		s := r.sleeper
		r.n = n
		if r.state.CompareAndSwap(sent, ended) {
			s.Wake()
			return
		}
	}
	if n < 0 {
		return // the memory stays the device's
	}
	if r.state.CompareAndSwap(lost, ended) {
		c.Clunk(r.made) // the server may have made it, or not
		c.release(r)
	}
}

// breakDown ends all that wait.
func (c *Client) breakDown() {
	c.mu.Lock()
	c.broken = true
	for _, s := range c.waiting {
		s.Wake()
	}
	c.mu.Unlock()
	for _, r := range c.requests {
		r.finished(c, -1)
	}
}

// newFID returns a number for a file.
func (c *Client) newFID() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.freeFIDs); n > 0 {
		f := c.freeFIDs[n-1]
		c.freeFIDs = c.freeFIDs[:n-1]
		return f
	}
	c.nextFID++
	return c.nextFID
}

func (c *Client) freeFID(f uint32) {
	c.mu.Lock()
	c.freeFIDs = append(c.freeFIDs, f)
	c.mu.Unlock()
}

// Clunk ends the use of a file's number. It does not wait.
func (c *Client) Clunk(fid uint32) {
	if fid == NoFID {
		return
	}
	c.mu.Lock()
	c.dead = append(c.dead, fid)
	if !c.reaper {
		c.reaper = true
		go c.reap()
	}
	c.mu.Unlock()
}

// reap clunks what is not needed any more.
func (c *Client) reap() {
	for {
		c.mu.Lock()
		n := len(c.dead)
		if n == 0 {
			c.reaper, c.dead = false, nil
			c.mu.Unlock()
			return
		}
		fid := c.dead[n-1]
		c.dead = c.dead[:n-1]
		c.mu.Unlock()
		if c.clunk(fid) {
			c.freeFID(fid)
		}
	}
}

// clunk reports whether the number can be used again.
func (c *Client) clunk(fid uint32) bool {
	w := waiterOf(nil)
	r, e := c.begin(&w, tclunk)
	var d decoder
	if e == 0 {
		r.u32(fid)
		d, e = c.call(&w, r, 0)
	}
	e = c.finish(&w, r, &d, e)
	return e != linux.EIO && e != linux.EINTR // else the server may have it still
}
