package vfs

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// Inotify is an inotify instance: watches and the events nobody has read yet.
// Only events are taken from it under mu; watches are removed outside of it,
// since that takes watchMu first.
type Inotify struct {
	BaseOps
	queue wait.Queue

	mu      sync.Mutex
	events  eventQueue       // guarded by mu
	bytes   int              // of all events as read; guarded by mu
	watches map[int32]*watch // guarded by mu
	peak    ledger.Peak      // of watches; guarded by mu
	last    int32            // watch number; guarded by mu
	closed  bool             // guarded by mu

	user *accounts.User // who is charged; immutable
	most int            // events that it may hold (fs.inotify.max_queued_events); immutable
}

// instances and inotifyWatches are shared by users, each of whom may have what
// fs.inotify says.
var (
	instances      = accounts.NewPool(32 * settings.InotifyInstances.Get())
	inotifyWatches = accounts.NewPool(4 * settings.InotifyWatches.Get())
)

// SetInotifyInstances changes how many instances a user may have.
func SetInotifyInstances(n int64) {
	settings.InotifyInstances.Set(n)
	instances.SetMax(max(32*n, 1))
}

// SetInotifyWatches changes how many watches a user may have.
func SetInotifyWatches(n int64) {
	settings.InotifyWatches.Set(n)
	inotifyWatches.SetMax(max(4*n, 1))
}

// NewInotify returns an open instance; flags may have O_NONBLOCK. EMFILE when
// there are too many.
func NewInotify(c *creds.Cred, flags uint32) (*File, linux.Errno) {
	u := accounts.UserOf(c.EUID) // not the real user: as on Linux
	if !instances.Charge(u, 1) {
		return nil, linux.EMFILE
	}
	if instances.Of(u) > settings.InotifyInstances.Get() {
		instances.Release(u, 1)
		return nil, linux.EMFILE
	}
	return NewFile(&Inotify{watches: map[int32]*watch{}, user: u, most: int(settings.InotifyQueue.Get())}, linux.O_RDONLY|flags&linux.O_NONBLOCK), 0
}

// Name is the text of /proc/PID/fd/N.
func (in *Inotify) Name(*File) string { return "anon_inode:inotify" }

// FDInfo tells of the watches.
func (in *Inotify) FDInfo(_ *File, w io.Writer) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, wd := range slices.Sorted(maps.Keys(in.watches)) {
		x := in.watches[wd]
		fmt.Fprintf(w, "inotify wd:%x ino:%x sdev:%x mask:%x ignored_mask:0 fhandle-bytes:0 fhandle-type:0 f_handle:\n",
			wd, x.inode.Ino, x.inode.FS.Dev, x.mask.Load()&^linux.IN_UNMOUNT)
	}
}

// AddWatch watches the file at p, or changes its watch.
func (in *Inotify) AddWatch(p Path, mask uint32) (int32, linux.Errno) {
	i := p.Dentry.Inode
	keep := mask&(linux.IN_ALL_EVENTS|linux.IN_ONESHOT|linux.IN_EXCL_UNLINK) | linux.IN_UNMOUNT
	watchMu.Lock()
	defer watchMu.Unlock()
	var list []*watch
	if l := i.watches.Load(); l != nil {
		list = *l
	}
	for _, w := range list {
		if w.in != listener(in) {
			continue
		}
		if mask&linux.IN_MASK_CREATE != 0 {
			return 0, linux.EEXIST
		}
		if mask&linux.IN_MASK_ADD != 0 {
			keep |= w.mask.Load()
		}
		w.mask.Store(keep)
		return w.wd, 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || inotifyWatches.Of(in.user) >= settings.InotifyWatches.Get() || !inotifyWatches.Charge(in.user, 1) {
		return 0, linux.ENOSPC
	}
	for in.last++; in.last <= 0 || in.watches[in.last] != nil; in.last++ {
		in.last = max(in.last, 0)
	}
	w := &watch{in: in, wd: in.last, inode: i}
	w.mask.Store(keep)
	in.watches[w.wd] = w
	in.peak.Note(len(in.watches))
	w.addLocked()
	return w.wd, 0
}

// RemoveWatch ends a watch.
func (in *Inotify) RemoveWatch(wd int32) linux.Errno {
	in.mu.Lock()
	w := in.watches[wd]
	in.mu.Unlock()
	if w == nil {
		return linux.EINVAL
	}
	w.remove()
	return 0
}

// forget takes a watch that has ended out of the instance.
func (in *Inotify) forget(w *watch) {
	inotifyWatches.Release(in.user, 1)
	in.mu.Lock()
	if delete(in.watches, w.wd); in.peak.Empty(len(in.watches)) {
		in.watches = map[int32]*watch{}
	}
	closed := in.closed
	in.mu.Unlock()
	if !closed {
		in.push(event{wd: w.wd, mask: linux.IN_IGNORED})
	}
}

// push queues an event; the same one twice in a row counts once.
func (in *Inotify) push(e event) {
	if in.add(e) {
		in.queue.Notify(wait.In | wait.RdNorm)
	}
}

func (in *Inotify) add(e event) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := &in.events
	if in.closed || q.n > in.most || q.n > 0 && q.newest().same(e) {
		return false
	}
	if q.n == in.most || !eventBytes().Charge(in.user, q.cost(&e)) {
		e = event{wd: -1, mask: linux.IN_Q_OVERFLOW}
		if q.n > 0 && q.newest().same(e) {
			return false
		}
		eventBytes().Force(in.user, q.cost(&e))
	}
	q.push(e)
	in.bytes += e.size()
	return true
}

// Read gives whole events, as many as fit; EINVAL if not even one does.
func (in *Inotify) Read(c *caller.Ctx, f *File, v *uio.Vec, _ int64) (int, linux.Errno) {
	in.queue.Add(&c.Entry, c, wait.In)
	defer in.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if n, e := in.take(v); n > 0 || e != 0 {
			return n, e
		}
		if f.NonBlock() {
			return 0, linux.EAGAIN
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return 0, linux.ERESTARTSYS
		}
	}
}

// take copies queued events out.
func (in *Inotify) take(v *uio.Vec) (done int, e linux.Errno) {
	var buf [16 + linux.NAME_MAX + 17]byte
	for {
		in.mu.Lock()
		if in.events.n == 0 {
			in.mu.Unlock()
			return done, 0
		}
		ev := *in.events.oldest()
		n := ev.size()
		if n > v.Len() {
			in.mu.Unlock()
			if done == 0 {
				e = linux.EINVAL
			}
			return done, e
		}
		in.bytes -= n
		eventBytes().Release(in.user, in.events.pop())
		in.mu.Unlock()
		b := buf[:n]
		clear(b)
		binary.LittleEndian.PutUint32(b, uint32(ev.wd))
		binary.LittleEndian.PutUint32(b[4:], ev.mask)
		binary.LittleEndian.PutUint32(b[8:], ev.cookie)
		binary.LittleEndian.PutUint32(b[12:], uint32(n-16))
		copy(b[16:], ev.name)
		if _, e := v.CopyOut(b); e != 0 {
			if done > 0 {
				e = 0
			}
			return done, e
		}
		done += n
	}
}

// Ready reports whether events are queued.
func (in *Inotify) Ready(*File) wait.Events {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.events.n > 0 {
		return wait.In | wait.RdNorm
	}
	return 0
}

// NoPosition lets lseek succeed.
func (in *Inotify) NoPosition() {}

// Queue is where new events are announced.
func (in *Inotify) Queue(*File) *wait.Queue { return &in.queue }

// Ioctl knows FIONREAD.
func (in *Inotify) Ioctl(c *caller.Ctx, _ *File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd != linux.FIONREAD {
		return 0, linux.ENOTTY
	}
	in.mu.Lock()
	n := in.bytes
	in.mu.Unlock()
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], uint32(n))
	_, e := c.Mem.CopyOut(uio.Addr(arg), b[:])
	return 0, e
}

// Release ends all watches.
func (in *Inotify) Release(*File) {
	in.mu.Lock()
	in.closed = true
	for in.events.n > 0 {
		eventBytes().Release(in.user, in.events.pop())
	}
	var all []*watch
	for _, w := range in.watches {
		all = append(all, w)
	}
	in.mu.Unlock()
	for _, w := range all {
		w.remove()
	}
	instances.Release(in.user, 1)
}

// Holds adds watches and events.
func (in *Inotify) Holds(s *ledger.Sum) {
	in.mu.Lock()
	n := ledger.Of[Inotify]() + ledger.Map[int32, *watch](in.peak.Max(len(in.watches)))
	for _, w := range in.watches {
		n += watchBytes
		if l := w.inode.watches.Load(); l != nil {
			n += (ledger.Of[[]*watch]() + ledger.Array[*watch](cap(*l))) / int64(len(*l))
		}
	}
	n += in.events.chunkBytes()
	listeners, wd, last := int64(1), int32(0), ""
	for e := range in.events.all {
		if e.wd != wd {
			listeners, wd = in.listeners(e.wd), e.wd
		}
		if e.name != last { // events in a row about a file have the same name
			n += ledger.Size(int64(len(e.name))) / listeners // which other watches have too
			last = e.name
		}
	}
	in.mu.Unlock()
	s.Add(ledger.Inotify, n)
}

// listeners returns how many watches the file of a watch has; called with mu held.
func (in *Inotify) listeners(wd int32) int64 {
	if w := in.watches[wd]; w != nil {
		if l := w.inode.watches.Load(); l != nil {
			return int64(max(len(*l), 1))
		}
	}
	return 1
}
