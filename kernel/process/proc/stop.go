package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// Job control: a stop signal asks every thread to stop (stopUnderway); the last
// one to do so completes the stop and the parent hears of it. SIGCONT ends it
// at once, whatever becomes of the signal itself.

// beginStop asks all threads to stop; called with mu held.
func (p *Process) beginStop(sig linux.Signal) {
	if p.sig.stop != stopNone || p.exiting {
		return
	}
	if parent := p.Parent(); parent != nil {
		parent.jobs.Store(true)
	}
	p.sig.stop = stopUnderway
	p.sig.stopSignal = sig
	p.sig.contReport = false
	p.sig.stopping = len(p.threads)
	for _, t := range p.threads {
		t.notify(workStop)
	}
}

// stopHere is a thread's stop: it blocks until SIGCONT or death.
func (t *Thread) stopHere() {
	p := t.Proc
	var after notice
	p.mu.Lock()
	if p.sig.stop == stopUnderway && !p.exiting {
		p.oneStopped(&after)
	}
	if after.p != nil {
		p.mu.Unlock()
		after.deliver()
		p.mu.Lock()
	}
	t.state.Store(uint32(StateStopped))
	for p.sig.stop != stopNone && t.User.Work.Load()&workExit == 0 {
		t.Arm()
		p.mu.Unlock()
		t.SleepUninterruptible(wait.NoDeadline)
		p.mu.Lock()
		// A signal may have come between Arm and the look at the state only
		// with mu held, so nothing is lost.
	}
	t.state.Store(uint32(StateRunning))
	t.User.Work.And(^workStop)
	t.recalc()
	p.mu.Unlock()
}

// oneStopped counts a thread that stopped, or that ended before it could;
// called with mu held.
func (p *Process) oneStopped(after *notice) {
	if p.sig.stop != stopUnderway {
		return
	}
	if p.sig.stopping--; p.sig.stopping > 0 {
		return
	}
	p.sig.stop = stopDone
	p.sig.stopReport = true
	*after = notice{p, linux.CLD_STOPPED, int32(p.sig.stopSignal)}
}

// resume ends a stop because of SIGCONT; called with mu held.
func (p *Process) resume(after *notice) {
	if p.sig.stop == stopNone {
		return
	}
	if p.sig.stop == stopDone {
		p.sig.contReport = true
		*after = notice{p, linux.CLD_CONTINUED, int32(linux.SIGCONT)}
	}
	p.sig.stopReport = false
	p.resumeForKill()
}

// resumeForKill lets stopped threads go on; called with mu held.
func (g *threadGroup) resumeForKill() {
	if g.sig.stop == stopNone {
		return
	}
	g.sig.stop = stopNone
	for _, t := range g.threads {
		t.User.Work.And(^workStop)
		t.SetInterrupted(true) // it recalculates when it looks
		t.User.Work.Or(workSignal)
	}
}

// notice is word of a stop or continue for the parent, delivered without
// holding the child's lock.
type notice struct {
	p      *Process
	code   int32
	status int32
}

func (n *notice) deliver() {
	if n.p == nil {
		return
	}
	parent := n.p.Parent()
	if parent == nil {
		return
	}
	parent.jobs.Store(true)
	info := n.p.childInfo(n.code, n.status)
	parent.mu.Lock()
	act := parent.sig.actions.Get(linux.SIGCHLD)
	if act.Handler != linux.SIG_IGN && act.Flags&linux.SA_NOCLDSTOP == 0 {
		var none notice
		parent.sendLocked(nil, &info, &none)
	}
	parent.mu.Unlock()
	parent.Children.Notify(wait.In)
}

// clockTicks converts nanoseconds to clock_t (100 a second).
func clockTicks(ns int64) int64 { return ns / 10_000_000 }

// childInfo is SIGCHLD's siginfo about p.
func (p *Process) childInfo(code, status int32) linux.Siginfo {
	u, s := p.CPUTime()
	info := linux.Siginfo{Signo: int32(linux.SIGCHLD), Code: code}
	info.SetChild(p.PID, p.uid.Load(), status, clockTicks(u), clockTicks(s))
	return info
}
