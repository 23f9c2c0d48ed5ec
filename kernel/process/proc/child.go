package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// WaitArgs say for whom and for what wait4 and waitid wait.
type WaitArgs struct {
	Kind    int      // P_ALL, P_PID, P_PGID or P_PIDFD
	ID      int32    // process or group
	Process *Process // with P_PIDFD
	Options uint32
	NoHang  bool // WNOHANG, or a non-blocking pidfd (EAGAIN then)
}

// WaitResult is a child's change of state; PID is 0 where WNOHANG found none.
type WaitResult struct {
	PID    int32
	UID    uint32
	Status int32 // as wait4 gives it
	Code   int32 // CLD_*
	Value  int32 // exit code or signal
	Usage  linux.Rusage
}

// Wait waits for a child to change its state.
func (t *Thread) Wait(a *WaitArgs) (r WaitResult, e linux.Errno) {
	p := t.Proc
	if found, e := a.find(t, &r); found || e != 0 || a.NoHang {
		return r, e
	}
	p.Children.Add(&t.Entry, t, wait.In)
	//maxlive:loop 1 because a look that finds no child leaves nothing
	for {
		t.Arm()
		found, err := a.find(t, &r)
		if found || err != 0 {
			e = err
			break
		}
		if t.Sleep(wait.NoDeadline) == wait.Interrupted {
			e = linux.ERESTARTSYS
			break
		}
	}
	p.Children.Remove(&t.Entry)
	return r, e
}

// find looks for a child with news. ECHILD: there is no child that could
// ever have any.
func (a *WaitArgs) find(t *Thread, r *WaitResult) (bool, linux.Errno) {
	p := t.Proc
	treeMu.Lock()
	defer treeMu.Unlock()
	switch a.Kind {
	case linux.P_PID, linux.P_PIDFD:
		c := a.Process
		if a.Kind == linux.P_PID {
			c = Lookup(a.ID)
		}
		if c == nil || c.reaped || c.parent.Load() != p {
			return false, linux.ECHILD
		}
		if living, found := a.ask(t, c, r); living || found {
			return found, 0
		}
		return false, linux.ECHILD // a zombie that is not asked for has no other news
	}
	return a.findAmong(t, r)
}

// findAmong is find for a wait for several children; called with treeMu held. The
// oldest with news is told first. Nearly always that is the first of the zombies; if
// there are none, and no child was ever stopped, one child that lives is enough to know.
func (a *WaitArgs) findAmong(t *Thread, r *WaitResult) (bool, linux.Errno) {
	p := t.Proc
	jobs := a.Options&(linux.WSTOPPED|linux.WCONTINUED) != 0 && p.jobs.Load()
	if a.Options&linux.WEXITED != 0 && !jobs && len(p.zombies) > 0 {
		if _, found := a.ask(t, p.zombies[0], r); found {
			return true, 0
		}
	}
	any := false
	//maxlive:loop 1 because only the child that is found leaves something, and it is the last
	for c := p.firstChild; c != nil; c = c.nextSibling {
		living, found := a.ask(t, c, r)
		if found {
			return true, 0
		}
		any = any || living
		if any && !jobs && (len(p.zombies) == 0 || a.Options&linux.WEXITED == 0) {
			break
		}
	}
	if !any {
		return false, linux.ECHILD
	}
	return false, 0
}

// ask reports whether a child that is waited for lives, so that it may have news
// yet, and whether it has news now, which it takes; called with treeMu held.
func (a *WaitArgs) ask(t *Thread, c *Process, r *WaitResult) (living, found bool) {
	switch {
	case !a.eligible(c) || a.Options&linux.WNOTHREAD != 0 && !t.made(c):
		return false, false
	case c.Zombie():
		if a.Options&linux.WEXITED != 0 {
			a.collectExit(c, r)
			return false, true
		}
		return false, false
	}
	return true, a.Options&(linux.WSTOPPED|linux.WCONTINUED) != 0 && a.collectStop(c, r)
}

// made reports whether c is a child of this thread: one that it made, or one whose
// thread is gone if this is the first that is left. Called with treeMu held.
func (t *Thread) made(c *Process) bool {
	return c.maker == t.TID || c.maker == 0 && (t == t.Proc.leader || t.Proc.leader == nil)
}

// eligible reports whether a wait is for c at all.
func (a *WaitArgs) eligible(c *Process) bool {
	switch a.Kind {
	case linux.P_PID:
		if c.PID != a.ID {
			return false
		}
	case linux.P_PGID:
		if c.group.Load().ID != a.ID {
			return false
		}
	case linux.P_PIDFD:
		if c != a.Process {
			return false
		}
	}
	if a.Options&linux.WALL != 0 {
		return true
	}
	return (c.exitSignal.Load() != int32(linux.SIGCHLD)) == (a.Options&linux.WCLONE != 0)
}

// collectExit reports a zombie and removes it; called with treeMu held.
func (a *WaitArgs) collectExit(c *Process, r *WaitResult) {
	r.PID, r.UID, r.Status = c.PID, c.uid.Load(), c.status
	r.Code, r.Value = exitCode(c.status)
	c.fillUsage(&r.Usage, true)
	if a.Options&linux.WNOWAIT == 0 {
		c.release()
	}
}

// collectStop reports a stop or continue that has not been reported.
func (a *WaitArgs) collectStop(c *Process, r *WaitResult) bool {
	c.mu.Lock()
	s := &c.sig
	keep := a.Options&linux.WNOWAIT != 0
	switch {
	case a.Options&linux.WSTOPPED != 0 && s.stop == stopDone && s.stopReport:
		s.stopReport = keep
		r.Code, r.Value = linux.CLD_STOPPED, int32(s.stopSignal)
		r.Status = int32(s.stopSignal)<<8 | 0x7f
	case a.Options&linux.WCONTINUED != 0 && s.contReport:
		s.contReport = keep
		r.Code, r.Value = linux.CLD_CONTINUED, int32(linux.SIGCONT)
		r.Status = 0xffff
	default:
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	r.PID, r.UID = c.PID, c.uid.Load()
	c.fillUsage(&r.Usage, true)
	return true
}
