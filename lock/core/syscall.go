package core

// Registers are those of a system call, into it and out of it, in the order in which
// syscall_amd64.s expects them.
type Registers struct {
	RAX  uint64 // the number in, the result out
	RDI  uint64
	RSI  uint64
	RDX  uint64
	R10  uint64
	RBX  uint64
	More [6]uint64 // R8, R9, R12, R13, R14, R15
}
