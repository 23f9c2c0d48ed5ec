package checks

import _ "unsafe" // for linkname

// allocated is filled by the linker where the image is built with the overlay's
// topic "allocated" (overlay/_runtime/allocated_unsafe.go), and else stays nil.
//
//go:linkname allocated
var allocated func() *uint64

var uncounted uint64 // stays 0

// CountsAllocated tells whether this image counts what goroutines allocate.
func CountsAllocated() bool { return allocated != nil }

// AllocatedCount returns where the calling goroutine's count lies: the bytes of heap
// that it has allocated since it began, exactly. It only grows. Where nothing counts
// it is 0 for ever.
func AllocatedCount() *uint64 {
	if allocated == nil {
		return &uncounted
	}
	return allocated()
}
