// Package service lets programs call services of the kernel by typed channels: for each service a
// device in /dev/kernel, which carries the frames of package msg (driver msg/kernel).
//
// # Use
//
// Add makes a service's device, and Serve the service. Its handlers get the Client, who has opened the device; what
// they may do for it is decided by Client.Cred, which the kernel took when the file was opened, and
// never by what a message says.
//
// # Hostile clients
//
// A connection keeps buffers of a fixed size, bounded rings and at most Calls handlers, and as
// many calls that wait for them. Its goroutines wait for nobody else's connection: a client that floods,
// stops half-way or never reads holds up itself. Connections are charged to their user (pool), and
// are in the ledger of who has the file open.
//
// # Lock order
//
// A handler's own locks, Client.sendMu, Client.mu, then the file's queue. Client.readMu comes before
// Client.mu, and the address space of who reads. listener.mu is a leaf.
package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/msg"
)

// Scheme is what addresses of services start with, for the kernel and for programs.
const Scheme = "kernel"

// Bounds of a connection.
const (
	Calls   = 8
	maxBody = 16 << 10
	backlog = 64 // connections that nobody has greeted yet
)

// firstMinor is the number of the first service's device, where Linux has none.
const firstMinor = 241

// driver is where services listen. It implements msg.Driver.
type driver struct {
	mu       sync.Mutex
	services []*listener // guarded by mu
	devices  uint32      // how many there are; guarded by mu
	last     uint64      // the number of the newest connection; guarded by mu
}

var services = sync.OnceValue(func() *driver {
	d := new(driver)
	msg.Register(d)
	return d
})

// Options are a service's.
func Options() *msg.Options {
	services()
	return &msg.Options{Resolver: nobody{}, Schemes: []string{Scheme}, Users: []int{msg.AnyUser}, MaxBody: maxBody,
		Grace: time.Nanosecond, Spin: -1, Calls: Calls}
}

// Served is what generated connections have.
type Served interface{ Peer() msg.Peer }

// Add makes the device of a service, which starts when it is first opened: start calls Serve.
func Add(name string, start func() error) error {
	d := services()
	d.mu.Lock()
	minor := firstMinor + d.devices
	d.devices++
	d.mu.Unlock()
	started := sync.OnceValue(func() *listener {
		if err := start(); err != nil {
			fmt.Printf("kernel: the service %s: %v\n", name, err)
		}
		return d.find(name)
	})
	vfs.RegisterChar(linux.MISC_MAJOR, minor, func(c *caller.Ctx, _ uint32) (vfs.Ops, linux.Errno) {
		l := started()
		if l == nil {
			return nil, linux.ENXIO
		}
		return l.open(c)
	})
	if e := devfs.AddService(name, linux.Makedev(linux.MISC_MAJOR, minor)); e != 0 {
		return fmt.Errorf("service %s: %w", name, e)
	}
	return nil
}

// Serve makes a service of the stubs of an interface: accept takes the next connection, and
// serve serves one until it ends.
func Serve[C Served](name string, accept func(context.Context) (C, error), serve func(context.Context, *Client, C)) error {
	l := services().find(name)
	if l == nil {
		return fmt.Errorf("nobody listens")
	}
	go func() {
		for {
			conn, err := accept(context.Background())
			if err != nil {
				return
			}
			x := l.client(conn.Peer().Addr)
			if x == nil { // it has ended
				continue
			}
			go func() {
				x.enter()
				defer x.leave()
				serve(context.Background(), x, conn)
			}()
		}
	}()
	return nil
}

func (d *driver) find(name string) *listener {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.services {
		if l.name == name {
			return l
		}
	}
	return nil
}

// Scheme implements msg.Driver.
func (d *driver) Scheme() string { return Scheme }

// Dial implements msg.Driver: the kernel does not call itself.
func (d *driver) Dial(_ context.Context, addr string) (msg.Link, error) {
	return nil, fmt.Errorf("%w: %s", msg.ErrNoName, addr)
}

// Listen implements msg.Driver.
func (d *driver) Listen(_ context.Context, name, _ string) (msg.Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &listener{d: d, name: name, links: make(chan *Client, backlog), done: make(chan struct{}), all: map[string]*Client{}}
	d.services = append(d.services, l)
	return l, nil
}

// listener is a service.
type listener struct {
	d     *driver
	name  string
	links chan *Client
	done  chan struct{}
	once  sync.Once

	mu  sync.Mutex
	all map[string]*Client // by address; guarded by mu
}

// open is what opening the device does.
func (l *listener) open(c *caller.Ctx) (vfs.Ops, linux.Errno) {
	t := proc.Of(c)
	if t == nil {
		return nil, linux.ENXIO
	}
	if !pool.Get().Charge(c.User(), 1) {
		return nil, linux.ENFILE
	}
	l.d.mu.Lock()
	l.d.last++
	addr := fmt.Sprintf("%s:%s/%d", Scheme, l.name, l.d.last)
	l.d.mu.Unlock()
	x := &Client{Cred: c.Cred(), PID: t.Proc.PID, Origin: t.Origin(), user: c.User(), s: l, addr: addr,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	l.mu.Lock()
	l.all[addr] = x
	l.mu.Unlock()
	select {
	case l.links <- x:
		return x, 0
	default: // more than the service's goroutine has come to yet
		x.Close()
		x.Release(nil)
		return nil, linux.EAGAIN
	}
}

func (l *listener) client(addr string) *Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[addr]
}

func (l *listener) forget(x *Client) {
	l.mu.Lock()
	delete(l.all, x.addr)
	l.mu.Unlock()
}

// Accept implements msg.Listener.
func (l *listener) Accept(ctx context.Context) (msg.Link, error) {
	select {
	case x := <-l.links:
		return x, nil
	case <-l.done:
		return nil, msg.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Addr implements msg.Listener.
func (l *listener) Addr() string { return Scheme + ":" + l.name }

// Close implements msg.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// nobody is a resolver without names: services are dialled by address.
type nobody struct{}

func (nobody) Place(context.Context, string, string) (string, error) { return "", nil }

func (nobody) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

func (nobody) Resolve(_ context.Context, name string, _ bool) (e msg.Endpoint, err error) {
	return e, fmt.Errorf("%w: %s", msg.ErrNoName, name)
}
