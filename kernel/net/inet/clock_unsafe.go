package inet

import (
	"unsafe"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// monotonic makes netstack's time of nanoseconds. Its only constructor is Add,
// which goes through time.Time and costs more than reading the clock. (A test
// holds the layout: one int64 of nanoseconds.)
func monotonic(ns int64) tcpip.MonotonicTime { return *(*tcpip.MonotonicTime)(unsafe.Pointer(&ns)) }
