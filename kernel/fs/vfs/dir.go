package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

// DirOps is an open directory whose names are all in the tree (FSInTree);
// file systems return it from Open.
type DirOps struct{ BaseOps }

// Read refuses: directories are listed with getdents.
func (DirOps) Read(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno) { return 0, linux.EISDIR }

// Seek moves in the listing.
func (DirOps) Seek(_ *caller.Ctx, f *File, off int64, whence int) (int64, linux.Errno) {
	return SeekDir(f, off, whence)
}

// SeekDir is lseek of a directory: offsets are cookies of the listing.
func SeekDir(f *File, off int64, whence int) (int64, linux.Errno) {
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += f.Pos
	default:
		return 0, linux.EINVAL
	}
	if off < 0 {
		return 0, linux.EINVAL
	}
	f.Pos = off
	return off, 0
}

// SmallMax is the last position in a file of a file system that names no greatest size
// (MAX_NON_LFS).
const SmallMax = 1<<31 - 1

// SeekSized is lseek of a file of which only the size is known (generic_file_llseek): all
// of it is data.
func SeekSized(f *File, off int64, whence int, size, last int64) (int64, linux.Errno) {
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		if off == 0 {
			return f.Pos, 0
		}
		off += f.Pos
	case linux.SEEK_END:
		off += size
	case linux.SEEK_DATA, linux.SEEK_HOLE:
		if uint64(off) >= uint64(size) {
			return 0, linux.ENXIO
		}
		if whence == linux.SEEK_HOLE {
			off = size
		}
	default:
		return 0, linux.EINVAL
	}
	if off < 0 || off > last {
		return 0, linux.EINVAL
	}
	f.Pos = off
	return off, 0
}

// ReadDir lists "." and "..", then the names in the order they came.
func (DirOps) ReadDir(_ *caller.Ctx, f *File, emit func(d *Dirent) bool) linux.Errno {
	dir := f.Path.Dentry
	if dir.gone.Load() {
		return linux.ENOENT
	}
	f.Accessed()
	if !EmitDots(f, emit) {
		return 0
	}
	dir.Inode.Mu.Lock()
	defer dir.Inode.Mu.Unlock()
	if dir.gone.Load() {
		return linux.ENOENT
	}
	for d := dir.kids.head; d != nil; d = d.next {
		if d.cookie < f.Pos {
			continue
		}
		e := Dirent{Ino: d.Inode.Ino, Off: d.cookie + 1, Type: uint8(d.Inode.Type() >> 12), Name: d.Name()}
		if !emit(&e) {
			return 0
		}
		f.Pos = d.cookie + 1
	}
	return 0
}

// EmitDots lists "." and ".." where f.Pos has not passed them; false when
// there is no more room.
func EmitDots(f *File, emit func(d *Dirent) bool) bool {
	d := f.Path.Dentry
	if f.Pos == 0 {
		if !emit(&Dirent{Ino: d.Inode.Ino, Off: 1, Type: linux.DT_DIR, Name: "."}) {
			return false
		}
		f.Pos = 1
	}
	if f.Pos == 1 {
		up := d.Parent().Inode.Ino
		if f.Path.Mnt != nil && d == f.Path.Mnt.Root {
			if at, ok := f.Path.Mnt.Point(); ok {
				up = at.Dentry.Parent().Inode.Ino
			}
		}
		if !emit(&Dirent{Ino: up, Off: firstCookie, Type: linux.DT_DIR, Name: ".."}) {
			return false
		}
		f.Pos = firstCookie
	}
	return true
}
