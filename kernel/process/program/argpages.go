package program

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
)

// ArgPages holds the strings of a long argument list on their way from one program to the
// next, in pages: a few execs would fill the kernel's heap. Each string ends in NUL.
type ArgPages struct {
	count      *atomic.Int64 // of the process: its pages until the exec ends
	frames     []mem.Frame
	size       int // bytes in use
	argSize    int // of those, bytes of arguments
	args, envs int // strings: first the last of argv, then the last of the environment
}

// noPages is for a list that is not long.
var noPages ArgPages

// NewArgPages returns room for an exec of a process that counts its pages.
func NewArgPages(count *atomic.Int64) *ArgPages { return &ArgPages{count: count} }

// Add copies a string of at most most bytes with its NUL from user memory and returns how
// many it has; E2BIG if it is longer.
func (a *ArgPages) Add(s *vm.Space, from uio.Addr, most int, env bool) (int, linux.Errno) {
	n := 0
	for n < most {
		room, e := a.room()
		if e != 0 {
			return 0, e
		}
		// Up to the end of the page: what follows it may not be there.
		room = room[:min(len(room), most-n, mem.PageSize-int(from&(mem.PageSize-1)))]
		if _, e := s.CopyIn(room, from); e != 0 {
			return 0, e
		}
		if end := bytes.IndexByte(room, 0); end >= 0 {
			a.size += end + 1
			if env {
				a.envs++
			} else {
				a.args++
				a.argSize = a.size
			}
			return n + end + 1, 0
		}
		a.size += len(room)
		n += len(room)
		from += uio.Addr(len(room))
	}
	return 0, linux.E2BIG
}

// room returns what is left of the last page, or a new page.
func (a *ArgPages) room() ([]byte, linux.Errno) {
	at := a.size % mem.PageSize
	if at == 0 && a.size == len(a.frames)*mem.PageSize {
		f, ok := mem.Alloc()
		if !ok {
			return nil, linux.ENOMEM
		}
		a.frames = append(a.frames, f)
		a.count.Add(1)
	}
	return a.frames[len(a.frames)-1].Bytes()[at:], 0
}

// Free gives the pages back.
func (a *ArgPages) Free() {
	for _, f := range a.frames {
		if f != 0 {
			f.Put()
		}
	}
	a.count.Add(-int64(len(a.frames)))
	*a = ArgPages{count: a.count}
}

// page returns the bytes in use of page i.
func (a *ArgPages) page(i int) []byte {
	return a.frames[i].Bytes()[:min(a.size-i*mem.PageSize, mem.PageSize)]
}

// moveOut writes the strings to addr and gives back each page that is written.
func (a *ArgPages) moveOut(c *caller.Ctx, s *vm.Space, addr uint64) linux.Errno {
	var pace caller.Pace
	for i := range a.frames {
		if pace.Due() {
			pace.Rest(c)
		}
		b := a.page(i)
		if _, e := s.CopyOut(uio.Addr(addr), b); e != 0 {
			return e
		}
		addr += uint64(len(b))
		a.frames[i].Put()
		a.frames[i] = 0
	}
	return 0
}

// pointers writes the addresses of strings that follow each other in the pages. The next
// string begins at byte at of them, which are at base in the program.
type pointers struct {
	*ArgPages
	at   int
	base uint64
}

// copyOut writes the addresses of the next n strings to addr.
func (p *pointers) copyOut(s *vm.Space, addr uint64, n int) linux.Errno {
	var batch [512]byte
	for n > 0 {
		k := min(n, len(batch)/8)
		for i := range k {
			binary.LittleEndian.PutUint64(batch[8*i:], p.base+uint64(p.at))
			p.skip()
		}
		if _, e := s.CopyOut(uio.Addr(addr), batch[:8*k]); e != 0 {
			return e
		}
		addr += uint64(8 * k)
		n -= k
	}
	return 0
}

// skip goes to the next string.
func (p *pointers) skip() {
	for p.at < p.size {
		b := p.page(p.at / mem.PageSize)[p.at%mem.PageSize:]
		if end := bytes.IndexByte(b, 0); end >= 0 {
			p.at += end + 1
			return
		}
		p.at += len(b)
	}
}
