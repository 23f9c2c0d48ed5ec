package checks

import _ "unsafe" // for linkname

// lockCounts and lockOrderAt are filled by the linker where the image is built with
// the overlay's topic "locks" (overlay/_runtime/locks_unsafe.go), and else stay nil.
//
//go:linkname lockCounts
var lockCounts func() (sites, orders, inverted, foreign int)

//go:linkname lockOrderAt
var lockOrderAt func(i int) (from, to uintptr)
