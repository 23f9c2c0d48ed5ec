package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
)

// What other packages do for this one.
var (
	// Syscall carries out the system call in t.User.
	Syscall hook.Of[func(t *Thread)]
	// Intercept is Syscall for threads whose calls are shown or recorded (SetTracing).
	Intercept hook.Of[func(t *Thread)]
	// InitExited is told the wait status of process 1; it does not return.
	InitExited = hook.Default(func(status int32) {})
	// Reboot carries out reboot(2)'s command; EINVAL where it is unknown.
	Reboot = hook.Default(func(cmd uint32) linux.Errno { return linux.EINVAL })
	// SessionEnded is told that a session leader ended: its terminal hangs up.
	SessionEnded = hook.Default(func(s *Session) {})
	// ThreadExited is told of each thread that ends; last says that its process ends
	// with it.
	ThreadExited = hook.Default(func(t *Thread, last bool) {})
	// Execed is told of each successful exec.
	Execed = hook.Default(func(t *Thread) {})
	// TraceFault hears of signals that a thread's own fault causes, where set.
	TraceFault hook.Of[func(t *Thread, info *linux.Siginfo)]
	// SignalTaken is told of each signal that calls a handler, ends or stops a thread.
	SignalTaken = hook.Default(func(t *Thread, sig linux.Signal, code int32) {})
	// CPUs returns how many CPUs there are and which of them runs the caller.
	CPUs = hook.Default(func() (n, current int) { return 1, 0 })
	// CPUIdled returns for how many nanoseconds a CPU has had nothing to do since boot.
	CPUIdled = hook.Default(func(cpu int) int64 { return 0 })
)
