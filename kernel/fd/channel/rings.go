package channel

import (
	"sync/atomic"
	"time"

	abi "hardtack/abi/cluster"
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/monitor"
)

// ringFile is the file of a channel's rings. Their memory is the first cluster's, in which it is
// charged to who has this file.
type ringFile struct {
	vfs.BaseOps
	channel  *monitor.Channel
	rings    *monitor.Rings
	own      bool           // this is the first cluster
	user     *accounts.User // who is charged
	queue    wait.Queue
	awaiting wait.Queue // who waits in Await; while somebody does, he alone is told
	roused   atomic.Bool
	mappings mem.Mappings
}

func (x *file) ringPages() (uint64, linux.Errno) {
	ch, _ := x.what()
	if ch == nil {
		return 0, linux.ENOTCONN
	}
	r := ch.Rings()
	if r == nil {
		return 0, 0
	}
	defer r.Put()
	return uint64(len(r.Frames) / 2), 0
}

// rings makes the file of the channel's rings.
func (x *file) rings(c *caller.Ctx, flags uint64) (uint64, linux.Errno) {
	t := proc.Of(c)
	if t == nil || flags&^(linux.O_NONBLOCK|linux.O_CLOEXEC) != 0 {
		return 0, linux.EINVAL
	}
	y, e := x.newRings(c.User())
	if e != 0 {
		return 0, e
	}
	made := vfs.NewFile(y, linux.O_RDWR|uint32(flags)&linux.O_NONBLOCK)
	fd, e := t.FDs.Add(made, 0, t.NoFile(), flags&linux.O_CLOEXEC != 0)
	if e != 0 {
		made.Put()
		x.mu.Lock()
		x.ringed = false // nobody has them: the caller may try again
		x.mu.Unlock()
	}
	return uint64(fd), e
}

func (x *file) newRings(u *accounts.User) (*ringFile, linux.Errno) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.channel == nil:
		return nil, linux.ENOTCONN
	case x.ringed:
		return nil, linux.EBUSY
	case !pool.Get().Charge(u, 1):
		return nil, linux.ENFILE
	}
	r := x.channel.Rings()
	if r == nil {
		pool.Get().Release(u, 1)
		return nil, linux.ENODATA
	}
	x.ringed = true
	y := &ringFile{channel: x.channel, rings: r, own: x.d.Cluster == 0, user: u}
	y.channel.OnRung(y.notify)
	return y, 0
}

func (y *ringFile) notify() {
	if !y.awaiting.Empty() {
		y.awaiting.Notify(readable)
		return
	}
	y.queue.Notify(readable | wait.Hup)
}

// Ioctl has the requests of abi/cluster for rings.
func (y *ringFile) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case abi.Await:
		return 0, y.await(c, arg)
	case abi.Rouse:
		y.roused.Store(true)
		y.awaiting.Notify(readable)
		return 0, 0
	}
	return 0, linux.ENOTTY
}

// await takes the rings that have come, or waits for one, for so many nanoseconds at most. A ring
// that comes when it is about to return is told to the others.
func (y *ringFile) await(c *caller.Ctx, most uint64) linux.Errno {
	if rung, _ := y.channel.TakeRung(); rung {
		return 0
	}
	deadline := wait.Now() + int64(min(most, uint64(maxAwait)))
	y.awaiting.Add(&c.Entry, &c.Sleeper, readable)
	e := y.awaitRung(c, deadline)
	y.awaiting.Remove(&c.Entry)
	if rung, gone := y.channel.Rung(); rung || gone {
		y.queue.Notify(readable | wait.Hup)
	}
	return e
}

func (y *ringFile) awaitRung(c *caller.Ctx, deadline int64) linux.Errno {
	for {
		c.Arm()
		switch rung, gone := y.channel.TakeRung(); {
		case rung || y.roused.Load() && y.roused.Swap(false):
			return 0
		case gone:
			return linux.EPIPE
		}
		switch c.Sleep(deadline) {
		case wait.TimedOut:
			return linux.ETIMEDOUT
		case wait.Interrupted:
			return linux.EINTR
		}
	}
}

// maxAwait is the longest time that Await waits.
const maxAwait = time.Hour

// Map gives the rings.
func (y *ringFile) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) { return y, 0 }

// Page implements mem.Object.
func (y *ringFile) Page(i uint64, _ bool) (mem.Frame, linux.Errno) {
	if i >= uint64(len(y.rings.Frames)) {
		return 0, linux.EFAULT
	}
	f := mem.Frame(y.rings.Frames[i])
	f.Get()
	return f, 0
}

// Mappings implements mem.Object.
func (y *ringFile) Mappings() *mem.Mappings { return &y.mappings }

// Read takes the rings that have come.
func (y *ringFile) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	for {
		switch rung, gone := y.channel.TakeRung(); {
		case rung:
			return v.CopyOut([]byte{1})
		case gone:
			return 0, 0
		case f.NonBlock():
			return 0, linux.EAGAIN
		}
		if e := y.sleep(c); e != 0 {
			return 0, e
		}
	}
}

// sleep waits for a ring, or the end.
func (y *ringFile) sleep(c *caller.Ctx) linux.Errno {
	y.queue.Add(&c.Entry, &c.Sleeper, readable)
	defer y.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if rung, gone := y.channel.Rung(); rung || gone {
			return 0
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

// Write rings for the other end.
func (y *ringFile) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if _, gone := y.channel.Rung(); gone {
		return 0, linux.EPIPE
	}
	if v.Len() > 0 {
		y.channel.Ring()
	}
	return v.Len(), 0
}

// Ready is what poll reports.
func (y *ringFile) Ready(*vfs.File) wait.Events {
	rung, gone := y.channel.Rung()
	ev := writable
	if rung || gone {
		ev |= readable
	}
	if gone {
		ev |= wait.Hup
	}
	return ev
}

// Queue is where readiness is announced.
func (y *ringFile) Queue(*vfs.File) *wait.Queue { return &y.queue }

// Name is the text of /proc/self/fd/N.
func (y *ringFile) Name(*vfs.File) string { return "anon_inode:[cluster-rings]" }

// Holds adds the file, and the frames if they are this kernel's.
func (y *ringFile) Holds(s *ledger.Sum) {
	s.Add(ledger.Sockets, ledger.Of[ringFile]()+ledger.Of[monitor.Rings]())
	if y.own {
		s.Add(ledger.FilePages, int64(len(y.rings.Frames))*mem.PageSize)
	}
}

// Release gives the rings up: nobody has mapped them any more.
func (y *ringFile) Release(*vfs.File) {
	y.channel.OnRung(nil)
	y.rings.Put()
	pool.Get().Release(y.user, 1)
}
