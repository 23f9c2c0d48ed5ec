package image

import (
	"encoding/binary"

	"hardtack/abi/boot"
)

// entryCode starts the boot processor. PVH enters it in 32-bit mode, paging
// off, with the start information's address in EBX.
//
//	cld
//	mov  eax, StubBase+StubPML4   ; page tables
//	mov  cr3, eax
//	mov  eax, cr4
//	or   eax, 0x620               ; PAE, OSFXSR, OSXMMEXCPT
//	mov  cr4, eax
//	mov  ecx, 0xc0000080          ; EFER
//	rdmsr
//	or   eax, 0x901               ; NXE, LME, SCE
//	wrmsr
//	mov  eax, cr0
//	and  eax, 0xfffffff3          ; not EM, TS
//	or   eax, 0x80010002          ; PG, WP, MP
//	mov  cr0, eax
//	lgdt [StubBase+StubGDT+0x30]
//	jmp  0x18:StubBase+0x80
//	; at 0x80, 64-bit mode
//	mov  edi, ebx
//	mov  rax, entry
//	jmp  rax
var entryCode = []byte{
	0xfc, 0xb8, 0x00, 0x10, 0x10, 0x00, 0x0f, 0x22, 0xd8, 0x0f, 0x20, 0xe0,
	0x0d, 0x20, 0x06, 0x00, 0x00, 0x0f, 0x22, 0xe0, 0xb9, 0x80, 0x00, 0x00,
	0xc0, 0x0f, 0x32, 0x0d, 0x01, 0x09, 0x00, 0x00, 0x0f, 0x30, 0x0f, 0x20,
	0xc0, 0x83, 0xe0, 0xf3, 0x0d, 0x02, 0x00, 0x01, 0x80, 0x0f, 0x22, 0xc0,
	0x0f, 0x01, 0x15, 0x30, 0x04, 0x10, 0x00, 0xea, 0x80, 0x00, 0x10, 0x00,
	0x18, 0x00,
}

var entryCode64 = []byte{0x89, 0xdf, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}

const entry64At, entryPatch = 0x80, 4

// trampolineCode starts the other processors in real mode at boot.Trampoline,
// where the nucleus copies it.
//
//	cli; cld
//	xor  ax, ax; mov ds, ax
//	lgdt [0x80c0]
//	mov  eax, cr0; or al, 1; mov cr0, eax
//	jmp  0x08:0x8030
//	; at 0x30, 32-bit mode
//	mov  ax, 0x10; mov ds, ax; mov ss, ax
//	mov  eax, [TrampolineCR3]; mov cr3, eax
//	; CR4, EFER, CR0 as above (cache on)
//	jmp  0x18:0x8080
//	; at 0x80, 64-bit mode
//	mov  rax, [TrampolineEntry]
//	jmp  rax
var trampolineCode = []byte{
	0xfa, 0xfc, 0x31, 0xc0, 0x8e, 0xd8, 0x66, 0x0f, 0x01, 0x16, 0xc0, 0x80,
	0x0f, 0x20, 0xc0, 0x0c, 0x01, 0x0f, 0x22, 0xc0, 0x66, 0xea, 0x30, 0x80,
	0x00, 0x00, 0x08, 0x00,
}

var trampolineCode32 = []byte{
	0x66, 0xb8, 0x10, 0x00, 0x8e, 0xd8, 0x8e, 0xd0, 0xa1, 0xe0, 0x80, 0x00,
	0x00, 0x0f, 0x22, 0xd8, 0x0f, 0x20, 0xe0, 0x0d, 0x20, 0x06, 0x00, 0x00,
	0x0f, 0x22, 0xe0, 0xb9, 0x80, 0x00, 0x00, 0xc0, 0x0f, 0x32, 0x0d, 0x01,
	0x09, 0x00, 0x00, 0x0f, 0x30, 0x0f, 0x20, 0xc0, 0x25, 0xf3, 0xff, 0xff,
	0x9f, 0x0d, 0x02, 0x00, 0x01, 0x80, 0x0f, 0x22, 0xc0, 0xea, 0x80, 0x80,
	0x00, 0x00, 0x18, 0x00,
}

var trampolineCode64 = []byte{
	0x48, 0xa1, 0xe8, 0x80, 0, 0, 0, 0, 0, 0, 0xff, 0xe0,
}

// gdt: null, 32-bit code (0x08), data (0x10), 64-bit code (0x18).
var gdt = [...]uint64{0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff}

// Page table bits: present, writable, and large page.
const ptePW, pteLarge = 3, 1 << 7

// stub returns the segment at boot.StubBase: code, descriptors and the first
// page tables. Physical memory is mapped one to one at 0 (until the nucleus
// drops that) and at DirectBase, the first GiB again at ImageBase.
func stub(entry uint64) []byte {
	le := binary.LittleEndian
	b := make([]byte, boot.StubSize)
	copy(b, entryCode)
	copy(b[entry64At:], entryCode64)
	le.PutUint64(b[entry64At+entryPatch:], entry)

	for i, d := range gdt {
		le.PutUint64(b[boot.StubGDT+8*i:], d)
	}
	gdtr := func(at int) {
		le.PutUint16(b[at:], uint16(8*len(gdt)-1))
		le.PutUint32(b[at+2:], boot.StubBase+boot.StubGDT)
	}
	gdtr(boot.StubGDT + 0x30)

	t := b[boot.StubTrampoline:]
	copy(t, trampolineCode)
	copy(t[0x30:], trampolineCode32)
	copy(t[0x80:], trampolineCode64)
	gdtr(boot.StubTrampoline + 0xc0)

	pte := func(table, i int, v uint64) { le.PutUint64(b[table+8*i:], v) }
	pte(boot.StubPML4, 0, boot.StubBase+boot.StubDirect|ptePW)
	pte(boot.StubPML4, 256, boot.StubBase+boot.StubDirect|ptePW)
	pte(boot.StubPML4, 511, boot.StubBase+boot.StubKernelPDP|ptePW)
	pte(boot.StubKernelPDP, 510, boot.StubBase+boot.StubDirectPD|ptePW)
	for gib := range 4 {
		pte(boot.StubDirect, gib, uint64(boot.StubBase+boot.StubDirectPD+gib<<12)|ptePW)
	}
	for i := range 4 * 512 {
		pte(boot.StubDirectPD, i, uint64(i)<<21|ptePW|pteLarge)
	}
	return b
}
