// Package nucleus is the part of the kernel below the Go runtime: it gives the
// stock runtime the operating system that it expects (threads, futexes, memory,
// signals, clocks, a poller), and the kernel above it user mode, address
// spaces, interrupts and physical memory.
//
// Two worlds meet here.
//
// The inside: entered by SYSCALL or an interrupt, on a per-CPU stack, interrupts
// off, with a fake g. It is an event handler: it never blocks and never
// allocates, uses no maps, defers, strings built at run time or stores of Go
// pointers; its state is integers in fixed arrays. One spin lock, big, guards
// it all; while spinning for it a CPU serves requests to forget translations,
// so that the holder may wait for those.
//
// The outside: exported functions that goroutines call. They never take big;
// they reach the inside by Syscall with private numbers, or need only atomics.
//
// Lock order: big is a leaf. Nothing inside waits for the outside.
package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
)

// maxThreads bounds the Ms of the Go runtime; the last maxCPUs entries of the
// table are the CPUs' idle threads.
const (
	maxCPUs    = amd64.MaxCPUs
	maxThreads = 512
)

// big guards everything inside the nucleus but what is said to be atomic or
// the CPU's own.
var big spinlock

type spinlock struct{ v atomic.Uint32 }

func (l *spinlock) lock(c *amd64.CPU) {
	for !l.v.CompareAndSwap(0, 1) {
		for l.v.Load() != 0 {
			serveFlush(c)
			amd64.Pause()
		}
	}
}

func (l *spinlock) unlock() { l.v.Store(0) }

// cpus are the processors; entry 0 is the one that booted.
var (
	cpus   [maxCPUs]cpu
	numCPU atomic.Int32
)

// cpu is what the nucleus keeps of a processor beside what assembly knows.
type cpu struct {
	amd64.CPU
	online     atomic.Bool
	retire     atomic.Uintptr // address space to unload at vectorFPU, or 0
	flush      atomic.Uint32  // set: forget all kernel translations, then clear
	resched    bool           // the time slice is over; guarded by big
	current    int32          // thread that runs; guarded by big
	timerAt    int64          // when the LAPIC timer fires, or 0; the CPU's own
	sliceEnd   int64          // end of the user's time slice, or 0; the CPU's own
	Interrupts atomic.Uint64  // since boot
}

// NumCPU returns how many processors run.
func NumCPU() int { return int(numCPU.Load()) }

// CPUInterrupts returns how many interrupts a processor has served.
func CPUInterrupts(i int) uint64 { return cpus[i].Interrupts.Load() }
