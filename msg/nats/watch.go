package nats

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hardtack/msg/names"
)

// watch follows the bucket: a goroutine reads the library's watcher, starts it
// again when a server was lost, and lets entries end when their lease has.
type watch struct {
	b      *Bucket
	prefix string
	cancel context.CancelFunc
	events chan names.Event
	ended  chan struct{}
}

// lease is an entry that a watch knows.
type lease struct {
	names.Entry
	process string
	renewed time.Time
}

// Watch implements names.Directory.
func (b *Bucket) Watch(ctx context.Context, prefix string) (names.Watcher, error) {
	if prefix != "" {
		if err := names.CheckName(strings.TrimRight(prefix, ".")); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return nil, names.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.Background())
	w := &watch{b: b, prefix: prefix, cancel: cancel, events: make(chan names.Event), ended: make(chan struct{})}
	go w.run(own)
	return w, nil
}

// Next implements names.Watcher.
func (w *watch) Next(ctx context.Context) (names.Event, error) {
	select {
	case ev := <-w.events:
		return ev, nil
	case <-w.ended:
		return names.Event{}, names.ErrClosed
	case <-ctx.Done():
		return names.Event{}, ctx.Err()
	}
}

// Close implements names.Watcher.
func (w *watch) Close() error {
	w.cancel()
	<-w.ended
	return nil
}

func (w *watch) run(ctx context.Context) {
	defer close(w.ended)
	known := map[string]*lease{}
	synced := false
	for ctx.Err() == nil {
		w.b.mu.Lock()
		again := w.b.again
		w.b.mu.Unlock()
		source, err := w.b.kv.WatchAll(ctx)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-w.b.done:
				return
			case <-again:
			case <-time.After(tickIdle):
			}
			continue
		}
		w.follow(ctx, source, again, known, &synced)
		source.Stop()
		select {
		case <-w.b.done:
			return
		default:
		}
	}
}

// follow tells of changes until the watcher must be started again.
func (w *watch) follow(ctx context.Context, source jetstream.KeyWatcher, again chan struct{}, known map[string]*lease, synced *bool) {
	expire := time.NewTicker(tickIdle)
	defer expire.Stop()
	for {
		var tell []names.Event
		select {
		case <-ctx.Done():
			return
		case <-w.b.done:
			return
		case <-again:
			return
		case now := <-expire.C:
			for name, l := range known {
				if now.Sub(l.renewed) > w.b.node.opts.Lease+tickIdle {
					delete(known, name)
					tell = append(tell, names.Event{Kind: names.Gone, Entry: l.Entry})
				}
			}
		case e, ok := <-source.Updates():
			if !ok {
				return
			}
			if e == nil { // all that existed
				if !*synced {
					*synced = true
					tell = append(tell, names.Event{Kind: names.Synced})
				}
			} else if ev, ok := w.update(e, known); ok {
				tell = append(tell, ev)
			}
		}
		for _, ev := range tell {
			select {
			case w.events <- ev:
			case <-ctx.Done():
				return
			case <-w.b.done:
				return
			}
		}
	}
}

// update takes in one change, and says whether it is one to tell.
func (w *watch) update(e jetstream.KeyValueEntry, known map[string]*lease) (names.Event, bool) {
	name := e.Key()
	if !strings.HasPrefix(name, w.prefix) {
		return names.Event{}, false
	}
	old := known[name]
	if e.Operation() != jetstream.KeyValuePut {
		delete(known, name)
		if old == nil {
			return names.Event{}, false
		}
		return names.Event{Kind: names.Gone, Entry: old.Entry}, true
	}
	entry, process, err := w.b.unpack(e)
	if err != nil {
		return names.Event{}, false
	}
	known[name] = &lease{entry, process, time.Now()}
	if old != nil && old.process == process && bytes.Equal(old.Value, entry.Value) {
		return names.Event{}, false // the lease goes on
	}
	return names.Event{Kind: names.Put, Entry: entry}, true
}
