package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/process/signals"
	"hardtack/nucleus"
)

// handleWork does what the work word asks for before the thread returns to user
// mode. It reports false when the thread must end instead.
func (t *Thread) handleWork() bool {
	for {
		t.waitHeld()
		w := t.User.Work.Load()
		switch {
		case w&nucleus.WorkMessage != 0 && w&(workExit|workStop|workSignal) != 0:
			t.undoCall()
		case w&workExit != 0:
			return false
		case w&workStop != 0:
			t.stopHere()
		case w&workTimer != 0 && t.timerDue():
			// CPU-time limits and timers sent their signals.
		case w&workSignal != 0:
			t.takeSignal()
		case t.restartErr != 0:
			t.again(&t.User)
		case w&workMask != 0:
			t.User.Work.And(^workMask)
			t.setBlocked(t.sig.saved)
		case w&workRelease != 0:
			t.release()
		case w&workResched != 0:
			t.User.Work.And(^workResched)
			t.giveWay()
		case w&workChoose != 0:
			t.User.Work.And(^workChoose)
			t.chooseCall()
		case holding.on.Load(): // its bit may be gone by now
		default:
			return true
		}
	}
}

// takeSignal takes one pending signal and does what its action says.
func (t *Thread) takeSignal() {
	p := t.Proc
	taken, code := linux.Signal(0), int32(0)
	p.mu.Lock()
	for !p.exiting {
		info, ok := t.takePending()
		if !ok {
			break
		}
		if s := signals.TakenTimer(&info, &t.sig.pending, &p.sig.pending); s != nil {
			p.mu.Unlock()
			s.Settle(&info)
			p.mu.Lock()
		}
		sig := info.Signal()
		act := p.sig.actions.Get(sig)
		if act.Handler == linux.SIG_IGN {
			continue
		}
		if act.Handler != linux.SIG_DFL {
			if act.Flags&linux.SA_RESETHAND != 0 {
				p.sig.actions.Set(sig, &linux.SigAction{Flags: act.Flags, Mask: act.Mask, Restorer: act.Restorer})
			}
			t.recalc()
			p.mu.Unlock()
			SignalTaken.Call(t, sig, info.Code)
			t.enterHandler(&info, &act)
			return
		}
		if signals.DefaultIgnore.Has(sig) || p.sig.unkillable && !signals.Unblockable.Has(sig) {
			continue
		}
		if !signals.DefaultStop.Has(sig) {
			p.beginExit(int32(sig))
			taken, code = sig, info.Code
			break
		}
		if sig != linux.SIGSTOP {
			p.mu.Unlock()
			orphaned := p.Group().IsOrphaned()
			p.mu.Lock()
			// SIGCONT may have come meanwhile; a stop now would come after it and
			// persist.
			if orphaned || p.sig.pending.Set.Has(linux.SIGCONT) {
				continue
			}
		}
		p.beginStop(sig)
		taken, code = sig, info.Code
		break
	}
	t.recalc()
	p.mu.Unlock()
	if taken != 0 {
		SignalTaken.Call(t, taken, code)
	}
}

// takePending takes the signal to deal with first; called with Proc.mu held.
func (t *Thread) takePending() (linux.Siginfo, bool) {
	m := ^t.sig.blocked
	if info, ok := t.sig.pending.Take(m & signals.Synchronous); ok {
		return info, ok
	}
	if info, ok := t.sig.pending.Take(m); ok {
		return info, ok
	}
	return t.Proc.takeShared(m)
}

// takeShared takes a signal of the process; mu is held.
func (p *Process) takeShared(m linux.SigSet) (linux.Siginfo, bool) {
	info, ok := p.sig.pending.Take(m)
	if ok && info.Signal() == linux.SIGALRM {
		p.alarmTaken()
	}
	return info, ok
}

// enterHandler makes the thread run a signal handler.
func (t *Thread) enterHandler(info *linux.Siginfo, act *linux.SigAction) {
	if t.rseq.addr != 0 && !t.restart() {
		t.forceSegv(info.Signal())
		return
	}
	t.beforeHandler(&t.User, act)
	mask := t.sig.blocked
	if t.User.Work.Load()&workMask != 0 {
		t.User.Work.And(^workMask)
		mask = t.sig.saved
	}
	if !t.sig.frameBuffer().Push(t.Space, &t.User, &t.sig.alt, info, act, mask, t.sig.fault) {
		t.forceSegv(info.Signal())
		return
	}
	blocked := t.sig.blocked | act.Mask
	if act.Flags&linux.SA_NODEFER == 0 {
		blocked |= info.Signal().Set()
	}
	t.SetBlocked(blocked)
}

// Sigreturn is rt_sigreturn: it goes back to where a handler interrupted. A bad
// frame is a SIGSEGV.
func (t *Thread) Sigreturn() {
	mask, alt, ok := t.sig.frameBuffer().Pop(t.Space, &t.User)
	if !ok {
		t.forceSegv(0)
		return
	}
	t.restartErr = 0
	t.SetBlocked(mask)
	t.sig.alt.Set(&alt, t.User.RSP) // what was saved was valid; errors are the program's
}

// forceSegv is the end of a thread whose frame could not be written or read; if
// that happened for SIGSEGV itself the process dies.
func (t *Thread) forceSegv(sig linux.Signal) {
	if sig == linux.SIGSEGV {
		t.Proc.SetAction(linux.SIGSEGV, &linux.SigAction{})
	}
	info := kernelInfo(linux.SIGSEGV)
	t.ForceSignal(&info)
}
