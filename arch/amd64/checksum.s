#include "textflag.h"

// Sums of 16-bit words, for checksums of the Internet. With AVX2, 128 bytes a turn: VPMADDWD adds
// pairs of signed words, so each word is taken less 0x8000, and the end adds that again.

#define WORDS(at, t, sum) \
	VPXOR at(SI), Y7, t; \
	VPMADDWD Y6, t, t; \
	VPADDD t, sum, sum

// func sumWords(p *byte, n int, wide bool) uint64
TEXT ·sumWords(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	XORL AX, AX
	CMPB wide+16(FP), $0
	JEQ  words

	// Y6 is 1 in each word, Y7 0x8000.
	VPCMPEQW Y6, Y6, Y6
	VPSLLW $15, Y6, Y7
	VPSRLW $15, Y6, Y6
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	MOVQ CX, DX
	ANDQ $~31, DX
	SHLQ $14, DX // 0x8000 for each word of what is summed here
	MOVQ CX, BX
	SHRQ $7, BX
	JEQ  part

block:
	WORDS(0, Y2, Y0)
	WORDS(32, Y3, Y1)
	WORDS(64, Y4, Y0)
	WORDS(96, Y5, Y1)
	ADDQ $128, SI
	DECQ BX
	JNE  block

part:
	ANDL $127, CX
	MOVL CX, BX
	SHRL $5, BX
	JEQ  fold

part32:
	WORDS(0, Y2, Y0)
	ADDQ $32, SI
	DECL BX
	JNE  part32

fold:
	VPADDD Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPADDD X1, X0, X0
	VMOVD X0, AX
	VZEROUPPER
	MOVLQSX AX, AX
	ADDQ DX, AX
	ANDL $31, CX

words:
	CMPQ CX, $8
	JLT  tail
	ADDQ (SI), AX
	ADCQ $0, AX
	ADDQ $8, SI
	SUBQ $8, CX
	JMP  words

tail:
	TESTB $4, CX
	JEQ  tail2
	MOVL (SI), DX
	ADDQ DX, AX
	ADCQ $0, AX
	ADDQ $4, SI

tail2:
	TESTB $2, CX
	JEQ  tail1
	MOVWLZX (SI), DX
	ADDQ DX, AX
	ADCQ $0, AX
	ADDQ $2, SI

tail1:
	TESTB $1, CX
	JEQ  done
	MOVBLZX (SI), DX
	ADDQ DX, AX
	ADCQ $0, AX

done:
	MOVQ AX, ret+24(FP)
	RET
