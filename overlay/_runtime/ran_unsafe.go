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
// one thing that the kernel has for each goroutine. So does the number of the thread that
// the kernel runs on it.
type ranClock struct {
	v             int64
	stops         uint64
	read, written uint64
	from          int64  // ticks at which it was last started
	thread        uint64 // 0: none
}

// ranLane is what one P has run last: a ring that only its M writes. It is the kernel's
// memory; without one nothing is written down.
type ranLane struct {
	n    uint64 // how many there have been
	runs [ranRuns]ranRun
}

const (
	ranRuns  = 1024 // a power of two
	ranShort = 4096 // ticks: what ran less is not written down, for the cost
)

// ranRun says that a goroutine ran from one tick to another.
type ranRun struct {
	from, to int64
	who      uint64 // the kernel's thread in the upper half, the goroutine's number in the lower
}

var ranLanes [64]*ranLane

// note writes down that the goroutine stopped.
//
//go:nosplit
func (c *ranClock) note(pp *p, goid uint64, now int64) {
	if pp == nil {
		return // it stopped in a system call that was long
	}
	l := ranLanes[uint32(pp.id)%uint32(len(ranLanes))]
	if l == nil {
		return
	}
	r := &l.runs[l.n%ranRuns]
	r.from, r.to, r.who = c.from, now, c.thread<<32|uint64(uint32(goid))
	l.n++
}

// ranSetLane is how the kernel gives a P its lane.
//
//go:linkname ranSetLane hardtack/kernel/base/wait.setLane
var ranSetLane = func(p int, l *ranLane) { ranLanes[p] = l }

// ran is how the kernel learns where the calling goroutine's clock lies (a g is never
// freed): hardtack/kernel/base/wait has a variable of this name without a value, and the
// linker prefers the one that has a value. Without the overlay it stays nil.
//
//go:linkname ran hardtack/kernel/base/wait.ran
var ran = func() *ranClock { return &getg().ran }

// ranFrom is where a g has the ticks at which it was last started.
//
//go:linkname ranFrom hardtack/kernel/base/wait.fromOffset
var ranFrom = unsafe.Offsetof(g{}.ran) + unsafe.Offsetof(ranClock{}.from)

// ranStack tells in the same way how large the stack of a goroutine is, by its clock.
//
//go:linkname ranStack hardtack/kernel/base/wait.stackOf
var ranStack = func(c *ranClock) uintptr {
	gp := (*g)(unsafe.Pointer(uintptr(unsafe.Pointer(c)) - unsafe.Offsetof(g{}.ran)))
	return gp.stack.hi - gp.stack.lo
}
