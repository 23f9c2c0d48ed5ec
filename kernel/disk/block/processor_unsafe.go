package block

import "hardtack/kernel/base/hook"

import _ "unsafe" // for linkname

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// ThisCPU is the number of the CPU that runs the caller, who may be on another a
// moment later; the kernel plugs it in. A queue's interrupt goes to the CPU of
// its number, where whoever waits for the request blocked.
var ThisCPU = hook.Default(Processor)

// Processor is the number of the Go scheduler's P: it spreads callers over
// something and says nothing else.
func Processor() int {
	n := procPin()
	procUnpin()
	return n
}
