#include "go_asm.h"
#include "textflag.h"

// The x87 registers and the user's GS base of a thread. FXSAVE images have to be aligned,
// which memory of Go's heap is not: they are made in the processor's structure.

#define SWAP_GS BYTE $0x0f; BYTE $0x01; BYTE $0xf8

#define IMAGE(r) \
	MOVQ CPU_self(GS), r; \
	LEAQ (CPU_fx+15)(r), r; \
	ANDQ $~15, r

#define COPY_X87(from, to) \
	VMOVDQU 0(from), Y0; VMOVDQU 32(from), Y1; \
	VMOVDQU 64(from), Y2; VMOVDQU 96(from), Y3; \
	VMOVDQU 128(from), Y4; \
	VMOVDQU Y0, 0(to); VMOVDQU Y1, 32(to); \
	VMOVDQU Y2, 64(to); VMOVDQU Y3, 96(to); \
	VMOVDQU Y4, 128(to)

// func SaveX87(u *UserState)
TEXT ·SaveX87(SB), NOSPLIT, $0-8
	MOVQ u+0(FP), DI
	IMAGE(SI)
	FXSAVE64 (SI)
	SWAP_GS
	RDGSBASEQ AX
	SWAP_GS
	MOVQ AX, Regs_GSBase(DI)
	LEAQ UserState_X87(DI), DI
	COPY_X87(SI, DI)
	RET

// func LoadX87(u *UserState)
TEXT ·LoadX87(SB), NOSPLIT, $0-8
	MOVQ u+0(FP), DI
	IMAGE(SI)
	MOVQ Regs_GSBase(DI), AX
	SWAP_GS
	WRGSBASEQ AX
	SWAP_GS
	LEAQ UserState_X87(DI), DI
	COPY_X87(DI, SI)
	MOVL ·defaultMXCSR(SB), AX
	MOVL AX, 24(SI)
	FXRSTOR64 (SI)
	RET
