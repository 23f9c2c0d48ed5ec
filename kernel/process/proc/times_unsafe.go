package proc

import _ "unsafe" // for linkname

//go:linkname ticks runtime.cputicks
func ticks() int64

// goyield gives way to the other goroutines of this P: it is the cheap half of
// runtime.Gosched, which asks all Ps.
//
//go:linkname goyield runtime.goyield
func goyield()
