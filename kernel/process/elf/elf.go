// Package elf reads the headers of x86-64 ELF programs and says what must be mapped
// where. It reads only the bytes it is given. Whatever a file contains, the result is a
// plan that is safe to carry out, or an error.
package elf

import (
	"encoding/binary"

	"hardtack/abi/linux"
)

// Sizes and limits.
const (
	HeaderSize = 64 // of the ELF header
	entrySize  = 56 // of a program header
	// maxHeaders bounds the program headers: they fit in a page.
	maxHeaders = pageSize / entrySize
	// MaxInterp is the longest path of an interpreter (PATH_MAX).
	MaxInterp = 4096

	pageSize = 4096
	pageMask = pageSize - 1
)

// Kinds of program headers and their flags.
const (
	ptLoad     = 1
	ptInterp   = 3
	ptGNUStack = 0x6474e551

	// X, W and R are permissions of a segment.
	X = 1
	W = 2
	R = 4
)

const (
	typeExec = 2
	typeDyn  = 3
	machine  = 62 // EM_X86_64
)

// Segment is one mapping: file bytes and the zeroes behind them. All is as the file
// says, relative to the load bias.
type Segment struct {
	Addr     uint64 // where the first byte of the file goes
	Offset   uint64
	FileSize uint64
	MemSize  uint64
	Flags    uint32
}

// Start returns the page where the segment begins.
func (s *Segment) Start() uint64 { return s.Addr &^ pageMask }

// FileEnd returns the end of the pages that hold file bytes.
func (s *Segment) FileEnd() uint64 { return (s.Addr + s.FileSize + pageMask) &^ pageMask }

// End returns the end of the pages that the segment takes.
func (s *Segment) End() uint64 { return (s.Addr + s.MemSize + pageMask) &^ pageMask }

// FileOffset returns where in the file the segment's first page is. It is no multiple
// of the page size, and cannot be mapped, where address and offset do not agree.
func (s *Segment) FileOffset() uint64 { return s.Offset - s.Addr&pageMask }

// fits reports whether the segment is within user memory.
func (s *Segment) fits() bool {
	return s.Addr < linux.TaskSize && s.FileSize <= s.MemSize && s.MemSize <= linux.TaskSize-s.Addr
}

// Program is what a file's headers say.
type Program struct {
	Loadable  bool // of a type that can be loaded, with segments within user memory
	Dynamic   bool // ET_DYN: may be loaded anywhere
	Entry     uint64
	Segments  []Segment // as the file has them: in any order, apart or not
	Low, High uint64    // pages that the segments span
	Align     uint64    // greatest alignment of a segment
	PHNum     int
	PHAddr    uint64 // where the program headers are in memory; 0: nowhere
	Interp    Range  // the interpreter's path in the file; size 0: none
	ExecStack bool   // the stack must be executable
}

// Range is a part of the file.
type Range struct{ Offset, Size uint64 }

// HeadersAt returns where a file's program headers lie. b is the beginning of
// the file, at least HeaderSize bytes for success. As in Linux neither class nor
// version of the file matter.
func HeadersAt(b []byte) (r Range, n int, e linux.Errno) {
	if len(b) < HeaderSize || b[0] != 0x7f || b[1] != 'E' || b[2] != 'L' || b[3] != 'F' {
		return r, 0, linux.ENOEXEC
	}
	le := binary.LittleEndian
	if le.Uint16(b[18:]) != machine || le.Uint16(b[54:]) != entrySize {
		return r, 0, linux.ENOEXEC
	}
	off := le.Uint64(b[32:])
	n = int(le.Uint16(b[56:]))
	if n == 0 || n > maxHeaders || off > 1<<62 {
		return r, 0, linux.ENOEXEC
	}
	return Range{off, uint64(n) * entrySize}, n, 0
}

// Executable reports whether a file's type is that of a program or a shared object.
func Executable(b []byte) bool {
	kind := binary.LittleEndian.Uint16(b[16:])
	return kind == typeExec || kind == typeDyn
}

// Parse reads the headers: b is the beginning of the file, ph the program
// headers as HeadersAt told. What it refuses is no program; a program that cannot be
// loaded is not Loadable.
func Parse(b, ph []byte) (*Program, linux.Errno) {
	at, n, e := HeadersAt(b)
	if e != 0 {
		return nil, e
	}
	if uint64(len(ph)) < at.Size {
		return nil, linux.ENOEXEC
	}
	le := binary.LittleEndian
	p := &Program{
		Loadable: Executable(b),
		Dynamic:  le.Uint16(b[16:]) == typeDyn,
		Entry:    le.Uint64(b[24:]),
		PHNum:    n,
		Align:    pageSize,
	}
	for i := range n {
		h := ph[i*entrySize:]
		flags := le.Uint32(h[4:])
		s := Segment{
			Offset:   le.Uint64(h[8:]),
			Addr:     le.Uint64(h[16:]),
			FileSize: le.Uint64(h[32:]),
			MemSize:  le.Uint64(h[40:]),
			Flags:    flags & (R | W | X),
		}
		switch le.Uint32(h) {
		case ptLoad:
			p.addSegment(s, le.Uint64(h[48:]), at.Offset)
		case ptInterp:
			if p.Interp.Size != 0 {
				continue
			}
			// A path of at least one byte and its end.
			if s.FileSize < 2 || s.FileSize > MaxInterp || s.Offset > 1<<62 {
				return nil, linux.ENOEXEC
			}
			p.Interp = Range{s.Offset, s.FileSize}
		case ptGNUStack:
			p.ExecStack = flags&X != 0
		}
	}
	return p, 0
}

// addSegment appends a segment. The last one that has the program headers says where
// they lie.
func (p *Program) addSegment(s Segment, align, headers uint64) {
	if !s.fits() {
		p.Loadable = false
		return
	}
	if align&(align-1) == 0 && align > p.Align && align <= 1<<30 {
		p.Align = align
	}
	if len(p.Segments) == 0 {
		p.Low = s.Start()
	}
	if headers >= s.Offset && headers-s.Offset < s.FileSize {
		p.PHAddr = s.Addr + (headers - s.Offset)
	}
	p.Low = min(p.Low, s.Start())
	p.High = max(p.High, s.End())
	p.Segments = append(p.Segments, s)
}

// Shebang splits the first line of a script: the interpreter and its one
// optional argument. ok is false where it is no script, or the line is longer
// than b (255 bytes and the "#!" count). As on Linux an interpreter of no name is one
// where a zero or the end of the file follows, not where a line ends.
func Shebang(b []byte) (interp, arg string, ok bool) {
	if len(b) < 2 || b[0] != '#' || b[1] != '!' {
		return "", "", false
	}
	line := b[2:]
	end, nameless := -1, false
	for i, c := range line {
		if c == '\n' || c == 0 {
			end, nameless = i, c == 0
			break
		}
	}
	if end < 0 {
		// Without a newline the file must end here, or at least the
		// interpreter's name must.
		end, nameless = len(line), len(b) < ShebangSize
		if len(b) >= ShebangSize {
			end-- // where Linux ends the text
			if _, rest := field(line); len(rest) == 0 {
				return "", "", false
			}
		}
	}
	interp, rest := field(line[:end])
	if interp == "" {
		return "", "", nameless
	}
	return interp, trim(rest), true
}

// ShebangSize is how much of a script is read.
const ShebangSize = 256

func blank(c byte) bool { return c == ' ' || c == '\t' }

// field returns the first word and what follows it.
func field(b []byte) (string, []byte) {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	n := 0
	for n < len(b) && !blank(b[n]) {
		n++
	}
	return string(b[:n]), b[n:]
}

func trim(b []byte) string {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return string(b)
}
