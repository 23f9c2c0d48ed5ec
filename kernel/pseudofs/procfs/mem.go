package procfs

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
)

// memFile is an open /proc/PID/mem or pagemap, of the address space that the process
// had at open, where the permission is checked. The file does not keep it alive.
type memFile struct {
	vfs.BaseOps
	space *vm.Space // immutable; nil: there was none
	pages bool      // pagemap; immutable
	admin bool      // shows the numbers of frames; immutable
}

func (n *node) openMem(c *caller.Ctx) (vfs.Ops, linux.Errno) {
	p, e := n.takeProgram(c)
	if e != 0 {
		return nil, e
	}
	return &memFile{space: p.space, pages: n.e.pages, admin: c.Cred().Has(creds.CapSysAdmin)}, 0
}

// atOnce is how much is copied before the end of the thread ends it.
const atOnce = 1 << 20

// Read copies the memory at the offset, or its entries.
func (m *memFile) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	if m.pages && (off|int64(v.Len()))&7 != 0 {
		return 0, linux.EINVAL
	}
	if m.space == nil || !m.space.TryLook() {
		return 0, 0
	}
	defer m.space.EndLook()
	b := make([]byte, min(v.Len(), mem.PageSize))
	for v.Len() > 0 && e == 0 {
		piece := b[:min(len(b), v.Len())]
		var n int
		if m.pages {
			n = m.entries(piece, uint64(off)+uint64(done))
		} else {
			n, e = m.space.Peek(piece, uint64(off)+uint64(done))
		}
		if n == 0 {
			break
		}
		k, err := v.CopyOut(piece[:n])
		if done += k; err != 0 {
			e = err
		}
		if done >= atOnce && caller.Killed(c) {
			break
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// entries fills b from an offset on and returns how many bytes there are.
func (m *memFile) entries(b []byte, off uint64) int {
	page := off / 8
	if page >= vm.UserTop/mem.PageSize {
		return 0
	}
	list := make([]uint64, min(uint64(len(b)/8), vm.UserTop/mem.PageSize-page))
	m.space.Pagemap(page*mem.PageSize, list, m.admin)
	for i, v := range list {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	return 8 * len(list)
}

// Write changes the memory at the offset.
func (m *memFile) Write(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	if m.pages {
		return 0, linux.EINVAL
	}
	if m.space == nil || !m.space.TryLook() {
		return 0, 0
	}
	defer m.space.EndLook()
	b := make([]byte, min(v.Len(), mem.PageSize))
	for v.Len() > 0 && e == 0 {
		n, err := v.CopyIn(b[:min(len(b), v.Len())])
		if n == 0 {
			e = err
			break
		}
		n, e = m.space.Poke(b[:n], uint64(off)+uint64(done))
		if done += n; done >= atOnce && caller.Killed(c) {
			break
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// Seek moves anywhere: addresses are unsigned.
func (m *memFile) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += f.Pos
	default:
		return 0, linux.EINVAL
	}
	f.Pos = off
	return off, 0
}
