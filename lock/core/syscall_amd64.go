package core

// Syscall makes a system call that takes and gives more registers than Linux's do. Go's
// scheduler does not know of it: while it waits its processor (P) is nobody else's.
// Vector and x87 registers and the flags may be destroyed, which the Go assembler's
// calls allow (ABI0).
//
//go:noescape
func Syscall(r *Registers)

// SyscallBlocking is Syscall for calls that may wait: Go's scheduler gives the processor
// to others meanwhile, if somebody wants it.
//
//go:nosplit
func SyscallBlocking(r *Registers) {
	entersyscall()
	Syscall(r)
	exitsyscall()
}
