package devfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// MemDevices open the devices of major number 1 by their minor numbers.
var MemDevices = map[uint32]vfs.CharOpener{
	3: opens(null{}), 5: opens(zero{}), 7: opens(full{}), 8: opens(randomDevice{waits: true}), 9: opens(randomDevice{}),
	11: openKmsg,
}

func opens(ops vfs.Ops) vfs.CharOpener {
	return func(*caller.Ctx, uint32) (vfs.Ops, linux.Errno) { return ops, 0 }
}

var zeros [mem.PageSize]byte

// device is what the memory devices have in common: positions mean nothing.
type device struct{ vfs.BaseOps }

// Seek accepts everything.
func (device) Seek(_ *caller.Ctx, f *vfs.File, _ int64, _ int) (int64, linux.Errno) {
	f.Pos = 0
	return 0, 0
}

// Write swallows everything.
func (device) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	return v.Len(), 0
}

// null is /dev/null.
type null struct{ device }

func (null) Read(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) { return 0, 0 }

// zero is /dev/zero.
type zero struct{ device }

func (zero) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	return produce(c, v, func([]byte) {})
}

// Map makes mappings of /dev/zero anonymous memory.
func (zero) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) { return mem.Anonymous, 0 }

// full is /dev/full: it reads as /dev/zero does, cannot be mapped, and refuses even a
// write of nothing.
type full struct{ device }

func (full) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	return produce(c, v, func([]byte) {})
}

func (full) Write(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.ENOSPC
}

// randomDevice is /dev/random, which waits until nobody can guess its bytes, and
// /dev/urandom, which does not.
type randomDevice struct {
	device
	waits bool
}

// Random reports whether operations of a file are those of a random device.
func Random(ops any) bool {
	_, ok := ops.(randomDevice)
	return ok
}

// Ioctl answers an unknown request in the driver's own way.
func (randomDevice) Ioctl(*caller.Ctx, *vfs.File, uint32, uint64) (uint64, linux.Errno) {
	return 0, linux.EINVAL
}

func (r randomDevice) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if r.waits && !random.Ready() {
		if f.NonBlock() {
			return 0, linux.EAGAIN
		}
		if e := random.Await(c); e != 0 {
			return 0, e
		}
	}
	return produce(c, v, random.Read)
}

// Write stirs what it is given into the pool. It may be known to others, and makes
// nothing ready.
func (randomDevice) Write(c *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	p := pages.Get().(*[mem.PageSize]byte)
	defer pages.Put(p)
	for v.Len() > 0 && e == 0 {
		var n int
		n, e = v.CopyIn(p[:min(v.Len(), mem.PageSize)])
		random.Stir(p[:n], 0)
		if done += n; c.Interrupted() {
			break
		}
	}
	*p = zeros
	if done > 0 {
		return done, 0
	}
	return 0, e
}

var pages = sync.Pool{New: func() any { return new([mem.PageSize]byte) }}

// produce fills v page by page with what fill makes of a page of zeros.
func produce(c *caller.Ctx, v *uio.Vec, fill func([]byte)) (done int, e linux.Errno) {
	p := pages.Get().(*[mem.PageSize]byte)
	defer pages.Put(p)
	*p = zeros
	for v.Len() > 0 && e == 0 {
		b := p[:min(v.Len(), mem.PageSize)]
		fill(b)
		var n int
		n, e = v.CopyOut(b)
		done += n
		if done > 0 && c.Interrupted() {
			break
		}
	}
	if done > 0 {
		return done, 0
	}
	return 0, e
}
