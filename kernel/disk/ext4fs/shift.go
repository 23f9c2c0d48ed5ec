package ext4fs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// shift is fallocate(2) with FALLOC_FL_COLLAPSE_RANGE or FALLOC_FL_INSERT_RANGE: all
// that follows off moves.
func (f *file) shift(c *caller.Ctx, mode uint32, off, n int64) linux.Errno {
	f.Mu.Lock()
	for f.RestWaits() {
		f.Mu.Unlock()
		if e := f.AwaitRest(c); e != 0 {
			return e
		}
		f.Mu.Lock()
	}
	defer f.Mu.Unlock()
	if f.fs.ext.ReadOnly() {
		return linux.EROFS
	}
	size := f.Size()
	switch {
	case (off|n)&int64(f.fs.ext.BlockSize()-1) != 0:
		return linux.EINVAL
	case mode == linux.FALLOC_FL_COLLAPSE_RANGE && off+n >= size:
		return linux.EINVAL
	case mode == linux.FALLOC_FL_INSERT_RANGE && n > f.fs.MaxBytes-size:
		return linux.EFBIG
	case mode == linux.FALLOC_FL_INSERT_RANGE && off >= size:
		return linux.EINVAL
	}
	if e := f.RemovePrivs(c); e != 0 {
		return e
	}
	e := f.pages.Bypass(uint64(off)>>mem.PageShift, ^uint64(0), func() linux.Errno {
		err := f.fs.ext.Fallocate(f.in, mode, off, n)
		f.SetSize(f.in.Size())
		return f.fs.errno(err)
	})
	f.adopt()
	return e
}

// Extents writes back what is dirty first, so that all of it has blocks.
func (o *opened) Extents(_ *vfs.File, from, to int64, each func(vfs.Extent) bool) linux.Errno {
	if e := o.pages.WriteBack(0, ^uint64(0)); e != 0 {
		return e
	}
	return o.extents(from, to, each)
}

// Extents is of the directory's blocks.
func (d *dir) Extents(_ *vfs.File, from, to int64, each func(vfs.Extent) bool) linux.Errno {
	return (*node)(d).extents(from, to, each)
}

// extents calls each for the runs of blocks of the bytes from … to-1, until it returns
// false.
func (n *node) extents(from, to int64, each func(vfs.Extent) bool) linux.Errno {
	bs := int64(n.fs.ext.BlockSize())
	last := (to + bs - 1) / bs
	var run vfs.Extent // not told of yet
	for at := from / bs; at < last; {
		m, err := n.fs.ext.MapBlock(n.in, uint32(at))
		if err != nil {
			return n.fs.errno(err)
		}
		k := min(int64(m.N), last-at)
		if m.Phys != 0 {
			x := vfs.Extent{Logical: uint64(at * bs), Physical: m.Phys * uint64(bs), Length: uint64(k * bs)}
			if m.Unwritten {
				x.Flags = linux.FIEMAP_EXTENT_UNWRITTEN
			}
			if run.Length > 0 && run.Flags == x.Flags && run.Logical+run.Length == x.Logical && run.Physical+run.Length == x.Physical {
				run.Length += x.Length
			} else {
				if run.Length > 0 && !each(run) {
					return 0
				}
				run = x
			}
		}
		at += k
	}
	if run.Length > 0 {
		each(run)
	}
	return 0
}
