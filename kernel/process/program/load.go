package program

//oops:stop half of a program

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/elf"
)

// loadELF maps a program's segments in the order of their headers, each over what was
// there before, and returns what was added to its addresses. A dynamic one goes to
// bias, or wherever there is room.
func loadELF(c *caller.Ctx, s *vm.Space, f *vfs.File, p *elf.Program, bias uint64) (uint64, linux.Errno) {
	if !p.Loadable {
		return 0, linux.EINVAL
	}
	if len(p.Segments) == 0 {
		return 0, 0
	}
	rest := p.Segments
	first := &rest[0]
	switch {
	case !p.Dynamic:
		bias = 0
	case bias != 0:
		bias -= first.Start()
	default:
		at, e := findRoom(c, s, f, p)
		if e != 0 {
			return 0, e
		}
		bias = at - first.Start()
		if p.Align <= 4096 {
			if e := zeroBehind(c, s, first, bias); e != 0 {
				return 0, e
			}
			rest = rest[1:]
		}
	}
	if p.High+bias > linux.TaskSize {
		return 0, linux.ENOMEM
	}
	for i := range rest {
		if e := loadSegment(c, s, f, &rest[i], bias); e != 0 {
			return 0, e
		}
	}
	return bias, 0
}

// findRoom finds room for a whole program and maps its first segment there, unless it
// asks for more than a page's alignment. The first segment takes the lowest place,
// wherever the others go from there.
func findRoom(c *caller.Ctx, s *vm.Space, f *vfs.File, p *elf.Program) (uint64, linux.Errno) {
	g, span := &p.Segments[0], p.High-p.Low
	m := fileMapping(f, g)
	if m.Length == 0 || p.Align > 4096 { // nothing of the file, or not to stay
		m = vm.MapArgs{Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_NORESERVE}
	}
	length := m.Length
	m.Length = max(span, length, 1)
	at, e := s.Mmap(c, &m)
	if e != 0 {
		return 0, e
	}
	if m.Length > length {
		if e := s.Munmap(c, at+length, m.Length-length); e != 0 {
			return 0, e
		}
	}
	return at &^ (p.Align - 1), 0
}

// fileMapping is the mapping of a segment's file bytes, at no address yet; its length
// is 0 if there are none.
func fileMapping(f *vfs.File, g *elf.Segment) vm.MapArgs {
	m := vm.MapArgs{Flags: linux.MAP_PRIVATE, File: f, Offset: g.FileOffset()}
	for _, b := range [...]struct {
		flag uint32
		prot uint32
	}{{elf.R, linux.PROT_READ}, {elf.W, linux.PROT_WRITE}, {elf.X, linux.PROT_EXEC}} {
		if g.Flags&b.flag != 0 {
			m.Prot |= b.prot
		}
	}
	if g.FileSize > 0 {
		m.Length = g.FileEnd() - g.Start()
	}
	return m
}

func loadSegment(c *caller.Ctx, s *vm.Space, f *vfs.File, g *elf.Segment, bias uint64) linux.Errno {
	if m := fileMapping(f, g); m.Length > 0 {
		m.Addr = g.Start() + bias
		m.Flags |= linux.MAP_FIXED
		if _, e := s.Mmap(c, &m); e != 0 {
			return e
		}
	}
	return zeroBehind(c, s, g, bias)
}

// zeroBehind gives a segment the memory behind its file bytes. What follows in the
// last page of the file is zero to the page's end, if the program may write there: the
// dynamic linker takes its first memory there.
func zeroBehind(c *caller.Ctx, s *vm.Space, g *elf.Segment, bias uint64) linux.Errno {
	if g.MemSize == g.FileSize {
		return 0
	}
	start := g.Start()
	if g.FileSize > 0 {
		start = g.FileEnd()
		if end := g.Addr + g.FileSize; end < start && g.Flags&elf.W != 0 {
			if e := zeroOut(s, end+bias, start-end); e != 0 {
				return e
			}
		}
	}
	if g.End() <= start {
		return 0
	}
	m := vm.MapArgs{
		Addr: start + bias, Length: g.End() - start, Prot: linux.PROT_READ | linux.PROT_WRITE,
		Flags: linux.MAP_PRIVATE | linux.MAP_FIXED | linux.MAP_ANONYMOUS,
	}
	if g.Flags&elf.X != 0 {
		m.Prot |= linux.PROT_EXEC
	}
	_, e := s.Mmap(c, &m)
	return e
}
