package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Bounds of what one connection has the server do at a time. Calls beyond them
// wait in the connection's ring, as does what comes after them.
const (
	maxServing     = 256     // handlers of calls that run
	maxServeQueued = 4096    // calls that wait for them,
	maxServeBytes  = 4 << 20 // and their bodies, in bytes, but that one is always taken
)

// serving is what a connection has under way in ServeCalls.
type serving struct {
	c    *Conn
	ctx  context.Context // of the whole connection
	work sync.WaitGroup
	room chan struct{} // full after a queued call was taken up

	mu      sync.Mutex
	calls   map[uint32]context.CancelCauseFunc // guarded by mu
	running int                                // guarded by mu
	queue   []servedCall                       // guarded by mu
	bytes   int                                // of queue; guarded by mu
}

// servedCall is a call that was received.
type servedCall struct {
	id     uint32
	ctx    context.Context
	cancel context.CancelCauseFunc
	bytes  int
	answer func(context.Context) error
}

// ServeCalls is what generated Serve methods are made of. It receives until the
// connection or ctx ends, gives each message to take, and at the end closes the
// connection and waits for all that it has started. It returns nil if either end
// closed the connection, otherwise why it ended.
//
// take decodes a message. One that is no call it also handles, before the next is
// looked at. For a call it returns what runs its handler and sends the reply, which
// is called on a goroutine of its own, many at a time. An error that this returns goes
// to the caller; one of take closes the connection. With Options.Inline it is called at once. The context of a handler ends
// when its caller gives the call up (context.Cause is then ErrGivenUp), when the
// connection ends and when ctx does.
func (c *Conn) ServeCalls(ctx context.Context, take takes) error {
	c.made("Serve with")
	needContext(ctx, "Serve")
	c.Share()
	c.recv.own = true
	run, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.stop = cancel
	if c.err != nil && !errors.Is(c.err, ErrPeerClosed) {
		cancel(c.err)
	}
	c.mu.Unlock()
	s := &serving{c: c, ctx: run, room: make(chan struct{}, 1), calls: make(map[uint32]context.CancelCauseFunc)}
	err := s.receive(take)
	cancel(err)
	s.drop()
	c.Close()
	s.work.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrPeerClosed), errors.Is(err, ErrClosed):
		return nil
	}
	return err
}

// takes is what ServeCalls is given.
type takes = func(ctx context.Context, num uint16, body []byte) (answer func(context.Context) error, err error)

// receive takes messages in until the connection ends.
func (s *serving) receive(take takes) error {
	c := s.c
	if c.opts.Inline {
		c.recv.handle = func() { s.handle(take) }
	}
	for {
		num, body, err := c.Next(s.ctx)
		if err != nil {
			if cause := c.Err(); cause != nil { // and that ended the context
				return cause
			}
			return err
		}
		if err := s.message(take, num, body); err != nil {
			return err
		}
	}
}

// message serves one message.
func (s *serving) message(take takes, num uint16, body []byte) error {
	c := s.c
	if num == numGivenUp {
		s.givenUp(binary.LittleEndian.Uint32(body))
		return nil
	}
	if num == numFailed {
		return c.Fail(&PeerError{"an error reply where nobody calls"})
	}
	answer, err := take(s.ctx, num, body)
	if err != nil {
		return c.Fail(err)
	}
	if answer == nil {
		return nil
	}
	id := binary.LittleEndian.Uint32(body)
	if !c.opts.Inline {
		return s.start(id, len(body), answer)
	}
	if err := answer(s.ctx); err != nil && s.ctx.Err() == nil && c.Err() == nil {
		c.ReplyError(s.ctx, id, err) // if it cannot be sent, the connection has ended
	}
	return nil
}

// inlineSlots is room for a reply of any error. inlineMost is how many messages are served at a
// time instead of waking the receiver: a peer that sends without end is the receiver's to deal with.
const (
	inlineSlots = (failedBytes+MaxErrorText)/SlotBytes + 1
	inlineMost  = 32
)

// handle serves messages that are there, if nothing can make it wait: whole ones, in slots,
// while there is room for a reply. The receiver sleeps, or is about to, so the peer hears of all
// room that this has made.
func (s *serving) handle(take takes) {
	c, r := s.c, &s.c.recv
	before := r.rx.Count
	defer func() {
		if r.rx.Count != before && c.attn.Load()&^attnFence == attnMade|attnShared && r.rx.Flush(true) {
			r.shared.Wake()
		}
	}()
	for range inlineMost {
		if c.attn.Load()&^attnFence != attnMade|attnShared || r.slow || len(r.frag) > 0 || !r.rx.Here() || !c.roomNow(inlineSlots) {
			return
		}
		num, body, err := c.Next(s.ctx)
		if err != nil || s.message(take, num, body) != nil {
			return // the connection has ended
		}
	}
}

// start has a call answered, now or when fewer run.
func (s *serving) start(id uint32, bytes int, answer func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(s.ctx)
	call := servedCall{id, ctx, cancel, bytes, answer}
	s.mu.Lock()
	if s.calls[id] != nil {
		s.mu.Unlock()
		cancel(nil)
		return s.c.Fail(&PeerError{fmt.Sprintf("two calls with the number %d", id)})
	}
	s.calls[id] = cancel
	serving, waiting := maxServing, maxServeQueued
	if n := s.c.opts.Calls; n > 0 {
		serving, waiting = n, n
	}
	if s.running < serving {
		s.running++
		s.mu.Unlock()
		s.work.Add(1)
		go s.serve(call)
		if !s.c.Ready() {
			runtime.Gosched() // to the handler, which may be all that there is to do
		}
		return nil
	}
	s.queue = append(s.queue, call)
	s.bytes += bytes
	for len(s.queue) >= waiting || s.bytes >= maxServeBytes {
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return nil
}

// serve answers a call, and then those that wait.
func (s *serving) serve(call servedCall) {
	defer s.work.Done()
	for {
		if call.ctx.Err() == nil { // else nobody waits
			if err := call.answer(call.ctx); err != nil && call.ctx.Err() == nil && s.c.Err() == nil {
				s.c.ReplyError(s.ctx, call.id, err) // if it cannot be sent, the connection has ended
			}
		}
		call.cancel(nil)
		s.mu.Lock()
		delete(s.calls, call.id)
		if len(s.queue) == 0 {
			s.running--
			s.mu.Unlock()
			return
		}
		call = s.queue[0]
		s.queue = s.queue[1:]
		s.bytes -= call.bytes
		s.mu.Unlock()
		select {
		case s.room <- struct{}{}:
		default:
		}
	}
}

// givenUp ends the context of a call, if it is still under way.
func (s *serving) givenUp(id uint32) {
	s.mu.Lock()
	cancel := s.calls[id]
	s.mu.Unlock()
	if cancel != nil {
		cancel(ErrGivenUp)
	}
}

// drop forgets the calls that nobody has taken up.
func (s *serving) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.queue {
		call.cancel(nil)
	}
	s.queue = nil
}

// ServeConns accepts connections and has serve handle each on a goroutine of its
// own, until ctx ends or the server is closed; then it waits for those. It returns
// ctx's error, or nil.
func (s *Server) ServeConns(ctx context.Context, serve func(context.Context, *Conn)) error {
	s.made("Serve")
	needContext(ctx, "Serve")
	if serve == nil {
		panic("msg: ServeConns with a nil function")
	}
	var work sync.WaitGroup
	defer work.Wait()
	for {
		c, err := s.Accept(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return ctx.Err()
		case errors.Is(err, ErrClosed):
			return nil
		case err != nil:
			return err
		}
		work.Go(func() { serve(ctx, c) })
	}
}
