package monitor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"hardtack/idl/monitor"
	"hardtack/msg"
)

// peer is another kernel, from Join to Leave.
type peer struct {
	m     *Monitor
	index int
	from  string // where its calls come from
	out   *Link  // on which this kernel calls
	in    *Link  // on which the other one does

	mu       sync.Mutex
	channels []*Channel               // by place; guarded by mu, as all below
	live     int                      // how many there are
	last     uint32                   // how many there were
	told     [maxChannels / 64]uint64 // those whose bell is heard, and has to be taken yet
	work     []*Channel               // those that have something to send
	unmapped [][]uint32               // what the first cluster is to hear that this kernel has unmapped
	over     bool

	wake chan struct{} // full after work has grown
	done chan struct{} // closed when the kernel has ended
}

func newPeer(m *Monitor, index int, out, in *Link) *peer {
	return &peer{m: m, index: index, from: in.addr, out: out, in: in, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// add makes an end; mu is held.
func (p *peer) add() (*Channel, error) {
	if p.over {
		return nil, ErrDied
	}
	if p.live >= maxChannels {
		return nil, monitor.ErrBusy
	}
	place := slices.Index(p.channels, nil)
	if place < 0 {
		place = len(p.channels)
		p.channels = append(p.channels, nil)
	}
	p.last++
	c := &Channel{p: p, mine: p.last*maxChannels + uint32(place), far: p.index, credit: Window}
	p.channels[place] = c
	p.live++
	p.takeBell(c)
	return c, nil
}

// at is the channel with a number, nil if there is none.
func (p *peer) at(number uint32) *Channel {
	if i := int(number % maxChannels); i < len(p.channels) && p.channels[i] != nil && p.channels[i].mine == number {
		return p.channels[i]
	}
	return nil
}

func (p *peer) forget(c *Channel) {
	if p.at(c.mine) == c {
		p.channels[c.mine%maxChannels] = nil
		p.live--
	}
}

// queue has the sender look at a channel; mu is held.
func (p *peer) queue(c *Channel) {
	if c.queued || p.over {
		return
	}
	c.queued = true
	p.work = append(p.work, c)
	p.rouse()
}

// rouse has the sender look.
func (p *peer) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// send sends what the channels have for the peer, until that ends. It is the only one that
// may wait for room in the peer's ring.
func (p *peer) send(conn *monitor.Conn) {
	for {
		m, c := p.next()
		if m == nil {
			select {
			case <-p.wake:
				continue
			case <-conn.Done():
				p.end()
				return
			case <-p.done:
				return
			}
		}
		if err := conn.Send(context.Background(), m); err != nil {
			p.end()
			return
		}
		p.sent(c)
	}
}

// next takes the first channel with a message, which goes to the end of the queue. There is no
// channel with what concerns none.
func (p *peer) next() (monitor.Msg, *Channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unmapped) > 0 {
		m := &monitor.Unmapped{Frames: p.unmapped[0]}
		p.unmapped = p.unmapped[1:]
		return m, nil
	}
	for len(p.work) > 0 {
		c := p.work[0]
		p.work = p.work[1:]
		if m := c.next(); m != nil {
			p.work = append(p.work, c)
			return m, c
		}
		c.queued = false
	}
	p.work = nil
	return nil, nil
}

// sent tells a channel's writer that there is room again, when there is some for more than
// a few bytes.
func (p *peer) sent(c *Channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c == nil {
		return
	}
	if c.out.len() <= Window/2 && c.ended == nil {
		c.tell()
	}
}

// end ends all channels.
func (p *peer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	close(p.done)
	for _, c := range p.channels {
		if c != nil {
			c.end(ErrDied)
		}
	}
	p.channels, p.live, p.work, p.unmapped = nil, 0, nil, nil
}

// of is the channel of a message. A number that is none is that of a channel that was
// closed here a moment ago.
func (p *peer) of(number uint32, do func(c *Channel)) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.at(number); c != nil && c.ended == nil {
		do(c)
	}
}

// Listener is where channels to a name arrive.
type Listener struct {
	m    *Monitor
	name string
	who  monitor.Who

	// Guarded by m.mu.
	queue  []*Channel
	notify func()
}

// maxQueue is how many channels wait for one listener.
const maxQueue = 16

// Listen takes a name in this kernel. notify, which must not block, is called when a
// channel has come.
func (m *Monitor) Listen(name string, who monitor.Who, notify func()) (*Listener, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("%w: %q", msg.ErrNoName, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] != nil {
		return nil, ErrTaken
	}
	l := &Listener{m: m, name: name, who: who, notify: notify}
	m.names[name] = l
	return l, nil
}

// Accept returns the next channel, nil if none has come.
func (l *Listener) Accept() (c *Channel) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if len(l.queue) > 0 {
		c = l.queue[0]
		l.queue = l.queue[1:]
	}
	return c
}

// Ready says whether a channel has come.
func (l *Listener) Ready() bool {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return len(l.queue) > 0
}

// Close gives the name up. Channels that nobody has accepted end.
func (l *Listener) Close() {
	l.m.mu.Lock()
	delete(l.m.names, l.name)
	queue := l.queue
	l.queue = nil
	l.m.mu.Unlock()
	for _, c := range queue {
		c.Close()
	}
}

func (h handler) Data(_ context.Context, in monitor.Data) {
	h.p.of(in.Number, func(c *Channel) {
		switch {
		case c.in.len()+c.read+len(in.Bytes) > Window: // more than the peer may send
			c.end(ErrDied)
		case c.shut: // nobody reads it
			c.read += len(in.Bytes)
			h.p.queue(c)
		default:
			c.in.put(in.Bytes)
			c.tell()
		}
	})
}

func (h handler) Taken(_ context.Context, in monitor.Taken) {
	h.p.of(in.Number, func(c *Channel) {
		if in.Bytes > uint32(Window-c.credit) {
			c.end(ErrDied)
			return
		}
		c.credit += int(in.Bytes)
		h.p.queue(c)
	})
}

func (h handler) Closed(_ context.Context, in monitor.Closed) {
	h.p.of(in.Number, func(c *Channel) {
		c.end(io.EOF)
		if c.told {
			h.p.forget(c)
		}
	})
}
