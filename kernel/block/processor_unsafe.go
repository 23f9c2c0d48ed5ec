package block

import _ "unsafe" // for linkname

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// processor is the number of the Go scheduler's P, which stands for the CPU: it
// spreads submitters over queues and says nothing else.
func processor() int {
	n := procPin()
	procUnpin()
	return n
}
