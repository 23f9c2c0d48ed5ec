#include "go_asm.h"
#include "textflag.h"

// Where processors come in: the first one, and all others.

// func bootEntry(): the stub jumps here in 64-bit mode with the physical
// address of the start information in RDI, on no stack.
TEXT ·bootEntry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ DI, ·BootInfo(SB)
	LEAQ ·bootStack+(131072-256)(SB), SP
	LEAQ ·bootG(SB), R14
	MOVQ R14, ·bootTLS(SB)
	LEAQ ·bootTLS+8(SB), AX
	MOVQ AX, DX
	SHRQ $32, DX
	MOVL $0xc0000100, CX // FS base
	WRMSR
	XORPS X15, X15
	XORL BP, BP; MOVQ hardtack∕nucleus·BootFn(SB), DX
	MOVQ (DX), AX
	CALL AX
	// The initial stack of a Linux program (System V ABI, AMD64, 3.4.1), for
	// the runtime's entry point.
	LEAQ ·bootStack+(131072-256)(SB), SP
	MOVQ $1, 0(SP)        // argc
	LEAQ ·bootName(SB), AX
	MOVQ AX, 8(SP)        // argv[0]
	MOVQ $0, 16(SP)
	MOVQ $0, 24(SP)       // no environment
	MOVQ $6, 32(SP)       // AT_PAGESZ
	MOVQ $4096, 40(SP)
	MOVQ $25, 48(SP)      // AT_RANDOM
	LEAQ ·BootRandom(SB), AX
	MOVQ AX, 56(SP)
	MOVQ $0, 64(SP)       // AT_NULL
	MOVQ $0, 72(SP)
	MOVQ CPU_self(GS), R12
	MOVQ $0, CPU_inNucleus(R12)
	XORL BP, BP; XORL DX, DX
	STI
	JMP _rt0_amd64_linux(SB)

// func startEntry(): the start-up code of a processor jumps here, on the image's first
// page tables and on no stack. The mailbox of its APIC ID says how it goes on.
TEXT ·startEntry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVL $1, AX
	XORL CX, CX
	CPUID
	SHRL $24, BX
	SHLQ $const_MailboxShift, BX
	MOVQ $const_Mailboxes, AX
	ADDQ BX, AX
	MOVQ 0(AX), CX
	MOVQ 8(AX), DX
	MOVQ 16(AX), DI
	MOVQ CX, CR3
	JMP DX

// func parkEntry(): a processor that belongs to nobody says so in its mailbox, whose
// address is in RDI, and sleeps until the next INIT message.
TEXT ·parkEntry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ $1, 24(DI)
sleep:
	CLI
	HLT
	JMP sleep

// func Park(mailbox uintptr)
TEXT ·Park(SB), NOSPLIT|NOFRAME, $0-8
	CLI
	MOVQ 8(SP), DI
	JMP ·parkEntry(SB)

// func apEntry(): another processor goes on here with its CPU structure in RDI.
TEXT ·apEntry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ DI, R12
	MOVQ CPU_nucleusSP(R12), SP
	MOVQ CPU_tls(R12), AX
	MOVQ AX, DX
	SHRQ $32, DX
	MOVL $0xc0000100, CX
	WRMSR
	LEAQ CPU_fakeG(R12), R14
	XORPS X15, X15
	XORL BP, BP; MOVQ R12, AX
	MOVQ ·StartCPU(SB), DX
	SUBQ $64, SP
	MOVQ (DX), CX
	CALL CX
	JMP ·resume(SB)
