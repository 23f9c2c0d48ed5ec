// Package epoll waits for many files at once: epoll(7), and the sets of poll(2) and
// select(2).
//
// An Instance knows items, one for each (descriptor, open file) of interest. An item
// listens on its file's queue. When an event comes that the item wants, the item goes to
// the end of the ready list, if it is not in it, and one thread waiting is woken: O(1),
// nothing is allocated. A thread that collects events takes items off the front, asks
// each file for its current state, and puts level-triggered items back at the end.
//
// Lock order: nesting, then Instance.mu of the outer before that of an inner instance, then
// nestMu, the locks of files (Ops.Ready), a file's list of watches, queues; a
// queue's lock, then Instance.readyMu (a leaf) or the Instance's own queues.
// Nothing that Ready locks may be held while a file's last reference is dropped.
//
// Invariants: an item is in items exactly while it is not gone and its file is
// not released; queued items are in the ready list once; whoever makes an item
// wanted (Ctl) looks at the file afterwards, so that no event is lost between.
package epoll

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// Instance is an epoll file.
type Instance struct {
	vfs.BaseOps

	waiters wait.Queue // threads in Wait, exclusive: an event wakes one
	queue   wait.Queue // outer instances and polls that watch this one

	mu    sync.Mutex
	items interest // guarded by mu
	// batch and out are what a thread in collect works with; guarded by mu.
	batch [batchSize]*item
	out   [batchSize * linux.SizeofEpollEvent]byte

	readyMu     sync.Mutex
	first, last *item        // the ready list; guarded by readyMu
	ready       atomic.Int32 // its length; written under readyMu

	// inner and outer count the items that nest instances; guarded by nestMu.
	inner, outer map[*Instance]int
	nested       atomic.Int32 // how many items watch this; written under nestMu

	user *accounts.User // who made it, and is charged for the items; immutable
}

// batchSize is how many events go to the user at a time.
const batchSize = 32

// key is what an item is for; the same file may be watched under two numbers.
type key struct {
	file *vfs.File
	fd   int32
}

// item is one entry of the interest list.
type item struct {
	ep    *Instance   // immutable
	key               // immutable; no reference is held
	queue *wait.Queue // the file's; immutable
	entry wait.Entry  // in queue while the item lives
	watch vfs.Watch   // in the file's watches while the item lives

	// events is the interest set, always with Err and Hup, and its EPOLL* flags; only
	// the flags when a one-shot item has fired. Written under ep.mu.
	events atomic.Uint32
	gone   bool   // guarded by ep.mu
	queued bool   // in the ready list; guarded by ep.readyMu
	data   uint64 // guarded by ep.mu

	next, prev *item // guarded by ep.readyMu
}

const (
	flagBits = linux.EPOLLWAKEUP | linux.EPOLLONESHOT | linux.EPOLLET | linux.EPOLLEXCLUSIVE
	// exclusiveBits may go with EPOLLEXCLUSIVE.
	always        = uint32(wait.Err | wait.Hup)
	exclusiveBits = uint32(wait.In|wait.Out|wait.Err|wait.Hup) | linux.EPOLLWAKEUP | linux.EPOLLET | linux.EPOLLEXCLUSIVE
)

// itemCost is roughly what an item, its place in the set and slack take of the heap.
const itemCost = 512

// watches is shared by all users' items. They may take a 12th of memory.
var watches = accounts.LatePool{Make: func() *accounts.Pool {
	n := int64(mem.Total()) * mem.PageSize / 25 / itemCost // a 25th of memory
	p := accounts.NewPool(2 * n)
	p.SetPerUser(n)
	return p
}}

// MaxWatches is fs.epoll.max_user_watches.
func MaxWatches() int64 { return watches.Get().PerUser() }

// SetMaxWatches changes it.
func SetMaxWatches(n int64) {
	watches.Get().SetMax(max(min(n, 1<<62), 1) * 2)
	watches.Get().SetPerUser(max(n, 1))
}

// New returns an open epoll file of a user's.
func New(u *accounts.User) *vfs.File {
	return vfs.NewFile(&Instance{user: u}, linux.O_RDWR)
}

// Of returns the instance behind an open file, or nil.
func Of(f *vfs.File) *Instance {
	ep, _ := f.Ops.(*Instance)
	return ep
}

// Target returns the file behind the nth entry for a descriptor, without a reference: to
// compare it with others.
func (ep *Instance) Target(fd int32, n uint64) *vfs.File {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	for it := range ep.items.all() {
		if it.fd != fd {
			continue
		}
		if n == 0 {
			return it.file
		}
		n--
	}
	return nil
}

// NotifyEvent puts the item on the ready list and wakes a thread in Wait. It
// reports whether anybody was there to be woken, which is what an exclusive
// event asks for.
func (it *item) NotifyEvent(_ *wait.Entry, ev wait.Events) bool {
	want := it.events.Load()
	if want&^flagBits == 0 || ev&wait.Events(want) == 0 {
		return want&linux.EPOLLEXCLUSIVE == 0
	}
	it.ep.push(it)
	there := !it.ep.waiters.Empty()
	it.ep.tell()
	return there
}

// tell says that an item became ready.
func (ep *Instance) tell() {
	ep.waiters.Notify(wait.In)
	ep.queue.Notify(wait.In | wait.RdNorm)
}

// push puts an item at the end of the ready list unless it is in it.
func (ep *Instance) push(it *item) {
	ep.readyMu.Lock()
	ep.link(it)
	ep.readyMu.Unlock()
}

// link is push with readyMu held.
func (ep *Instance) link(it *item) {
	if it.queued {
		return
	}
	it.queued = true
	it.prev, it.next = ep.last, nil
	if ep.last != nil {
		ep.last.next = it
	} else {
		ep.first = it
	}
	ep.last = it
	ep.ready.Add(1)
}

// pop moves items from the front of the ready list to the batch, up to n of
// them, and returns how many. Called with mu held.
func (ep *Instance) pop(n int) int {
	n = min(n, batchSize)
	ep.readyMu.Lock()
	for i := range n {
		it := ep.first
		if it == nil {
			n = i
			break
		}
		ep.unlink(it)
		ep.batch[i] = it
	}
	ep.readyMu.Unlock()
	return n
}

// unlink takes a queued item off the ready list; called with readyMu held.
func (ep *Instance) unlink(it *item) {
	if it.prev != nil {
		it.prev.next = it.next
	} else {
		ep.first = it.next
	}
	if it.next != nil {
		it.next.prev = it.prev
	} else {
		ep.last = it.prev
	}
	it.next, it.prev, it.queued = nil, nil, false
	ep.ready.Add(-1)
}

// current returns which wanted events hold; called with ep.mu held.
func (it *item) current() wait.Events {
	want := it.events.Load()
	if want&^flagBits == 0 {
		return 0
	}
	return it.file.Ops.Ready(it.file) & wait.Events(want&^flagBits)
}

// announce makes an item ready if its file is; called with ep.mu held, after
// the interest set was written.
func (ep *Instance) announce(it *item) {
	if it.current() != 0 {
		ep.push(it)
		ep.tell()
	}
}

// Ctl is epoll_ctl(2) without the look-up of descriptors: fd is only the
// number that f was found at. epf is the instance's own file.
func (ep *Instance) Ctl(epf *vfs.File, op int32, fd int32, f *vfs.File, events uint32, data uint64) linux.Errno {
	q := f.Ops.Queue(f)
	if q == nil {
		return linux.EPERM
	}
	if f == epf {
		return linux.EINVAL
	}
	inner := Of(f)
	if op != linux.EPOLL_CTL_DEL && events&linux.EPOLLEXCLUSIVE != 0 {
		if op == linux.EPOLL_CTL_MOD || inner != nil || events&^exclusiveBits != 0 {
			return linux.EINVAL
		}
	}
	if op == linux.EPOLL_CTL_ADD {
		return ep.add(key{f, fd}, inner, q, events, data)
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	it := ep.items.get(f, fd)
	switch op {
	case linux.EPOLL_CTL_MOD:
		if it == nil {
			return linux.ENOENT
		}
		if it.events.Load()&linux.EPOLLEXCLUSIVE != 0 {
			return linux.EINVAL
		}
		it.data = data
		it.events.Store(events | always)
		ep.announce(it)
		return 0
	case linux.EPOLL_CTL_DEL:
		if it == nil {
			return linux.ENOENT
		}
		ep.remove(it)
		return 0
	}
	return linux.EINVAL
}

// add is EPOLL_CTL_ADD; inner is the instance behind k, or nil.
func (ep *Instance) add(k key, inner *Instance, q *wait.Queue, events uint32, data uint64) linux.Errno {
	ep.mu.Lock()
	if inner == nil && ep.nested.Load() == 0 {
		defer ep.mu.Unlock()
		return ep.insert(k, q, events, data)
	}
	ep.mu.Unlock()
	nesting.Lock()
	defer nesting.Unlock()
	if inner != nil {
		// The link is made first: what is added to inner from now on is checked.
		if e := nest(ep, inner); e != 0 {
			return e
		}
	}
	e := ep.addNested(k, inner, q, events, data)
	if e != 0 && inner != nil {
		unnest(ep, inner)
	}
	return e
}

// addNested is add where instances are, or get, inside each other; called with
// nesting held.
func (ep *Instance) addNested(k key, inner *Instance, q *wait.Queue, events uint32, data uint64) linux.Errno {
	ep.mu.Lock()
	old := ep.items.get(k.file, k.fd)
	ep.mu.Unlock()
	if old == nil && ep.manyPaths(k, inner) {
		return linux.EINVAL
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.insert(k, q, events, data)
}

// insert makes an item; called with mu held.
func (ep *Instance) insert(k key, q *wait.Queue, events uint32, data uint64) linux.Errno {
	if ep.items.get(k.file, k.fd) != nil {
		return linux.EEXIST
	}
	if !watches.Get().Charge(ep.user, 1) {
		return linux.ENOSPC
	}
	it := &item{ep: ep, key: k, queue: q, data: data}
	it.events.Store(events | always)
	ep.items.add(it)
	k.file.AddWatch(&it.watch, it)
	if events&linux.EPOLLEXCLUSIVE != 0 {
		q.AddExclusive(&it.entry, it, wait.All)
	} else {
		q.Add(&it.entry, it, wait.All)
	}
	ep.announce(it)
	return 0
}

// remove ends an item; called with mu held.
func (ep *Instance) remove(it *item) {
	it.gone = true
	ep.items.remove(it)
	it.queue.Remove(&it.entry)
	it.file.RemoveWatch(&it.watch)
	ep.readyMu.Lock()
	if it.queued {
		ep.unlink(it)
	}
	ep.readyMu.Unlock()
	watches.Get().Release(ep.user, 1)
	if inner := Of(it.file); inner != nil {
		unnest(ep, inner)
	}
}

// Ended is told that the file of an item is about to be released.
func (it *item) Ended() {
	it.ep.mu.Lock()
	if !it.gone {
		it.ep.remove(it)
	}
	it.ep.mu.Unlock()
}

// Wait is epoll_wait(2): it copies up to max events to user memory and returns
// how many. deadline is as for wait.Sleeper.Sleep; poll asks not to wait at all.
func (ep *Instance) Wait(c *caller.Ctx, m uio.Memory, addr uio.Addr, max int, deadline int64, poll bool) (int, linux.Errno) {
	for r := wait.Woken; ; {
		if ep.ready.Load() > 0 {
			if n, e := ep.collect(m, addr, max); n > 0 || e != 0 {
				return n, e
			}
		}
		switch {
		case poll || r == wait.TimedOut:
			return 0, 0
		case r == wait.Interrupted:
			return 0, linux.EINTR
		}
		c.Arm()
		ep.waiters.AddExclusive(&c.Entry, &c.Sleeper, wait.In)
		if ep.ready.Load() == 0 {
			r = c.Sleep(deadline)
		}
		ep.waiters.Remove(&c.Entry)
	}
}

// collect moves ready events to user memory. Threads that wait are told if
// some are left.
func (ep *Instance) collect(m uio.Memory, addr uio.Addr, max int) (done int, e linux.Errno) {
	ep.mu.Lock()
	for left := int(ep.ready.Load()); left > 0 && done < max && e == 0; {
		popped := ep.pop(min(left, max-done))
		if popped == 0 {
			break
		}
		left -= popped
		n := 0
		for _, it := range ep.batch[:popped] {
			if ev := it.current(); ev != 0 {
				b := ep.out[n*linux.SizeofEpollEvent:]
				binary.LittleEndian.PutUint32(b, uint32(ev))
				binary.LittleEndian.PutUint64(b[4:], it.data)
				ep.batch[n] = it
				n++
			}
		}
		if n > 0 {
			_, e = m.CopyOut(addr+uio.Addr(done*linux.SizeofEpollEvent), ep.out[:n*linux.SizeofEpollEvent])
			ep.reported(ep.batch[:n], e == 0)
		}
		if e == 0 {
			done += n
		}
		clear(ep.batch[:popped])
	}
	ep.mu.Unlock()
	if ep.ready.Load() > 0 {
		ep.waiters.Notify(wait.In)
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// reported disarms one-shot items and puts level-triggered ones back at the end
// of the ready list; all of them if nobody has seen the events. Called with mu held.
func (ep *Instance) reported(items []*item, seen bool) {
	ep.readyMu.Lock()
	for _, it := range items {
		switch flags := it.events.Load(); {
		case !seen:
			ep.link(it)
		case flags&linux.EPOLLONESHOT != 0:
			it.events.Store(flags & flagBits)
		case flags&linux.EPOLLET == 0:
			ep.link(it)
		}
	}
	ep.readyMu.Unlock()
}
