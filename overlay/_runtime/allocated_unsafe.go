package runtime

import (
	"internal/goexperiment"
	_ "unsafe" // for linkname
)

// Bytes that a goroutine has allocated on the heap. mallocgc, through which all
// allocations come, adds what it took: the size class of an object, the pages of a
// large one. A tiny object (below 16 bytes, without pointers) that fits into the
// block that the P has open takes nothing; whoever opens a block has its 16 bytes.
// Stacks are not heap and are not counted, nor is what is freed, nor what the
// runtime itself allocates on the scheduler's stack (the g of a new goroutine, the
// profiler's records).
//
// The count lies in the g: only the goroutine writes it, it begins at 0 with each
// goroutine and moves between Ps with it. So it is exact at any time.

// allocated is how the kernel learns where the calling goroutine's count lies (a g
// is never freed): hardtack/kernel/base/checks has a variable of this name and shape
// without a value, and the linker prefers the one that has a value. Without the
// overlay it stays nil.
//
//go:linkname allocated hardtack/kernel/base/checks.allocated
var allocated = func() *uint64 { return &getg().allocated }

// Allocators by size class would go around mallocgc: refused when compiled.
var _ [0 - goexperiment.SizeSpecializedMallocInt]struct{}
