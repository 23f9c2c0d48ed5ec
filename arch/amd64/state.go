// Package amd64 is everything of Hardtack that is written in assembly: entry
// and exit of the kernel, the first instructions of each processor, and access
// to processor state that Go has no words for.
//
// Assembly moves state and nothing else; decisions are the nucleus's, which it
// calls through the handler variables of this package. Structures that assembly
// knows are defined here, in Go, and reach it as go_asm.h offsets.
//
// Register use in the kernel: GS base points at the processor's CPU structure
// whenever the processor is in ring 0, except for the few instructions around
// SWAPGS. FS base points at the running thread's TLS, or inside the nucleus at
// the CPU's own, whose g is CPU.fakeG. Interrupts are off inside the nucleus.
//
// Manual sections are those of the Intel 64 and IA-32 Architectures Software
// Developer's Manual (SDM).
package amd64

import (
	"sync/atomic"

	"hardtack/abi/boot"
	"hardtack/abi/ipc"
)

// Where startEntry finds its mailbox: on the first page tables, too, physical memory is
// in the direct map.
const (
	Mailboxes    = boot.DirectBase + boot.Mailboxes
	MailboxShift = 5 // boot.MailboxSize
)

// MaxCPUs bounds the processors of a machine.
const MaxCPUs = 64

// Selectors of the kernel's descriptor table; the values are Linux's, since user
// programs see theirs. SYSRET wants user data right before user code (SDM vol.
// 2, SYSRET).
const (
	SelKernelCode = 0x10
	SelKernelData = 0x18
	SelUserData   = 0x2b
	SelUserCode   = 0x33
	SelTSS        = 0x40
)

// Interrupt stack table entries (SDM vol. 3, 6.14.5).
const (
	ISTInterrupt = 1 // interrupts and exceptions
	ISTPageFault = 2
	ISTNMI       = 3
	ISTDouble    = 4
	ISTMachine   = 5
	ISTDebug     = 6
)

// RFLAGS bits.
const (
	FlagIF = 1 << 9
	FlagDF = 1 << 10
	FlagTF = 1 << 8
	FlagAC = 1 << 18
)

// CPU is a processor's own data. The zeroed fake g makes Go's stack checks pass
// inside the nucleus.
type CPU struct {
	self      uintptr // GS:0
	nucleusSP uintptr // top of the nucleus stack
	thread    uintptr // *Thread that runs or was interrupted
	user      uintptr // *UserState in user mode, or last there
	userSP    uintptr // SYSCALL entry's scratch
	tls       uintptr // FS base inside the nucleus
	inNucleus uintptr // 1 while the nucleus runs: an exception then is a bug

	// Space and Gen are the address space loaded in CR3 and its generation at
	// that time; UserSpace is set while user mode runs on it.
	Space     uintptr
	Gen       uint64
	UserSpace atomic.Uintptr
	// NewRoot is, after a message call, the root of UserSpace that is to be loaded in
	// CR3, whose generation is in Gen already; 0: it is loaded.
	NewRoot uint64
	// FPU is the *UserState whose x87 registers and user GS base are loaded.
	FPU uintptr
	// Kicked makes the next entry to user mode return at once.
	Kicked atomic.Uint32
	// SliceArmed says that the timer interrupt is coming which ends a user's time slice,
	// or before that for TimerDue.
	SliceArmed uint32
	// SliceFresh says that a new slice begins when user mode is entered next. BeginSlice
	// writes it together with SliceArmed.
	SliceFresh uint32
	// SliceEnd is when the slice ends, 0 if none has begun. TimerDue is when the first
	// timer of Go's scheduler on this CPU is due, 0 if there is none. Nanoseconds.
	SliceEnd, TimerDue int64

	Index  uint32 // immutable
	APICID uint32 // immutable

	fakeG   [64]uint64
	tlsArea [8]uint64 // the g slot is the last word; FS base points behind it

	fx  [512 + 16]byte // holds an aligned FXSAVE image
	gdt [10]uint64
	tss [26]uint32
}

// Thread is the saved state of a thread of the Go runtime (an M).
type Thread struct {
	rax, rbx, rcx, rdx, rsi, rdi, rbp    uint64
	r8, r9, r10, r11, r12, r13, r14, r15 uint64
	rip, rflags, rsp                     uint64
	fs                                   uint64
	runSP                                uint64 // stack pointer inside RunUser
	iret                                 uint64 // 1: everything is saved, resume by IRET; 0: at a call
	_                                    [3]uint64
	ymm                                  [16][32]byte // valid when iret is 1
}

// Regs are the general registers of a user thread.
type Regs struct {
	RAX, RBX, RCX, RDX, RSI, RDI, RBP    uint64
	R8, R9, R10, R11, R12, R13, R14, R15 uint64
	RIP, RFLAGS, RSP                     uint64
	FSBase, GSBase                       uint64
}

// TrapKind says why user mode was left.
type TrapKind uint32

// Reasons for leaving user mode.
const (
	TrapSyscall   TrapKind = iota // SYSCALL: number in RAX, arguments in RDI RSI RDX R10 R8 R9
	TrapInterrupt                 // interrupt or kick: nothing for the thread itself to do
	TrapFault                     // exception: Vector, Error and Addr say which
	TrapMessage                   // a message call: others were woken, or if Error is 1 the result is to be fetched
)

// Trap describes why user mode was left.
type Trap struct {
	Kind   TrapKind
	Vector uint32 // exception number (14: page fault)
	Error  uint64 // error code
	Addr   uint64 // CR2 of a page fault
}

// WorkLater is the bit of UserState.Work that can wait.
const WorkLater = 1 << 31

// WorkMessage is the bit of UserState.Work that says that the thread has a message call
// prepared (PerformMessage).
const WorkMessage = 1 << 30

// Space is what entry to user mode wants of an address space.
type Space struct {
	// Root is the physical address of the PML4; immutable. Its upper half is the
	// kernel's (nucleus.KernelPML4 fills it).
	Root uint64
	// Gen grows with every invalidation. A CPU that ran the space at an older
	// generation reloads CR3 before it runs it again; the kernel itself never uses a
	// user's translations.
	Gen atomic.Uint64
}

// UserState is a thread's user-mode state. Its goroutine owns it in the kernel,
// the processor while user mode runs.
type UserState struct {
	Regs
	YMM   [16][32]byte // vector registers
	MXCSR uint32
	_     uint32
	Trap  Trap
	// X87 is the x87 part of an FXSAVE image.
	X87 [160]byte

	Kick   atomic.Uint32 // set: the next entry to user mode returns at once
	CPU    atomic.Int32  // processor number+1 while in user mode
	FPUCPU atomic.Int32  // processor number+1 whose x87 registers are ours
	// Work is not zero when the thread has something to do in the kernel. A thread
	// does not wait inside the nucleus then, unless the bit is WorkLater.
	Work    atomic.Uint32
	Partner uint32 // index of the thread in the nucleus's table of those that send messages; 0: in none
	// LastCPU is the processor that it was last in user mode on. Away is those that it does
	// not enter user mode on before its goroutine has looked (bit n for n): it may not run
	// there, or has been told that it runs elsewhere. Sequences says that the goroutine
	// looks whenever others were in user mode after an interrupt or a fault of this one.
	// Allowed is the processors that it may run on; 0: all.
	LastCPU   atomic.Int32
	Away      atomic.Uint64
	Allowed   atomic.Uint64
	Sequences atomic.Uint32
	_         uint32
}

// The numbers of message calls: MessageCalls of them from MessageBase on (abi/ipc).
const (
	MessageBase  = ipc.Base
	MessageCalls = ipc.SignalWait - ipc.Base + 1
)
