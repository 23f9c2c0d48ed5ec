package vdso

import (
	"encoding/binary"
	"slices"

	"hardtack/kernel/base/mem"
)

// The version that all symbols belong to, and the library's own name.
const (
	version = "LINUX_2.6"
	soname  = "linux-vdso.so.1"
)

// Constants of the ELF format (System V ABI, and the GNU version sections).
const (
	ptLoad, ptDynamic = 1, 2

	shtProgbits, shtStrtab, shtHash, shtDynamic, shtDynsym = 1, 3, 5, 6, 11
	shtVerdef, shtVersym                                   = 0x6ffffffd, 0x6fffffff

	dtHash, dtStrtab, dtSymtab, dtStrsz, dtSyment, dtSoname = 4, 5, 6, 10, 11, 14
	dtVersym, dtVerdef, dtVerdefnum                         = 0x6ffffff0, 0x6ffffffc, 0x6ffffffd
)

// writer lays sections out one after the other.
type writer struct {
	b        []byte
	sections []section
	names    []byte // section names
}

type section struct {
	name, kind, link, info, entsize uint32
	flags, off, size, align         uint64
}

// begin starts a section and returns its number.
func (w *writer) begin(name string, kind uint32, flags, align uint64, entsize uint32) int {
	for uint64(len(w.b))%align != 0 {
		w.b = append(w.b, 0)
	}
	w.sections = append(w.sections, section{
		name: uint32(len(w.names)), kind: kind, flags: flags,
		off: uint64(len(w.b)), align: align, entsize: entsize,
	})
	w.names = append(append(w.names, name...), 0)
	return len(w.sections) - 1
}

// end closes the section begun last.
func (w *writer) end(link, info int) uint64 {
	s := &w.sections[len(w.sections)-1]
	s.size, s.link, s.info = uint64(len(w.b))-s.off, uint32(link), uint32(info)
	return s.off
}

func (w *writer) u16(v ...uint16) {
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint16(w.b, x)
	}
}

func (w *writer) u32(v ...uint32) {
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint32(w.b, x)
	}
}

func (w *writer) u64(v ...uint64) {
	for _, x := range v {
		w.b = binary.LittleEndian.AppendUint64(w.b, x)
	}
}

// Sizes of the ELF file's headers, and flags of sections.
const (
	ehdr, phdr, phnum, shdr = 64, 56, 2, 64
	shfAlloc, shfExec       = 2, 4
)

// Numbers of sections that others refer to.
const symtab, strtab, text = 2, 3, 7

// symbol is a function's name in the dynamic symbol table.
type symbol struct {
	name   string
	off    uint32 // in strings
	value  uint64
	size   uint64
	global bool
}

// symbols are the dynamic symbols and their strings: every function once as
// __vdso_NAME and once as NAME.
type symbols struct {
	list            []symbol
	strings         []byte
	soname, version uint32 // in strings
}

func newSymbols() *symbols {
	y := &symbols{strings: []byte{0}}
	for i, f := range functions {
		end := uint64(len(code))
		if i+1 < len(functions) {
			end = functions[i+1].offset
		}
		for _, name := range []string{"__vdso_" + f.name, f.name} {
			y.list = append(y.list, symbol{name, y.add(name), codeOffset + f.offset, end - f.offset, name != f.name})
		}
	}
	y.soname, y.version = y.add(soname), y.add(version)
	return y
}

func (y *symbols) add(s string) uint32 {
	off := len(y.strings)
	y.strings = append(append(y.strings, s...), 0)
	return uint32(off)
}

// image builds the shared object: one page, one segment of code and tables,
// with the dynamic symbols and, for debuggers, section headers.
func image() []byte {
	w := &writer{b: make([]byte, ehdr+phnum*phdr, mem.PageSize), names: []byte{0}}
	w.sections = append(w.sections, section{})
	dynAt, dynSize := w.tables(newSymbols())
	if len(w.b) > codeOffset {
		panic("vdso: tables reach into the code")
	}
	w.b = w.b[:codeOffset]
	w.begin(".text", shtProgbits, shfAlloc|shfExec, 16, 0)
	w.b = append(w.b, code[:]...)
	w.end(0, 0)
	loaded := uint64(len(w.b))
	shAt, names := w.sectionHeaders()
	if len(w.b) > mem.PageSize {
		panic("vdso: image exceeds its page")
	}

	// The headers, last: they go to the room left in front.
	h := &writer{b: make([]byte, 0, ehdr+phnum*phdr)}
	h.b = append(h.b, 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	h.u16(3, 62) // ET_DYN, EM_X86_64
	h.u32(1)
	h.u64(0, ehdr, shAt)
	h.u32(0)
	h.u16(ehdr, phdr, phnum, shdr, uint16(len(w.sections)), names)
	h.u32(ptLoad, 5) // readable, executable
	h.u64(0, 0, 0, loaded, loaded, mem.PageSize)
	h.u32(ptDynamic, 4)
	h.u64(dynAt, dynAt, dynAt, dynSize, dynSize, 8)
	copy(w.b, h.b)
	return slices.Clip(w.b)
}

// tables writes what a dynamic linker reads, and returns where .dynamic lies.
func (w *writer) tables(y *symbols) (dynAt, dynSize uint64) {
	w.begin(".hash", shtHash, shfAlloc, 8, 4)
	w.hash(1+len(y.list), func(i int) string {
		if i == 0 {
			return ""
		}
		return y.list[i-1].name
	})
	hashAt := w.end(symtab, 0)
	symAt := w.symbols(y.list)

	w.begin(".dynstr", shtStrtab, shfAlloc, 1, 0)
	w.b = append(w.b, y.strings...)
	strAt := w.end(0, 0)

	w.begin(".gnu.version", shtVersym, shfAlloc, 2, 2)
	w.u16(0)
	for range y.list {
		w.u16(2)
	}
	versymAt := w.end(symtab, 0)
	verdefAt := w.versions(y)

	w.begin(".dynamic", shtDynamic, shfAlloc, 8, 16)
	dynamic := []uint64{
		dtHash, hashAt, dtSymtab, symAt, dtStrtab, strAt,
		dtStrsz, uint64(len(y.strings)), dtSyment, 24, dtSoname, uint64(y.soname),
		dtVersym, versymAt, dtVerdef, verdefAt, dtVerdefnum, 2,
		0, 0,
	}
	w.u64(dynamic...)
	return w.end(strtab, 0), uint64(8 * len(dynamic))
}

func (w *writer) symbols(list []symbol) (at uint64) {
	w.begin(".dynsym", shtDynsym, shfAlloc, 8, 24)
	w.u64(0, 0, 0)
	for _, s := range list {
		bind := byte(2) // weak
		if s.global {
			bind = 1
		}
		w.u32(s.off)
		w.b = append(w.b, bind<<4|2, 0) // STT_FUNC, default visibility
		w.u16(text)
		w.u64(s.value, s.size)
	}
	return w.end(strtab, 1)
}

func (w *writer) versions(y *symbols) (at uint64) {
	w.begin(".gnu.version_d", shtVerdef, shfAlloc, 8, 0)
	for i, name := range []struct {
		text string
		off  uint32
	}{{soname, y.soname}, {version, y.version}} {
		flags, next := uint16(1), uint32(28) // the first names the file itself
		if i == 1 {
			flags, next = 0, 0
		}
		w.u16(1, flags, uint16(i+1), 1)
		w.u32(hashOf(name.text), 20, next)
		w.u32(name.off, 0)
	}
	return w.end(strtab, 2)
}

// sectionHeaders writes the sections' names and headers, and returns where the headers
// lie and which section has the names.
func (w *writer) sectionHeaders() (at uint64, names uint16) {
	n := w.begin(".shstrtab", shtStrtab, 0, 1, 0)
	w.b = append(w.b, w.names...)
	w.end(0, 0)
	for len(w.b)%8 != 0 {
		w.b = append(w.b, 0)
	}
	at = uint64(len(w.b))
	for _, s := range w.sections {
		addr := s.off
		if s.flags&shfAlloc == 0 {
			addr = 0
		}
		w.u32(s.name, s.kind)
		w.u64(s.flags, addr, s.off, s.size)
		w.u32(s.link, s.info)
		w.u64(s.align, uint64(s.entsize))
	}
	return at, uint16(n)
}

// hash writes a System V hash table of n symbols.
func (w *writer) hash(n int, name func(int) string) {
	const buckets = 3
	first := make([]uint32, buckets)
	chain := make([]uint32, n)
	for i := 1; i < n; i++ {
		b := hashOf(name(i)) % buckets
		chain[i], first[b] = first[b], uint32(i)
	}
	w.u32(buckets, uint32(n))
	w.u32(first...)
	w.u32(chain...)
}

// hashOf is the hash function of the System V ABI.
func hashOf(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = h<<4 + uint32(s[i])
		g := h & 0xf0000000
		h = (h ^ g>>24) &^ g
	}
	return h
}
