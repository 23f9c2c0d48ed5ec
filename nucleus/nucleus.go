// Package nucleus is the part of the kernel below the Go runtime: it gives the
// stock runtime the operating system that it expects (threads, futexes, memory,
// signals, clocks, a poller), and the kernel above it user mode, address
// spaces, interrupts and physical memory.
//
// The nucleus has an inside and an outside.
//
// The inside: entered by SYSCALL or an interrupt, on a per-CPU stack, interrupts
// off, with a fake g. It is an event handler: it never blocks and never
// allocates, uses no maps, defers, strings built at run time or stores of Go
// pointers; its state is integers in fixed arrays.
//
// The outside: exported functions that goroutines call. They never enter the
// control; they reach the inside by Syscall with private numbers, or need only
// atomics.
//
// # Concurrency
//
// Package control has the concurrency controls, of which a build tag chooses one. Each
// entry is one operation under the control. Operations are written once, for the finest
// control: they name the locks of objects, which are empty in the others. Operations that
// change what others rely on (creating and ending threads, regions of memory, signal
// actions, interrupt routes) exclude all others; alone says which. What an operation
// wants of the hardware (messages to other CPUs, the timer, another address space, the
// end of an interrupt) is done by cpu.finish after leaving the control. A few calls only
// touch hardware and do not enter it.
//
// Lock order: a wait queue, the thread that waits in it, a run queue. memory and the I/O
// APICs' lock are leaves. No two locks of a kind are held at once. Nothing inside waits
// for the outside. While a CPU waits for a lock, it serves requests to flush
// translations, so an exclusive operation may wait for those.
//
// Guards:
//
//	wait queue's lock   the queue, its threads' futex and events; the poller's: poller
//	thread's lock       its state, CPU, queue, deadline, signals
//	run queue's lock    the queue, whether the CPU is idle
//	memory              page tables of the heap, frames
//	the CPU alone       its current thread, whose registers and signal stack are it's too
//	alone               whether threads exist, regions, actions, routes
//
// A thread is in at most one queue. A thread that is ready but in no queue yet belongs to
// the CPU that made it ready.
package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// maxThreads bounds the Ms of the Go runtime; the last maxCPUs entries of the
// table are the CPUs' idle threads.
const (
	maxCPUs    = amd64.MaxCPUs
	maxThreads = 512
)

// guard is the concurrency control.
var guard control.Control

// Control is the name of the concurrency control that was compiled in.
func Control() string { return control.Name }

// Works tells what keeps the compiled control from working on this machine.
func Works() error { return control.Works(NumCPU(), maxCPUs) }

// cpus are the processors; entry 0 is the one that booted.
var (
	cpus   [maxCPUs]cpu
	numCPU atomic.Int32
)

// cpu is what the nucleus keeps of a processor beside what assembly knows.
type cpu struct {
	amd64.CPU
	online     atomic.Bool
	absent     atomic.Uint32 // cpuRuns … cpuGone
	retire     atomic.Bool   // unload the address space at vectorFPU
	flush      atomic.Uint32 // set: forget all kernel translations, then clear
	Interrupts atomic.Uint64 // since boot

	// The CPU's own; others look at current, too.
	current int32 // thread that runs, or -1 when it has given it up
	resched bool  // the time slice is over
	timerAt int64 // when the LAPIC timer fires, or 0
	graces  int   // how often the slice has been made longer
	after   after
	stacks  stacks // immutable once it has started

	_ [64]byte // others write what follows

	lock control.Object
	run  queue  // ready threads
	idle uint32 // 1: it runs its idle thread, and nobody has given it another one
	// idleSince is when it began to run its idle thread, 0 if it does not, and idled for how
	// many nanoseconds it has run that before. The CPU alone writes them.
	idleSince, idled atomic.Int64
}

// after is what is left to do when the control has been left.
type after struct {
	ipi   uint64 // CPUs that shall look at their run queue and signals
	timer int64  // the timer fires then at the latest; 0: it need not
	idle  bool   // nobody shall have to wake the CPU for x87 registers
	park  bool   // beside idle: the CPU leaves
}

// arm makes c's timer fire at a time at the latest.
func (me *cpu) arm(at int64) {
	if me.after.timer == 0 || at < me.after.timer {
		me.after.timer = at
	}
}

// finish does the hardware's part of an operation.
func (me *cpu) finish() {
	if bits := me.after.ipi; bits != 0 {
		me.after.ipi = 0
		for i := 0; bits != 0; i, bits = i+1, bits>>1 {
			if bits&1 != 0 {
				sendIPI(i, vectorResched)
			}
		}
	}
	if at := me.after.timer; at != 0 {
		me.after.timer = 0
		armTimer(&me.CPU, at)
	}
	if me.after.idle {
		me.after.idle = false
		// The address space stays: mostly the same comes back, and to load another
		// root flushes all translations.
		giveUpFPU(&me.CPU)
		if me.after.park {
			me.after.park = false
			me.park()
		}
	}
}

// NumCPU returns how many numbers of processors there are; those of some may be off, or none's.
func NumCPU() int { return int(numCPU.Load()) }

// CPUInterrupts returns how many interrupts a processor has served.
func CPUInterrupts(i int) uint64 { return cpus[i].Interrupts.Load() }
