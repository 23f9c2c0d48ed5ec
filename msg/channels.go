package msg

import (
	"context"
	"errors"
	"sync"
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
	// dropped, and, last, why the connection ended; nothing if either end
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
	p := &pump[M]{c: c, send: send, recv: recv, errs: errs, encode: encode, decode: decode}
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
}

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

func (p *pump[M]) sending() {
	defer p.work.Done()
	for {
		select {
		case m, ok := <-p.send:
			if !ok {
				p.c.Close()
				return
			}
			if err := p.encode(p.ctx, m); err != nil && p.c.Err() == nil {
				p.report(err)
			}
		case <-p.c.Done():
			// Whoever sends must not block for ever on a connection that ended.
			for range p.send {
			}
			return
		}
	}
}

func (p *pump[M]) receiving() {
	defer p.work.Done()
	defer close(p.recv)
	defer p.cancel()
	for {
		num, body, err := p.c.Next(p.ctx)
		if err != nil {
			return
		}
		m, err := p.decode(num, body)
		if err != nil {
			p.c.Fail(err)
			return
		}
		select {
		case p.recv <- m:
			continue
		default:
		}
		select {
		case p.recv <- m:
		case <-p.c.Done():
			if p.c.Err() != ErrPeerClosed {
				return
			}
			p.recv <- m // what came before the end is still delivered
		}
	}
}
