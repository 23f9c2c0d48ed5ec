package proc

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/wait"
)

// Processors go and come while threads run. The nucleus moves whoever runs there, and a
// thread in the kernel does not care. A thread whose mask has no processor left notices when
// it would enter user mode, and may then run on all, as on Linux: a thread that sleeps until
// its processor is back keeps its mask.

var (
	// PlugCPU has a processor run, or run nothing any more; one at a time.
	PlugCPU = hook.Default(func(cpu int, on bool) error { return linux.ENOSYS })
	// CPUPlugged is told of each processor that went or came.
	CPUPlugged = hook.Default(func(cpu int, on bool) {})

	plugMu sync.Mutex    // who plugs
	offCPU atomic.Uint64 // processors that run nothing; changes under plugMu
)

// AllCPUs returns the processors that there are.
func AllCPUs() uint64 {
	n, _ := CPUs.Call()
	return 1<<uint(n) - 1
}

// OnlineCPUs returns the processors that run threads.
func OnlineCPUs() uint64 { return AllCPUs() &^ offCPU.Load() }

// Online reports whether a processor runs threads.
func Online(cpu int) bool { return OnlineCPUs()>>uint(cpu)&1 != 0 }

// SetOnline has a processor, but for the first one, go or come.
func SetOnline(cpu int, on bool) linux.Errno {
	plugMu.Lock()
	defer plugMu.Unlock()
	bit := uint64(1) << uint(cpu)
	switch {
	case Online(cpu) == on:
		return 0
	case cpu == 0 || OnlineCPUs()&^bit == 0 || !wait.HasTurns() && !on:
		return linux.EBUSY
	}
	if !on {
		offCPU.Or(bit)
		wait.SetOff(offCPU.Load())
	}
	if err := PlugCPU.Call(cpu, on); err != nil {
		offCPU.And(^bit)
		if on {
			offCPU.Or(bit)
		}
		wait.SetOff(offCPU.Load())
		return linux.EIO
	}
	if on {
		offCPU.And(^bit)
		wait.SetOff(offCPU.Load())
	}
	CPUPlugged.Call(cpu, on)
	return 0
}

// leaveMask has a thread run on all processors if none of its mask is left, and reports
// whether it did.
func (t *Thread) leaveMask() bool {
	off := offCPU.Load()
	if off == 0 || t.CPUs() == 0 || t.CPUs()&^off&AllCPUs() != 0 {
		return false
	}
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	if t.CPUs()&^offCPU.Load()&AllCPUs() != 0 { // it has a new one
		return false
	}
	t.sched.Affinity = 0
	t.cpus.Store(0)
	t.turn.Allow(0)
	return true
}
