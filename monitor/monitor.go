// Package monitor joins the kernels of one machine, its clusters: each has a monitor,
// which serves the interface idl/monitor.if to the others.
//
// # Use
//
// The first cluster makes an area of memory for each direction of calls when it starts
// another one, and both make a Link over each (NewLink). New serves and Join calls. What
// a kernel does on a call is its Host.
//
// # Trust
//
// A peer may stop at any time or write anything into an area. Link and msg check what
// they read; a broken rule ends the link.
//
// # Lock order
//
// Monitor.mu, then Driver.mu or a peer's mu, then that of the loans; a Link's gate comes last. What is told of a
// channel's changes (Notify) is told with the peer's mu held. Bottom halves call Rung, which
// takes the gate's lock alone.
package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"hardtack/idl/monitor"
	"hardtack/monitor/broker"
	"hardtack/msg"
)

// Host is what a monitor needs of its kernel.
type Host interface {
	Health() monitor.HealthReply
	// Stop ends the kernel with a status, soon after it returned.
	Stop(status uint8) error
	// What the first cluster asks to move processors and memory.
	broker.Kernel
	// The frames of rings.
	Memory
}

// Monitor is a kernel's own.
type Monitor struct {
	driver *Driver
	host   Host
	loans  loans // of the first cluster

	mu    sync.Mutex
	links []*Link // guarded by mu, as all below
	conns map[int]*monitor.Conn
	call  map[int]*monitor.Client
	peers map[int]*peer
	from  map[string]*peer     // by where its calls come from
	names map[string]*Listener // of processes
	asked map[uint32]*question // by turn
	lives int                  // how many joined
}

// New makes the kernel's monitor and serves those that Join.
func New(host Host) (*Monitor, error) { return start(host, Scheme) }

func start(host Host, scheme string) (*Monitor, error) {
	m := &Monitor{
		driver: newDriver(scheme), host: host, conns: map[int]*monitor.Conn{}, call: map[int]*monitor.Client{},
		loans: loans{all: map[uint32]*loan{}, lent: map[int]int{}},
		peers: map[int]*peer{}, from: map[string]*peer{}, names: map[string]*Listener{}, asked: map[uint32]*question{},
	}
	msg.Register(m.driver)
	s, err := monitor.Export(context.Background(), "monitor", options(scheme))
	if err != nil {
		return nil, err
	}
	go s.Serve(context.Background(), func(c *monitor.Conn) monitor.Handler {
		m.mu.Lock()
		defer m.mu.Unlock()
		p := m.from[c.Peer().Addr]
		if p != nil {
			go func() {
				<-c.Done()
				p.end()
			}()
		}
		return handler{m, p}
	})
	return m, nil
}

func options(scheme string) *msg.Options {
	return &msg.Options{Resolver: nobody{}, Schemes: []string{scheme}, Pages: 4, MaxBody: 16 << 10, Grace: time.Nanosecond,
		Spin: -1, Inline: true}
}

// Join connects to a cluster over its links; both ends do so.
func (m *Monitor) Join(ctx context.Context, index int, out, in *Link) error {
	m.mu.Lock()
	if out.gone.Load() { // Leave came first
		m.mu.Unlock()
		return msg.ErrPeerGone
	}
	m.links = append(m.links, out, in)
	m.lives++
	in.addr = fmt.Sprintf("%s, life %d", in.addr, m.lives)
	p := newPeer(m, index, out, in)
	m.from[p.from] = p
	in.peer = p
	m.mu.Unlock()
	// The peer may have rung before anybody here listened, and does not ring again.
	m.Rung(func() time.Duration { return 0 })
	m.driver.Add(index, out, in)
	c, err := msg.Dial(ctx, m.driver.address(index), monitor.Interface, options(m.driver.scheme))
	if err != nil {
		if out.gone.Load() { // Leave came in between
			return msg.ErrPeerGone
		}
		return err
	}
	conn := monitor.New(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	if out.gone.Load() { // and meanwhile the cluster's next life may have joined
		go conn.Close()
		return msg.ErrPeerGone
	}
	m.conns[index], m.call[index], m.peers[index] = conn, monitor.NewClient(conn, nil), p
	go p.send(conn)
	return nil
}

// Leave ends what joined this kernel to a cluster that has ended.
func (m *Monitor) Leave(index int, links ...*Link) {
	for _, l := range links {
		l.Die()
	}
	m.mu.Lock()
	var p *peer
	c := m.conns[index]
	delete(m.conns, index)
	delete(m.call, index)
	delete(m.peers, index)
	for _, l := range links {
		if l.peer != nil {
			delete(m.from, l.peer.from)
			p = l.peer
		}
	}
	m.links = slices.DeleteFunc(slices.Clone(m.links), func(l *Link) bool { return slices.Contains(links, l) })
	m.mu.Unlock()
	if p != nil {
		p.end()
	}
	m.driver.drop(index)
	if c != nil {
		c.Close()
	}
}

// Rung is the doorbell's bottom half: some cluster rang, and late says how long ago.
func (m *Monitor) Rung(late func() time.Duration) {
	m.mu.Lock()
	links := m.links
	m.mu.Unlock()
	for _, l := range links {
		l.Rung(late)
	}
}

// Bell rings for a cluster and waits for its ring (Link.Bell).
func (m *Monitor) Bell(index int) (Doorbell, error) {
	m.mu.Lock()
	p := m.peers[index]
	m.mu.Unlock()
	if p == nil {
		return Doorbell{}, fmt.Errorf("%w: cluster %d", msg.ErrNoName, index)
	}
	return p.out.Bell()
}

// Peer returns the client of a cluster's monitor.
func (m *Monitor) Peer(index int) (*monitor.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.call[index]
	if c == nil {
		return nil, fmt.Errorf("%w: cluster %d", msg.ErrNoName, index)
	}
	return c, nil
}

// handler serves one peer.
type handler struct {
	m *Monitor
	p *peer // nil if it has left
}

func (h handler) Ping(_ context.Context, in monitor.PingCall) (monitor.PingReply, error) {
	return monitor.PingReply{Same: in.Number}, nil
}

func (h handler) Health(context.Context, monitor.HealthCall) (monitor.HealthReply, error) {
	return h.m.host.Health(), nil
}

func (h handler) Stop(_ context.Context, in monitor.StopCall) (out monitor.StopReply, err error) {
	return out, h.m.host.Stop(in.Status)
}

// nobody is a resolver without names: monitors are dialled by address.
type nobody struct{}

func (nobody) Place(context.Context, string, string) (string, error) { return "", nil }

func (nobody) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

func (nobody) Resolve(_ context.Context, name string, _ bool) (e msg.Endpoint, err error) {
	return e, fmt.Errorf("%w: %s", msg.ErrNoName, name)
}
