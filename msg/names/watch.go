package names

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// A Watch follows the entries under a prefix, over the ends of servers.
//
// It asks the server for changes, and then for a list. While the list comes
// (syncing) both tell of entries in any order, and the higher revision counts;
// after it, what was known before and is in neither is gone. That is done once
// at the beginning, and again when the server has changed or has dropped the
// watch because events were not read in time; the user sees only differences.
// The processes find a new server at slightly different times, so what is
// missing there is given resettle to come back.
//
// Between the reader and the user events wait in order of names' first change,
// one for each name, so that a slow user needs no more memory than there are
// names.
type Watch struct {
	c      *Client
	prefix string

	mu     sync.Mutex
	known  map[string]*Entry   // as the user knows them, or will; guarded by mu
	seen   map[string]sighting // while syncing; guarded by mu
	ids    [2]uint64           // of the current watch and its list; guarded by mu
	round  int                 // counts syncs; guarded by mu
	order  []string            // names with an event to tell; "" is Synced; guarded by mu
	waits  map[string]struct{} // the names in order; guarded by mu
	gone   map[string]Entry    // the entries of those in order that are gone; guarded by mu
	synced bool                // Synced was told, or is in order; guarded by mu
	err    error               // guarded by mu
	kick   chan struct{}       // capacity 1
}

// resettle is how long entries may take to appear at a new server.
const resettle = 250 * time.Millisecond

// sighting is what a sync knows of a name so far.
type sighting struct {
	revision uint64
	live     bool
}

// Watch implements Directory.
func (c *Client) Watch(ctx context.Context, prefix string) (Watcher, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &Watch{
		c: c, prefix: prefix, known: map[string]*Entry{},
		waits: map[string]struct{}{}, gone: map[string]Entry{}, kick: make(chan struct{}, 1),
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.watches[w] = struct{}{}
	c.mu.Unlock()
	w.start()
	return w, nil
}

// stream is one of the two requests of a round. What an earlier round still
// gets does not count.
type stream struct {
	w     *Watch
	round int
	list  bool
}

// start begins a round.
func (w *Watch) start() {
	w.mu.Lock()
	w.round++
	round := w.round
	w.seen = map[string]sighting{}
	old := w.ids
	w.mu.Unlock()
	for i, id := range old {
		if id != 0 {
			w.c.drop(id, i == 0)
		}
	}
	var ids [2]uint64
	for i, what := range []op{opWatch, opList} {
		id, err := w.c.send(packet{op: what, entry: Entry{Name: w.prefix}}, &stream{w, round, what == opList})
		if err != nil {
			w.fail(err)
			return
		}
		ids[i] = id
	}
	w.mu.Lock()
	if w.round == round {
		w.ids = ids
	}
	w.mu.Unlock()
}

func (s *stream) again() (packet, bool) { return packet{}, false } // resume starts a new round

func (s *stream) fail(err error) { s.w.fail(err) }

func (s *stream) answer(c *Client, p packet) (last bool) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.round != w.round {
		return p.op == opError || s.list && p.op == opOK
	}
	switch p.op {
	case opEntry, opGone:
		w.see(p.entry, p.op == opEntry)
		return false
	case opOK:
		if s.list {
			w.finish()
		}
		return s.list
	}
	err := p.err()
	if p.op == opError && code(p.arg) == codeLagged {
		c.mu.Lock()
		if !c.closed {
			c.wg.Add(1)
			go func() { defer c.wg.Done(); w.start() }()
		}
		c.mu.Unlock()
		return true
	}
	w.setErr(err)
	return true
}

// see takes in one sighting. Needs mu.
func (w *Watch) see(e Entry, live bool) {
	if w.seen != nil {
		if e.Revision <= w.seen[e.Name].revision {
			return
		}
		w.seen[e.Name] = sighting{e.Revision, live}
	}
	old, was := w.known[e.Name]
	switch {
	case live && was && old.PID == e.PID && old.UID == e.UID && bytes.Equal(old.Value, e.Value):
		w.known[e.Name] = &e // set again, for a new server
	case live:
		w.known[e.Name] = &e
		w.tell(e.Name)
	case was:
		delete(w.known, e.Name)
		w.gone[e.Name] = e
		w.tell(e.Name)
	}
}

// finish ends a sync. Needs mu.
func (w *Watch) finish() {
	missing := map[string]*Entry{}
	for name, e := range w.known {
		if !w.seen[name].live {
			missing[name] = e
		}
	}
	w.seen = nil
	if !w.synced {
		w.synced = true
		w.tell("")
	}
	if len(missing) > 0 {
		round := w.round
		time.AfterFunc(resettle, func() { w.settle(round, missing) })
	}
}

// settle ends what has not come back since a sync, unless another one came.
func (w *Watch) settle(round int, missing map[string]*Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.round != round {
		return
	}
	for name, e := range missing {
		if w.known[name] == e {
			delete(w.known, name)
			w.gone[name] = *e
			w.tell(name)
		}
	}
}

// tell has the user told of a name's present state. Needs mu.
func (w *Watch) tell(name string) {
	if _, waits := w.waits[name]; waits {
		return
	}
	w.waits[name] = struct{}{}
	w.order = append(w.order, name)
	w.wake()
}

func (w *Watch) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *Watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setErr(err)
}

// setErr needs mu.
func (w *Watch) setErr(err error) {
	if w.err == nil {
		w.err = err
	}
	w.wake()
}

// Next implements Watcher.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		w.mu.Lock()
		if len(w.order) > 0 {
			ev := w.pop()
			w.mu.Unlock()
			return ev, nil
		}
		err := w.err
		w.mu.Unlock()
		if err != nil {
			w.wake() // for others who wait
			return Event{}, err
		}
		select {
		case <-w.kick:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// pop needs mu.
func (w *Watch) pop() Event {
	name := w.order[0]
	w.order = w.order[1:]
	delete(w.waits, name)
	if len(w.order) > 0 {
		w.wake()
	}
	if name == "" {
		return Event{Kind: Synced}
	}
	gone := w.gone[name]
	delete(w.gone, name)
	if e, ok := w.known[name]; ok {
		return Event{Kind: Put, Entry: *e}
	}
	return Event{Kind: Gone, Entry: gone}
}

// Close ends the watch.
func (w *Watch) Close() error {
	w.c.mu.Lock()
	delete(w.c.watches, w)
	w.c.mu.Unlock()
	w.mu.Lock()
	w.round++
	ids := w.ids
	w.ids = [2]uint64{}
	w.setErr(ErrClosed)
	w.mu.Unlock()
	for i, id := range ids {
		if id != 0 {
			w.c.drop(id, i == 0)
		}
	}
	return nil
}
