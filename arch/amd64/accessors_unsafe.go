package amd64

import "unsafe"

// pointer is an address that assembly or the nucleus left, as a pointer.
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// SetThread chooses the thread that the entries' ends resume.
func (c *CPU) SetThread(t *Thread) { c.thread = uintptr(unsafe.Pointer(t)) }

// SetUser chooses the user state that user mode's next entry to the kernel saves to.
func (c *CPU) SetUser(u *UserState) { c.user = uintptr(unsafe.Pointer(u)) }

// User returns the user state in user mode, or the last that was.
func (c *CPU) User() *UserState { return (*UserState)(pointer(c.user)) }

// Registers returns RAX to R15, in the order of Regs.
func (u *UserState) Registers() *[15]uint64 { return (*[15]uint64)(unsafe.Pointer(&u.RAX)) }

// FPUOwner returns whose x87 registers are loaded, or nil.
func (c *CPU) FPUOwner() *UserState { return (*UserState)(pointer(c.FPU)) }

// SetFPUOwner records it. The owner stays alive: its goroutine holds it until
// the registers were given up.
func (c *CPU) SetFPUOwner(u *UserState) { c.FPU = uintptr(unsafe.Pointer(u)) }

// Descriptor returns the operand of LGDT and LIDT for a table.
func Descriptor(table unsafe.Pointer, limit int) [10]byte {
	return descriptor(uintptr(table), limit)
}

// setAddresses stores where parts of c lie, which assembly uses.
func (c *CPU) setAddresses() {
	c.self = uintptr(unsafe.Pointer(c))
	c.tls = uintptr(unsafe.Pointer(&c.tlsArea[len(c.tlsArea)-1])) + 8
	c.tlsArea[len(c.tlsArea)-1] = uint64(uintptr(unsafe.Pointer(&c.fakeG)))
}

// tables returns where the task state segment and the descriptor table lie.
func (c *CPU) tables() (tss, gdt uintptr) {
	return uintptr(unsafe.Pointer(&c.tss)), uintptr(unsafe.Pointer(&c.gdt))
}

// storeAt stores a word at an address.
func storeAt(a, v uintptr) { *(*uintptr)(pointer(a)) = v }

// Saved thread state, for the nucleus: arguments and result of a system call,
// and all registers for a signal frame.

// Args returns the number and the arguments of the call t makes.
func (t *Thread) Args() (num, a, b, c, d, e, f uint64) {
	return t.rax, t.rdi, t.rsi, t.rdx, t.r10, t.r8, t.r9
}

// SetResult sets what the call returns.
func (t *Thread) SetResult(v uint64) { t.rax = v }

// SetFS sets the TLS base.
func (t *Thread) SetFS(v uint64) { t.fs = v }

// PC and SP say where the thread is.
func (t *Thread) PC() uint64 { return t.rip }

// SP returns the saved stack pointer.
func (t *Thread) SP() uint64 { return t.rsp }

// Fork makes t the child of a clone call of parent: the same registers on
// another stack, result 0.
func (t *Thread) Fork(parent *Thread, sp, fs uint64) {
	*t = *parent
	t.rsp, t.fs, t.rax, t.iret = sp, fs, 0, 0
}

// InitIdle makes t start fn (an assembly routine's address) on a stack.
func (t *Thread) InitIdle(fn, sp uintptr) {
	*t = Thread{rip: uint64(fn), rsp: uint64(sp), rflags: FlagIF | 2}
	t.iret = 1
}

// IdleEntry returns the address of the idle loop.
func IdleEntry() uintptr

// Frame is what a signal frame keeps of a thread, registers in the order of
// struct sigcontext_64.
type Frame struct {
	R8, R9, R10, R11, R12, R13, R14, R15        uint64
	RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP uint64
	RFLAGS                                      uint64
}

// SaveFrame copies t's registers and vector registers out. Those of a thread that
// made a call were not saved (a call may change them) but for Go's X15, which is
// always zero: what is in t.ymm then is from an earlier interrupt.
func (t *Thread) SaveFrame(f *Frame, ymm *[16][32]byte) {
	*f = Frame{t.r8, t.r9, t.r10, t.r11, t.r12, t.r13, t.r14, t.r15,
		t.rdi, t.rsi, t.rbp, t.rbx, t.rdx, t.rax, t.rcx, t.rsp, t.rip, t.rflags}
	if t.iret == 0 {
		*ymm = [16][32]byte{}
		return
	}
	*ymm = t.ymm
}

// LoadFrame replaces t's registers; it resumes with all of them.
func (t *Thread) LoadFrame(f *Frame, ymm *[16][32]byte) {
	t.r8, t.r9, t.r10, t.r11, t.r12, t.r13, t.r14, t.r15 = f.R8, f.R9, f.R10, f.R11, f.R12, f.R13, f.R14, f.R15
	t.rdi, t.rsi, t.rbp, t.rbx, t.rdx, t.rax, t.rcx = f.RDI, f.RSI, f.RBP, f.RBX, f.RDX, f.RAX, f.RCX
	t.rsp, t.rip, t.rflags = f.RSP, f.RIP, f.RFLAGS|FlagIF
	t.ymm = *ymm
	t.iret = 1
}

// SetHandler makes t enter a signal handler with three arguments.
func (t *Thread) SetHandler(pc, sp, sig, info, uctx uint64) {
	t.rip, t.rsp, t.rdi, t.rsi, t.rdx = pc, sp, sig, info, uctx
	t.rax, t.rflags, t.iret = 0, FlagIF|2, 1
}

// Address returns where c lies.
func (c *CPU) Address() uintptr { return uintptr(unsafe.Pointer(c)) }
