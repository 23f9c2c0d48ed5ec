package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options for Open. The zero value is what programs want.
type Options struct {
	Path    string // the server's socket; "": see place.go
	NoEmbed bool   // do not become the server when none runs
	// OnLost, if not nil, is told when an entry could not be set again after
	// the server ended, because another process has taken the name.
	OnLost func(name string, err error)
}

// A Client is the connection of a process to its machine's name service, for
// all its goroutines.
type Client struct {
	opts Options
	done chan struct{} // closed by Close
	wg   sync.WaitGroup

	mu       sync.Mutex
	conn     *net.UnixConn      // nil while there is none; guarded by mu
	nextID   uint64             // guarded by mu
	pending  map[uint64]handler // what waits for answers; guarded by mu
	owned    map[string][]byte  // the entries to set again; guarded by mu
	watches  map[*Watch]struct{}
	embedded *Server // if this process serves; guarded by mu
	closed   bool    // guarded by mu
}

// handler is what an answer is for. Its methods are called by the client's
// reader, without locks.
type handler interface {
	// answer takes one answer, and says whether it was the last.
	answer(c *Client, p packet) (last bool)
	// again gives the packet to send when the server has changed, and false for
	// what need not be sent again.
	again() (packet, bool)
	// fail ends it.
	fail(err error)
}

// Open connects to the name service, and becomes it if none runs.
func Open(ctx context.Context, opts Options) (*Client, error) {
	c := &Client{
		opts: opts, done: make(chan struct{}),
		pending: map[uint64]handler{}, owned: map[string][]byte{}, watches: map[*Watch]struct{}{},
		nextID: 1,
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	c.wg.Add(1)
	go c.run(conn)
	return c, nil
}

// Close ends the connection, and with it the entries.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.done)
	if c.conn != nil {
		c.conn.Close()
	}
	embedded := c.embedded
	c.mu.Unlock()
	c.wg.Wait()
	if embedded != nil {
		return embedded.Close()
	}
	return nil
}

// Embedded says whether this process is the server.
func (c *Client) Embedded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.embedded != nil && !c.embedded.isClosed()
}

// connect finds a server or becomes it, says hello, and sets the entries again.
func (c *Client) connect(ctx context.Context) (*net.UnixConn, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		conn, err := c.find()
		if err == nil {
			if err = c.greet(conn); err == nil {
				return conn, nil
			}
			conn.Close()
			var remote *remoteError
			if errors.As(err, &remote) {
				return nil, err // it will say the same again
			}
		} else if !errors.Is(err, errTaken) {
			return nil, err
		}
		// Another process is about to serve, or has just stopped.
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, ErrClosed
		case <-time.After(wait):
		}
	}
}

// find dials the places, and serves if nobody does.
func (c *Client) find() (*net.UnixConn, error) {
	all := places(c.opts.Path)
	for _, path := range all {
		conn, err := dialAt(path)
		if err == nil || !absent(err) {
			return conn, err
		}
	}
	path := all[len(all)-1]
	if c.opts.NoEmbed {
		return nil, fmt.Errorf("%s: %w", path, ErrNoServer)
	}
	server, err := serveAt(path, true)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.embedded = server
	c.mu.Unlock()
	return dialAt(path)
}

// greetTime is how long a server has for its first answers.
const greetTime = 10 * time.Second

// greeting is the first packet on every connection.
var greeting = packet{op: opHello, entry: Entry{Revision: wireVersion}}

// greet says hello on a new connection and sets the own entries, before
// anything else is sent on it.
func (c *Client) greet(conn *net.UnixConn) error {
	buf := make([]byte, maxPacket+1)
	// A server that does not answer is no server.
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return err
	}
	if _, err := ask(conn, greeting, buf); err != nil {
		return err
	}
	c.mu.Lock()
	owned := make([]Entry, 0, len(c.owned))
	for name, value := range c.owned {
		owned = append(owned, Entry{Name: name, Value: value})
	}
	c.mu.Unlock()
	for _, e := range owned {
		_, err := ask(conn, packet{op: opSet, arg: uint8(Replace), entry: e}, buf)
		var remote *remoteError
		if errors.As(err, &remote) && !errors.Is(err, errProtocol) {
			c.mu.Lock()
			delete(c.owned, e.Name)
			c.mu.Unlock()
			if c.opts.OnLost != nil {
				c.opts.OnLost(e.Name, err)
			}
		} else if err != nil {
			return err
		}
	}
	return conn.SetDeadline(time.Time{})
}

// run reads answers, and goes over to the next server when one ends.
func (c *Client) run(conn *net.UnixConn) {
	defer c.wg.Done()
	for {
		c.read(conn)
		conn.Close()
		c.mu.Lock()
		c.conn = nil
		c.mu.Unlock()
		if conn = c.reconnect(); conn == nil {
			break
		}
		c.resume(conn)
	}
	c.mu.Lock()
	pending, watches := c.pending, c.watches
	c.pending, c.watches = nil, nil
	c.mu.Unlock()
	for _, h := range pending {
		h.fail(ErrClosed)
	}
	for w := range watches {
		w.fail(ErrClosed)
	}
}

// read gives answers to those who wait for them, until the connection ends.
func (c *Client) read(conn *net.UnixConn) {
	buf := make([]byte, maxPacket+1)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		p, err := decode(buf[:n])
		if err != nil || p.id == 0 {
			return // it speaks another language, or told why it ends
		}
		c.mu.Lock()
		h := c.pending[p.id]
		c.mu.Unlock()
		if h != nil && h.answer(c, p) {
			c.mu.Lock()
			delete(c.pending, p.id)
			c.mu.Unlock()
		}
	}
}

// reconnect tries until it succeeds, or returns nil after Close.
func (c *Client) reconnect() *net.UnixConn {
	for wait := time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		select {
		case <-c.done:
			return nil
		default:
		}
		if conn, err := c.connect(context.Background()); err == nil {
			return conn
		}
		select {
		case <-c.done:
			return nil
		case <-time.After(wait):
		}
	}
}

// resume makes a new connection the current one and sends on it what has no
// answer yet. What is asked from now on its askers send.
func (c *Client) resume(conn *net.UnixConn) {
	c.mu.Lock()
	if c.closed {
		conn.Close()
	}
	c.conn = conn
	var packets []packet
	for id, h := range c.pending {
		p, ok := h.again()
		if !ok {
			delete(c.pending, id)
			continue
		}
		p.id = id
		packets = append(packets, p)
	}
	watches := make([]*Watch, 0, len(c.watches))
	for w := range c.watches {
		watches = append(watches, w)
	}
	c.mu.Unlock()
	// The server answers while this writes, and waits when its answers are not
	// read: so not in the reader's goroutine.
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		for i := range packets {
			if _, err := conn.Write(packets[i].append(nil)); err != nil {
				return
			}
		}
		for _, w := range watches {
			w.start()
		}
	}()
}

// send gives a handler a number and sends its packet, if there is a connection.
// If there is none, or it breaks, resume does it.
func (c *Client) send(p packet, h handler) (id uint64, err error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, ErrClosed
	}
	p.id = c.nextID
	c.nextID++
	if h != nil {
		c.pending[p.id] = h
	}
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.Write(p.append(make([]byte, 0, headerSize+len(p.entry.Name)+len(p.entry.Value))))
	}
	return p.id, nil
}

// drop forgets a request and, if it stays with the server, ends it there.
func (c *Client) drop(id uint64, lasting bool) {
	c.mu.Lock()
	_, there := c.pending[id]
	delete(c.pending, id)
	closed := c.closed
	c.mu.Unlock()
	if there && lasting && !closed {
		c.send(packet{op: opCancel, entry: Entry{Revision: id}}, nil)
	}
}

// call is a request with one answer, or one list of them.
type call struct {
	request packet
	entries []Entry // only the reader touches them, until done
	done    chan result
}

type result struct {
	p       packet
	entries []Entry
	err     error
}

func (k *call) answer(c *Client, p packet) bool {
	switch {
	case p.op == opError:
		k.done <- result{err: p.err()}
		return true
	case p.op == opEntry && k.request.op == opList:
		k.entries = append(k.entries, p.entry)
		return false
	}
	c.mu.Lock()
	switch {
	case k.request.op == opSet && p.op == opEntry:
		c.owned[p.entry.Name] = k.request.entry.Value
	case k.request.op == opDelete:
		delete(c.owned, k.request.entry.Name)
	}
	c.mu.Unlock()
	k.done <- result{p: p, entries: k.entries}
	return true
}

func (k *call) again() (packet, bool) {
	k.entries = nil
	return k.request, true
}

func (k *call) fail(err error) { k.done <- result{err: err} }

// call asks and waits for the answer.
func (c *Client) call(ctx context.Context, p packet) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	k := &call{request: p, done: make(chan result, 1)}
	id, err := c.send(p, k)
	if err != nil {
		return result{}, err
	}
	select {
	case r := <-k.done:
		return r, r.err
	case <-ctx.Done():
	}
	if p.op == opSet {
		// Nobody will know of the entry if it is yet made.
		c.wg.Add(1)
		go c.unset(k)
	} else {
		c.drop(id, p.op == opWait)
	}
	return result{}, ctx.Err()
}

// unset takes back what a caller who has given up has asked for.
func (c *Client) unset(k *call) {
	defer c.wg.Done()
	if r := <-k.done; r.err == nil {
		c.send(packet{op: opDelete, entry: Entry{Name: r.p.entry.Name}}, &call{
			request: packet{op: opDelete, entry: Entry{Name: r.p.entry.Name}},
			done:    make(chan result, 1),
		})
	}
}

// Set implements Directory.
func (c *Client) Set(ctx context.Context, name string, value []byte, flags Flags) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	if err := checkValue(value); err != nil {
		return Entry{}, err
	}
	if flags&^allFlags != 0 {
		return Entry{}, fmt.Errorf("%w: flags %#x", ErrInvalid, flags)
	}
	value = append([]byte(nil), value...)
	r, err := c.call(ctx, packet{op: opSet, arg: uint8(flags), entry: Entry{Name: name, Value: value}})
	return r.p.entry, err
}

// Get implements Directory.
func (c *Client) Get(ctx context.Context, name string) (Entry, error) {
	return c.one(ctx, opGet, name)
}

// WaitFor implements Directory.
func (c *Client) WaitFor(ctx context.Context, name string) (Entry, error) {
	return c.one(ctx, opWait, name)
}

func (c *Client) one(ctx context.Context, what op, name string) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	r, err := c.call(ctx, packet{op: what, entry: Entry{Name: name}})
	return r.p.entry, err
}

// Count implements Directory.
func (c *Client) Count(ctx context.Context, class string) (int, error) {
	e, err := c.one(ctx, opCount, class)
	return int(e.Revision), err
}

// List implements Directory.
func (c *Client) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	r, err := c.call(ctx, packet{op: opList, entry: Entry{Name: prefix}})
	return r.entries, err
}

// Delete implements Directory.
func (c *Client) Delete(ctx context.Context, name string) error {
	_, err := c.one(ctx, opDelete, name)
	return err
}
