//go:build !race

#include "textflag.h"

// func xbegin(word *uint32) uint32
TEXT ·xbegin(SB), NOSPLIT, $0-12
	MOVQ	word+0(FP), DX
	XBEGIN	aborted
	MOVL	(DX), CX
	TESTL	CX, CX
	JNZ	held
	MOVL	$0xffffffff, AX
	MOVL	AX, ret+8(FP)
	RET
held:
	XABORT	$0xff
aborted:
	MOVL	AX, ret+8(FP)
	RET

// func xend()
TEXT ·xend(SB), NOSPLIT, $0-0
	XEND
	RET

// func xtest() bool
TEXT ·xtest(SB), NOSPLIT, $0-1
	XTEST
	SETNE	ret+0(FP)
	RET

// func cpuid7() (maxLeaf, ebx, edx uint32)
TEXT ·cpuid7(SB), NOSPLIT, $0-12
	XORL	AX, AX
	XORL	CX, CX
	CPUID
	MOVL	AX, maxLeaf+0(FP)
	CMPL	AX, $7
	JB	none
	MOVL	$7, AX
	XORL	CX, CX
	CPUID
	MOVL	BX, ebx+4(FP)
	MOVL	DX, edx+8(FP)
	RET
none:
	MOVL	$0, ebx+4(FP)
	MOVL	$0, edx+8(FP)
	RET
