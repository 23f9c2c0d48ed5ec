package tmpfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
)

// Where several kernels use one boot archive its pages are lent: files have them until they may be
// changed, that is until they are opened for writing or cut. Then they get pages of their own. So
// nobody ever writes to a lent page, which all kernels but one can only read.

// sealLent says in file.seals that there may be lent pages.
const sealLent = 1 << 31

// lent are the frames of the archive; set at boot, before files have some.
var lent frames

// frames are those from first to before end.
type frames struct{ first, end mem.Frame }

func (r *frames) has(f mem.Frame) bool { return f >= r.first && f < r.end }

// Lend says that n frames from first on are lent.
func (fs *FS) Lend(first mem.Frame, n int) { lent = frames{first, first + mem.Frame(n)} }

// own gives the file pages of its own in place of lent ones. If there is too little memory it
// keeps the others. Mu is held.
func (f *file) own() linux.Errno {
	f.mu.Lock()
	n := uint64(f.Size()) >> mem.PageShift
	e := f.replaceLent(n)
	if e == 0 {
		f.seals &^= sealLent
	}
	f.mu.Unlock()
	f.maps.Zap(f, 0, n) // who has mapped the file sees the new pages
	return e
}

// replaceLent is own for the first n pages, with mu held.
func (f *file) replaceLent(n uint64) linux.Errno {
	for i := range n {
		old := f.pages.get(i)
		if old == 0 || !lent.has(old) {
			continue
		}
		fr, ok := mem.Alloc()
		if !ok {
			return linux.ENOMEM
		}
		fr.Copy(old)
		f.pages.replace(i, fr)
		old.Put()
	}
	return 0
}

// ownForWriting is own for who opens the file to write to it.
func (f *file) ownForWriting() (e linux.Errno) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.seals&sealLent != 0 {
		e = f.own()
	}
	return e
}
