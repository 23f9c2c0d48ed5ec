package procfs

import (
	"bytes"
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/program"
)

// taken is an address space and the program in it.
type taken struct {
	space *vm.Space
	img   *program.Image
}

// memoryText is an open file that shows bytes of a program's memory at their
// offsets; nothing is kept but whose memory it is. environ and auxv are of the
// address space that the process had at open, where the permission is checked.
type memoryText struct {
	vfs.BaseOps
	n *node
	taken
}

// takeProgram takes the process's address space for a file that is being
// opened. The file does not keep it alive: once the process has given it up
// there is nothing to read.
func (n *node) takeProgram(c *caller.Ctx) (p taken, e linux.Errno) {
	p.space, p.img, e = n.x.process().InspectSpace(n.x.t, c, proc.FSCreds)
	if e != 0 {
		return p, linux.EACCES
	}
	if p.space != nil {
		p.space.EndLook()
	}
	if p.img == nil {
		p.space = nil
	}
	return p, 0
}

// Read copies a page at a time.
func (m *memoryText) Read(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	p := m.taken
	switch {
	case m.n.e.public:
		if p.space, p.img = m.n.x.thread().Program(); p.img == nil {
			return 0, 0
		}
		defer p.space.EndLook()
	case p.space == nil:
		return 0, 0
	case p.space.TryLook():
		defer p.space.EndLook()
	case !m.n.e.stays:
		return 0, 0
	}
	b := make([]byte, min(v.Len(), mem.PageSize))
	for v.Len() > 0 {
		n := m.n.e.memory(&p, b[:min(len(b), v.Len())], uint64(off)+uint64(done))
		if n == 0 {
			break
		}
		n, e = v.CopyOut(b[:n])
		done += n
		if e != 0 {
			break
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// Seek moves in the text.
func (m *memoryText) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return m.n.e.seek(f, off, whence)
}

// copyRange reads at off in the range from … to of the program's memory.
func (p *taken) copyRange(b []byte, from, to, off uint64) int {
	if to <= from || off >= to-from {
		return 0
	}
	n, _ := p.space.CopyIn(b[:min(uint64(len(b)), to-from-off)], uio.Addr(from+off))
	return n
}

func environText(p *taken, b []byte, off uint64) int {
	return p.copyRange(b, p.img.EnvStart, p.img.EnvEnd, off)
}

func auxvText(p *taken, b []byte, off uint64) int {
	v := p.img.Auxv()
	all := make([]byte, 0, 8*len(v))
	for _, w := range v {
		all = binary.LittleEndian.AppendUint64(all, w)
	}
	if off >= uint64(len(all)) {
		return 0
	}
	return copy(b, all[off:])
}

// cmdlineText is the arguments. A program that wrote over the zero byte at their
// end shows a title instead: one string of at most a page.
func cmdlineText(p *taken, b []byte, off uint64) int {
	from, to := p.img.ArgStart, p.img.ArgEnd
	if to <= from {
		return 0
	}
	var last [1]byte
	if n, _ := p.space.CopyIn(last[:], uio.Addr(to-1)); n == 0 || last[0] == 0 {
		return p.copyRange(b, from, to, off)
	}
	title := make([]byte, mem.PageSize)
	n, _ := p.space.CopyIn(title, uio.Addr(from))
	title = title[:n]
	if i := bytes.IndexByte(title, 0); i >= 0 {
		title = title[:i+1]
	}
	if off >= uint64(len(title)) {
		return 0
	}
	return copy(b, title[off:])
}
