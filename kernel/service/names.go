package service

import (
	"context"
	"slices"
	"strings"
	"sync"

	"hardtack/idl/names"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/ledger"
)

// maxNames bounds the names of all, of which a user has a share; each takes nameBytes at most.
const (
	maxNames  = 1024
	nameBytes = 1024
)

// register is the kernel's names.
type register struct {
	pool *accounts.Pool

	mu      sync.Mutex
	all     []*named // by name; guarded by mu, as all below
	changes uint64
	changed chan struct{} // closed and replaced at each change
}

type named struct {
	names.Entry
	h *nameHolder
}

// nameHolder serves idl/names.if to one client.
type nameHolder struct {
	r *register
	x *Client
	n int // how many names it has; guarded by register.mu
}

// ServeNames makes the name service.
func ServeNames() error {
	s, err := names.Export(context.Background(), "names", Options())
	if err != nil {
		return err
	}
	r := &register{pool: accounts.NewPool(maxNames), changes: 1, changed: make(chan struct{})}
	return Serve("names", s.Accept, func(ctx context.Context, x *Client, c *names.Conn) {
		h := &nameHolder{r: r, x: x}
		x.Hold(h.held)
		c.Serve(ctx, h)
		h.end()
	})
}

func (h *nameHolder) held(s *ledger.Sum) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	s.Add(ledger.Names, int64(h.n)*nameBytes)
}

// change tells of one; mu is held.
func (r *register) change() {
	r.changes++
	close(r.changed)
	r.changed = make(chan struct{})
}

// find is where a name is, or would be; mu is held.
func (r *register) find(name string) (int, bool) {
	return slices.BinarySearchFunc(r.all, name, func(n *named, name string) int { return strings.Compare(string(n.Name), name) })
}

// end takes back what the client has published.
func (h *nameHolder) end() {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if h.n == 0 {
		return
	}
	h.r.all = slices.DeleteFunc(h.r.all, func(n *named) bool { return n.h == h })
	h.r.pool.Release(h.x.user, int64(h.n))
	h.n = 0
	h.r.change()
}

// validName reports whether a name can be shown and compared.
func validName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func (h *nameHolder) Publish(_ context.Context, in names.PublishCall) (out names.PublishReply, err error) {
	if !validName(string(in.Name)) {
		return out, names.ErrInvalid
	}
	r := h.r
	r.mu.Lock()
	defer r.mu.Unlock()
	at, taken := r.find(string(in.Name))
	switch {
	case taken:
		return out, names.ErrTaken
	case !r.pool.Charge(h.x.user, 1):
		return out, names.ErrMany
	}
	e := names.Entry{Name: in.Name, Process: uint32(h.x.PID), User: h.x.Cred.EUID, InterfaceName: in.InterfaceName,
		Fingerprint: in.Fingerprint, Addresses: in.Addresses}
	r.all = slices.Insert(r.all, at, &named{e, h})
	h.n++
	r.change()
	return out, nil
}

func (h *nameHolder) Withdraw(_ context.Context, in names.WithdrawCall) (out names.WithdrawReply, err error) {
	r := h.r
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.find(string(in.Name))
	if !ok || r.all[at].h != h {
		return out, names.ErrNoName
	}
	r.all = slices.Delete(r.all, at, at+1)
	h.n--
	r.pool.Release(h.x.user, 1)
	r.change()
	return out, nil
}

func (h *nameHolder) Look(_ context.Context, in names.LookCall) (out names.LookReply, err error) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	at, ok := h.r.find(string(in.Name))
	if !ok {
		return out, names.ErrNoName
	}
	out.Found = h.r.all[at].Entry
	return out, nil
}

func (h *nameHolder) List(_ context.Context, in names.ListCall) (out names.ListReply, err error) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	at, ok := h.r.find(string(in.After))
	if ok {
		at++
	}
	for _, n := range h.r.all[at:min(at+16, len(h.r.all))] {
		out.Entries = append(out.Entries, n.Entry)
	}
	return out, nil
}

func (h *nameHolder) Watch(ctx context.Context, in names.WatchCall) (out names.WatchReply, err error) {
	h.r.mu.Lock()
	changes, changed := h.r.changes, h.r.changed
	h.r.mu.Unlock()
	if in.Since == changes {
		select {
		case <-changed:
		case <-ctx.Done():
			return out, ctx.Err()
		}
		h.r.mu.Lock()
		changes = h.r.changes
		h.r.mu.Unlock()
	}
	return names.WatchReply{Changes: changes}, nil
}
