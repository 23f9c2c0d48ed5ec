package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
)

// A CPU that message calls left without a thread remains available for a moment: its
// goroutine lingers. The runtime's thread waits in the nucleus with the CPU idle; Go's
// scheduler sees it in a system call. The next user thread that a message call wakes, on
// a CPU that continues with other work, is handed to it by one interrupt, without Go's
// run queues. After that moment, the processor returns to the scheduler.
//
// One goroutine lingers at a time, the last to begin. To call it, take its name out of
// lingerer and find it waiting. If anything else ends its wait, it stops lingering.

// lingerTime is how long a goroutine lingers, in nanoseconds. Goroutines that become
// ready meanwhile may have to wait that long.
const lingerTime = 100_000

// lingerer is the index + 1 of the thread that lingers; 0: nobody.
var lingerer atomic.Int32

// lingerCalled is the result of sysLinger for one that was called.
const lingerCalled = 1

// serveLinger has the current thread linger.
func serveLinger(c *amd64.CPU) {
	i := cpus[c.Index].current
	block(c, lingerQueue, now()+lingerTime)
	lingerer.Store(i + 1)
}

// callLingerer wakes the lingering goroutine, which takes threads out of the CPUs' run
// queues or, if there are none, ends. It reports false if none lingers, or no CPU is free
// for it.
func callLingerer(c *amd64.CPU) bool {
	if lingerer.Load() == 0 || !anyIdle() {
		return false
	}
	i := lingerer.Swap(0) - 1
	if i < 0 {
		return false
	}
	in := guard.Enter(c.Index)
	t, queue := lockWaiting(i)
	lingers := t.state == threadBlocked && queue == lingerQueue
	if lingers {
		unblock(i, lingerCalled)
	}
	unlockWaiting(t, queue)
	if lingers {
		ready(c, i, false)
	}
	guard.Leave(c.Index, in)
	cpuPointer(c).finish()
	return lingers
}

// Linger waits briefly for a thread that needs a goroutine, and returns the index of one,
// which is the caller's from then on; 0: none came. It is of no use on a machine with one
// CPU.
func Linger() (i uint32) {
	if numCPU.Load() == 1 || linger() != lingerCalled {
		return 0
	}
	for {
		woken := amd64.Syscall(sysMessage, messageTake, 0, 0)
		for w := woken; w != 0; w >>= 16 {
			if next := uint32(w & 0xffff); i == 0 {
				i = next
			} else {
				messageHooks.Woken(next)
			}
		}
		if woken>>48 == 0 {
			return i
		}
	}
}

// EndLinger ends Linger: there are goroutines to run.
func EndLinger() {
	if lingerer.Load() != 0 {
		amd64.Syscall(sysMessage, messageEndLinger, 0, 0)
	}
}
