package proc

import (
	"math/bits"

	"hardtack/kernel/base/wait"
	"hardtack/nucleus"
)

// A thread that may not run on all processors does so in the kernel all the same: there it
// is a goroutine. It enters user mode on its own processors only, which the nucleus sees to
// (UserState.Away), and waits for its turn in their queues (kernel/base/wait/groups.go).

// CPUs returns the processors that the thread may run on; 0: all.
func (t *Thread) CPUs() uint64 { return t.User.Allowed.Load() }

// LastCPU returns the processor that the thread was last in user mode on, or waits for if it
// may not run there any more.
func (t *Thread) LastCPU() int {
	cpu := int(t.User.LastCPU.Load())
	if cpus := t.CPUs(); cpus != 0 && cpus>>cpu&1 == 0 {
		return bits.TrailingZeros64(cpus)
	}
	return cpu
}

// SetCPUs changes the processors that the thread may run on; 0: all. When it returns, the
// thread is in user mode on none of the others.
func (t *Thread) SetCPUs(cpus uint64) {
	t.Proc.mu.Lock()
	t.sched.Affinity = cpus
	if !wait.HasTurns() { // goroutines have no processors
		t.Proc.mu.Unlock()
		return
	}
	t.User.Allowed.Store(cpus)
	t.turn.Allow(cpus)
	t.bind()
	t.Proc.mu.Unlock()
	if cpus != 0 {
		t.User.Bar(^cpus)
	}
}

// inheritCPUs gives a new thread the processors of its parent.
func (t *Thread) inheritCPUs() {
	if cpus := t.sched.Affinity; cpus != 0 && wait.HasTurns() {
		t.User.Allowed.Store(cpus)
		t.turn.Allow(cpus)
		t.User.Away.Store(^cpus)
	}
}

// bind says whether the thread is one that processors stand by for: it lives, and may not run on
// all. One that never begins, or has ended, must not count. Called with Proc.mu held.
func (t *Thread) bind() { t.Bind(&t.turn.Turn, t.turn.live && t.CPUs() != 0) }

// setLive says that the thread begins or ends. Called with Proc.mu held.
func (t *Thread) setLive(live bool) {
	t.turn.live = live
	t.bind()
	t.turn.Live(live)
}

// moved is called when the nucleus did not let the thread enter user mode.
func (t *Thread) moved() {
	t.User.Trap = nucleus.Trap{Kind: nucleus.TrapMessage} // there is nothing to do
	if t.rseq.addr != 0 && !t.restart() {
		t.forceSegv(0)
		return
	}
	t.leaveMask()
	_, cpu := CPUs.Call()
	if cpus := t.CPUs(); cpus != 0 && cpus>>cpu&1 == 0 {
		t.giveWay()
		return
	}
	if !t.settle(cpu) {
		t.forceSegv(0)
	}
}

// settle tells the nucleus where the thread may enter user mode, and the thread that it is
// on a processor, if it wants to know. It reports false if that could not be written.
func (t *Thread) settle(cpu int) bool {
	elsewhere := uint64(0)
	if a := t.rseq.addr; a != 0 {
		elsewhere = ^(1 << uint(cpu))
		b := t.Scratch[:8]
		le.PutUint32(b, uint32(cpu))
		le.PutUint32(b[4:], uint32(cpu))
		if _, e := t.Space.CopyOut(a, b); e != 0 {
			return false
		}
		t.User.Told(t.Space.Place(a))
	} else {
		t.User.Told(0, 0)
	}
	for {
		cpus, away := t.CPUs(), elsewhere
		if cpus != 0 {
			away |= ^cpus
		}
		t.User.Away.Store(away)
		if t.CPUs() == cpus {
			return true // who changes it meanwhile adds to Away afterwards
		}
	}
}
