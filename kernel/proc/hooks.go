package proc

import "hardtack/abi/linux"

// Hooks that cmd/kernel and kernel/syscall fill before the first thread runs.
var (
	// Syscall carries out the system call in t.User; kernel/syscall sets it.
	Syscall func(t *Thread)
	// Interrupt runs devices' bottom halves after an interrupt from user mode.
	Interrupt = func() {}
	// InitExited is told the wait status of process 1; it does not return.
	InitExited = func(status int32) {}
	// Reboot carries out reboot(2)'s command; EINVAL where it is unknown.
	Reboot = func(cmd uint32) linux.Errno { return linux.EINVAL }
	// SessionEnded is told that a session leader ended: its terminal hangs up.
	SessionEnded = func(s *Session) {}
	// ThreadExited is told of each thread that ends (POSIX timers, SysV undo …);
	// last says that its process ends with it.
	ThreadExited []func(t *Thread, last bool)
	// Execed is told of each successful exec (POSIX timers go).
	Execed []func(t *Thread)
	// TraceFault hears of signals that a thread's own fault causes, where set.
	TraceFault func(t *Thread, info *linux.Siginfo)
	// CPUs returns how many CPUs there are and which of them runs the caller.
	CPUs = func() (n, current int) { return 1, 0 }
)
