package msg

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Looking inside. None of it is on the hot path: counts are read from what the
// owners publish anyway, now and then, and a tracer sends the owners the slow
// way while it is set.

// Stats is where a connection stands. Counts may lag behind by a quarter of a
// ring.
type Stats struct {
	ID         uint64 // of the connection within the process
	Interface  string
	Peer       Peer
	Sent       uint64 // messages
	Arrived    uint64 // messages
	Waiting    uint64 // messages that have arrived and were not received yet, or just now
	Parked     bool   // the receiving owner sleeps; if not, it spins or works
	PeerSleeps bool
	Closed     error
}

// Record is a message that a tracer saw.
type Record struct {
	Time time.Time
	Conn uint64 // Stats.ID
	Out  bool   // sent by this end
	Num  uint16
	Body []byte // a copy
}

var registry struct {
	sync.Mutex
	next  uint64
	conns map[uint64]*Conn
}

func enter(c *Conn) {
	registry.Lock()
	defer registry.Unlock()
	if registry.conns == nil {
		registry.conns = make(map[uint64]*Conn)
	}
	registry.next++
	c.id = registry.next
	registry.conns[c.id] = c
}

func leave(c *Conn) {
	registry.Lock()
	defer registry.Unlock()
	delete(registry.conns, c.id)
}

// Connections returns the open connections of this process, oldest first.
func Connections() []*Conn {
	registry.Lock()
	defer registry.Unlock()
	all := make([]*Conn, 0, len(registry.conns))
	for _, c := range registry.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Conn) int { return cmp.Compare(a.id, b.id) })
	return all
}

// Stats returns where the connection stands.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.cur
	s := Stats{ID: c.id, Interface: c.iface.Name, Peer: b.link.Peer(), Closed: c.err}
	s.Sent, s.Arrived = b.tx.Published(), b.rx.Arrived()
	s.Waiting = s.Arrived - atomic.LoadUint64(&b.rx.Told)
	s.Parked, s.PeerSleeps = b.rx.Parked(), b.tx.Parked()
	return s
}

// Peer is who is at the other end.
func (c *Conn) Peer() Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cur.link.Peer()
}

// Trace has f called with every message sent and received from now on, by the
// owners; f must be quick. nil ends it.
func (c *Conn) Trace(f func(Record)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tracer = f
	if f != nil {
		c.attn.Or(attnTrace)
	} else {
		c.attn.And(^uint32(attnTrace))
	}
}

func (c *Conn) trace(out bool, num uint16, body []byte) {
	c.mu.Lock()
	f := c.tracer
	c.mu.Unlock()
	if f != nil {
		f(Record{Time: time.Now(), Conn: c.id, Out: out, Num: num, Body: append([]byte(nil), body...)})
	}
}
