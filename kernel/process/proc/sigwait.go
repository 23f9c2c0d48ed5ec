package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/signals"
)

// WaitSignal is sigtimedwait: it takes a pending signal of a set, waiting until
// the deadline for one unless poll is set.
func (t *Thread) WaitSignal(set linux.SigSet, deadline int64, poll bool) (linux.Siginfo, linux.Errno) {
	set &^= signals.Unblockable
	if info, ok := t.DequeueSignal(set); ok {
		return info, 0
	}
	if poll {
		return linux.Siginfo{}, linux.EAGAIN
	}
	p := t.Proc
	// While it waits the signals of the set count as unblocked, so that they
	// end the sleep.
	p.mu.Lock()
	old := t.sig.blocked
	t.sig.wanted = old & set
	t.sig.blocked = old &^ set
	t.recalc()
	p.mu.Unlock()
	r := wait.Interrupted
	t.Arm()
	if !t.Interrupted() {
		r = t.Sleep(deadline)
		for r == wait.Woken {
			t.Arm()
			r = t.Sleep(deadline)
		}
	}
	p.mu.Lock()
	t.sig.wanted = 0
	t.sig.blocked = old
	p.mu.Unlock()
	info, ok := t.DequeueSignal(set)
	p.mu.Lock()
	t.recalc()
	p.mu.Unlock()
	switch {
	case ok:
		return info, 0
	case r == wait.TimedOut:
		return info, linux.EAGAIN
	}
	return info, linux.EINTR
}
