#include "go_asm.h"
#include "textflag.h"

// Entry and exit of the kernel. See entry.go for the contracts.

#define SWAP_GS BYTE $0x0f; BYTE $0x01; BYTE $0xf8
#define FINIT_NOWAIT BYTE $0xdb; BYTE $0xe3
#define MXCSR_DEFAULT 0x1f80

#define SAVE_YMM(base, off) \
	VMOVDQU Y0, (off+0)(base); VMOVDQU Y1, (off+32)(base); \
	VMOVDQU Y2, (off+64)(base); VMOVDQU Y3, (off+96)(base); \
	VMOVDQU Y4, (off+128)(base); VMOVDQU Y5, (off+160)(base); \
	VMOVDQU Y6, (off+192)(base); VMOVDQU Y7, (off+224)(base); \
	VMOVDQU Y8, (off+256)(base); VMOVDQU Y9, (off+288)(base); \
	VMOVDQU Y10, (off+320)(base); VMOVDQU Y11, (off+352)(base); \
	VMOVDQU Y12, (off+384)(base); VMOVDQU Y13, (off+416)(base); \
	VMOVDQU Y14, (off+448)(base); VMOVDQU Y15, (off+480)(base)

#define LOAD_YMM(base, off) \
	VMOVDQU (off+0)(base), Y0; VMOVDQU (off+32)(base), Y1; \
	VMOVDQU (off+64)(base), Y2; VMOVDQU (off+96)(base), Y3; \
	VMOVDQU (off+128)(base), Y4; VMOVDQU (off+160)(base), Y5; \
	VMOVDQU (off+192)(base), Y6; VMOVDQU (off+224)(base), Y7; \
	VMOVDQU (off+256)(base), Y8; VMOVDQU (off+288)(base), Y9; \
	VMOVDQU (off+320)(base), Y10; VMOVDQU (off+352)(base), Y11; \
	VMOVDQU (off+384)(base), Y12; VMOVDQU (off+416)(base), Y13; \
	VMOVDQU (off+448)(base), Y14; VMOVDQU (off+480)(base), Y15

// What user mode may have in RFLAGS (not TF: SYSRET with it traps late).
#define SYSRET_FLAGS 0x240dd5

// Registers at a SYSCALL, except for those that it changed itself.
#define SAVE_CALL(u) \
	MOVQ CX, Regs_RIP(u); MOVQ R11, Regs_RFLAGS(u); \
	MOVQ AX, Regs_RAX(u); MOVQ BX, Regs_RBX(u); \
	MOVQ DX, Regs_RDX(u); MOVQ SI, Regs_RSI(u); \
	MOVQ DI, Regs_RDI(u); MOVQ BP, Regs_RBP(u); \
	MOVQ R8, Regs_R8(u); MOVQ R9, Regs_R9(u); \
	MOVQ R10, Regs_R10(u); \
	MOVQ R12, Regs_R12(u); MOVQ R13, Regs_R13(u); \
	MOVQ R14, Regs_R14(u); MOVQ R15, Regs_R15(u)

// Those that SYSRET and the way there have no use for.
#define LOAD_KEPT(u) \
	MOVQ Regs_RBX(u), BX; MOVQ Regs_RBP(u), BP; \
	MOVQ Regs_R8(u), R8; MOVQ Regs_R9(u), R9; \
	MOVQ Regs_R10(u), R10; MOVQ Regs_R12(u), R12; \
	MOVQ Regs_R13(u), R13; MOVQ Regs_R14(u), R14; \
	MOVQ Regs_R15(u), R15

// Where RunUser's result lies from its stack pointer in user mode on. Its caller gets
// R14 and X15 back itself, as from any function of this ABI.
#define RUN_RESULT 32

// State that Go code expects inside the nucleus. c is the CPU's structure.
#define ENTER_NUCLEUS(c, tmp) \
	MOVQ CPU_tls(c), tmp; \
	WRFSBASEQ tmp; \
	MOVQ $1, CPU_inNucleus(c); \
	LEAQ CPU_fakeG(c), R14; \
	VXORPS X15, X15, X15

// func syscallEntry(): SYSCALL lands here. The sign of the return address in
// RCX tells the runtime's own calls from a user's.
TEXT ·syscallEntry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	TESTQ CX, CX
	JS kernel
	SWAP_GS
	CMPL AX, $const_MessageBase
	JCC own
ordinary:
	MOVQ SP, CPU_userSP(GS)
	MOVQ CPU_user(GS), SP
	SAVE_CALL(SP)
	MOVQ CX, Regs_RCX(SP)
	MOVQ R11, Regs_R11(SP)
	MOVQ SP, DI
	MOVQ CPU_self(GS), R12
	MOVQ CPU_userSP(R12), AX
	MOVQ AX, Regs_RSP(DI)
	MOVL $const_TrapSyscall, (UserState_Trap+Trap_Kind)(DI)
	JMP ·leaveUser(SB)

own:
	CMPL AX, $(const_MessageBase+const_MessageCalls)
	JCC ordinary
	// Vector and x87 registers are not saved: a message call destroys them. The
	// image of the latter becomes that of empty registers (all but the control word
	// 0), as FXSAVE would write it, so that their owner may change at once. What RCX
	// and R11 become, and the kind of trap, are left to nucleus.elsewhere.
	MOVQ SP, CPU_userSP(GS)
	MOVQ CPU_user(GS), SP
	SAVE_CALL(SP)
	LEAL -const_MessageBase(AX), CX
	MOVQ SP, DI
	MOVQ CPU_self(GS), R12
	MOVQ CPU_userSP(R12), AX
	MOVQ AX, Regs_RSP(DI)
	RDFSBASEQ AX
	MOVQ AX, Regs_FSBase(DI)
	SWAP_GS
	RDGSBASEQ AX
	SWAP_GS
	MOVQ AX, Regs_GSBase(DI)
	MOVQ $0, UserState_X87(DI)
	FSTCW UserState_X87(DI)
	STMXCSR UserState_MXCSR(DI)
	CMPL UserState_MXCSR(DI), $MXCSR_DEFAULT
	JEQ messageMXCSR
	LDMXCSR ·defaultMXCSR(SB)
messageMXCSR:
	MOVQ CPU_nucleusSP(R12), SP
	SUBQ $64, SP
	MOVQ R12, 40(SP)
	XORL BP, BP; ENTER_NUCLEUS(R12, AX)
	MOVQ DI, BX
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, DI
	MOVQ R12, AX
	MOVQ ·MessageHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	MOVQ 40(SP), R12
	MOVQ $0, CPU_inNucleus(R12)
	MOVQ AX, DI
	TESTB BX, BX
	JEQ nobody
	MOVQ CPU_NewRoot(R12), AX
	TESTQ AX, AX
	JEQ loaded
	MOVQ AX, CR3
	MOVQ CPU_UserSpace(R12), AX
	MOVQ AX, CPU_Space(R12)
	MOVQ $0, CPU_NewRoot(R12)
loaded:
	// Whoever it is came by SYSCALL and can go by SYSRET (see enterUser).
	VZEROALL // another process's, or ours
	FINIT_NOWAIT
	FLDCW UserState_X87(DI)
	CMPL UserState_MXCSR(DI), $MXCSR_DEFAULT
	JEQ mxcsrDone
	LDMXCSR UserState_MXCSR(DI)
mxcsrDone:
	MOVQ Regs_FSBase(DI), AX
	WRFSBASEQ AX
	MOVQ Regs_RIP(DI), CX
	MOVQ CX, AX
	SHRQ $47, AX
	JNE noncanonical
	MOVQ Regs_RFLAGS(DI), R11
	ANDQ $SYSRET_FLAGS, R11
	ORQ $0x202, R11
	LOAD_KEPT(DI)
	MOVQ Regs_RSI(DI), SI
	MOVQ Regs_RDX(DI), DX
	MOVQ Regs_RSP(DI), SP
	MOVQ Regs_GSBase(DI), AX
	SWAP_GS
	WRGSBASEQ AX
	MOVQ Regs_RAX(DI), AX
	MOVQ Regs_RDI(DI), DI
	BYTE $0x48; SYSRET

noncanonical:
	MOVQ CPU_thread(R12), BX
	MOVQ Thread_runSP(BX), SP
	JMP ·enterUser(SB)

nobody: // or somebody with a trap
	MOVQ $0, CPU_UserSpace(R12)
	MOVQ CPU_thread(R12), BX
	MOVQ Thread_fs(BX), AX
	WRFSBASEQ AX
	MOVQ Thread_runSP(BX), SP
	MOVQ DI, RUN_RESULT(SP)
	STI
	MOVQ 0(SP), BP; ADDQ $8, SP
	RET

kernel:
	MOVQ SP, CPU_userSP(GS)
	MOVQ CPU_thread(GS), SP
	MOVQ AX, Thread_rax(SP)
	MOVQ BX, Thread_rbx(SP)
	MOVQ DX, Thread_rdx(SP)
	MOVQ SI, Thread_rsi(SP)
	MOVQ DI, Thread_rdi(SP)
	MOVQ BP, Thread_rbp(SP)
	MOVQ R8, Thread_r8(SP)
	MOVQ R9, Thread_r9(SP)
	MOVQ R10, Thread_r10(SP)
	MOVQ R12, Thread_r12(SP)
	MOVQ R13, Thread_r13(SP)
	MOVQ R14, Thread_r14(SP)
	MOVQ R15, Thread_r15(SP)
	MOVQ CX, Thread_rip(SP)
	MOVQ R11, Thread_rflags(SP)
	MOVQ $0, Thread_iret(SP)
	MOVQ SP, BX
	MOVQ CPU_self(GS), AX
	MOVQ CPU_userSP(AX), CX
	MOVQ CX, Thread_rsp(BX)
	MOVQ CPU_nucleusSP(AX), SP
	SUBQ $64, SP
	XORL BP, BP; ENTER_NUCLEUS(AX, CX)
	MOVQ ·SyscallHandler(SB), DX
	MOVQ (DX), CX
	CALL CX
	JMP ·resume(SB)

// leaveUser finishes saving the user state in RDI on the CPU in R12 and returns
// to RunUser's caller.
TEXT ·leaveUser(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	SAVE_YMM(DI, UserState_YMM)
	RDFSBASEQ AX
	MOVQ AX, Regs_FSBase(DI)
	STMXCSR UserState_MXCSR(DI)
	CMPL UserState_MXCSR(DI), $MXCSR_DEFAULT
	JEQ mxcsrDone
	LDMXCSR ·defaultMXCSR(SB)
mxcsrDone:
	MOVL $0, UserState_CPU(DI)
	MOVQ $0, CPU_UserSpace(R12)
	MOVQ CPU_thread(R12), BX
	MOVQ Thread_fs(BX), AX
	WRFSBASEQ AX
	MOVQ Thread_runSP(BX), SP
	MOVQ DI, RUN_RESULT(SP)
	STI
	MOVQ 0(SP), BP; ADDQ $8, SP
	RET

// func RunUser(u *UserState, space *Space) *UserState
TEXT ·RunUser(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ 8(SP), DI  // u
	MOVQ 16(SP), SI // space
	SUBQ $8, SP
	MOVQ BP, 0(SP)
	CLI
	MOVQ CPU_self(GS), R12
	MOVL CPU_Index(R12), AX
	INCL AX
	MOVL AX, UserState_CPU(DI)
	MOVQ SI, AX
	XCHGQ AX, CPU_UserSpace(R12) // also the fence before the checks
	CMPL UserState_Kick(DI), $0
	JNE kicked
	CMPL CPU_Kicked(R12), $0
	JNE kicked
	MOVQ DI, CPU_user(R12)
	MOVQ Space_Gen(SI), R10
	CMPQ CPU_Space(R12), SI
	JNE slow
	CMPQ CPU_Gen(R12), R10
	JNE slow
	CMPQ CPU_FPU(R12), DI
	JNE slow
	CMPL CPU_SliceArmed(R12), $0
	JEQ slow

enter:
	MOVQ CPU_thread(R12), BX
	MOVQ SP, Thread_runSP(BX)
	LOAD_YMM(DI, UserState_YMM)
	JMP ·enterUser(SB)

slow:
	MOVQ SP, CPU_userSP(R12)
	MOVQ CPU_nucleusSP(R12), SP
	SUBQ $64, SP
	MOVQ R12, 40(SP)
	MOVQ DI, 48(SP)
	ENTER_NUCLEUS(R12, AX)
	MOVQ R12, AX
	MOVQ DI, BX
	MOVQ SI, CX
	MOVQ R10, DI
	MOVQ Space_Root(SI), SI
	MOVQ ·EnterUserHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	MOVQ 40(SP), R12
	MOVQ 48(SP), DI
	MOVQ $0, CPU_inNucleus(R12)
	MOVQ CPU_userSP(R12), SP
	TESTB AX, AX
	JNE enter

kicked:
	MOVL $const_TrapInterrupt, (UserState_Trap+Trap_Kind)(DI)
	MOVL CPU_Kicked(R12), AX
	SHRL $1, AX
	MOVQ AX, (UserState_Trap+Trap_Error)(DI)
	MOVL $0, CPU_Kicked(R12)
	MOVL $0, UserState_Kick(DI)
	JMP ·notEntered(SB)

// func PerformMessage(u *UserState) *UserState
TEXT ·PerformMessage(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ 8(SP), DI // u
	SUBQ $8, SP
	MOVQ BP, 0(SP)
	CLI
	MOVQ CPU_self(GS), R12
	MOVQ SP, CPU_userSP(R12)
	MOVQ CPU_nucleusSP(R12), SP
	SUBQ $64, SP
	MOVQ R12, 40(SP)
	XORL BP, BP; ENTER_NUCLEUS(R12, AX)
	MOVQ R12, AX
	MOVQ DI, BX
	MOVQ ·PreparedHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	MOVQ 40(SP), R12
	ADDQ $64, SP
	MOVQ $0, CPU_inNucleus(R12)
	MOVQ CPU_thread(R12), BX
	MOVQ Thread_fs(BX), CX
	WRFSBASEQ CX
	MOVQ CPU_userSP(R12), SP
	STI
	MOVQ 0(SP), BP
	ADDQ $8, SP
	MOVQ AX, ret+8(FP)
	RET

// enterUser enters user mode with the state in DI, its vector registers loaded, on
// the CPU in R12. SP is RunUser's.
TEXT ·enterUser(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	CMPL UserState_MXCSR(DI), $MXCSR_DEFAULT
	JEQ mxcsrDone
	LDMXCSR UserState_MXCSR(DI)
mxcsrDone:
	MOVQ Regs_FSBase(DI), AX
	WRFSBASEQ AX
	MOVQ Regs_RIP(DI), CX
	MOVQ CX, AX
	SHRQ $47, AX
	JNE badRIP
	LOAD_KEPT(DI)
	MOVQ Regs_RSI(DI), SI
	// SYSRET takes RIP from RCX and RFLAGS from R11, so it can return only
	// where a SYSCALL came from.
	MOVQ Regs_R11(DI), R11
	CMPQ Regs_RFLAGS(DI), R11
	JNE full
	CMPQ Regs_RCX(DI), CX
	JNE full
	ANDQ $SYSRET_FLAGS, R11
	ORQ $0x202, R11
	MOVQ Regs_RDX(DI), DX
	MOVQ Regs_RAX(DI), AX
	MOVQ Regs_RSP(DI), SP
	MOVQ Regs_RDI(DI), DI
	SWAP_GS
	BYTE $0x48; SYSRET

full:
	MOVQ CPU_nucleusSP(GS), SP
	SUBQ $40, SP // frame for IRET
	MOVQ CX, 0(SP)
	MOVQ $const_SelUserCode, 8(SP)
	MOVQ Regs_RFLAGS(DI), AX
	ANDQ $0x254dd5, AX
	ORQ $0x202, AX
	MOVQ AX, 16(SP)
	MOVQ Regs_RSP(DI), AX
	MOVQ AX, 24(SP)
	MOVQ $const_SelUserData, 32(SP)
	MOVQ Regs_RCX(DI), CX
	MOVQ Regs_R11(DI), R11
	MOVQ Regs_RDX(DI), DX
	MOVQ Regs_RAX(DI), AX
	MOVQ Regs_RDI(DI), DI
	SWAP_GS
	IRETQ

badRIP:
	// A return there would fault in the kernel; report what user mode would.
	MOVL $const_TrapFault, (UserState_Trap+Trap_Kind)(DI)
	MOVL $13, (UserState_Trap+Trap_Vector)(DI)
	MOVQ $0, (UserState_Trap+Trap_Error)(DI)
	JMP ·notEntered(SB)

// notEntered returns from RunUser with the state in DI.
TEXT ·notEntered(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVL $0, UserState_CPU(DI)
	MOVQ CPU_self(GS), R12
	MOVQ $0, CPU_UserSpace(R12)
	MOVQ CPU_thread(R12), BX
	MOVQ Thread_fs(BX), AX
	WRFSBASEQ AX
	LDMXCSR ·defaultMXCSR(SB)
	MOVQ DI, RUN_RESULT(SP)
	STI
	MOVQ 0(SP), BP; ADDQ $8, SP
	RET

// trapCommon follows every interrupt stub. On the stack: vector, error code,
// RIP, CS, RFLAGS, RSP, SS.
TEXT ·trapCommon(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	TESTB $3, 24(SP)
	JNE fromUser
	CMPQ 0(SP), $1 // #DB in the kernel: nothing sets breakpoints here
	JEQ ignore
	CMPQ CPU_inNucleus(GS), $0
	JNE fatal
	CLD // memmove copies backwards at times, and the gates leave the flag
	PUSHQ AX
	MOVQ CPU_thread(GS), AX
	MOVQ BX, Thread_rbx(AX)
	MOVQ CX, Thread_rcx(AX)
	MOVQ DX, Thread_rdx(AX)
	MOVQ SI, Thread_rsi(AX)
	MOVQ DI, Thread_rdi(AX)
	MOVQ BP, Thread_rbp(AX)
	MOVQ R8, Thread_r8(AX)
	MOVQ R9, Thread_r9(AX)
	MOVQ R10, Thread_r10(AX)
	MOVQ R11, Thread_r11(AX)
	MOVQ R12, Thread_r12(AX)
	MOVQ R13, Thread_r13(AX)
	MOVQ R14, Thread_r14(AX)
	MOVQ R15, Thread_r15(AX)
	POPQ CX
	MOVQ CX, Thread_rax(AX)
	MOVQ 16(SP), CX
	MOVQ CX, Thread_rip(AX)
	MOVQ 32(SP), CX
	MOVQ CX, Thread_rflags(AX)
	MOVQ 40(SP), CX
	MOVQ CX, Thread_rsp(AX)
	MOVQ $1, Thread_iret(AX)
	SAVE_YMM(AX, Thread_ymm)
	XORL DI, DI // not from user mode
	JMP handle

fromUser:
	SWAP_GS
	// A gate leaves the user's direction flag, with which Go's string
	// instructions would run backwards, and its AC, which suspends SMAP.
	TESTL $const_FlagDF|const_FlagAC, 32(SP)
	JEQ plainFlags
	PUSHQ $2
	POPFQ
plainFlags:
	PUSHQ AX
	MOVQ CPU_user(GS), AX
	MOVQ BX, Regs_RBX(AX)
	MOVQ CX, Regs_RCX(AX)
	MOVQ DX, Regs_RDX(AX)
	MOVQ SI, Regs_RSI(AX)
	MOVQ DI, Regs_RDI(AX)
	MOVQ BP, Regs_RBP(AX)
	MOVQ R8, Regs_R8(AX)
	MOVQ R9, Regs_R9(AX)
	MOVQ R10, Regs_R10(AX)
	MOVQ R11, Regs_R11(AX)
	MOVQ R12, Regs_R12(AX)
	MOVQ R13, Regs_R13(AX)
	MOVQ R14, Regs_R14(AX)
	MOVQ R15, Regs_R15(AX)
	MOVQ AX, DI
	POPQ CX
	MOVQ CX, Regs_RAX(DI)
	MOVQ 16(SP), CX
	MOVQ CX, Regs_RIP(DI)
	MOVQ 32(SP), CX
	MOVQ CX, Regs_RFLAGS(DI)
	MOVQ 40(SP), CX
	MOVQ CX, Regs_RSP(DI)
	MOVQ CPU_self(GS), R12
	MOVQ 0(SP), BX
	MOVQ 8(SP), CX
	MOVL BX, (UserState_Trap+Trap_Vector)(DI)
	MOVQ CX, (UserState_Trap+Trap_Error)(DI)
	CMPQ BX, $32
	JHS userInterrupt
	MOVL $const_TrapFault, (UserState_Trap+Trap_Kind)(DI)
	CMPQ BX, $14
	JNE leave
	MOVQ CR2, AX
	MOVQ AX, (UserState_Trap+Trap_Addr)(DI)
leave:
	JMP ·leaveUser(SB)

userInterrupt:
	MOVL $const_TrapInterrupt, (UserState_Trap+Trap_Kind)(DI)
	SAVE_YMM(DI, UserState_YMM)
	RDFSBASEQ AX
	MOVQ AX, Regs_FSBase(DI)
	STMXCSR UserState_MXCSR(DI)
	LDMXCSR ·defaultMXCSR(SB)
	MOVL $0, UserState_CPU(DI)
	MOVQ $0, CPU_UserSpace(R12)
	// The thread resumes as if RunUser returned.
	MOVQ CPU_thread(R12), AX
	MOVQ Thread_runSP(AX), CX
	MOVQ CX, Thread_rsp(AX)
	MOVQ DI, RUN_RESULT(CX)
	LEAQ ·userReturn(SB), CX
	MOVQ CX, Thread_rip(AX)
	MOVQ $0, Thread_iret(AX)
	MOVL $1, DI

handle:
	// In: BX vector, CX error code (from the stack), DI from user.
	MOVQ 0(SP), BX
	MOVQ 8(SP), CX
	MOVQ CPU_self(GS), AX
	SUBQ $72, SP
	XORL BP, BP; ENTER_NUCLEUS(AX, R8)
	MOVQ ·TrapHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	JMP ·resume(SB)

ignore:
	ADDQ $16, SP
	IRETQ

fatal:
	MOVQ CPU_self(GS), AX
	MOVQ SP, BX
	SUBQ $72, SP
	MOVQ CPU_tls(AX), R8
	WRFSBASEQ R8
	LEAQ CPU_fakeG(AX), R14
	VXORPS X15, X15, X15
	MOVQ ·FatalHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	INT $3

// userReturn is where a thread goes on that an interrupt took out of user mode.
TEXT ·userReturn(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	RDFSBASEQ AX
	MOVQ -8(AX), R14
	VXORPS X15, X15, X15
	MOVQ 0(SP), BP; ADDQ $8, SP
	RET

// paranoidCommon serves NMI, #DF and #MC, which may come while GS is the
// user's: the top of their stacks holds the CPU pointer.
TEXT ·paranoidCommon(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ 56(SP), AX
	WRGSBASEQ AX
	MOVQ SP, BX
	SUBQ $72, SP
	MOVQ CPU_tls(AX), R8
	WRFSBASEQ R8
	LEAQ CPU_fakeG(AX), R14
	VXORPS X15, X15, X15
	MOVQ ·FatalHandler(SB), DX
	MOVQ (DX), R8
	CALL R8
	INT $3

// resume leaves the nucleus to the current thread.
TEXT ·resume(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ CPU_self(GS), R12
	MOVQ CPU_thread(R12), DI
	MOVQ $0, CPU_inNucleus(R12)
	MOVQ Thread_fs(DI), AX
	WRFSBASEQ AX
	MOVQ Thread_rbx(DI), BX
	MOVQ Thread_rdx(DI), DX
	MOVQ Thread_rsi(DI), SI
	MOVQ Thread_rbp(DI), BP; MOVQ Thread_r8(DI), R8
	MOVQ Thread_r9(DI), R9
	MOVQ Thread_r10(DI), R10
	MOVQ Thread_r13(DI), R13
	MOVQ Thread_r14(DI), R14
	MOVQ Thread_r15(DI), R15
	CMPQ Thread_iret(DI), $0
	JNE full
	MOVQ Thread_rip(DI), CX
	MOVQ Thread_rsp(DI), SP
	MOVQ Thread_rax(DI), AX
	MOVQ Thread_r12(DI), R12
	MOVQ Thread_rdi(DI), DI
	STI
	JMP CX

full:
	LOAD_YMM(DI, Thread_ymm)
	MOVQ CPU_nucleusSP(R12), SP
	SUBQ $40, SP // frame for IRET
	MOVQ Thread_rip(DI), AX
	MOVQ AX, 0(SP)
	MOVQ $const_SelKernelCode, 8(SP)
	MOVQ Thread_rflags(DI), AX
	MOVQ AX, 16(SP)
	MOVQ Thread_rsp(DI), AX
	MOVQ AX, 24(SP)
	MOVQ $const_SelKernelData, 32(SP)
	MOVQ Thread_rax(DI), AX
	MOVQ Thread_rcx(DI), CX
	MOVQ Thread_r11(DI), R11
	MOVQ Thread_r12(DI), R12
	MOVQ Thread_rdi(DI), DI
	IRETQ

// idle waits for interrupts for ever; one thread a CPU runs it.
TEXT ·idle(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
again:
	STI
	HLT
	JMP again

// func Syscall(num, a, b, c uint64) uint64
TEXT ·Syscall(SB), NOSPLIT, $0-40
	MOVQ num+0(FP), AX
	MOVQ a+8(FP), DI
	MOVQ b+16(FP), SI
	MOVQ c+24(FP), DX
	SYSCALL
	MOVQ AX, ret+32(FP)
	RET

// clockGettime has the C calling convention of the vDSO's: RDI clock, RSI
// struct timespec. It keeps to registers that a C function may change.
TEXT ·clockGettime(SB), NOSPLIT|NOFRAME, $0
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	SUBQ ·ClockBase(SB), AX
	MULQ ·ClockMult(SB)
	SHRQ $32, DX, AX
	TESTL DI, DI
	JNE monotonic
	ADDQ ·RealtimeBase(SB), AX
monotonic:
	XORL DX, DX
	MOVQ $1000000000, CX
	DIVQ CX
	MOVQ AX, 0(SI)
	MOVQ DX, 8(SI)
	XORL AX, AX
	RET

// func SetVDSOClock()
TEXT ·SetVDSOClock(SB), NOSPLIT, $0-0
	LEAQ ·clockGettime(SB), AX
	MOVQ AX, runtime·vdsoClockgettimeSym(SB)
	RET

DATA ·defaultMXCSR+0(SB)/4, $MXCSR_DEFAULT
GLOBL ·defaultMXCSR(SB), RODATA, $4
DATA ·bootName+0(SB)/8, $"hardtack"
DATA ·bootName+8(SB)/8, $0
GLOBL ·bootName(SB), RODATA, $16
GLOBL ·bootTLS(SB), NOPTR, $16
GLOBL ·bootG(SB), NOPTR, $512
GLOBL ·bootStack(SB), NOPTR, $131072
