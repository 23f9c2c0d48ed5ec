package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hardtack/msg"
	"hardtack/msg/names"
)

// Bucket is a names.Directory between machines: a key-value bucket of the NATS
// servers, in their memory. The value of a key is the number of the process
// that set it and the entry's value.
//
// A bucket knows no connections, so an entry is a lease: its process sets it
// again every third of Options.Lease, and the servers drop what nobody has set
// for that long. Whoever looks for one name need not wait for that: he asks for the
// process, and the server says at once that it is not there.
//
// Who may set what is the servers' to say (accounts, permissions): between
// machines there are no users. Here a name is taken while its process lives,
// also with Replace.
type Bucket struct {
	node *Node
	kv   jetstream.KeyValue
	wg   sync.WaitGroup
	done chan struct{}
	once sync.Once

	mu     sync.Mutex
	owned  map[string][]byte // what this process has set; guarded by mu
	revs   map[string]uint64 // its last revision; guarded by mu
	again  chan struct{}     // closed and replaced when a server was lost and found
	closed bool              // guarded by mu
}

const bucketSuffix = "_names"

// Bucket opens the directory of names on the node's servers.
func (n *Node) Bucket(ctx context.Context) (*Bucket, error) {
	js, err := jetstream.New(n.nc)
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	b := &Bucket{
		node: n, done: make(chan struct{}), again: make(chan struct{}),
		owned: map[string][]byte{}, revs: map[string]uint64{},
	}
	if b.kv, err = b.open(withTimeout(ctx), js); err != nil {
		return nil, fmt.Errorf("nats: bucket of names (the servers must have JetStream on): %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, msg.ErrClosed
	}
	n.buckets = append(n.buckets, b)
	b.wg.Add(1)
	go b.keep()
	return b, nil
}

func (b *Bucket) open(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	return js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: b.node.opts.Prefix + bucketSuffix, Description: "names of services",
		TTL: b.node.opts.Lease, Storage: jetstream.MemoryStorage, Replicas: b.node.opts.Replicas,
		MaxValueSize: idLen + names.MaxValue,
	})
}

// keep sets the own entries again and again.
func (b *Bucket) keep() {
	defer b.wg.Done()
	every := time.NewTicker(b.node.opts.Lease / 3)
	defer every.Stop()
	for {
		b.mu.Lock()
		again := b.again
		b.mu.Unlock()
		select {
		case <-b.done:
			return
		case <-every.C:
		case <-again:
		}
		b.refresh()
	}
}

func (b *Bucket) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), b.node.opts.Lease)
	defer cancel()
	b.mu.Lock()
	owned := make(map[string][]byte, len(b.owned))
	for name, value := range b.owned {
		owned[name] = value
	}
	b.mu.Unlock()
	reopened := false
	for name, value := range owned {
		err := b.refreshOne(ctx, name, value)
		if (errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse)) && !reopened {
			// A server without memory of us.
			reopened = true
			if js, jerr := jetstream.New(b.node.nc); jerr == nil {
				b.open(ctx, js)
			}
			err = b.refreshOne(ctx, name, value)
		}
		if errors.Is(err, names.ErrExists) {
			b.mu.Lock()
			delete(b.owned, name)
			delete(b.revs, name)
			b.mu.Unlock()
			if b.node.opts.OnLost != nil {
				b.node.opts.OnLost(name, err)
			}
		}
	}
}

// refreshOne sets an entry again, as it is or after it was lost.
func (b *Bucket) refreshOne(ctx context.Context, name string, value []byte) error {
	b.mu.Lock()
	rev := b.revs[name]
	_, owned := b.owned[name]
	b.mu.Unlock()
	if !owned {
		return nil // deleted meanwhile
	}
	rev, err := b.kv.Update(ctx, name, b.pack(value), rev)
	if err == nil {
		b.mu.Lock()
		if _, owned = b.owned[name]; owned {
			b.revs[name] = rev
		}
		b.mu.Unlock()
		if !owned {
			return b.kv.Delete(ctx, name, jetstream.LastRevision(rev))
		}
		return nil
	}
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		_, err = b.create(ctx, name, value)
	}
	return err
}

func (b *Bucket) pack(value []byte) []byte { return append([]byte(b.node.process), value...) }

func (b *Bucket) unpack(e jetstream.KeyValueEntry) (entry names.Entry, process string, err error) {
	v := e.Value()
	if len(v) < idLen || len(v) > idLen+names.MaxValue || !isHex(v[:idLen]) {
		return names.Entry{}, "", fmt.Errorf("%w: %q has a value that is not one of ours", names.ErrInvalid, e.Key())
	}
	return names.Entry{Name: e.Key(), Value: v[idLen:], Revision: e.Revision(), UID: names.NoUser}, string(v[:idLen]), nil
}

// create sets a name that is free, or whose process is dead or this one.
func (b *Bucket) create(ctx context.Context, name string, value []byte) (rev uint64, err error) {
	for range 3 {
		rev, err = b.kv.Create(ctx, name, b.pack(value))
		if !errors.Is(err, jetstream.ErrKeyExists) {
			break
		}
		old, gerr := b.kv.Get(ctx, name)
		if errors.Is(gerr, jetstream.ErrKeyNotFound) {
			continue
		} else if gerr != nil {
			return 0, gerr
		}
		_, process, perr := b.unpack(old)
		if perr == nil && process != b.node.process && b.node.alive(ctx, process) {
			return 0, fmt.Errorf("%w: %q, by a process of another machine or another of this one", names.ErrExists, name)
		}
		if rev, err = b.kv.Update(ctx, name, b.pack(value), old.Revision()); err == nil {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, names.ErrClosed
	}
	b.owned[name], b.revs[name] = value, rev
	return rev, nil
}

// Set implements names.Directory.
func (b *Bucket) Set(ctx context.Context, name string, value []byte, flags names.Flags) (names.Entry, error) {
	if len(value) > names.MaxValue {
		return names.Entry{}, fmt.Errorf("%w: a value has at most %d bytes, this one has %d", names.ErrInvalid, names.MaxValue, len(value))
	}
	ctx = withTimeout(ctx)
	value = bytes.Clone(value)
	if flags&names.Sequence != 0 {
		// The revision of the bucket is new with each change.
		status, err := b.kv.Status(ctx)
		if err != nil {
			return names.Entry{}, fmt.Errorf("nats: %w", err)
		}
		if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
			name = fmt.Sprintf("%s.%d", name, s.StreamInfo().State.LastSeq+1)
		}
	}
	if err := names.CheckName(name); err != nil {
		return names.Entry{}, err
	}
	b.mu.Lock()
	_, own := b.owned[name]
	b.mu.Unlock()
	if own && flags&names.Replace == 0 {
		return names.Entry{}, fmt.Errorf("%w: %q was set by this process", names.ErrExists, name)
	}
	rev, err := b.create(ctx, name, value)
	if err != nil {
		return names.Entry{}, err
	}
	return names.Entry{Name: name, Value: value, Revision: rev, UID: names.NoUser}, nil
}

// Get implements names.Directory.
func (b *Bucket) Get(ctx context.Context, name string) (names.Entry, error) {
	if err := names.CheckName(name); err != nil {
		return names.Entry{}, err
	}
	ctx = withTimeout(ctx)
	e, err := b.kv.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrKeyDeleted) {
		return names.Entry{}, fmt.Errorf("%w: %q", names.ErrNotFound, name)
	} else if err != nil {
		return names.Entry{}, fmt.Errorf("nats: %w", err)
	}
	entry, process, err := b.unpack(e)
	if err != nil {
		return names.Entry{}, err
	}
	if !b.node.alive(ctx, process) {
		return names.Entry{}, fmt.Errorf("%w: %q, its process is dead", names.ErrNotFound, name)
	}
	return entry, nil
}

// WaitFor implements names.Directory.
func (b *Bucket) WaitFor(ctx context.Context, name string) (names.Entry, error) {
	if err := names.CheckName(name); err != nil {
		return names.Entry{}, err
	}
	w, err := b.Watch(ctx, name)
	if err != nil {
		return names.Entry{}, err
	}
	defer w.Close()
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return names.Entry{}, err
		}
		if ev.Kind != names.Put || ev.Entry.Name != name {
			continue
		}
		if e, err := b.Get(ctx, name); err == nil {
			return e, nil
		} else if ctx.Err() != nil {
			return names.Entry{}, ctx.Err()
		}
	}
}

// Count implements names.Directory.
func (b *Bucket) Count(ctx context.Context, class string) (int, error) {
	if err := names.CheckName(class); err != nil {
		return 0, err
	}
	list, err := b.List(ctx, class)
	n := 0
	for _, e := range list {
		if names.Class(e.Name) == class {
			n++
		}
	}
	return n, err
}

// List implements names.Directory.
func (b *Bucket) List(ctx context.Context, prefix string) ([]names.Entry, error) {
	w, err := b.Watch(ctx, prefix)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	found := map[string]names.Entry{}
	for {
		ev, err := w.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case ev.Kind == names.Put:
			found[ev.Entry.Name] = ev.Entry
		case ev.Kind == names.Gone:
			delete(found, ev.Entry.Name)
		case ev.Kind == names.Synced:
			list := make([]names.Entry, 0, len(found))
			for _, e := range found {
				list = append(list, e)
			}
			slices.SortFunc(list, func(a, b names.Entry) int { return strings.Compare(a.Name, b.Name) })
			return list, nil
		}
	}
}

// Delete implements names.Directory. Only the process that has set a name may.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	b.mu.Lock()
	rev, own := b.revs[name]
	delete(b.owned, name)
	delete(b.revs, name)
	b.mu.Unlock()
	if !own {
		if _, err := b.Get(ctx, name); err != nil {
			return err
		}
		return fmt.Errorf("%w: %q was set by another process", names.ErrDenied, name)
	}
	_ = rev // keep may have set it again; nobody else has
	if err := b.kv.Delete(withTimeout(ctx), name); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}

func (b *Bucket) reconnected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.again)
	b.again = make(chan struct{})
}

// Close deletes the own entries.
func (b *Bucket) Close() error {
	b.once.Do(func() {
		close(b.done)
		b.wg.Wait()
		b.mu.Lock()
		b.closed = true
		owned := b.owned
		b.owned = map[string][]byte{}
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		for name := range owned {
			if !b.node.nc.IsConnected() {
				return // the lease ends them
			}
			b.kv.Delete(ctx, name)
		}
	})
	return nil
}

var _ names.Directory = (*Bucket)(nil)
