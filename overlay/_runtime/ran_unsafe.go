package runtime

import "unsafe"

// For how long each goroutine has run, in ticks of the time-stamp counter (cputicks).
// What a program's CPU time is depends on it: a goroutine that is blocked, be it by a
// mutex or a channel, or that waits for its turn, does not run.
//
// One word of the g tells both states. While the goroutine does not run, it is the
// ticks that it has run, negated. execute adds the time, so that it is the time less
// what has run; dropg takes the time away again. Only the scheduler writes it, anybody
// may read it.

// ranClock is the word, and how often the goroutine stopped. What it had read from disks
// and written to files on them is counted by the kernel: it lies here since this is the
// one thing that the kernel has for each goroutine.
type ranClock struct {
	v             int64
	stops         uint64
	read, written uint64
}

// ran is how the kernel learns where the calling goroutine's clock lies (a g is never
// freed): hardtack/kernel/base/wait has a variable of this name without a value, and the
// linker prefers the one that has a value. Without the overlay it stays nil.
//
//go:linkname ran hardtack/kernel/base/wait.ran
var ran = func() *ranClock { return &getg().ran }

// ranStack tells in the same way how large the stack of a goroutine is, by its clock.
//
//go:linkname ranStack hardtack/kernel/base/wait.stackOf
var ranStack = func(c *ranClock) uintptr {
	gp := (*g)(unsafe.Pointer(uintptr(unsafe.Pointer(c)) - unsafe.Offsetof(g{}.ran)))
	return gp.stack.hi - gp.stack.lo
}
