package nucleus

import (
	"runtime"

	"hardtack/arch/amd64"
)

// Shapes that assembly and the kernel above share.
type (
	Regs     = amd64.Regs
	Trap     = amd64.Trap
	TrapKind = amd64.TrapKind
)

// Reasons for leaving user mode.
const (
	TrapSyscall   = amd64.TrapSyscall
	TrapInterrupt = amd64.TrapInterrupt
	TrapFault     = amd64.TrapFault
	// TrapMessage: a message call of a thread that had no goroutine is over. If
	// Trap.Error is not 0 its result is to be fetched.
	TrapMessage = amd64.TrapMessage
)

// Bits of Trap.Error after TrapInterrupt: why the thread should give way.
const (
	SliceOver = 1 << iota // its time slice is over
	TimerDue              // a timer of Go's scheduler is due
	Moved                 // Away or Sequences say that the thread's goroutine must look
)

// WorkLater is the bit of UserContext.Work that does not end waits.
const WorkLater = amd64.WorkLater

// WorkMessage is the bit of UserContext.Work that is set from Prepare to the call.
const WorkMessage = amd64.WorkMessage

// Exception vectors (SDM vol. 3, table 6-1).
const (
	VecDivide     = 0
	VecDebug      = 1
	VecNMI        = 2
	VecBreakpoint = 3
	VecOverflow   = 4
	VecBound      = 5
	VecInvalidOp  = 6
	VecNoDevice   = 7
	VecDouble     = 8
	VecSegment    = 11
	VecStack      = 12
	VecProtection = 13
	VecPageFault  = 14
	VecX87        = 16
	VecAlignment  = 17
	VecMachine    = 18
	VecSIMD       = 19
)

// Bits of a page fault's error code.
const (
	FaultPresent = 1 << 0 // protection, not absence
	FaultWrite   = 1 << 1
	FaultUser    = 1 << 2
	FaultFetch   = 1 << 4
)

// UserContext is a thread's complete user-mode state. Its goroutine owns it
// while it is in the kernel; the CPU owns it inside Run.
type UserContext struct{ amd64.UserState }

// Reset gives the state a new program starts with. A zero UserContext must be
// Reset (or copied from one by CopyFrom) before it runs.
func (u *UserContext) Reset() {
	u.SyncFPU()
	u.Regs = Regs{RFLAGS: 0x202}
	u.YMM = [16][32]byte{}
	u.MXCSR = 0x1f80
	u.X87 = [160]byte{0: 0x7f, 1: 0x03}
}

// CopyFrom makes u a copy of a thread's state (clone). The caller is the
// goroutine that owns from.
func (u *UserContext) CopyFrom(from *UserContext) {
	from.SyncFPU()
	u.Regs, u.YMM, u.MXCSR, u.X87 = from.Regs, from.YMM, from.MXCSR, from.X87
}

// Run enters user mode in the address space and returns when it is left. The result
// is who left it, and its Trap, valid until its next Run, says why: u unless message
// calls made others run, or nil if they left nobody. It may return TrapInterrupt
// without having run.
func (u *UserContext) Run(as *AddressSpace) *UserContext {
	return contextOf(amd64.RunUser(&u.UserState, &as.Space))
}

// Kick makes the present or the next Run return soon. What it is for must be
// visible to the owner before. Callable from anywhere.
func (u *UserContext) Kick() {
	u.UserState.Kick.Store(1)
	if cpu := u.CPU.Load(); cpu != 0 {
		amd64.Syscall(sysKick, uint64(cpu-1), 0, 0)
	}
}

// SyncFPU brings X87 and GSBase up to date and takes the state out of the
// processor: both may be read and written until the next Run. A thread that
// ends must call it last of all.
func (u *UserContext) SyncFPU() {
	for u.FPUCPU.Load() != 0 {
		if amd64.Syscall(sysSyncFPU, uint64(stateAddr(&u.UserState)), 0, 0) != 0 {
			runtime.Gosched()
		}
	}
}

// serveSyncFPU returns 0 when done, 1 when another CPU was asked and takes long.
func serveSyncFPU(c *amd64.CPU, state uint64) uint64 {
	u := userStateAt(uintptr(state))
	if u.FPUCPU.Load() != 0 {
		giveUpFPU(c) // they are u's, or another CPU may wait for them
		if !fetchFPU(c, u) {
			return 1
		}
	}
	return 0
}

// giveUpFPU writes the x87 registers and the user's GS base to their owner.
func giveUpFPU(c *amd64.CPU) {
	u := c.FPUOwner()
	if u == nil {
		return
	}
	amd64.SaveX87(u)
	c.FPU = 0
	u.FPUCPU.Store(0)
}

// enterUser is amd64.EnterUserHandler.
func enterUser(c *amd64.CPU, u *amd64.UserState, space uintptr, gen, root uint64) bool {
	if c.Space != space || c.Gen != gen {
		amd64.WriteCR3(root)
		c.Space, c.Gen = space, gen
	}
	if c.FPUOwner() != u {
		giveUpFPU(c)
		if u.FPUCPU.Load() != 0 && !fetchFPU(c, u) {
			return false
		}
		// No processor has its x87 registers: it comes here again before it enters.
		if u.Away.Load()>>(c.Index&63)&1 != 0 || u.Sequences.Load() != 0 && stopped(u) {
			c.Kicked.Or(Moved << 1)
			return false
		}
		u.LastCPU.Store(int32(c.Index))
		amd64.LoadX87(u)
		c.SetFPUOwner(u)
		u.FPUCPU.Store(int32(c.Index) + 1)
	}
	if c.SliceArmed == 0 {
		return armSlice(c)
	}
	return true
}

// stopped reports whether an interrupt or a fault made the thread leave user mode.
func stopped(u *amd64.UserState) bool {
	return u.Trap.Kind == amd64.TrapInterrupt || u.Trap.Kind == amd64.TrapFault
}

// Bar keeps the thread from entering user mode on the processors that away has beside those
// that it stays off already, and makes it leave user mode there. Callable from anywhere; only
// the owner lifts that.
func (u *UserContext) Bar(away uint64) {
	u.Away.Or(away)
	on := func(cpu int32) bool { return cpu != 0 && away>>(cpu-1)&1 != 0 }
	for on(u.CPU.Load()) || on(u.FPUCPU.Load()) {
		u.Kick()
		u.SyncFPU() // Away is not looked at where its x87 registers are
		runtime.Gosched()
	}
}

// armSlice sets the timer for the end of the slice, which begins if none has, or for the
// first timer of Go's scheduler. It returns false if that is due.
func armSlice(c *amd64.CPU) bool {
	t, at := now(), c.SliceEnd
	if at == 0 || c.SliceFresh != 0 {
		at = t + Slice()
		c.SliceEnd, c.SliceFresh = at, 0
		cpuPointer(c).graces = 0
	}
	if due := c.TimerDue; due != 0 && due < at {
		if due <= t {
			c.Kicked.Or(TimerDue << 1)
			return false
		}
		at = due
	}
	c.SliceArmed = 1
	armTimer(c, at)
	return true
}

// fpuPatience is how long a CPU waits for another to give up x87 registers: some
// messages' time. On virtual CPUs the other may not run just then, and this one may
// have better things to do.
const fpuPatience = 20e3

// fetchFPU waits until no CPU holds u's x87 registers; false: the one that does has
// been asked. c has given up its own: who holds u's may wait for those.
func fetchFPU(c *amd64.CPU, u *amd64.UserState) bool {
	cpu := u.FPUCPU.Load()
	if cpu == 0 {
		return true
	}
	sendIPI(int(cpu-1), vectorFPU)
	for deadline := now() + fpuPatience; ; {
		amd64.Pause() // an emulator that runs its CPUs in turn goes on with the next
		if u.FPUCPU.Load() == 0 {
			return true
		}
		if now() > deadline {
			return false
		}
		serveFlush(c) // the other may wait for that, and not look at messages
	}
}

// AddressSpace is what the nucleus knows of a user address space.
type AddressSpace struct{ amd64.Space }

// Invalidate makes all CPUs forget the space's translations: when it returns no
// CPU uses one that was made before the call.
func (as *AddressSpace) Invalidate(start, end uint64) {
	as.Gen.Add(1)
	for i := range int(numCPU.Load()) {
		if cpus[i].UserSpace.Load() == spaceAddr(as) {
			amd64.Syscall(sysKick, uint64(i), 0, 0)
			for cpus[i].UserSpace.Load() == spaceAddr(as) {
				// A CPU that entered after gen grew has the new translations. One that has
				// not loaded the space yet has another's generation.
				if loadedSpace(i) == spaceAddr(as) && spaceGen(i) == as.Gen.Load() {
					break
				}
				amd64.Pause()
			}
		}
	}
}

// Retire makes every CPU load another root: afterwards Root may be freed.
func (as *AddressSpace) Retire() {
	for i := range int(numCPU.Load()) {
		if loadedSpace(i) != spaceAddr(as) {
			continue
		}
		amd64.Syscall(sysFlushSpace, uint64(spaceAddr(as)), uint64(i), 0)
		for loadedSpace(i) == spaceAddr(as) {
			amd64.Pause()
		}
	}
}

// serveFlushSpace drops a space from the running CPU if it is the one asked
// for, or asks the other.
func serveFlushSpace(c *amd64.CPU, space, cpu uint64) uint64 {
	if cpu == uint64(c.Index) {
		dropSpace(c, uintptr(space))
		return 0
	}
	cpus[cpu].retire.Store(true)
	sendIPI(int(cpu), vectorFPU)
	return 1
}

func dropSpace(c *amd64.CPU, space uintptr) {
	if c.Space == space && space != 0 {
		amd64.WriteCR3(kspace.root)
		c.Space = 0
	}
}
