package amd64

// Handlers that the nucleus sets before interrupts are possible. They run on
// the nucleus stack or an interrupt stack with interrupts off and a fake g:
// they must not allocate, block, panic, or store Go pointers.
var (
	// SyscallHandler serves a SYSCALL instruction of the Go runtime itself; t
	// holds its registers. What thread the CPU resumes is CPU.Thread's.
	SyscallHandler func(c *CPU, t *Thread)
	// TrapHandler serves an interrupt (from anywhere) or an exception in the
	// kernel. The interrupted state is saved in the thread, or if user is set
	// in the UserState.
	TrapHandler func(c *CPU, vector, code uint64, user bool)
	// FatalHandler prints and stops: an exception inside the nucleus, an NMI,
	// a machine check, a double fault. The frame is vector, error code, RIP,
	// CS, RFLAGS, RSP, SS.
	FatalHandler func(c *CPU, frame *[7]uint64)
	// EnterUserHandler prepares a return to user mode that needs more than the
	// fast path: another address space, another owner of the x87 registers, a
	// time slice to arm. It reports false if user mode must not be entered now.
	EnterUserHandler func(c *CPU, u *UserState, space uintptr, gen uint64, root uint64) bool
	// MessageHandler serves a user thread's message call op, at the time now of the
	// time stamp counter. All of its state is saved, x87 registers and GS base too. It
	// returns the state that goes on, which may be another thread's, and whether in
	// user mode, with all of that state loaded: else RunUser returns it. nil and
	// false: RunUser returns nobody.
	MessageHandler func(c *CPU, u *UserState, op uint32, now int64) (next *UserState, enter bool)
	// PreparedHandler makes the message call that a thread has prepared. It returns whose
	// state PerformMessage returns, nil for nobody's.
	PreparedHandler func(c *CPU, u *UserState) *UserState
	// StartCPU runs on each further processor, on its nucleus stack.
	StartCPU func(c *CPU)
)

// BootInfo is where the boot stub left the start information (physical).
var BootInfo uint64

// RunUser enters user mode with state u in an address space, and returns when user mode is left; u.Trap says
// why. It returns at once with TrapInterrupt when u or the processor was
// kicked. Called by a goroutine with interrupts on.
//
// The result is whose state user mode was left with: u, unless message calls made
// others run, or nil if they left nobody to run.
//
//go:noescape
func RunUser(u *UserState, space *Space) *UserState

// PerformMessage makes the message call that the thread with state u has prepared, which is
// in the kernel. The result is as of RunUser; user mode is not entered. Called by a goroutine
// with interrupts on.
//
//go:noescape
func PerformMessage(u *UserState) *UserState

// Syscall makes the system call num of the nucleus, as the runtime makes its own.
//
//go:noescape
func Syscall(num, a, b, c uint64) uint64

// loadTables loads the descriptor tables, and the selectors that go with them.
//
//go:noescape
func loadTables(gdtr, idtr *[10]byte)

// GetCPU returns the running processor's structure; the caller must not be
// moved to another meanwhile (inside the nucleus it is not).
func GetCPU() *CPU

// SetTimerDue says when the first timer of Go's scheduler on this processor is due, in
// nanoseconds; 0: it has none.
func SetTimerDue(when int64)

// BeginSlice has a new slice begin on this processor when user mode is entered next.
func BeginSlice()

// ProlongSlice has the slice that has ended on this processor go on until end, in nanoseconds.
func ProlongSlice(end int64)

// Port input and output.
func In8(port uint16) uint8
func In16(port uint16) uint16
func In32(port uint16) uint32
func Out8(port uint16, v uint8)
func Out16(port uint16, v uint16)
func Out32(port uint16, v uint32)

// ReadMSR and WriteMSR access a model-specific register; an unknown one faults.
func ReadMSR(msr uint32) uint64
func WriteMSR(msr uint32, v uint64)

// CPUID executes CPUID.
func CPUID(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// TSC reads the time stamp counter.
func TSC() uint64

// Control registers.
func ReadCR0() uint64
func WriteCR0(v uint64)
func ReadCR2() uint64
func WriteCR3(v uint64)
func ReadCR4() uint64
func WriteCR4(v uint64)
func SetXCR0(v uint64)

// SaveX87 writes the x87 registers and the user's GS base to u. Interrupts are off.
func SaveX87(u *UserState)

// LoadX87 loads them from u; MXCSR becomes the kernel's.
func LoadX87(u *UserState)

// Await looks at a word while it has a value, so many turns at most, eight Pauses each.
func Await(word *uint32, while, turns uint32)

// Pause eases a spin loop; CLI disables interrupts.
func Pause()
func CLI()

// RDRAND returns a random number, or false when the processor has none now.
func RDRAND() (uint64, bool)

// RDSEED is RDRAND from the source that RDRAND's generator is seeded with.
func RDSEED() (uint64, bool)

// StubAddress returns the address of the entry stub of interrupt 0; each takes
// 16 bytes. SyscallEntry is where SYSCALL goes, APEntry where the start-up code
// of the other processors goes.
func StubAddress() uintptr
func SyscallEntry() uintptr
func APEntry() uintptr

// StartEntry is where the start-up code of a processor goes first. From there the first
// processor of a cluster goes on to BootEntry, and one that is to stop to ParkEntry.
func StartEntry() uintptr
func BootEntry() uintptr
func ParkEntry() uintptr

// Park has the running processor go on at ParkEntry, with the address of its mailbox.
func Park(mailbox uintptr)

// SetVDSOClock makes the runtime read the clock through our routine instead of
// the vDSO that Linux would offer.
func SetVDSOClock()

// ClockBase, ClockMult and ClockShift turn the TSC into nanoseconds since boot:
// ns = (tsc - base) * mult >> shift, through a 128-bit product. RealtimeBase is
// CLOCK_REALTIME at ns 0.
var (
	ClockBase    uint64
	ClockMult    uint64
	RealtimeBase uint64
)

// ClockShift is the binary point of ClockMult.
const ClockShift = 32

// BootRandom is what AT_RANDOM points the runtime at.
var BootRandom [16]byte
