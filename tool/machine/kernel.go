package machine

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"

	"hardtack/tool/fault"
)

// pvhNote is the type of the ELF note that holds the 32-bit entry of a kernel
// that is booted the PVH way; its owner is "Xen".
const pvhNote = 18

// CheckKernel says in one line what is wrong with a kernel image, instead of
// a machine that hangs.
func CheckKernel(name string) error {
	f, err := elf.Open(name)
	if err != nil {
		var format *elf.FormatError
		var p *fs.PathError
		switch {
		case errors.As(err, &p) && errors.Is(err, fs.ErrNotExist):
			return fault.Bad("kernel %s: %v; `make build` or `hardtack build` makes one", name, p.Err)
		case errors.As(err, &p):
			return fault.Bad("kernel %s: %v", name, p.Err)
		case errors.As(err, &format):
			return fault.Bad("kernel %s: not an ELF file", name)
		}
		return fault.Bad("kernel %s: %v", name, err)
	}
	defer f.Close()
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return fault.Bad("kernel %s: not for x86-64", name)
	}
	var end uint64
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			if p.Filesz > p.Memsz || p.Paddr < end || p.Paddr+p.Memsz < p.Paddr || p.Memsz > 1<<32 {
				return fault.Bad("kernel %s: its segments overlap or are too large", name)
			}
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_NOTE && hasPVHNote(p) {
			return nil
		}
	}
	return fault.Bad("kernel %s: it has no PVH note, so QEMU cannot boot it", name)
}

func hasPVHNote(p *elf.Prog) bool {
	data := make([]byte, min(p.Filesz, 64<<10))
	if _, err := p.ReadAt(data, 0); err != nil {
		return false
	}
	for len(data) >= 12 {
		nameSize := uint64(binary.LittleEndian.Uint32(data))
		descSize := uint64(binary.LittleEndian.Uint32(data[4:]))
		kind := binary.LittleEndian.Uint32(data[8:])
		data = data[12:]
		nameEnd, end := nameSize, (nameSize+3)&^3+(descSize+3)&^3
		if end > uint64(len(data)) {
			return false
		}
		if kind == pvhNote && string(data[:nameEnd]) == "Xen\x00" {
			return true
		}
		data = data[end:]
	}
	return false
}
