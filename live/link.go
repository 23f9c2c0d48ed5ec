// Package live carries the calls of idl/live.if between a machine's kernel and its process
// on the host: a link of msg over a stream of bytes, a port of the virtio console.
//
// # Use
//
// Each side makes a Link of what writes to the stream, gives it the bytes that come in
// (Feed), and makes a Driver of it. The kernel serves; the host dials, once.
//
// # Trust
//
// Neither side believes the other: a frame is bounded, and so is what waits to be read.
// Who breaks that loses the link, for good; the machine goes on without.
package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"hardtack/msg"
)

// Port is the name of the console port.
const Port = "hardtack.live"

// Scheme is what addresses of the driver start with.
const Scheme = "live"

// Sessions are how many programs may run at a time that were started from the host.
const Sessions = 100

// waitingMost bounds what has come in and was not read. What msg has on its way is far less.
const waitingMost = 4 << 20

const headBytes = 4

// bodyMost is more than any message of idl/live.if has.
const bodyMost = 64 << 10

var errFlood = errors.New("live: the peer sends more than it may")

// Link is one end of the stream. It implements msg.Link.
type Link struct {
	w      io.Writer
	sendMu sync.Mutex // one frame at a time

	mu    sync.Mutex
	wake  chan struct{} // closed and replaced when what is below changes
	in    []byte        // not read; guarded by mu
	err   error         // why nothing more comes; guarded by mu
	frame []byte        // of the last Recv
}

// NewLink makes an end that writes to w.
func NewLink(w io.Writer) *Link { return &Link{w: w, wake: make(chan struct{})} }

// changed wakes Recv. Needs mu.
func (l *Link) changed() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// Feed takes bytes that came in. It does not wait, nor keep b.
func (l *Link) Feed(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if len(l.in)+len(b) > waitingMost {
		l.end(errFlood)
		return
	}
	l.in = append(l.in, b...)
	l.changed()
}

// End says why no more bytes come.
func (l *Link) End(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(err)
}

func (l *Link) end(err error) {
	if l.err == nil {
		l.err = err
		l.changed()
	}
}

// Send implements msg.Link.
func (l *Link) Send(_ context.Context, frame []byte, files []*os.File) error {
	if len(files) > 0 {
		return msg.ErrNoCaps
	}
	if len(frame) > msg.MaxFrame {
		return fmt.Errorf("live: a frame of %d bytes", len(frame))
	}
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	b := append(binary.LittleEndian.AppendUint32(make([]byte, 0, headBytes+len(frame)), uint32(len(frame))), frame...)
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	_, err = l.w.Write(b)
	return err
}

// Recv implements msg.Link.
func (l *Link) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	for {
		l.mu.Lock()
		ok, err := l.take()
		wake := l.wake
		l.mu.Unlock()
		if ok || err != nil {
			return l.frame, nil, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// begun waits for the first bytes, or for the link's end.
func (l *Link) begun(ctx context.Context, done <-chan struct{}) error {
	for {
		l.mu.Lock()
		begun, wake := len(l.in) > 0 || l.err != nil, l.wake
		l.mu.Unlock()
		if begun {
			return nil
		}
		select {
		case <-wake:
		case <-done:
			return msg.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take moves a whole frame out of what came in. Needs mu.
func (l *Link) take() (bool, error) {
	if len(l.in) >= headBytes {
		n := binary.LittleEndian.Uint32(l.in)
		if n > msg.MaxFrame {
			l.end(fmt.Errorf("live: a frame of %d bytes", n))
			return false, &msg.PeerError{Reason: l.err.Error()}
		}
		if len(l.in) >= headBytes+int(n) {
			l.frame = append(l.frame[:0], l.in[headBytes:headBytes+n]...)
			if l.in = l.in[headBytes+n:]; len(l.in) == 0 {
				l.in = nil
			}
			return true, nil
		}
	}
	return false, l.err
}

// CanPass implements msg.Link: descriptors do not leave a machine.
func (l *Link) CanPass() bool { return false }

// Peer implements msg.Link.
func (l *Link) Peer() msg.Peer { return msg.Peer{UID: -1, GID: -1, Scheme: Scheme, Addr: Scheme} }

// Shared implements msg.Link.
func (l *Link) Shared() msg.Shared { return nil }

// Close implements msg.Link.
func (l *Link) Close() error {
	l.End(io.EOF)
	return nil
}

// Driver has one link, for the life of the machine.
type Driver struct {
	scheme string
	mu     sync.Mutex
	link   *Link // nil once it was taken; guarded by mu
}

// NewDriver makes the driver of a link and makes it known to msg by the scheme.
func NewDriver(scheme string, l *Link) *Driver {
	d := &Driver{scheme: scheme, link: l}
	msg.Register(d)
	return d
}

// Options are those of both sides.
func (d *Driver) Options() *msg.Options {
	return &msg.Options{Resolver: nobody{}, Schemes: []string{d.scheme}, Grace: time.Nanosecond, MaxBody: bodyMost}
}

// Addr is what the host dials.
func (d *Driver) Addr() string { return d.scheme + ":" }

// Scheme implements msg.Driver.
func (d *Driver) Scheme() string { return d.scheme }

func (d *Driver) take() *Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.link
	d.link = nil
	return l
}

// Dial implements msg.Driver.
func (d *Driver) Dial(context.Context, string) (msg.Link, error) {
	if l := d.take(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: the machine's port is in use", msg.ErrNoName)
}

// Listen implements msg.Driver.
func (d *Driver) Listen(context.Context, string, string) (msg.Listener, error) {
	return &listener{d: d, done: make(chan struct{})}, nil
}

type listener struct {
	d    *Driver
	done chan struct{}
	once sync.Once
}

// Accept returns the link when something has come from the other side. A link is expected to
// greet soon once it was accepted, and the host may look in at any time.
func (l *listener) Accept(ctx context.Context) (msg.Link, error) {
	if k := l.d.take(); k != nil {
		if err := k.begun(ctx, l.done); err != nil {
			return nil, err
		}
		return k, nil
	}
	select {
	case <-l.done:
		return nil, msg.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Addr() string { return l.d.Addr() }

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// nobody is a resolver without names: a machine is dialled by address.
type nobody struct{}

func (nobody) Place(context.Context, string, string) (string, error) { return "", nil }

func (nobody) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

func (nobody) Resolve(_ context.Context, name string, _ bool) (e msg.Endpoint, err error) {
	return e, fmt.Errorf("%w: %s", msg.ErrNoName, name)
}
