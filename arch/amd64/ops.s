#include "go_asm.h"
#include "textflag.h"

// Access to processor state, an instruction or two each.

// func loadTables(gdtr, idtr *[10]byte)
TEXT ·loadTables(SB), NOSPLIT, $0-16
	MOVQ gdtr+0(FP), AX
	LGDT (AX)
	MOVQ idtr+8(FP), AX
	LIDT (AX)
	CALL ·reloadCS(SB)
	MOVL $const_SelKernelData, AX
	MOVW AX, SS
	XORL AX, AX
	MOVW AX, DS
	MOVW AX, ES
	LLDT AX // none
	MOVL $const_SelTSS, AX
	LTR AX
	RET

// reloadCS returns to its caller with the kernel's code selector.
TEXT ·reloadCS(SB), NOSPLIT|NOFRAME, $0-0
	POPQ AX
	PUSHQ $const_SelKernelCode
	PUSHQ AX
	BYTE $0x48; BYTE $0xcb // far return, 64-bit

TEXT ·GetCPU(SB), NOSPLIT, $0-8
	MOVQ CPU_self(GS), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·In8(SB), NOSPLIT, $0-9
	MOVW port+0(FP), DX
	XORL AX, AX
	INB
	MOVB AX, ret+8(FP)
	RET

TEXT ·In16(SB), NOSPLIT, $0-10
	MOVW port+0(FP), DX
	XORL AX, AX
	INW
	MOVW AX, ret+8(FP)
	RET

TEXT ·In32(SB), NOSPLIT, $0-12
	MOVW port+0(FP), DX
	INL
	MOVL AX, ret+8(FP)
	RET

TEXT ·Out8(SB), NOSPLIT, $0-3
	MOVW port+0(FP), DX
	MOVB v+2(FP), AX
	OUTB
	RET

TEXT ·Out16(SB), NOSPLIT, $0-4
	MOVW port+0(FP), DX
	MOVW v+2(FP), AX
	OUTW
	RET

TEXT ·Out32(SB), NOSPLIT, $0-8
	MOVW port+0(FP), DX
	MOVL v+4(FP), AX
	OUTL
	RET

TEXT ·ReadMSR(SB), NOSPLIT, $0-16
	MOVL msr+0(FP), CX
	RDMSR
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, ret+8(FP)
	RET

TEXT ·WriteMSR(SB), NOSPLIT, $0-16
	MOVL msr+0(FP), CX
	MOVQ v+8(FP), AX
	MOVQ AX, DX
	SHRQ $32, DX
	WRMSR
	RET

TEXT ·CPUID(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL subleaf+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET

TEXT ·TSC(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·ReadCR0(SB), NOSPLIT, $0-8
	MOVQ CR0, AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·WriteCR0(SB), NOSPLIT, $0-8
	MOVQ v+0(FP), AX
	MOVQ AX, CR0
	RET

TEXT ·ReadCR2(SB), NOSPLIT, $0-8
	MOVQ CR2, AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·WriteCR3(SB), NOSPLIT, $0-8
	MOVQ v+0(FP), AX
	MOVQ AX, CR3
	RET

TEXT ·ReadCR4(SB), NOSPLIT, $0-8
	MOVQ CR4, AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·WriteCR4(SB), NOSPLIT, $0-8
	MOVQ v+0(FP), AX
	MOVQ AX, CR4
	RET

TEXT ·SetXCR0(SB), NOSPLIT, $0-8
	MOVQ v+0(FP), AX
	MOVQ AX, DX
	SHRQ $32, DX
	XORL CX, CX
	XSETBV
	RET

TEXT ·Pause(SB), NOSPLIT, $0-0
	PAUSE
	RET

TEXT ·Await(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), DI
	MOVL while+8(FP), SI
	MOVL turns+12(FP), CX
look:
	CMPL 0(DI), SI
	JNE changed
	PAUSE; PAUSE; PAUSE; PAUSE; PAUSE; PAUSE; PAUSE; PAUSE
	DECL CX
	JNE look
changed:
	RET

TEXT ·CLI(SB), NOSPLIT, $0-0
	CLI
	RET

TEXT ·RDRAND(SB), NOSPLIT, $0-9
	MOVL $10, CX
again:
	RDRANDQ AX
	JCS done
	DECL CX
	JNE again
	MOVB $0, ret1+8(FP)
	RET
done:
	MOVQ AX, ret+0(FP)
	MOVB $1, ret1+8(FP)
	RET

TEXT ·RDSEED(SB), NOSPLIT, $0-9
	MOVL $100, CX // it runs dry sooner than RDRAND
again:
	RDSEEDQ AX
	JCS done
	PAUSE
	DECL CX
	JNE again
	MOVB $0, ret1+8(FP)
	RET
done:
	MOVQ AX, ret+0(FP)
	MOVB $1, ret1+8(FP)
	RET

TEXT ·StubAddress(SB), NOSPLIT, $0-8
	LEAQ ·stubs(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·SyscallEntry(SB), NOSPLIT, $0-8
	LEAQ ·syscallEntry(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·APEntry(SB), NOSPLIT, $0-8
	LEAQ ·apEntry(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·StartEntry(SB), NOSPLIT, $0-8
	LEAQ ·startEntry(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·ParkEntry(SB), NOSPLIT, $0-8
	LEAQ ·parkEntry(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·BootEntry(SB), NOSPLIT, $0-8
	LEAQ ·bootEntry(SB), AX
	MOVQ AX, ret+0(FP)
	RET

TEXT ·IdleEntry(SB), NOSPLIT, $0-8
	LEAQ ·idle(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func SetTimerDue(when int64)
//
// If the timer is due before the slice ends, user mode is entered by the long way, which
// arms the CPU's timer for it.
TEXT ·SetTimerDue(SB), NOSPLIT, $0-8
	MOVQ when+0(FP), AX
	MOVQ AX, CPU_TimerDue(GS)
	TESTQ AX, AX
	JEQ later
	CMPQ AX, CPU_SliceEnd(GS)
	JGE later
	MOVL $0, CPU_SliceArmed(GS)
later:
	RET

// func BeginSlice()
//
// One store for both fields: the caller's thread may move to another CPU at any time.
TEXT ·BeginSlice(SB), NOSPLIT, $0-0
	MOVQ $(1<<32), AX
	MOVQ AX, CPU_SliceArmed(GS)
	RET

// func ProlongSlice(end int64)
TEXT ·ProlongSlice(SB), NOSPLIT, $0-8
	MOVQ end+0(FP), AX
	MOVQ AX, CPU_SliceEnd(GS)
	RET
