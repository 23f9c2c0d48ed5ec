package epoll

import (
	"fmt"
	"io"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// Ready reports In while an item has an event. Items whose event has passed
// leave the ready list on the way.
func (ep *Instance) Ready(*vfs.File) wait.Events {
	if ep.ready.Load() == 0 {
		return 0
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	for n := ep.ready.Load(); n > 0 && ep.pop(1) > 0; n-- {
		it := ep.batch[0]
		ep.batch[0] = nil
		if it.current() != 0 {
			ep.push(it)
			return wait.In | wait.RdNorm
		}
	}
	return 0
}

// NoPosition lets lseek succeed.
func (ep *Instance) NoPosition() {}

// Queue is where outer instances and polls listen.
func (ep *Instance) Queue(*vfs.File) *wait.Queue { return &ep.queue }

// Release forgets all items.
func (ep *Instance) Release(*vfs.File) {
	ep.mu.Lock()
	for it := range ep.items.all() {
		ep.remove(it)
	}
	ep.mu.Unlock()
}

// Name is the text of /proc/self/fd/N.
func (ep *Instance) Name(*vfs.File) string { return "anon_inode:[eventpoll]" }

// FDInfo writes the items as /proc/self/fdinfo shows them.
func (ep *Instance) FDInfo(_ *vfs.File, w io.Writer) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	for it := range ep.items.all() {
		fmt.Fprintf(w, "tfd: %8d events: %8x data: %16x  pos:0 ino:0 sdev:0\n", it.fd, it.events.Load(), it.data)
	}
}

// Holds adds the interest list.
func (ep *Instance) Holds(s *ledger.Sum) {
	ep.mu.Lock()
	n := int64(ep.items.count)*ledger.Of[item]() + ledger.Array[*item](cap(ep.items.small))
	if ep.items.rest != nil {
		n += ledger.Map[key, *item](ep.items.peak.Max(0))
	}
	ep.mu.Unlock()
	nestMu.Lock()
	for _, m := range []map[*Instance]int{ep.inner, ep.outer} {
		if m != nil {
			n += ledger.Map[*Instance, int](len(m))
		}
	}
	nestMu.Unlock()
	s.Add(ledger.Epoll, n+ledger.Of[Instance]())
}
