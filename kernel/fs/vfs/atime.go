package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
)

// atimeDay is how old an access time gets under relatime, in nanoseconds, before a
// read makes it new without a change of the file in between.
const atimeDay = 24 * 60 * 60 * 1e9

// Accessed notes a read of what p leads to, the way its mount wants it: always
// (strictatime), never (noatime, read-only; nodiratime for directories), or, as a
// rule, when the access time is older than the last change or than a day (relatime).
func (p Path) Accessed() {
	i := p.Dentry.Inode
	flags := uint32(0)
	if p.Mnt != nil {
		flags = p.Mnt.flags.Load()
	}
	switch {
	case flags&linux.MS_RDONLY != 0, i.attrs.Load()&linux.FS_NOATIME_FL != 0, flags&linux.MS_NODIRATIME != 0 && i.IsDir():
		return
	case flags&linux.MS_STRICTATIME != 0:
		i.accessed(clocks.Realtime())
	case flags&linux.MS_NOATIME == 0:
		now, at := clocks.Realtime(), i.atime.Load()
		if at <= i.mtime.Load() || at <= i.ctime.Load() || now-at >= atimeDay {
			i.accessed(now)
		}
	}
}

// accessed sets the access time.
func (i *Inode) accessed(now int64) {
	i.atime.Store(now)
	if i.FS.Accessed != nil {
		i.FS.Accessed(i)
	}
}

// Accessed notes a read through an open file, unless it says not to.
func (f *File) Accessed() {
	if f.flags.Load()&linux.O_NOATIME == 0 {
		f.Path.Accessed()
	}
}
