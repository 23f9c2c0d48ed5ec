//go:build amd64 && !race

#include "textflag.h"

// func PublishAhead64(p *uint64, v uint64, ahead *byte)
TEXT ·PublishAhead64(SB), NOSPLIT, $0-24
	MOVQ	p+0(FP), AX
	MOVQ	v+8(FP), CX
	MOVQ	ahead+16(FP), DX
	MOVQ	CX, (AX)
	BYTE	$0x0f; BYTE $0x0d; BYTE $0x0a	// PREFETCHW (DX)
	RET
