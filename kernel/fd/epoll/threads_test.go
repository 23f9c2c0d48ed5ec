package epoll

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fd/eventfd"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fd/timerfd"
	"hardtack/kernel/fs/vfs"
)

// descriptors are the open files of a program: threads that close one and open another at
// its place do so while others use it.
type descriptors struct {
	mu    sync.Mutex
	files [10]*vfs.File
}

// get returns a file, for the caller to put, and its descriptor.
func (d *descriptors) get(i int) (*vfs.File, int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[i] != nil {
		d.files[i].Get()
	}
	return d.files[i], int32(i)
}

func (d *descriptors) set(i int, f *vfs.File) {
	d.mu.Lock()
	old := d.files[i]
	d.files[i] = f
	d.mu.Unlock()
	if old != nil {
		old.Put()
	}
}

// open puts new files at a place; the other end of a pipe goes to the next one.
func (d *descriptors) open(c *caller.Ctx, r *rand.Rand, i int) {
	switch r.IntN(5) {
	case 0:
		d.set(i, eventfd.New(uint32(r.IntN(2)), linux.O_NONBLOCK))
	case 1:
		d.set(i, timerfd.New(linux.CLOCK_MONOTONIC, linux.O_NONBLOCK))
	case 2:
		d.set(i, New(user))
	default:
		if a, b, e := pipe.Pair(c, linux.O_NONBLOCK); e == 0 {
			d.set(i, a)
			d.set((i+1)%len(d.files), b)
		}
	}
}

// TestThreads has three threads make random calls on a few pipes, timers, counters and
// epoll instances that watch them and each other, while they are closed. No call waits, and
// any error is right; at the end nothing is left.
func TestThreads(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	before := watches.Get().Of(user)
	var d descriptors
	var all sync.WaitGroup
	for range 3 {
		c, r := caller.NewKernelCtx(), rand.New(rand.NewPCG(rand.Uint64(), 1))
		all.Go(func() {
			for range rounds {
				d.meddle(c, r)
			}
		})
	}
	all.Wait()
	f, g := New(user), eventfd.New(1, linux.O_NONBLOCK)
	if e := Of(f).Ctl(f, linux.EPOLL_CTL_ADD, 1, g, uint32(wait.In), 7); e != 0 {
		t.Error(e)
	}
	if got := collect(t, caller.NewKernelCtx(), f, 1); len(got) != 1 || got[0].data != 7 {
		t.Error(got)
	}
	f.Put()
	g.Put()
	for i := range d.files {
		d.set(i, nil)
	}
	if n := watches.Get().Of(user) - before; n != 0 {
		t.Errorf("%d watches are left", n)
	}
}

func (d *descriptors) meddle(c *caller.Ctx, r *rand.Rand) {
	i := r.IntN(len(d.files))
	f, _ := d.get(i)
	if f == nil || r.IntN(30) == 0 {
		d.open(c, r, i)
	}
	if f == nil {
		return
	}
	defer f.Put()
	other, fd := d.get(r.IntN(len(d.files)))
	if other == nil {
		return
	}
	defer other.Put()
	switch r.IntN(6) {
	case 0:
		f.Ops.Read(c, f, uio.Bytes(make([]byte, 8+r.IntN(5000))), 0)
	case 1:
		f.Ops.Write(c, f, uio.Bytes(make([]byte, 8+r.IntN(5000))), 0)
	case 2:
		f.Ops.Ready(f)
		if h, ok := f.Ops.(interface{ Holds(*ledger.Sum) }); ok {
			h.Holds(new(ledger.Sum))
		}
	case 3:
		s, e := NewPollSet(user, 2)
		if e == 0 {
			f.Get()
			other.Get()
			s.Add(f, wait.In, 0)
			s.Add(other, wait.Out, 0)
			s.Wait(c, 1, r.IntN(2) == 0)
			s.Free()
		}
	default:
		d.each(c, r, f, other, fd)
	}
}

// each makes a call that only one kind of file has.
func (d *descriptors) each(c *caller.Ctx, r *rand.Rand, f, other *vfs.File, fd int32) {
	if ep := Of(f); ep != nil {
		switch op := int32(r.IntN(5)); op {
		case linux.EPOLL_CTL_ADD, linux.EPOLL_CTL_DEL, linux.EPOLL_CTL_MOD:
			flags := []uint32{0, linux.EPOLLET, linux.EPOLLONESHOT, linux.EPOLLEXCLUSIVE}[r.IntN(4)]
			ep.Ctl(f, op, fd, other, uint32(wait.In|wait.Out)|flags, 7)
		default:
			ep.Wait(c, make(flat, 3*linux.SizeofEpollEvent), 0, 3, 0, true)
		}
		return
	}
	if x := timerfd.Of(f); x != nil {
		if r.IntN(2) == 0 {
			x.Set(ktime.Setting{Value: int64(r.IntN(100_000)), Interval: int64(r.IntN(3) * 50_000)}, 0)
		}
		x.Get()
		return
	}
	p := pipe.PipeOf(f)
	if p == nil {
		return
	}
	switch q := pipe.PipeOf(other); r.IntN(6) {
	case 0:
		p.SetSize(c, uint64(4096<<r.IntN(6)))
	case 1:
		p.Size()
	case 2, 3:
		if q != nil && q != p {
			pipe.Tee(c, p, q, 1+r.IntN(9000), true, r.IntN(2) == 0)
		}
	case 4:
		p.Map(c, uio.Bytes(make([]byte, 3000)), true)
	default:
		p.SpliceTo(c, 1+r.IntN(9000), true, func(b []byte) (int, linux.Errno) { return r.IntN(len(b) + 1), 0 })
	}
}
