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

	// CPUMoved is told of each processor that this machine has no more, or has anew.
	CPUMoved = hook.Default(func(cpu int, here bool) {})

	plugMu  sync.Mutex    // who plugs
	offCPU  atomic.Uint64 // processors that run nothing; changes under plugMu, as goneCPU
	goneCPU atomic.Uint64 // those of offCPU that are another kernel's, or will be there later
)

// AllCPUs returns the processors that there may be.
func AllCPUs() uint64 {
	n, _ := CPUs.Call()
	return 1<<uint(n) - 1
}

// PresentCPUs returns the processors that there are.
func PresentCPUs() uint64 { return AllCPUs() &^ goneCPU.Load() }

// SetPresent says which processors there are, before threads exist.
func SetPresent(cpus uint64) {
	gone := AllCPUs() &^ cpus
	goneCPU.Store(gone)
	offCPU.Store(gone)
	if gone != 0 {
		wait.SetOff(gone)
	}
}

// OnlineCPUs returns the processors that run threads.
func OnlineCPUs() uint64 { return AllCPUs() &^ offCPU.Load() }

// Online reports whether a processor runs threads.
func Online(cpu int) bool { return OnlineCPUs()>>uint(cpu)&1 != 0 }

// SetOnline has a processor, but for the first one, go or come.
func SetOnline(cpu int, on bool) linux.Errno {
	plugMu.Lock()
	defer plugMu.Unlock()
	return setOnline(cpu, on)
}

// RemoveCPU gives a processor up: drop does once it runs nothing. The error is drop's, or
// linux.EBUSY for the last processor and the first one.
func RemoveCPU(cpu int, drop func(cpu int) error) error {
	plugMu.Lock()
	defer plugMu.Unlock()
	was := Online(cpu)
	if cpu == 0 {
		return linux.EBUSY
	}
	if e := setOnline(cpu, false); e != 0 {
		return e
	}
	if err := drop(cpu); err != nil {
		if was {
			setOnline(cpu, true)
		}
		return err
	}
	goneCPU.Or(1 << uint(cpu))
	CPUMoved.Call(cpu, false)
	return nil
}

// AddCPU adds the processor that take brings, and has it run; drop takes it away again if it
// does not.
func AddCPU(take func() (int, error), drop func(cpu int)) (cpu int, err error) {
	plugMu.Lock()
	defer plugMu.Unlock()
	if cpu, err = take(); err != nil {
		return 0, err
	}
	goneCPU.And(^(1 << uint(cpu)))
	CPUMoved.Call(cpu, true)
	if e := setOnline(cpu, true); e != 0 {
		goneCPU.Or(1 << uint(cpu))
		CPUMoved.Call(cpu, false)
		drop(cpu)
		return 0, e
	}
	return cpu, nil
}

func setOnline(cpu int, on bool) linux.Errno {
	bit := uint64(1) << uint(cpu)
	switch {
	case Online(cpu) == on:
		return 0
	case cpu == 0 || OnlineCPUs()&^bit == 0 || goneCPU.Load()&bit != 0 || !wait.HasTurns() && !on:
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
	t.User.Allowed.Store(0)
	t.turn.Allow(0)
	t.Bind(nil, false)
	return true
}
