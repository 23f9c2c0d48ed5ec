package core

// MessageRegs are the registers of one of Hardtack's message calls (package
// abi/ipc), into it and out of it; the fields are in the order in which
// messagecall_amd64.s expects them.
type MessageRegs struct {
	Number uint64 // RAX in
	FD     uint64 // RDI
	Info   uint64 // RSI in; RAX out: an Info, or -errno
	Value  uint64 // RDX: the deadline or bits in; the badge or bits out
	Token  uint64 // R10
	Buffer uint64 // RBX: address of a Buffer, which does not move, or 0
	Words  [6]uint64
}
