package syscall

import (
	"encoding/binary"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Listing directories.
var dirCalls = []Call{
	{linux.SYS_getdents, "getdents", sysGetdents, "works"},
	{linux.SYS_getdents64, "getdents64", sysGetdents64, "works"},
}

// dirBuffer is how much of a listing is gathered before it is copied out.
const dirBuffer = 32 << 10

var dirBuffers = sync.Pool{New: func() any { return new([dirBuffer]byte) }}

// sysGetdents64 is getdents64(int fd, struct linux_dirent64 *buf, unsigned n).
func sysGetdents64(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return listDir(t, a, putDirent64)
}

// sysGetdents is getdents(int fd, struct linux_dirent *buf, unsigned n).
func sysGetdents(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return listDir(t, a, putDirent)
}

// listDir fills the user's buffer with records that put writes; put returns
// the record's length, 0 when it has no room.
func listDir(t *proc.Thread, a *Args, put func(b []byte, d *vfs.Dirent) int) (uint64, linux.Errno) {
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	r, ok := f.Ops.(vfs.DirReader)
	if !ok {
		return 0, linux.ENOTDIR
	}
	buf := dirBuffers.Get().(*[dirBuffer]byte)
	defer dirBuffers.Put(buf)
	b := buf[:min(uint64(a.Uint(2)), dirBuffer)]
	used, full := 0, false
	f.PosMu.Lock()
	defer f.PosMu.Unlock()
	start := f.Pos
	e := r.ReadDir(&t.Ctx, f, func(d *vfs.Dirent) bool {
		n := put(b[used:], d)
		used += n
		full = n == 0
		return n != 0
	})
	switch {
	case used == 0 && e != 0:
		return 0, e
	case used == 0 && full:
		return 0, linux.EINVAL
	}
	if _, e := t.Mem.CopyOut(a.Addr(1), b[:used]); e != 0 {
		f.Pos = start
		return 0, e
	}
	f.NotifyRead(used)
	return uint64(used), 0
}

// putDirent64 writes a struct linux_dirent64: ino, offset, length, type, name.
func putDirent64(b []byte, d *vfs.Dirent) int {
	n := (19 + len(d.Name) + 1 + 7) &^ 7
	if n > len(b) {
		return 0
	}
	putDirentHead(b, d, n)
	b[18] = d.Type
	k := 19 + copy(b[19:], d.Name)
	clear(b[k:n])
	return n
}

// putDirent writes a struct linux_dirent: the type is in the last byte.
func putDirent(b []byte, d *vfs.Dirent) int {
	n := (18 + len(d.Name) + 2 + 7) &^ 7
	if n > len(b) {
		return 0
	}
	putDirentHead(b, d, n)
	k := 18 + copy(b[18:], d.Name)
	clear(b[k:n])
	b[n-1] = d.Type
	return n
}

func putDirentHead(b []byte, d *vfs.Dirent, n int) {
	binary.LittleEndian.PutUint64(b, d.Ino)
	binary.LittleEndian.PutUint64(b[8:], uint64(d.Off))
	binary.LittleEndian.PutUint16(b[16:], uint16(n))
}
