package syscall

import (
	"encoding/binary"
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

const (
	fiemapBytes = 32 // of struct fiemap
	extentBytes = 56 // of struct fiemap_extent
)

// fileExtents is the ioctl FS_IOC_FIEMAP.
func fileExtents(t *proc.Thread, f *vfs.File, addr uio.Addr) linux.Errno {
	m, ok := f.Ops.(vfs.BlockMapper)
	if !ok {
		return linux.EOPNOTSUPP
	}
	var b [fiemapBytes]byte
	if _, e := t.Mem.CopyIn(b[:], addr); e != 0 {
		return e
	}
	le := binary.LittleEndian
	start, length := le.Uint64(b[0:]), le.Uint64(b[8:])
	flags, room := le.Uint32(b[16:])&^linux.FIEMAP_FLAG_CACHE, le.Uint32(b[24:])
	if room > math.MaxUint32/extentBytes {
		return linux.EINVAL
	}
	limit := uint64(maxBytes(f))
	mapped, e := uint32(0), linux.Errno(0)
	switch {
	case length == 0:
		e = linux.EINVAL
	case start >= limit:
		e = linux.EFBIG
	case flags&^linux.FIEMAP_FLAG_SYNC != 0:
		flags &^= linux.FIEMAP_FLAG_SYNC
		e = linux.EBADR
	default:
		length = min(length, limit-start)
		mapped, e = copyExtents(t, f, m, int64(start), int64(start+length), addr+fiemapBytes, room)
	}
	le.PutUint32(b[16:], flags)
	le.PutUint32(b[20:], mapped)
	if _, err := t.Mem.CopyOut(addr, b[:]); err != 0 {
		return err
	}
	return e
}

// copyExtents copies up to room extents out; or only counts them where room is 0.
func copyExtents(t *proc.Thread, f *vfs.File, m vfs.BlockMapper, from, to int64, addr uio.Addr, room uint32) (mapped uint32, e linux.Errno) {
	var b [extentBytes]byte
	var last vfs.Extent // not copied yet
	put := func(flags uint32) bool {
		if mapped == room {
			return false
		}
		le := binary.LittleEndian
		le.PutUint64(b[0:], last.Logical)
		le.PutUint64(b[8:], last.Physical)
		le.PutUint64(b[16:], last.Length)
		le.PutUint32(b[40:], last.Flags|flags)
		if _, e = t.Mem.CopyOut(addr+uio.Addr(mapped)*extentBytes, b[:]); e != 0 {
			return false
		}
		mapped++
		return true
	}
	full := false
	err := m.Extents(f, from, to, func(x vfs.Extent) bool {
		switch {
		case room == 0:
			mapped++
			return !t.Killed()
		case last.Length != 0 && !put(0):
			full = true
			return false
		}
		last = x
		return true
	})
	if err != 0 {
		return mapped, err
	}
	if room != 0 && last.Length != 0 && !full {
		put(linux.FIEMAP_EXTENT_LAST)
	}
	return mapped, e
}

// fileBlock is the ioctl FIBMAP: the place on the disk of one block of the file, or 0.
func fileBlock(t *proc.Thread, f *vfs.File, addr uio.Addr) linux.Errno {
	if !t.Cred().Has(creds.CapSysRawio) {
		return linux.EPERM
	}
	var b [4]byte
	if _, e := t.Mem.CopyIn(b[:], addr); e != 0 {
		return e
	}
	n := int64(int32(binary.LittleEndian.Uint32(b[:])))
	if n < 0 {
		return linux.EINVAL
	}
	block, e := uint64(0), linux.EINVAL
	if m, ok := f.Ops.(vfs.BlockMapper); ok {
		e = 0
		if bs := blockSize(f); n < (maxBytes(f)+bs-1)/bs {
			e = m.Extents(f, n*bs, (n+1)*bs, func(x vfs.Extent) bool {
				if x.Flags&linux.FIEMAP_EXTENT_UNWRITTEN == 0 {
					block = x.Physical / uint64(bs)
				}
				return true
			})
		}
		if block > math.MaxInt32 {
			block, e = 0, linux.ERANGE
		}
	}
	if err := writeU32(t, addr, uint32(block)); err != 0 {
		return err
	}
	return e
}

// blockSize is the block size of the file system that a file is on.
func blockSize(f *vfs.File) int64 {
	if f.Path.Zero() {
		return 4096
	}
	return vfs.StatFS(f.Path).Bsize
}
