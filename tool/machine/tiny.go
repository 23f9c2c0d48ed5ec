package machine

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// tinyBase is where a tiny kernel is loaded and entered, in 32-bit mode.
const tinyBase = 0x100000

// TinyKernel makes a PVH ELF of a few bytes of 32-bit code. It asks whether a
// machine runs at all; tests use it in the kernel's place.
func TinyKernel(code []byte) []byte {
	const (
		progs   = 64
		notes   = 0x200
		text    = 0x1000
		progLen = 56
	)
	note := new(bytes.Buffer)
	put(note, uint32(4), uint32(4), uint32(pvhNote), []byte("Xen\x00"), uint32(tinyBase))

	head := new(bytes.Buffer)
	put(head, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1,
		Entry: tinyBase, Phoff: progs, Ehsize: 64, Phentsize: progLen, Phnum: 2,
	}, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W | elf.PF_X),
		Off: text, Vaddr: tinyBase, Paddr: tinyBase,
		Filesz: uint64(len(code)), Memsz: uint64(len(code)) + tinyBSS, Align: 0x1000,
	}, elf.Prog64{
		Type: uint32(elf.PT_NOTE), Flags: uint32(elf.PF_R),
		Off: notes, Filesz: uint64(note.Len()), Memsz: uint64(note.Len()), Align: 4,
	})

	image := make([]byte, text+len(code))
	copy(image, head.Bytes())
	copy(image[notes:], note.Bytes())
	copy(image[text:], code)
	return image
}

// tinyBSS is zeroed memory behind the code, for page tables.
const tinyBSS = 0x8000

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		// Fixed-size values into a buffer: it cannot fail.
		_ = binary.Write(b, binary.LittleEndian, v)
	}
}
