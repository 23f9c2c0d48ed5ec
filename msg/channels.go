package msg

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Channels is the channel form of a connection: two Go channels of messages and
// one of errors.
type Channels[M any] struct {
	// Send takes what is to be sent. Closing it closes the connection once all
	// that was put in before is sent.
	Send chan<- M
	// Recv brings what was received, in order, and is closed after the last.
	Recv <-chan M
	// Errs brings every error: of a message that could not be sent, which is
	// dropped, of a call that failed at the other end (*CallError), and, last, why the connection ended; nothing if either end
	// closed it. It is closed after the last. It has room for a few; when
	// nobody takes them, later ones but the last are dropped.
	Errs <-chan error
	c    *Conn
}

// Conn is the connection, whose Begin and Next must no longer be called.
func (ch *Channels[M]) Conn() *Conn { return ch.c }

// Close closes the connection at once. What is still in Send is lost.
func (ch *Channels[M]) Close() error { return ch.c.Close() }

// NewChannels gives a connection its channel form. encode sends a message;
// decode makes one, which must not refer to body, of what was received.
func NewChannels[M any](c *Conn, encode func(context.Context, M) error, decode func(num uint16, body []byte) (M, error)) *Channels[M] {
	send, recv, errs := make(chan M, c.opts.Buffer), make(chan M, c.opts.Buffer), make(chan error, 8)
	p := &pump[M]{c: c, send: send, recv: recv, errs: errs, encode: encode, decode: decode, baton: make(chan []M, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.work.Add(2)
	go p.sending()
	go p.receiving()
	go func() {
		p.work.Wait()
		if err := c.Err(); err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrPeerClosed) {
			p.report(err)
		}
		close(errs)
	}()
	return &Channels[M]{Send: send, Recv: recv, Errs: errs, c: c}
}

// pump moves messages between a connection and Go channels.
//
// A switch between goroutines costs as much as a cache line that moves, so on a
// busy connection one goroutine does everything: it polls the ring and, in
// between, sends what is in the channel. It never waits for room, or with the
// ring empty for long; before it does, it passes the baton, that is the right to
// take from the channel and to send, to the other goroutine, which may wait.
// That passes it back after its next message, if the first wants it.
type pump[M any] struct {
	c      *Conn
	send   <-chan M
	recv   chan<- M
	errs   chan error
	encode func(context.Context, M) error
	decode func(uint16, []byte) (M, error)
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	baton chan []M     // passes the baton to sending, with a message taken and not sent
	who   atomic.Int32 // who has the baton
	owed  bool         // receiving has woken the program, which has not run yet
}

// Who has the baton. receiving makes 0 or 2 into 1, and 1 into 2; sending makes
// 2 into 0.
const (
	receivingHas = iota
	sendingHas
	sendingWanted // sending has it and is to give it back
)

// noTime is a context that waits for nothing.
var noTime = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoRoom)
	return ctx
}()

var errNoRoom = errors.New("msg: no room")

// hotPolls is how often the first goroutine finds nothing to do, in spinBlock
// polls, before it passes the baton: about 50 µs.
const hotPolls = 256

// report puts an error into the channel, over the oldest if it is full.
func (p *pump[M]) report(err error) {
	for {
		select {
		case p.errs <- err:
			return
		default:
		}
		select {
		case <-p.errs:
		default:
		}
	}
}

// sending sends while it has the baton.
func (p *pump[M]) sending() {
	defer p.work.Done()
	for {
		select {
		case first := <-p.baton:
			for _, m := range first {
				p.put(m)
			}
			if !p.sendSome() {
				return
			}
		case <-p.c.Done():
			// Whoever sends must not block for ever on a connection that ended.
			for range p.send {
			}
			return
		}
	}
}

// sendSome sends until the baton is wanted back, and gives it back. It reports
// whether there may be more.
func (p *pump[M]) sendSome() bool {
	for p.who.Load() != sendingWanted || !p.who.CompareAndSwap(sendingWanted, receivingHas) {
		var m M
		ok := true
		select {
		case m, ok = <-p.send: // alone, it is quicker
		default:
			select {
			case m, ok = <-p.send:
			case <-p.c.Done():
				return true
			}
		}
		if !ok {
			p.c.Close()
			return false
		}
		p.put(m)
	}
	return true
}

// put sends one message, waiting for room.
func (p *pump[M]) put(m M) {
	if err := p.encode(p.ctx, m); err != nil && p.c.Err() == nil {
		p.report(err)
	}
}

// pass passes the baton, if this goroutine has it, and leaves it where it is
// otherwise.
func (p *pump[M]) pass(unsent ...M) {
	if !p.who.CompareAndSwap(sendingWanted, sendingHas) && p.who.CompareAndSwap(receivingHas, sendingHas) {
		p.baton <- unsent
	}
}

// drain sends what is in the channel as far as there is room, and returns how
// many messages there were.
func (p *pump[M]) drain() (n int) {
	if p.who.Load() != receivingHas {
		return 0
	}
	for ; ; n++ {
		select {
		case m, ok := <-p.send:
			if !ok {
				p.c.Close()
				return n
			}
			switch err := p.encode(noTime, m); {
			case err == nil:
			case errors.Is(err, context.Canceled):
				p.pass(m)
				return n + 1
			case p.c.Err() == nil:
				p.report(err)
			}
		default:
			return n
		}
	}
}

func (p *pump[M]) receiving() {
	defer p.work.Done()
	defer close(p.recv)
	defer p.cancel()
	defer p.pass()
	for idle := 0; ; idle++ {
		if p.owed && !p.c.Ready() { // it has all there is
			p.owed = false
			runtime.Gosched()
		}
		if n := p.drain(); n > 0 {
			if idle = 0; n > 1 { // the program sends more than it waits for
				runtime.Gosched()
			}
		}
		for i := 0; i < spinBlock && len(p.send) == 0 && !p.c.Ready(); i++ {
		}
		if !p.c.Ready() && idle < hotPolls && p.c.attn.Load()&attnClosed == 0 {
			if len(p.send) == 0 || p.who.Load() != receivingHas {
				runtime.Gosched()
			}
			continue
		}
		if !p.c.Ready() {
			p.pass()
		}
		num, body, err := p.c.Next(p.ctx)
		if failed := (*CallError)(nil); errors.As(err, &failed) {
			p.report(err) // of a call that this program sent
			continue
		}
		if err != nil {
			return
		}
		if p.who.Load() == sendingHas {
			p.who.CompareAndSwap(sendingHas, sendingWanted)
		}
		m, err := p.decode(num, body)
		if err != nil {
			p.c.Fail(err)
			return
		}
		if !p.deliver(m) {
			return
		}
		idle = 0
	}
}

// deliver hands a message to the program.
func (p *pump[M]) deliver(m M) bool {
	select {
	case p.recv <- m:
		if len(p.recv) == 0 { // somebody was waiting for it, and can run
			p.owed = true
		}
		return true
	default:
	}
	p.pass() // the program may have to send before it receives
	select {
	case p.recv <- m:
	case <-p.c.Done():
		if p.c.Err() != ErrPeerClosed {
			return false
		}
		p.recv <- m // what came before the end is still delivered
	}
	return true
}
