package debug

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/msg"
)

// hub gives the records of a connection, which has one tracer, to all askers.
var hub struct {
	mu     sync.Mutex
	askers map[*msg.Conn]map[*asker]struct{} // guarded by mu
}

// asker is one who traces.
type asker struct {
	records chan named
	lost    atomic.Uint64
}

type named struct {
	msg.Record
	iface *msg.Interface
}

func (a *asker) follow(c *msg.Conn) {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	if hub.askers == nil {
		hub.askers = map[*msg.Conn]map[*asker]struct{}{}
	}
	all := hub.askers[c]
	if all == nil {
		all = map[*asker]struct{}{}
		hub.askers[c] = all
	}
	all[a] = struct{}{}
	if len(all) == 1 {
		c.Trace(func(r msg.Record) { tell(c, r) })
	}
}

func (a *asker) leave(c *msg.Conn) {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	all := hub.askers[c]
	delete(all, a)
	if len(all) == 0 {
		delete(hub.askers, c)
		c.Trace(nil)
	}
}

// tell is called by a connection's owner and does not wait.
func tell(c *msg.Conn, r msg.Record) {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	for a := range hub.askers[c] {
		select {
		case a.records <- named{r, c.Interface()}:
		default:
			a.lost.Add(1)
		}
	}
}

// records yields what passes on the connections that req means, also those that
// are made later, until ctx is done.
func records(ctx context.Context, req Request) iter.Seq[Traced] {
	return func(yield func(Traced) bool) {
		a := &asker{records: make(chan named, backlog)}
		followed := map[*msg.Conn]bool{}
		defer func() {
			for c := range followed {
				a.leave(c)
			}
		}()
		again := time.NewTicker(look)
		defer again.Stop()
		for {
			open := map[*msg.Conn]bool{}
			for _, c := range msg.Connections() {
				if req.Conn != 0 && c.Stats().ID != req.Conn || req.Interface != "" && c.Interface().Name != req.Interface {
					continue
				}
				open[c] = true
				if !followed[c] {
					followed[c] = true
					a.follow(c)
				}
			}
			for c := range followed {
				if !open[c] {
					delete(followed, c)
					a.leave(c)
				}
			}
			for tick := false; !tick; {
				select {
				case <-ctx.Done():
					return
				case <-again.C:
					tick = true
				case r := <-a.records:
					if !yield(Traced{
						Time: r.Time, Conn: r.Conn, Interface: r.iface.Name, Out: r.Out,
						Text: text(r), Lost: a.lost.Swap(0),
					}) {
						return
					}
				}
			}
		}
	}
}

// text decodes a message for people.
func text(r named) string {
	m := r.iface.Message(r.Num)
	if m == nil || m.Format == nil {
		return "?"
	}
	return m.Format(r.Body)
}
