package p9fs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/share/p9"
)

// dir is an open directory.
type dir struct {
	vfs.BaseOps
	*node
	fid uint32 // immutable
}

// Read refuses: directories are listed.
func (d *dir) Read(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EISDIR
}

// Write refuses.
func (d *dir) Write(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EISDIR
}

// Stat is fstat(2).
func (d *dir) Stat(c *caller.Ctx, _ *vfs.File, st *linux.Stat) linux.Errno {
	d.Renew(c, &d.Inode)
	d.FillStat(st)
	return 0
}

// Release ends the listing.
func (d *dir) Release(*vfs.File) { d.fs.c.Clunk(d.fid) }

// Seek moves in the listing; offsets are the server's.
func (d *dir) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return vfs.SeekDir(f, off, whence)
}

// listed is how much of a listing is asked for at once: a page.
const listed = mem.PageSize

// ReadDir lists the directory from f.Pos on. The server lists "." and "..", too; what is
// above the folder's root it does not tell.
func (d *dir) ReadDir(c *caller.Ctx, f *vfs.File, emit func(d *vfs.Dirent) bool) linux.Errno {
	if f.Path.Dentry.Gone() {
		return linux.ENOENT
	}
	var frame [1]mem.Frame
	if mem.AllocBatch(frame[:]) == 0 {
		return linux.ENOMEM
	}
	defer mem.PutBatch(frame[:])
	var x vfs.Dirent // one for all names: it is on the heap
	for full, last := false, int64(-1); !full && f.Pos != last; {
		last = f.Pos
		n, e := d.fs.c.Readdir(c, d.fid, uint64(f.Pos), frame[0].Bytes()[:listed], func(is *p9.Dirent) bool {
			x = vfs.Dirent{Ino: is.QID.Path, Off: int64(is.Offset), Type: is.Type, Name: is.Name}
			switch x.Name {
			case ".":
				x.Ino = d.Ino
			case "..":
				x.Ino = f.Path.Dentry.Parent().Inode.Ino
			}
			if full = !emit(&x); !full {
				f.Pos = x.Off
			}
			return !full
		})
		if e != 0 || n == 0 {
			return e
		}
	}
	return 0
}

// Sync makes the directory's names durable.
func (d *dir) Sync(c *caller.Ctx, _ *vfs.File, dataOnly bool) linux.Errno {
	return d.fs.c.Fsync(c, d.fid, dataOnly)
}

var (
	_ vfs.DirReader = (*dir)(nil)
	_ vfs.Stater    = (*dir)(nil)
	_ vfs.Seeker    = (*dir)(nil)
	_ vfs.Asker     = (*node)(nil)
)
