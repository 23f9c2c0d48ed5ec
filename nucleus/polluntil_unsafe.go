package nucleus

import "unsafe"

// The runtime asks its poller for whole milliseconds, but keeps the time it
// really wants to be woken at beside it: in the third word of its scheduler
// state, whose layout TestRuntimeLayout holds to the Go release's source.

//go:linkname runtimeSched runtime.sched
var runtimeSched [3]uint64

// pollUntil returns when the runtime wants its poll to end; 0 if it has not said.
func pollUntil() int64 {
	return *(*int64)(unsafe.Pointer(&runtimeSched[2]))
}
