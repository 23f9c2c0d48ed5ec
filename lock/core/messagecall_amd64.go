package core

// MessageCall makes the call. It is here, beside no lock, because this package
// holds the assembly of programs. Go's scheduler does not know of it: while it
// waits its processor (P) is nobody else's. Vector and x87 registers and the
// flags are destroyed, which the Go assembler's calls allow (ABI0).
//
//go:noescape
func MessageCall(r *MessageRegs)

// MessageCallBlocking is MessageCall as a system call that may wait: Go's scheduler
// gives the processor to others meanwhile, if somebody wants it.
//
//go:nosplit
func MessageCallBlocking(r *MessageRegs) {
	entersyscall()
	MessageCall(r)
	exitsyscall()
}
