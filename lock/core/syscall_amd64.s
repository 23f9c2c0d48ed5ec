#include "textflag.h"

// func Syscall(r *Registers)
//
// The call keeps RDI, RSI, RBX, RBP and RSP and may destroy all others; R14, the
// goroutine, is loaded again by whoever called us (ABI wrappers do).
TEXT ·Syscall(SB), NOSPLIT, $0-8
	MOVQ	r+0(FP), CX
	MOVQ	0(CX), AX
	MOVQ	8(CX), DI
	MOVQ	16(CX), SI
	MOVQ	24(CX), DX
	MOVQ	32(CX), R10
	MOVQ	40(CX), BX
	MOVQ	48(CX), R8
	MOVQ	56(CX), R9
	MOVQ	64(CX), R12
	MOVQ	72(CX), R13
	MOVQ	80(CX), R14
	MOVQ	88(CX), R15
	SYSCALL
	MOVQ	r+0(FP), CX
	MOVQ	AX, 0(CX)
	MOVQ	DX, 24(CX)
	MOVQ	R10, 32(CX)
	MOVQ	R8, 48(CX)
	MOVQ	R9, 56(CX)
	MOVQ	R12, 64(CX)
	MOVQ	R13, 72(CX)
	MOVQ	R14, 80(CX)
	MOVQ	R15, 88(CX)
	RET
