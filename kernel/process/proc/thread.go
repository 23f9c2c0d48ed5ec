// Package proc is processes and threads: creation, exec, delivery of signals, waiting,
// sessions, credentials and limits. Package program loads what exec runs; package signals
// has the state of signals.
//
// A Thread is run by one goroutine (Run), which alone changes what it does not
// share. A Process is a thread group: it lives until its last thread has ended
// and its parent has collected it.
//
// Lock order: treeMu (who is whose child, groups, sessions, the table of
// numbers), then one Process.mu (threads, signals, stop state; a parent's may
// be taken while no other is held), then signals.Actions.mu or vfs.FSContext.mu, then the
// queues of kernel/base/wait. kernel/process/futex's are leaves.
//
// Invariants: a thread's work word is non-zero while there is something to do before it
// may return to user mode. A bit is set first and the thread is kicked afterwards, so a
// thread that is just leaving the kernel comes back at once.
package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/futex"
	"hardtack/kernel/reserve"
	"hardtack/nucleus"
)

// Thread is a user thread (Linux's task_struct). Its goroutine alone uses the
// fields without another guard.
type Thread struct {
	caller.Ctx
	Proc *Process            // immutable
	User nucleus.UserContext // the goroutine's; the CPU's inside Run

	// Args are the argument registers of the call in progress.
	Args [6]uint64

	// The goroutine reads these freely; it replaces them under Proc.mu, under
	// which others read them (Process.Inspect).
	Space *vm.Space      // nil once the thread has given it up
	FDs   *vfs.FDTable   // replaced by exec and unshare
	FS    *vfs.FSContext // root, working directory, umask

	partner atomic.Pointer[Partner] // nil until it makes message calls

	restartState // the thread's
	sig          threadSignals

	name       atomic.Pointer[string] // PR_SET_NAME, exec
	login      atomic.Uint64          // see Login
	sched      Sched
	startTime  int64 // monotonic nanoseconds; immutable
	exitStatus int32 // wait status it ended with
	dying      bool  // on its way out; guarded by Proc.mu
	maker      bool  // it has made a process; guarded by treeMu
	tooMany    bool  // its new user had too many threads; the goroutine's

	cpuClock         // guarded by Proc.mu, but for what the type says
	Faults   int64   // page faults
	IO       IOCount // written by the thread
	yields   uint32
	refusals uint32 // mem.Refused when a call last failed for want of memory
	turn     turn   // its share of the processors
	rseq     sequences
	runner   *runner // the goroutine's, while it has one

	claim reserve.Claim // on memory, while that is short

	renewals uint32 // of the machine, that it knows of

	doCall func(t *Thread) // carries out its system calls; the thread's own

	vfork *vforkWait // CLONE_VFORK: whom to wake at exec or exit
	Futex futex.Thread
	state atomic.Uint32 // what /proc shows, a State
}

// Bits of Thread.User.Work.
const (
	workSignal  uint32 = 1 << iota // a signal may be deliverable
	workExit                       // the whole group ends, or exec removes this thread
	workStop                       // the group is stopping or stopped
	workMask                       // the saved signal mask is to be put back
	workResched                    // somebody asked for the CPU
	workRelease                    // the call reserved memory, which it does not need any more
	workChoose                     // somebody began or ended to trace
)

// workTimer: a CPU-time limit or timer is armed: look at the clock. It does not end
// waits.
const workTimer uint32 = nucleus.WorkLater

// State is a thread's state as /proc shows it.
type State uint32

// States.
const (
	StateRunning State = iota
	StateSleeping
	StateUninterruptible
	StateStopped
	StateZombie
	StateDead
)

// Letter is the state's letter in /proc/PID/stat.
func (s State) Letter() byte { return "RSDTZX"[s] }

// Of returns the thread that a Ctx belongs to, nil for kernel goroutines.
func Of(c *caller.Ctx) *Thread {
	if c.TID == 0 {
		return nil
	}
	return ByTID(c.TID)
}

// FutexOf is the futex.Finder of all threads.
func FutexOf(tid int32) *futex.Thread {
	if t := ByTID(tid); t != nil {
		return &t.Futex
	}
	return nil
}

// Name returns the thread's name, at most 15 bytes (comm).
func (t *Thread) Name() string {
	if p := t.name.Load(); p != nil {
		return *p
	}
	return ""
}

// SetName sets the thread's name, cut to 15 bytes.
func (t *Thread) SetName(s string) {
	if len(s) > 15 {
		s = s[:15]
	}
	t.name.Store(&s)
}

// Process returns the thread's process.
func (t *Thread) Process() *Process { return t.Proc }

// NoFile returns RLIMIT_NOFILE of the thread's process.
func (t *Thread) NoFile() uint64 { return t.Proc.limits.get(linux.RLIMIT_NOFILE) }
