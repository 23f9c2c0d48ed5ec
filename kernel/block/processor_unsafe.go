package block

import _ "unsafe" // for linkname

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// Processor is the number of the Go scheduler's P, which stands for the CPU: it
// spreads submitters over queues and says nothing else.
func Processor() int {
	n := procPin()
	procUnpin()
	return n
}
