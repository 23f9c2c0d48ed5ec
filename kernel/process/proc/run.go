package proc

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/signals"
	"hardtack/nucleus"
)

// threadLoop is loop; tests on the host replace it.
var threadLoop = (*Thread).loop

// loop runs a thread: the reason for leaving user mode, then user mode. It returns when
// the thread must end, and when another thread left user mode, or none (nil): this one
// waits inside the nucleus then.
func (t *Thread) loop() (left *nucleus.UserContext, ended bool) {
	for {
		if nucleus.Attention() && !t.attend() {
			return nil, true
		}
		trap := &t.User.Trap
		switch trap.Kind {
		case nucleus.TrapSyscall:
			t.doCall(t)
		case nucleus.TrapInterrupt:
			nucleus.RunPending()
			if nucleus.MemoryShort() {
				Relieve.Call()
			}
			if trap.Error&nucleus.Moved != 0 {
				t.moved()
			} else {
				t.interrupted(trap.Error)
			}
		case nucleus.TrapMessage:
			if trap.Error != 0 {
				t.finishCall()
			}
		default:
			t.fault(trap)
		}
		if t.User.Work.Load() != 0 {
			if !t.handleWork() {
				return nil, true
			}
			if t.User.Prepared() {
				if u := t.User.PerformMessage(); u != &t.User {
					return u, false
				}
				continue
			}
		}
		if wait.Look() {
			t.letOthers()
		}
		wait.Share()
		if u := t.User.Run(&t.Space.AS); u != &t.User {
			return u, false
		}
	}
}

// attend does the work that is due when user mode is left. A thread that needs the kernel
// waits while the kernel is short of memory. It reports false if the thread must end.
func (t *Thread) attend() bool {
	if t.User.MessagesDue() {
		nucleus.ServeMessages()
	}
	if trap := &t.User.Trap; trap.Kind != nucleus.TrapInterrupt && trap.Kind != nucleus.TrapMessage {
		t.reserve()
		return !t.Killed()
	}
	return true
}

// exceptionSignals maps exceptions to signals (arch/x86/kernel/traps.c).
var exceptionSignals = [...]struct {
	sig  linux.Signal
	code int32
}{
	nucleus.VecDivide:     {linux.SIGFPE, linux.FPE_INTDIV},
	nucleus.VecDebug:      {linux.SIGTRAP, linux.TRAP_TRACE},
	nucleus.VecBreakpoint: {linux.SIGTRAP, linux.SI_KERNEL},
	nucleus.VecOverflow:   {linux.SIGSEGV, linux.SI_KERNEL},
	nucleus.VecBound:      {linux.SIGSEGV, linux.SI_KERNEL},
	nucleus.VecInvalidOp:  {linux.SIGILL, linux.ILL_ILLOPN},
	nucleus.VecSegment:    {linux.SIGBUS, linux.SI_KERNEL},
	nucleus.VecStack:      {linux.SIGBUS, linux.SI_KERNEL},
	nucleus.VecProtection: {linux.SIGSEGV, linux.SI_KERNEL},
	nucleus.VecX87:        {linux.SIGFPE, 0},
	nucleus.VecAlignment:  {linux.SIGBUS, linux.BUS_ADRALN},
	nucleus.VecSIMD:       {linux.SIGFPE, 0},
}

// fault deals with an exception in user mode.
func (t *Thread) fault(trap *nucleus.Trap) {
	if implicit(trap) {
		// Mapping the page again would not help: the processor reports a far return that
		// it cannot execute in this way.
		trap.Vector, trap.Error = nucleus.VecProtection, 0
	}
	if trap.Vector == nucleus.VecPageFault {
		addr, code := trap.Addr, trap.Error
		r := t.Space.Fault(addr, code)
		switch {
		case r == vm.FaultOK:
			t.Faults++
			return
		case r == vm.FaultOOM:
			t.outOfMemory()
			return
		}
		t.sig.fault = signals.Fault{Trapno: nucleus.VecPageFault, Err: code | nucleus.FaultUser, CR2: addr}
		sig, sicode := r.Signal()
		info := linux.Siginfo{Signo: int32(sig), Code: sicode}
		info.SetFault(addr)
		t.ForceSignal(&info)
		return
	}
	info := linux.Siginfo{Signo: int32(linux.SIGSEGV), Code: linux.SI_KERNEL}
	if int(trap.Vector) < len(exceptionSignals) {
		if x := exceptionSignals[trap.Vector]; x.sig != 0 {
			info.Signo, info.Code = int32(x.sig), x.code
		}
	}
	t.sig.fault = signals.Fault{Trapno: uint64(trap.Vector), Err: trap.Error, CR2: t.sig.fault.CR2}
	switch trap.Vector {
	case nucleus.VecDivide, nucleus.VecInvalidOp, nucleus.VecDebug:
		info.SetFault(t.User.RIP)
	case nucleus.VecX87, nucleus.VecSIMD:
		info.SetFault(t.User.RIP)
		info.Code = t.floatCode(trap.Vector)
	}
	t.ForceSignal(&info)
}

// implicit reports whether a page fault in user mode is one of the processor's own
// accesses, with the kernel's rights, to a page of the program that is there: SMAP
// forbids that. QEMU's emulation pops IRETQ's frame so.
func implicit(trap *nucleus.Trap) bool {
	return trap.Vector == nucleus.VecPageFault && trap.Addr < linux.TaskSize &&
		trap.Error&(nucleus.FaultUser|nucleus.FaultPresent) == nucleus.FaultPresent
}

// floatCode says which floating-point exception happened.
func (t *Thread) floatCode(vector uint32) int32 {
	var status uint32
	if vector == nucleus.VecX87 {
		t.User.SyncFPU()
		control := uint32(le.Uint16(t.User.X87[:]))
		status = uint32(le.Uint16(t.User.X87[2:])) &^ control
	} else {
		status = t.User.MXCSR &^ (t.User.MXCSR >> 7)
	}
	switch {
	case status&1 != 0:
		return linux.FPE_FLTINV
	case status&4 != 0:
		return linux.FPE_FLTDIV
	case status&8 != 0:
		return linux.FPE_FLTOVF
	case status&(2|16) != 0:
		return linux.FPE_FLTUND
	case status&32 != 0:
		return linux.FPE_FLTRES
	}
	return 0
}

// A runner is a goroutine that runs one thread after another. Its stack has already grown
// to the size that system calls need, which saves a fork that cost.
type runner struct {
	wait.Sleeper
	next   atomic.Pointer[Thread]
	thread *Thread     // whose goroutine it is
	clock  *wait.Clock // the goroutine's
}

// maxIdleRunners of them are kept.
const maxIdleRunners = 64

var runners struct {
	mu   sync.Mutex
	idle []*runner // guarded by mu
}

// launch makes a goroutine run a new thread, or one that waited inside the nucleus.
// Callers may hold Process.mu and treeMu.
func (t *Thread) launch() {
	t.launched = ticks()
	runners.mu.Lock()
	var r *runner
	if n := len(runners.idle); n > 0 {
		r = runners.idle[n-1]
		runners.idle = runners.idle[:n-1]
	}
	runners.mu.Unlock()
	if r == nil {
		r = new(runner)
		r.next.Store(t)
		go r.run()
		return
	}
	r.next.Store(t)
	r.Home.Store(t.Home.Load())
	r.Wake()
}

// adopt gives the goroutine the thread that left user mode, in place of one that waits
// inside the nucleus now. It returns nil if there is none.
func (r *runner) adopt(left *nucleus.UserContext) *Thread {
	old := r.thread
	if wait.Look() {
		old.charge() // for what both have run
	}
	old.Proc.mu.Lock()
	old.leave(r.clock)
	old.Proc.mu.Unlock()
	r.thread = nil
	t := LeftUser.Call(left)
	if t != nil {
		r.take(t)
	}
	return t
}

// take makes the goroutine the thread's, with its clock.
func (r *runner) take(t *Thread) {
	r.thread, t.runner = t, r
	r.clock.SetThread(t.TID)
	t.Proc.mu.Lock()
	t.take(r.clock)
	t.Proc.mu.Unlock()
	t.newTurn(r.clock)
}

// serve runs a thread, and those that the goroutine adopts in its place, until one must
// end, and returns that; nil if there is none to adopt.
func (r *runner) serve(t *Thread) (end *Thread) {
	returned := false
	defer r.caught(&returned, &end)
	r.begin(t)
	for t != nil {
		left, ended := threadLoop(t)
		if ended {
			end = t
			break
		}
		t = r.adopt(left)
	}
	returned = true
	return end
}

// begin gives the goroutine a thread that is new, or waited inside the nucleus.
func (r *runner) begin(t *Thread) {
	t.waitedForGoroutine()
	r.clock.SetThread(t.TID)
	if t.startTicks == 0 {
		r.thread, t.runner = t, r
		t.begin(r.clock)
		t.bornHeld()
		t.chooseCall()
		t.firstTurn(r.clock)
		t.User.Trap = nucleus.Trap{Kind: nucleus.TrapMessage} // there is nothing to do
		return
	}
	r.take(t)
	t.User.Woken()
}

func (r *runner) run() {
	r.clock = wait.MyClock()
	for {
		t := r.next.Swap(nil)
		if t = r.serve(t); t != nil {
			t.exit()
		}
		t, r.thread = nil, nil
		r.clock.SetThread(0)
		r.Arm()
		runners.mu.Lock()
		if len(runners.idle) == maxIdleRunners {
			runners.mu.Unlock()
			return
		}
		runners.idle = append(runners.idle, r)
		runners.mu.Unlock()
		for r.next.Load() == nil {
			r.SleepUninterruptible(wait.NoDeadline)
			r.Arm()
		}
	}
}
