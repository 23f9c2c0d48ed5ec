package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// mayNotWait prepares a transfer with RWF_NOWAIT: it cuts a read of a file on a disk
// to what is in memory. EAGAIN where there is nothing, EOPNOTSUPP for files that
// cannot promise not to wait, as on Linux 6.1: pipes and sockets among them.
func (x *vectored) mayNotWait(t *proc.Thread, f *vfs.File) linux.Errno {
	typ, major, minor := driver(f)
	switch {
	case typ == linux.S_IFCHR && major == 1 && (minor == 3 || minor == 5 || minor == 8 || minor == 9):
		return 0 // null, zero, random, urandom
	case typ != linux.S_IFREG || f.Path.Inode().FS.Magic != linux.EXT4_SUPER_MAGIC:
		return linux.EOPNOTSUPP
	case f.Flags()&linux.O_DIRECT != 0:
		return 0
	case x.write:
		return linux.EOPNOTSUPP
	}
	p, ok := f.Ops.(pages)
	if !ok {
		return linux.EOPNOTSUPP
	}
	at := x.at
	if at == atPosition {
		at = posOf(f)
	}
	size := p.Size()
	if at >= size {
		return 0
	}
	end := min(size, at+int64(min(t.Vec.Len(), maxOffset-int(at))))
	n := at
	for n < end {
		fr, ok := p.Cached(uint64(n) / mem.PageSize)
		if !ok {
			break
		}
		fr.Put()
		n = min(end, (n|(mem.PageSize-1))+1)
	}
	if n == at {
		return linux.EAGAIN
	}
	t.Vec.Limit(int(n - at))
	return 0
}
