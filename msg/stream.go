package msg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// All are the messages that recv returns, until the other end has closed the
// connection. Any other error is yielded, and is the last, except for a *CallError,
// which does not end the connection. Generated packages have a method of that name.
func All[M any](ctx context.Context, recv func(context.Context) (M, error)) iter.Seq2[M, error] {
	needContext(ctx, "All")
	return func(yield func(M, error) bool) {
		for {
			m, err := recv(ctx)
			if errors.Is(err, ErrPeerClosed) {
				return
			}
			if !yield(m, err) || err != nil && !isCallError(err) {
				return
			}
		}
	}
}

// writer cuts what is written into messages.
type writer struct {
	limit  int
	send   func([]byte) error
	err    error
	closed bool
}

// NewWriter is what a stream of bytes is written by: each Write calls send with
// pieces of at most limit bytes, which must not keep them, and Close calls it with
// none, once. After an error all writes return it.
func NewWriter(limit int, send func(b []byte) error) io.WriteCloser {
	if limit <= 0 || send == nil {
		panic("msg: NewWriter wants a limit above 0 and a function")
	}
	return &writer{limit: limit, send: send}
}

func (w *writer) Write(b []byte) (n int, err error) {
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	for len(b) > 0 && w.err == nil {
		k := min(len(b), w.limit)
		if w.err = w.send(b[:k:k]); w.err == nil {
			n, b = n+k, b[k:]
		}
	}
	return n, w.err
}

func (w *writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.err == nil {
		w.err = w.send(nil)
	}
	return w.err
}

// reader puts messages together.
type reader struct {
	next func() ([]byte, error)
	rest []byte
	err  error
}

// NewReader is what a stream of bytes is read by: next returns the piece of the next
// message, valid until it is called again, or an empty one at the end. A peer that
// closes the connection before is io.ErrUnexpectedEOF.
func NewReader(next func() ([]byte, error)) io.Reader {
	if next == nil {
		panic("msg: NewReader wants a function")
	}
	return &reader{next: next}
}

func (r *reader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(r.rest) == 0 && r.err == nil {
		switch r.rest, r.err = r.next(); {
		case errors.Is(r.err, ErrPeerClosed):
			r.rest, r.err = nil, fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, r.err)
		case r.err == nil && len(r.rest) == 0:
			r.err = io.EOF
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Unexpected is the error for a message that the program has no use for here.
func Unexpected(i *Interface, num uint16) error {
	name := fmt.Sprint(num)
	if m := i.Message(num); m != nil {
		name = m.Name
	}
	return fmt.Errorf("msg: the message %s of %s came where none of its kind is expected", name, i.Name)
}
