package monitor

import (
	"context"
	"fmt"
	"sync"

	"hardtack/msg"
)

// Scheme is what addresses of a kernel's driver start with; the number of a cluster
// follows.
const Scheme = "cluster"

// Driver makes links between the kernels of a machine. They are there from the start of
// a cluster on: one to call its monitor, and one on which that calls.
type Driver struct {
	scheme string
	mu     sync.Mutex
	dial   map[string]*Link
	calls  chan msg.Link
}

func newDriver(scheme string) *Driver {
	return &Driver{scheme: scheme, dial: map[string]*Link{}, calls: make(chan msg.Link, maxClusters)}
}

const maxClusters = 16

// Add gives the driver the links to a cluster that has come up: out, on which this kernel
// calls, and in, on which it is called.
func (d *Driver) Add(index int, out, in *Link) {
	d.mu.Lock()
	d.dial[d.address(index)] = out
	d.mu.Unlock()
	d.calls <- in
}

// drop forgets a link that nobody has dialled.
func (d *Driver) drop(index int) {
	d.mu.Lock()
	delete(d.dial, d.address(index))
	d.mu.Unlock()
}

// address is where a cluster's monitor is.
func (d *Driver) address(index int) string { return fmt.Sprintf("%s:%d", d.scheme, index) }

// Scheme implements msg.Driver.
func (d *Driver) Scheme() string { return d.scheme }

// Dial implements msg.Driver. A link can be dialled once.
func (d *Driver) Dial(_ context.Context, addr string) (msg.Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.dial[addr]
	if l == nil {
		return nil, fmt.Errorf("%w: %s", msg.ErrNoName, addr)
	}
	delete(d.dial, addr)
	return l, nil
}

// Listen implements msg.Driver.
func (d *Driver) Listen(_ context.Context, name, _ string) (msg.Listener, error) {
	return &listener{d: d, addr: d.scheme + ":" + name, done: make(chan struct{})}, nil
}

type listener struct {
	d    *Driver
	addr string
	done chan struct{}
	once sync.Once
}

func (l *listener) Accept(ctx context.Context) (msg.Link, error) {
	select {
	case k := <-l.d.calls:
		return k, nil
	case <-l.done:
		return nil, msg.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}
