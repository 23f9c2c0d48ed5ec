package linux

// Signal is a signal number, 1 … 64; 0 is none.
type Signal int32

// Signals of x86-64 (arch/x86/include/uapi/asm/signal.h).
const (
	SIGHUP    Signal = 1
	SIGINT    Signal = 2
	SIGQUIT   Signal = 3
	SIGILL    Signal = 4
	SIGTRAP   Signal = 5
	SIGABRT   Signal = 6
	SIGBUS    Signal = 7
	SIGFPE    Signal = 8
	SIGKILL   Signal = 9
	SIGUSR1   Signal = 10
	SIGSEGV   Signal = 11
	SIGUSR2   Signal = 12
	SIGPIPE   Signal = 13
	SIGALRM   Signal = 14
	SIGTERM   Signal = 15
	SIGSTKFLT Signal = 16
	SIGCHLD   Signal = 17
	SIGCONT   Signal = 18
	SIGSTOP   Signal = 19
	SIGTSTP   Signal = 20
	SIGTTIN   Signal = 21
	SIGTTOU   Signal = 22
	SIGURG    Signal = 23
	SIGXCPU   Signal = 24
	SIGXFSZ   Signal = 25
	SIGVTALRM Signal = 26
	SIGPROF   Signal = 27
	SIGWINCH  Signal = 28
	SIGIO     Signal = 29
	SIGPWR    Signal = 30
	SIGSYS    Signal = 31
	// SIGRTMIN … NSIG are the real-time signals.
	SIGRTMIN Signal = 32
	NSIG     Signal = 64
)

// Valid reports whether s is the number of a signal.
func (s Signal) Valid() bool { return s >= 1 && s <= NSIG }

// SigSet is a set of signals, bit n-1 for signal n.
type SigSet uint64

// Set returns the set with s alone.
func (s Signal) Set() SigSet { return 1 << (uint(s-1) & 63) }

// Has reports whether s is in the set.
func (m SigSet) Has(s Signal) bool { return m&s.Set() != 0 }

// SigAction is struct kernel_sigaction.
type SigAction struct {
	Handler  uint64
	Flags    uint64
	Restorer uint64
	Mask     SigSet
}

// Handlers that are not addresses.
const (
	SIG_DFL = 0
	SIG_IGN = 1
)

// Flags of SigAction (include/uapi/asm-generic/signal-defs.h).
const (
	SA_NOCLDSTOP      = 0x1
	SA_NOCLDWAIT      = 0x2
	SA_SIGINFO        = 0x4
	SA_UNSUPPORTED    = 0x400
	SA_EXPOSE_TAGBITS = 0x800
	SA_RESTORER       = 0x04000000
	SA_ONSTACK        = 0x08000000
	SA_RESTART        = 0x10000000
	SA_NODEFER        = 0x40000000
	SA_RESETHAND      = 0x80000000
)

// How rt_sigprocmask changes the mask.
const (
	SIG_BLOCK   = 0
	SIG_UNBLOCK = 1
	SIG_SETMASK = 2
)

// StackT is stack_t of sigaltstack(2).
type StackT struct {
	SP    uint64
	Flags int32
	_     int32
	Size  uint64
}

// Flags of StackT, and the smallest stack.
const (
	SS_ONSTACK    = 1
	SS_DISABLE    = 2
	SS_AUTODISARM = -1 << 31
	MINSIGSTKSZ   = 2048
)

// Siginfo is siginfo_t: 128 bytes of which the meaning of Data depends on the
// signal and Code. The setters below fill it in.
type Siginfo struct {
	Signo, Errno, Code int32
	_                  int32
	Data               [14]uint64
}

// Values of Siginfo.Code (include/uapi/asm-generic/siginfo.h).
const (
	SI_USER    = 0
	SI_KERNEL  = 0x80
	SI_QUEUE   = -1
	SI_TIMER   = -2
	SI_MESGQ   = -3
	SI_ASYNCIO = -4
	SI_SIGIO   = -5
	SI_TKILL   = -6

	ILL_ILLOPN  = 2
	FPE_INTDIV  = 1
	FPE_INTOVF  = 2
	FPE_FLTDIV  = 3
	FPE_FLTOVF  = 4
	FPE_FLTUND  = 5
	FPE_FLTRES  = 6
	FPE_FLTINV  = 7
	SEGV_MAPERR = 1
	SEGV_ACCERR = 2
	SEGV_BNDERR = 3
	BUS_ADRALN  = 1
	BUS_ADRERR  = 2
	TRAP_BRKPT  = 1
	TRAP_TRACE  = 2

	CLD_EXITED    = 1
	CLD_KILLED    = 2
	CLD_DUMPED    = 3
	CLD_TRAPPED   = 4
	CLD_STOPPED   = 5
	CLD_CONTINUED = 6

	POLL_IN  = 1
	POLL_OUT = 2
	POLL_MSG = 3
	POLL_ERR = 4
	POLL_PRI = 5
	POLL_HUP = 6
)

// Signal returns the number as a Signal.
func (i *Siginfo) Signal() Signal { return Signal(i.Signo) }

func pair(lo, hi uint32) uint64 { return uint64(lo) | uint64(hi)<<32 }

// SetSender fills in kill's fields: who sent it.
func (i *Siginfo) SetSender(pid int32, uid uint32) { i.Data[0] = pair(uint32(pid), uid) }

// Sender returns si_pid and si_uid.
func (i *Siginfo) Sender() (pid int32, uid uint32) { return int32(i.Data[0]), uint32(i.Data[0] >> 32) }

// SetValue fills in sigqueue's si_value.
func (i *Siginfo) SetValue(v uint64) { i.Data[1] = v }

// Value returns si_value.
func (i *Siginfo) Value() uint64 { return i.Data[1] }

// SetChild fills in SIGCHLD's fields.
func (i *Siginfo) SetChild(pid int32, uid uint32, status int32, utime, stime int64) {
	i.Data[0] = pair(uint32(pid), uid)
	i.Data[1] = uint64(uint32(status))
	i.Data[2], i.Data[3] = uint64(utime), uint64(stime)
}

// Status returns SIGCHLD's si_status.
func (i *Siginfo) Status() int32 { return int32(i.Data[1]) }

// SetFault fills in si_addr of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP.
func (i *Siginfo) SetFault(addr uint64) { i.Data[0] = addr }

// FaultAddr returns si_addr.
func (i *Siginfo) FaultAddr() uint64 { return i.Data[0] }

// SetPoll fills in SIGIO's band and descriptor.
func (i *Siginfo) SetPoll(band int64, fd int32) {
	i.Data[0], i.Data[1] = uint64(band), uint64(uint32(fd))
}

// Poll returns SIGIO's band and descriptor.
func (i *Siginfo) Poll() (band int64, fd int32) { return int64(i.Data[0]), int32(i.Data[1]) }

// SetTimer fills in a POSIX timer's id, overrun count and value.
func (i *Siginfo) SetTimer(id, overrun int32, value uint64) {
	i.Data[0], i.Data[1] = pair(uint32(id), uint32(overrun)), value
}

// Timer returns a POSIX timer's id and overrun count.
func (i *Siginfo) Timer() (id, overrun int32) { return int32(i.Data[0]), int32(i.Data[0] >> 32) }
