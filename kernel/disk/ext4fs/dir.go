package ext4fs

import (
	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// dir is an open directory: the node itself.
type dir node

// Read refuses: directories are listed.
func (d *dir) Read(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EISDIR
}

// Write refuses.
func (d *dir) Write(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EISDIR
}

// Ready says always.
func (d *dir) Ready(f *vfs.File) wait.Events { return vfs.BaseOps{}.Ready(f) }

// Queue has nothing to announce.
func (d *dir) Queue(*vfs.File) *wait.Queue { return nil }

// Ioctl knows none.
func (d *dir) Ioctl(*caller.Ctx, *vfs.File, uint32, uint64) (uint64, linux.Errno) {
	return 0, linux.ENOTTY
}

// Release has nothing to release.
func (d *dir) Release(*vfs.File) {}

// Seek moves in the listing; offsets are ext4's.
func (d *dir) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return vfs.SeekDir(f, off, whence)
}

// ReadDir lists the directory from f.Pos on.
func (d *dir) ReadDir(_ *caller.Ctx, f *vfs.File, emit func(d *vfs.Dirent) bool) linux.Errno {
	if f.Path.Dentry.Gone() {
		return linux.ENOENT
	}
	f.Accessed()
	if !vfs.EmitDots(f, emit) {
		return 0
	}
	var e vfs.Dirent // one for all names: it is on the heap
	err := d.fs.ext.ReadDir(d.in, f.Pos, func(x ext4.Dirent) bool {
		if x.Name != "." && x.Name != ".." {
			e = vfs.Dirent{Ino: uint64(x.Ino), Off: x.Next, Type: x.Type, Name: x.Name}
			if !emit(&e) {
				return false
			}
		}
		f.Pos = x.Next
		return true
	})
	return d.fs.errno(err)
}

// Sync makes the directory's names durable.
func (d *dir) Sync(_ *caller.Ctx, _ *vfs.File, dataOnly bool) linux.Errno {
	return d.fs.errno(d.fs.ext.Fsync(d.in, dataOnly))
}
