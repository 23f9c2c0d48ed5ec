package block

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/disk/blockdev"
	"hardtack/kernel/fs/vfs"
)

// file is an open device file. With O_DIRECT, transfers go past the cache and
// must be whole blocks at block borders.
type file struct {
	vfs.BaseOps
	p         *Part
	exclusive bool          // immutable; it claims the part
	next      atomic.Int64  // where the last read ended: one that begins there reads ahead
	ahead     atomic.Int32  // the window: pages that were read ahead last, 0 at first
	until     atomic.Uint64 // page behind the last that was read ahead
	errors    atomic.Uint32 // what fsync has told of the cache's
}

// Open is vfs.OpenBlock.
func Open(_ *caller.Ctx, i *vfs.Inode, flags uint32) (vfs.Ops, linux.Errno) {
	p := byNumber(i.Rdev)
	if p == nil {
		return nil, linux.ENXIO
	}
	exclusive := flags&linux.O_EXCL != 0
	if exclusive && !p.Claim() {
		return nil, linux.EBUSY
	}
	f := &file{p: p, exclusive: exclusive}
	f.errors.Store(p.Disk.cache.errors.Sample())
	p.open(1)
	return f, 0
}

// Release writes back behind the disk's last open file.
func (f *file) Release(*vfs.File) {
	if f.p.open(-1) == 0 {
		f.p.Disk.cache.writeBack(0, ^uint64(0))
		f.p.Disk.cache.clear()
	}
	if f.exclusive {
		f.p.Release()
	}
}

// Read reads what there is up to the end.
func (f *file) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	size := f.p.Bytes()
	if v.Len() == 0 || off >= size {
		return 0, 0
	}
	n := min(int64(v.Len()), size-off)
	if of.Flags()&linux.O_DIRECT != 0 {
		return f.direct(c, blockdev.Read, v, off, n)
	}
	if f.next.Load() == off {
		f.readAhead(off, n)
	} else {
		f.ahead.Store(0)
	}
	done, e := f.p.Disk.cache.read(c, v, f.p.at(off), n)
	f.next.Store(off + int64(done))
	return done, e
}

// readAhead makes sure that pages behind those of a read in order are under
// way: when less than half of a window is left, the next one is begun, twice as
// large as the last.
func (f *file) readAhead(off, n int64) {
	window := f.ahead.Load()
	last := uint64(f.p.at(off+n-1)) >> mem.PageShift
	from := max(f.until.Load(), last+1)
	if window > 0 && from-last > uint64(window/2) {
		return
	}
	if window == 0 {
		from = last + 1
	}
	window = min(max(2*window, minAhead), MaxReadAhead)
	f.ahead.Store(window)
	f.until.Store(from + uint64(window))
	f.p.Disk.cache.prefetch(from, int(window))
}

// Write writes up to the end; ENOSPC there.
func (f *file) Write(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	size := f.p.Bytes()
	flags := of.Flags()
	if f.p.Disk.limits.ReadOnly {
		return 0, linux.EPERM
	}
	if flags&linux.O_APPEND != 0 {
		off = size
	}
	if v.Len() == 0 {
		return 0, 0
	}
	if off >= size {
		return 0, linux.ENOSPC
	}
	n := min(int64(v.Len()), size-off)
	var done int
	var e linux.Errno
	if flags&linux.O_DIRECT != 0 {
		done, e = f.direct(c, blockdev.Write, v, off, n)
	} else {
		done, e = f.p.Disk.cache.write(c, v, f.p.at(off), n)
	}
	if done > 0 && flags&linux.O_DSYNC != 0 {
		if err := f.sync(off, int64(done)); err != 0 {
			return 0, err
		}
	}
	return done, e
}

// at is a place of the part on the disk, in bytes.
func (p *Part) at(off int64) int64 { return off + int64(p.Start)<<blockdev.SectorShift }

// direct moves whole blocks between v and the disk, through pages of our own.
func (f *file) direct(who *caller.Ctx, op blockdev.Op, v *uio.Vec, off, n int64) (done int, e linux.Errno) {
	l := &f.p.Disk.limits
	if (off|n|int64(v.Len()))&int64(l.LogicalBlock-1) != 0 {
		return 0, linux.EINVAL
	}
	cache := &f.p.Disk.cache
	if e := cache.forget(f.p.at(off), n); e != 0 {
		return 0, e
	}
	most := min(l.MaxSegments*mem.PageSize, int(l.MaxSectors)<<blockdev.SectorShift) &^ (mem.PageSize - 1)
	c := f.p.begin()
	for n > 0 && e == 0 && !(done > 0 && caller.Killed(who)) {
		// Some requests at once, each with pages of its own.
		var moved int
		for n > 0 && c.n < directRequests && e == 0 {
			k := int(min(n, int64(most)))
			if k, e = c.direct(op, v, uint64(off)>>blockdev.SectorShift, k); k == 0 {
				break
			}
			off += int64(k)
			n -= int64(k)
			moved += k
		}
		c.runKeep()
		if err := linux.Errno(c.err.Load()); err != 0 {
			e, moved = err, 0
		} else if op == blockdev.Read {
			moved, e = c.copyOut(v, moved)
		}
		done += moved
		c.reset()
	}
	c.end()
	if op == blockdev.Write {
		cache.forget(f.p.at(off)-int64(done), int64(done)) // what was read meanwhile
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// directRequests are started at once for one direct transfer.
const directRequests = 8

// direct adds a request of up to n bytes with new pages, filled from v for a
// write, and returns how many bytes it has. It is less when memory or v end.
func (c *call) direct(op blockdev.Op, v *uio.Vec, sector uint64, n int) (int, linux.Errno) {
	first := len(c.pages)
	for range (n + mem.PageSize - 1) / mem.PageSize {
		c.pages = append(c.pages, 0)
	}
	got := mem.AllocBatch(c.pages[first:])
	c.pages = c.pages[:first+got]
	if n = min(n, got*mem.PageSize); n == 0 {
		return 0, linux.ENOMEM
	}
	var e linux.Errno
	if op == blockdev.Write {
		copied := 0
		for i := first; copied < n && e == 0; i++ {
			var k int
			k, e = v.CopyIn(c.pages[i].Bytes()[:min(n-copied, mem.PageSize)])
			copied += k
		}
		if n = copied &^ (c.d.limits.LogicalBlock - 1); n == 0 {
			return 0, e
		}
	}
	segs := len(c.segs)
	used := first + (n+mem.PageSize-1)/mem.PageSize
	c.frames(c.pages[first:used], n)
	c.request(op, sector, uint32(n>>blockdev.SectorShift), c.segs[segs:])
	return n, e
}

// copyOut gives v the pages that were read.
func (c *call) copyOut(v *uio.Vec, n int) (done int, e linux.Errno) {
	for i := 0; done < n && e == 0; i++ {
		var k int
		k, e = v.CopyOut(c.pages[i].Bytes()[:min(n-done, mem.PageSize)])
		done += k
	}
	return done, e
}

// Seek moves the position; the end is the part's.
func (f *file) Seek(_ *caller.Ctx, of *vfs.File, off int64, whence int) (int64, linux.Errno) {
	size := f.p.Bytes()
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += of.Pos
	case linux.SEEK_END:
		off += size
	default:
		return 0, linux.EINVAL
	}
	if off < 0 || off > size {
		return 0, linux.EINVAL
	}
	of.Pos = off
	return off, 0
}

// Sync makes durable what was written through any file of the disk.
func (f *file) Sync(*caller.Ctx, *vfs.File, bool) linux.Errno { return f.sync(0, f.p.Bytes()) }

func (f *file) sync(off, n int64) linux.Errno {
	cache := &f.p.Disk.cache
	at := f.p.at(off)
	cache.writeBack(uint64(at)>>mem.PageShift, uint64(at+max(n, 1)-1)>>mem.PageShift)
	e := f.p.Flush()
	if lost := cache.errors.Check(&f.errors); lost != 0 {
		return lost
	}
	return e
}

// Allocate is fallocate: discard and zeroes.
func (f *file) Allocate(_ *caller.Ctx, of *vfs.File, mode uint32, off, n int64) linux.Errno {
	size := f.p.Bytes()
	mask := int64(f.p.Disk.limits.LogicalBlock - 1)
	if off >= size {
		return linux.EINVAL
	}
	if n > size-off {
		if mode&linux.FALLOC_FL_KEEP_SIZE == 0 {
			return linux.EINVAL
		}
		n = size - off
	}
	if (off|n)&mask != 0 {
		return linux.EINVAL
	}
	switch mode {
	case linux.FALLOC_FL_ZERO_RANGE, linux.FALLOC_FL_ZERO_RANGE | linux.FALLOC_FL_KEEP_SIZE:
		return f.zero(off, n, true)
	case linux.FALLOC_FL_PUNCH_HOLE | linux.FALLOC_FL_KEEP_SIZE:
		return f.zero(off, n, false)
	}
	return linux.EOPNOTSUPP
}

// zero makes bytes zero: by the device, or by writing where it cannot.
func (f *file) zero(off, n int64, keep bool) linux.Errno {
	if f.p.Disk.limits.ReadOnly {
		return linux.EPERM
	}
	e := f.around(off, n, func() linux.Errno {
		return f.p.WriteZeroes(uint64(off)>>blockdev.SectorShift, uint64(n)>>blockdev.SectorShift, keep)
	})
	if e != linux.EOPNOTSUPP {
		return e
	}
	if !keep {
		return e
	}
	zeros := make([]byte, 1<<20)
	for n > 0 {
		b := zeros[:min(n, int64(len(zeros)))]
		k, e := f.direct(nil, blockdev.Write, uio.Bytes(b), off, int64(len(b)))
		if e != 0 {
			return e
		}
		off += int64(k)
		n -= int64(k)
	}
	return 0
}

// around does something to a range that the cache must not have.
func (f *file) around(off, n int64, do func() linux.Errno) linux.Errno {
	cache := &f.p.Disk.cache
	if e := cache.forget(f.p.at(off), n); e != 0 {
		return e
	}
	e := do()
	cache.forget(f.p.at(off), n)
	return e
}

// Ioctl answers what programs ask of disks.
func (f *file) Ioctl(c *caller.Ctx, of *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if v, size := f.fact(cmd); size != 0 {
		b := c.Scratch[:8]
		binary.LittleEndian.PutUint64(b, v)
		_, e := c.Mem.CopyOut(uio.Addr(arg), b[:size])
		return 0, e
	}
	d := f.p.Disk
	switch cmd {
	case linux.HDIO_GETGEO:
		// heads, sectors, cylinders, start: made up, as all are today.
		b := c.Scratch[:16]
		clear(b)
		b[0], b[1] = 16, 63
		binary.LittleEndian.PutUint16(b[2:], uint16(min(d.limits.Sectors/(16*63), 0xffff)))
		binary.LittleEndian.PutUint64(b[8:], f.p.Start)
		_, e := c.Mem.CopyOut(uio.Addr(arg), b)
		return 0, e
	case linux.BLKFLSBUF:
		if !c.Cred().Has(creds.CapSysAdmin) {
			return 0, linux.EACCES
		}
		// As on Linux it does not fail: that is fsync's to tell.
		d.cache.writeBack(0, ^uint64(0))
		f.p.Flush()
		d.cache.clear()
		return 0, 0
	case linux.BLKDISCARD, linux.BLKZEROOUT:
		return 0, f.discard(c, of, cmd, arg)
	case linux.BLKRRPART:
		if !c.Cred().Has(creds.CapSysAdmin) {
			return 0, linux.EACCES
		}
		if f.p.Number != 0 {
			return 0, linux.EINVAL
		}
		return 0, d.Rescan()
	}
	return 0, linux.ENOTTY
}

// fact is the answer to a request for a number, of size bytes; 0: to no such request.
func (f *file) fact(cmd uint32) (v uint64, size int) {
	l := &f.p.Disk.limits
	switch cmd {
	case linux.BLKGETSIZE64:
		return uint64(f.p.Bytes()), 8
	case linux.BLKGETSIZE:
		return f.p.Sectors, 8
	case linux.BLKSSZGET:
		return uint64(l.LogicalBlock), 4
	case linux.BLKPBSZGET, linux.BLKIOMIN:
		return uint64(l.PhysicalBlock), 4
	case linux.BLKBSZGET:
		return mem.PageSize, 4
	case linux.BLKIOOPT:
		return uint64(l.OptimalIO), 4
	case linux.BLKALIGNOFF, linux.BLKDISCARDZEROES:
		return 0, 4
	case linux.BLKROGET:
		return flag(l.ReadOnly), 4
	case linux.BLKROTATIONAL:
		return flag(l.Rotational), 2
	case linux.BLKRAGET:
		return MaxReadAhead * mem.PageSize / blockdev.SectorSize, 8
	}
	return 0, 0
}

func flag(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// discard is BLKDISCARD and BLKZEROOUT.
func (f *file) discard(c *caller.Ctx, of *vfs.File, cmd uint32, arg uint64) linux.Errno {
	l := &f.p.Disk.limits
	b := c.Scratch[:16]
	if !of.Writable() {
		return linux.EBADF
	}
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return e
	}
	off, n := int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	if off < 0 || n < 0 || (off|n)&int64(l.LogicalBlock-1) != 0 || off > f.p.Bytes() || n > f.p.Bytes()-off {
		return linux.EINVAL
	}
	if cmd == linux.BLKZEROOUT {
		return f.zero(off, n, true)
	}
	if l.ReadOnly {
		return linux.EPERM
	}
	return f.around(off, n, func() linux.Errno {
		return f.p.Discard(uint64(off)>>blockdev.SectorShift, uint64(n)>>blockdev.SectorShift)
	})
}

var (
	_ vfs.Seeker    = (*file)(nil)
	_ vfs.Syncer    = (*file)(nil)
	_ vfs.Allocator = (*file)(nil)
)
