package ext4fs

import (
	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Direct transfers (O_DIRECT) go through pages of their own, past the page cache:
// what it has of the range is written and dropped. Offset and length are multiples of
// the device's blocks, memory may lie anywhere.

// directPages are moved at once (256 KiB).
const directPages = 64

// aligned says whether a direct transfer may begin at off and be n bytes long.
func (f *file) aligned(off int64, n int) bool {
	return (off|int64(n))&int64(f.fs.sector-1) == 0
}

// readDirect reads from the disk.
func (o *opened) readDirect(c *caller.Ctx, of *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	if !o.aligned(off, v.Len()) {
		return 0, linux.EINVAL
	}
	var frames [directPages]mem.Frame
	var bytes [directPages][]byte
	for v.Len() > 0 && e == 0 && !(done > 0 && caller.Killed(c)) {
		n := min(int64(v.Len()), o.Size()-off, directPages*mem.PageSize)
		if n <= 0 {
			break
		}
		if e = o.pages.WriteBack(uint64(off)>>mem.PageShift, uint64(off+n-1)>>mem.PageShift); e != 0 {
			break // the disk has not what was written
		}
		pages, got := direct(&frames, &bytes, n)
		if n = min(n, got); n == 0 {
			e = linux.ENOMEM
			break
		}
		if e = o.ReadPages(pages, off); e == 0 {
			moved := 0
			for i := 0; int64(moved) < n && e == 0; i++ {
				var k int
				k, e = v.CopyOut(pages[i][:min(n-int64(moved), mem.PageSize)])
				moved += k
			}
			done += moved
			off += int64(moved)
		}
		mem.PutBatch(frames[:len(pages)])
	}
	of.Accessed()
	if done > 0 {
		e = 0
	}
	return done, e
}

// direct gets pages for n bytes, as far as memory goes, and tells how many they hold.
func direct(frames *[directPages]mem.Frame, bytes *[directPages][]byte, n int64) ([][]byte, int64) {
	got := mem.AllocBatch(frames[:(n+mem.PageSize-1)>>mem.PageShift])
	for i := range got {
		bytes[i] = frames[i].Bytes()
	}
	return bytes[:got], int64(got) * mem.PageSize
}

// writeDirect writes to the disk. Where blocks are written over, Mu need not be held;
// where it must be, it is locked.
func (f *file) writeDirect(c *caller.Ctx, v *uio.Vec, off int64, l *held) (done int, e linux.Errno) {
	if !f.aligned(off, v.Len()) {
		return 0, linux.EINVAL
	}
	var frames [directPages]mem.Frame
	var bytes [directPages][]byte
	for v.Len() > 0 && e == 0 && !(done > 0 && caller.Killed(c)) {
		pages, n := direct(&frames, &bytes, min(int64(v.Len()), directPages*mem.PageSize))
		if len(pages) == 0 {
			e = linux.ENOMEM
			break
		}
		n = min(n, int64(v.Len()))
		moved := int64(0)
		for i := 0; moved < n && e == 0; i++ {
			var k int
			k, e = v.CopyIn(pages[i][:min(n-moved, mem.PageSize)])
			moved += int64(k)
		}
		moved &^= int64(f.fs.sector - 1)
		if moved > 0 {
			var err linux.Errno
			if moved, err = f.writePages(pages, off, moved, l); err != 0 {
				e = err
			}
		}
		mem.PutBatch(frames[:len(pages)])
		done += int(moved)
		off += moved
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// writePages writes n bytes of pages at off, and returns how many it has written: fewer
// only with an error.
func (f *file) writePages(pages [][]byte, off, n int64, l *held) (int64, linux.Errno) {
	bs := int64(f.fs.ext.BlockSize())
	if (off|n)&(bs-1) != 0 {
		l.lock()
		f.Written()
		return f.writeParts(pages, off, n)
	}
	if !l.on {
		if done, e := f.writeOver(cutPages(pages, n), off, n, l); done || e != 0 {
			return whole(n, e)
		}
		l.lock()
	}
	for short, tried := linux.Errno(0), false; ; short = linux.ENOSPC {
		e := f.writeBlocks(cutPages(pages, n), off, n)
		if e == linux.ENOSPC && !tried {
			if tried = true; f.MakeRoom() {
				e = f.writeBlocks(cutPages(pages, n), off, n)
			}
		}
		if e == 0 {
			return n, short
		}
		if e != linux.ENOSPC || n == bs {
			return 0, e
		}
		n = (n/2 + bs - 1) &^ (bs - 1) // as much as there is room for
	}
}

// whole is the count of a write of n bytes that is done or not.
func whole(n int64, e linux.Errno) (int64, linux.Errno) {
	if e != 0 {
		n = 0
	}
	return n, e
}

// cutPages makes pages n bytes long together.
func cutPages(pages [][]byte, n int64) [][]byte {
	count := (n + mem.PageSize - 1) >> mem.PageShift
	pages = pages[:count]
	pages[count-1] = pages[count-1][:n-(count-1)<<mem.PageShift]
	return pages
}

// tick is how exact the times of a file are that is written over (Linux's are as
// coarse): to set them waits for all who write.
const tick = 4e6

// writeOver is writeBlocks where the file has all the blocks, and only what is in
// them changes; false: it has not.
func (f *file) writeOver(pages [][]byte, off, n int64, l *held) (bool, linux.Errno) {
	if off+n > f.Size() {
		return false, 0
	}
	first, last := uint64(off)>>mem.PageShift, uint64(off+n-1)>>mem.PageShift
	done, stale, e := f.pages.Overwrite(first, last, func() (bool, linux.Errno) {
		done, err := f.fs.ext.Overwrite(f.in, pages, off)
		return done, f.fs.errno(err)
	})
	if stale {
		l.lock()
		if err := f.pages.Bypass(first, last, func() linux.Errno { return 0 }); e == 0 {
			e = err
		}
	}
	if !done || e != 0 {
		return done, e
	}
	if _, mt, ct := f.Times(); uint64(clocks.Realtime()-min(mt, ct)) >= tick || mt != ct {
		f.Written()
		_, mt, ct = f.Times()
		e = f.fs.errno(f.fs.ext.Written(f.in, mt, ct))
	}
	return true, e
}

// writeBlocks writes n bytes of pages, whole blocks, at off; Mu is held.
func (f *file) writeBlocks(pages [][]byte, off, n int64) linux.Errno {
	f.Written()
	return f.pages.Bypass(uint64(off)>>mem.PageShift, uint64(off+n-1)>>mem.PageShift, func() linux.Errno {
		_, mt, ct := f.Times()
		o := ext4.Out{Pages: pages, Off: off, Size: max(f.Size(), off+n), Direct: true, Mtime: mt, Ctime: ct}
		if e := f.fs.errno(f.fs.ext.WritePages(f.in, &o)); e != 0 {
			return e
		}
		f.pages.Grow(o.Size)
		f.countBlocks()
		return 0
	})
}

// writeParts writes n bytes that do not begin or end at blocks of the file system:
// through the cache. It returns how many it has written.
func (f *file) writeParts(pages [][]byte, off, n int64) (done int64, e linux.Errno) {
	for done < n && e == 0 {
		p := pages[done>>mem.PageShift][done&(mem.PageSize-1):]
		var k int
		k, _, e = f.pages.Write(nil, uio.Bytes(p[:min(n-done, int64(len(p)))]), off+done)
		done += int64(k)
	}
	if done == 0 {
		return 0, e
	}
	if err := f.pages.WriteBack(uint64(off)>>mem.PageShift, uint64(off+done-1)>>mem.PageShift); err != 0 {
		return 0, err
	}
	return done &^ int64(f.fs.sector-1), e
}
