package msg

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
)

// The driver "inproc" joins goroutines of one process: rings in ordinary
// memory, frames through Go channels, descriptors as they are.

func init() { Register(&inproc{services: make(map[string]*inprocListener)}) }

type inproc struct {
	mu       sync.Mutex
	services map[string]*inprocListener // guarded by mu
}

type inprocListener struct {
	d     *inproc
	name  string
	links chan Link
	done  chan struct{}
	once  sync.Once
}

func (d *inproc) Scheme() string { return "inproc" }

func (d *inproc) Listen(_ context.Context, name, _ string) (Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.services[name] != nil {
		return nil, fmt.Errorf("%w: inproc:%s", ErrTaken, name)
	}
	l := &inprocListener{d: d, name: name, links: make(chan Link), done: make(chan struct{})}
	d.services[name] = l
	return l, nil
}

func (d *inproc) Dial(ctx context.Context, addr string) (Link, error) {
	d.mu.Lock()
	l := d.services[addr[len("inproc:"):]]
	d.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoName, addr)
	}
	a, b := inprocPair(addr, 1)
	select {
	case l.links <- b:
		return a, nil
	case <-l.done:
		return nil, fmt.Errorf("%w: %s", ErrNoName, addr)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *inprocListener) Accept(ctx context.Context) (Link, error) {
	select {
	case k := <-l.links:
		return k, nil
	case <-l.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *inprocListener) Addr() string { return "inproc:" + l.name }

func (l *inprocListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.d.mu.Lock()
		delete(l.d.services, l.name)
		l.d.mu.Unlock()
	})
	return nil
}

// inprocLink is one end of a link within the process.
type inprocLink struct {
	shared *local
	addr   string
	out    chan inprocFrame // to the peer
	in     chan inprocFrame
	done   chan struct{} // this end was closed
	once   sync.Once
	peer   *inprocLink
}

type inprocFrame struct {
	b     []byte
	files []*os.File
}

func inprocPair(addr string, pages int) (a, b *inprocLink) {
	x, y := newLocal(pages)
	p, q := make(chan inprocFrame, 16), make(chan inprocFrame, 16)
	a = &inprocLink{shared: x, addr: addr, out: p, in: q, done: make(chan struct{})}
	b = &inprocLink{shared: y, addr: addr, out: q, in: p, done: make(chan struct{})}
	a.peer, b.peer = b, a
	return a, b
}

// Send passes duplicates of the files, as the kernel would.
func (l *inprocLink) Send(ctx context.Context, frame []byte, files []*os.File) error {
	f := inprocFrame{b: append([]byte(nil), frame...)}
	for _, file := range files {
		dup, err := dupNamed(file, file.Name())
		if err != nil {
			f.close()
			return err
		}
		f.files = append(f.files, dup)
	}
	select {
	case <-l.done:
		f.close()
		return ErrClosed
	default:
	}
	select {
	case l.out <- f:
		return nil
	case <-l.done:
		f.close()
		return ErrClosed
	case <-l.peer.done:
		f.close()
		return io.EOF
	case <-ctx.Done():
		f.close()
		return ctx.Err()
	}
}

func (f inprocFrame) close() {
	for _, file := range f.files {
		file.Close()
	}
}

func (l *inprocLink) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	select {
	case f := <-l.in: // before the end of the link
		return f.b, f.files, nil
	default:
	}
	select {
	case f := <-l.in:
		return f.b, f.files, nil
	case <-l.done:
		return nil, nil, ErrClosed
	case <-l.peer.done:
		select {
		case f := <-l.in:
			return f.b, f.files, nil
		default:
			return nil, nil, io.EOF
		}
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (l *inprocLink) CanPass() bool  { return true }
func (l *inprocLink) Shared() Shared { return l.shared }

func (l *inprocLink) Peer() Peer {
	return Peer{PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Scheme: "inproc", Addr: l.addr}
}

func (l *inprocLink) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}
