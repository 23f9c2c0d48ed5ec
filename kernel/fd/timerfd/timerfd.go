// Package timerfd is timerfd_create(2): a timer whose expirations are read.
//
// Lock order: the timer's, or the queue's; never both.
package timerfd

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// File is a timerfd.
type File struct {
	vfs.BaseOps
	queue wait.Queue
	timer ktime.Timer
	clock int32 // immutable

	cancelable atomic.Bool // TFD_TIMER_CANCEL_ON_SET
	cancelled  atomic.Bool // the clock was set since
}

// New returns a timerfd on a wall clock, disarmed; flags are O_NONBLOCK.
func New(clock int32, flags uint32) *vfs.File {
	x := &File{clock: clock}
	x.timer.Init(ktime.Clock{ID: clock}, x.announce, x.clockSet)
	return vfs.NewFile(x, linux.O_RDWR|flags&linux.O_NONBLOCK)
}

// Holds adds the timer.
func (x *File) Holds(s *ledger.Sum) { s.Add(ledger.Timers, ledger.Of[File]()+callBytes+x.timer.Held()) }

// callBytes is what the functions take that each timer has: two method values.
const callBytes = 2 * 16

// Of returns the timer behind an open file, or nil.
func Of(f *vfs.File) *File {
	x, _ := f.Ops.(*File)
	return x
}

func (x *File) announce() { x.queue.Notify(wait.In) }

func (x *File) clockSet() {
	if x.cancelable.Load() {
		x.cancelled.Store(true)
		x.announce()
	}
}

// Set is timerfd_settime; it returns what was set before.
func (x *File) Set(s ktime.Setting, flags uint32) ktime.Setting {
	absolute := flags&linux.TFD_TIMER_ABSTIME != 0
	x.cancelable.Store(absolute && flags&linux.TFD_TIMER_CANCEL_ON_SET != 0)
	x.cancelled.Store(false)
	return x.timer.Set(s, absolute)
}

// Get is timerfd_gettime.
func (x *File) Get() ktime.Setting { return x.timer.Get() }

// Read returns the number of expirations since the last read, waiting for one.
func (x *File) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() < 8 {
		return 0, linux.EINVAL
	}
	n, e := x.take()
	if n == 0 && e == 0 {
		if f.NonBlock() {
			return 0, linux.EAGAIN
		}
		n, e = x.await(c)
	}
	if e != 0 {
		return 0, e
	}
	b := c.Scratch[:8]
	binary.LittleEndian.PutUint64(b, n)
	if _, e := v.CopyOut(b); e != 0 {
		return 0, e
	}
	return 8, 0
}

// await waits for an expiration.
func (x *File) await(c *caller.Ctx) (uint64, linux.Errno) {
	x.queue.Add(&c.Entry, &c.Sleeper, wait.In)
	defer x.queue.Remove(&c.Entry)
	//maxlive:loop 1 because a look that finds nothing leaves nothing
	for {
		c.Arm()
		if n, e := x.take(); n != 0 || e != 0 {
			return n, e
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return 0, linux.ERESTARTSYS
		}
	}
}

// take returns the expirations, or ECANCELED once after the clock was set.
func (x *File) take() (uint64, linux.Errno) {
	if x.cancelled.Swap(false) {
		return 0, linux.ECANCELED
	}
	return x.timer.Take(), 0
}

// Ready is what poll reports.
func (x *File) Ready(*vfs.File) wait.Events {
	if x.cancelled.Load() || x.timer.Expired() > 0 {
		return wait.In
	}
	return 0
}

// NoPosition lets lseek succeed.
func (x *File) NoPosition() {}

// Ioctl knows TFD_IOC_SET_TICKS: as many expirations wait to be read.
func (x *File) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd != linux.TFD_IOC_SET_TICKS {
		return 0, linux.ENOTTY
	}
	b := c.Scratch[:8]
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return 0, e
	}
	n := binary.LittleEndian.Uint64(b)
	if n == 0 {
		return 0, linux.EINVAL
	}
	if x.cancelled.Swap(false) {
		return 0, linux.ECANCELED
	}
	x.timer.SetCount(n)
	x.announce()
	return 0, 0
}

// Queue is where readiness is announced.
func (x *File) Queue(*vfs.File) *wait.Queue { return &x.queue }

// Release stops the timer.
func (x *File) Release(*vfs.File) { x.timer.Stop() }

// Name is the text of /proc/self/fd/N.
func (x *File) Name(*vfs.File) string { return "anon_inode:[timerfd]" }

// FDInfo writes what /proc/self/fdinfo shows.
func (x *File) FDInfo(_ *vfs.File, w io.Writer) {
	s := x.timer.Get()
	fmt.Fprintf(w, "clockid: %d\nticks: %d\nsettime flags: 00\nit_value: (%d, %d)\nit_interval: (%d, %d)\n",
		x.clock, x.timer.Expired(), s.Value/1e9, s.Value%1e9, s.Interval/1e9, s.Interval%1e9)
}
