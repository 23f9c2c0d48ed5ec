// Package eventfd is eventfd(2): a counter that can be waited for.
//
// Lock order: file.mu, then the queue's.
package eventfd

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// maxCount is the largest value the counter takes.
const maxCount = ^uint64(0) - 1

// file is an eventfd.
type file struct {
	vfs.BaseOps
	queue     wait.Queue
	semaphore bool // EFD_SEMAPHORE; immutable

	mu    sync.Mutex
	count uint64  // guarded by mu
	buf   [8]byte // what is copied; guarded by mu
}

// New returns an eventfd that counts from initial; flags are EFD_SEMAPHORE and EFD_NONBLOCK.
func New(initial uint32, flags uint32) *vfs.File {
	x := &file{count: uint64(initial), semaphore: flags&linux.EFD_SEMAPHORE != 0}
	return vfs.NewFile(x, linux.O_RDWR|flags&linux.O_NONBLOCK)
}

// Read takes the count, or 1 of it from a semaphore, waiting for it not to be 0.
func (x *file) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() < 8 {
		return 0, linux.EINVAL
	}
	x.mu.Lock()
	for interrupted := false; x.count == 0; {
		if e := x.blocked(f, interrupted); e != 0 {
			return 0, e
		}
		interrupted = x.sleep(c, wait.In)
	}
	n := x.count
	if x.semaphore {
		n = 1
	}
	x.count -= n
	binary.LittleEndian.PutUint64(x.buf[:], n)
	_, e := v.CopyOut(x.buf[:])
	x.mu.Unlock()
	x.queue.Notify(wait.Out)
	if e != 0 {
		return 0, e
	}
	return 8, 0
}

// Write adds to the count, waiting until there is room.
func (x *file) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.First() < 8 { // Linux writes the parts of a writev one by one
		return 0, linux.EINVAL
	}
	x.mu.Lock()
	if _, e := v.CopyIn(x.buf[:]); e != 0 {
		x.mu.Unlock()
		return 0, e
	}
	n := binary.LittleEndian.Uint64(x.buf[:])
	if n > maxCount {
		x.mu.Unlock()
		return 0, linux.EINVAL
	}
	for interrupted := false; n > maxCount-x.count; {
		if e := x.blocked(f, interrupted); e != 0 {
			return 0, e
		}
		interrupted = x.sleep(c, wait.Out)
	}
	x.count += n
	x.mu.Unlock()
	x.queue.Notify(wait.In)
	return 8, 0
}

// blocked says why a transfer does not wait, giving mu up; 0 if it does.
func (x *file) blocked(f *vfs.File, interrupted bool) (e linux.Errno) {
	if f.NonBlock() {
		e = linux.EAGAIN
	} else if interrupted {
		e = linux.ERESTARTSYS
	}
	if e != 0 {
		x.mu.Unlock()
	}
	return e
}

// sleep waits for a change, giving mu up meanwhile.
func (x *file) sleep(c *caller.Ctx, ev wait.Events) (interrupted bool) {
	c.Arm()
	x.queue.Add(&c.Entry, &c.Sleeper, ev)
	x.mu.Unlock()
	r := c.Sleep(wait.NoDeadline)
	x.queue.Remove(&c.Entry)
	x.mu.Lock()
	return r == wait.Interrupted
}

// Ready is what poll reports.
func (x *file) Ready(*vfs.File) (ev wait.Events) {
	x.mu.Lock()
	if x.count > 0 {
		ev |= wait.In
	}
	if x.count < maxCount {
		ev |= wait.Out
	}
	x.mu.Unlock()
	return ev
}

// NoPosition lets lseek succeed.
func (x *file) NoPosition() {}

// Queue is where readiness is announced.
func (x *file) Queue(*vfs.File) *wait.Queue { return &x.queue }

// Name is the text of /proc/self/fd/N.
func (x *file) Name(*vfs.File) string { return "anon_inode:[eventfd]" }

// FDInfo writes what /proc/self/fdinfo shows.
func (x *file) FDInfo(_ *vfs.File, w io.Writer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fmt.Fprintf(w, "eventfd-count: %16x\n", x.count)
}
