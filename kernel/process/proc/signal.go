package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/signals"
)

// threadSignals is a thread's part of the signal state.
type threadSignals struct {
	pending signals.Queue    // guarded by Proc.mu
	blocked linux.SigSet     // written by the thread under Proc.mu
	wanted  linux.SigSet     // what sigtimedwait waits for; guarded by Proc.mu
	saved   linux.SigSet     // mask to put back (workMask); the thread's
	alt     signals.AltStack // the thread's

	fault signals.Fault  // what the next frame reports; the thread's
	frame *signals.Frame // room to build one, made at the first signal; the thread's
}

// processSignals is a process's part of the signal state; guarded by Process.mu.
type processSignals struct {
	pending signals.Queue
	actions *signals.Actions // immutable while threads live; exec replaces it
	user    *accounts.User
	// unkillable is process 1: signals that it does not handle have no effect,
	// whoever sends them, unless they are its own faults.
	unkillable bool

	stop       stopState
	stopSignal linux.Signal
	stopReport bool // the stop has not been waited for
	contReport bool // the continue has not been waited for
	stopping   int  // threads that have still to stop
}

type stopState uint8

const (
	stopNone     stopState = iota
	stopUnderway           // threads are on their way to stop
	stopDone               // all threads are stopped
)

// kernelInfo is the siginfo of a signal that the kernel sends.
func kernelInfo(sig linux.Signal) linux.Siginfo {
	return linux.Siginfo{Signo: int32(sig), Code: linux.SI_KERNEL}
}

// UserInfo is the siginfo of kill, tgkill or sigqueue called by c.
func UserInfo(c *caller.Ctx, sig linux.Signal, code int32) linux.Siginfo {
	info := linux.Siginfo{Signo: int32(sig), Code: code}
	info.SetSender(c.PID, c.Cred().UID)
	return info
}

// Signal sends a signal to the process; no permission is asked. EAGAIN means
// that there was no room to queue a real-time signal.
func (p *Process) Signal(info *linux.Siginfo) linux.Errno { return p.send(nil, info) }

// SendSignal sends sig to the process as the kernel (SI_KERNEL).
func (p *Process) SendSignal(sig linux.Signal) {
	info := kernelInfo(sig)
	p.send(nil, &info)
}

// Signal sends a signal to this thread.
func (t *Thread) Signal(info *linux.Siginfo) linux.Errno { return t.Proc.send(t, info) }

// send queues a signal for the process, or for one of its threads, and makes sure that a
// thread takes it.
func (p *Process) send(to *Thread, info *linux.Siginfo) linux.Errno {
	sig := info.Signal()
	if !sig.Valid() {
		return linux.EINVAL
	}
	var after notice
	p.mu.Lock()
	e := p.sendLocked(to, info, &after)
	p.mu.Unlock()
	after.deliver()
	return e
}

func (p *Process) sendLocked(to *Thread, info *linux.Siginfo, after *notice) linux.Errno {
	return p.queueLocked(to, info, nil, after)
}

// queueLocked is sendLocked, of a timer's signal if timer is set.
func (p *Process) queueLocked(to *Thread, info *linux.Siginfo, timer *signals.Timer, after *notice) linux.Errno {
	sig := info.Signal()
	if len(p.threads) == 0 || to != nil && to.Proc != p {
		return 0 // ended meanwhile
	}
	p.prepare(sig, after)
	if p.discards(to, sig) {
		return 0
	}
	q := &p.sig.pending
	if to != nil {
		q = &to.sig.pending
	}
	if timer != nil {
		q.PutTimer(info, timer)
	} else if !q.Put(info, p.sig.user, p.limits.get(linux.RLIMIT_SIGPENDING)) {
		return linux.EAGAIN
	}
	p.SigQueue.Notify(wait.In)
	p.wakeFor(to, sig)
	return 0
}

// prepare is what a signal does even if it is blocked or ignored: SIGCONT continues the
// process, and SIGCONT and stop signals remove each other.
func (p *Process) prepare(sig linux.Signal, after *notice) {
	switch {
	case signals.DefaultStop.Has(sig):
		p.dropPending(linux.SIGCONT.Set())
	case sig == linux.SIGCONT:
		p.dropPending(signals.DefaultStop)
		p.resume(after)
	case sig == linux.SIGKILL:
		p.resumeForKill()
	}
}

func (p *Process) dropPending(m linux.SigSet) {
	p.sig.pending.Drop(m)
	if m.Has(linux.SIGALRM) {
		p.alarmTaken()
	}
	for _, t := range p.threads {
		t.sig.pending.Drop(m)
	}
}

// discards reports whether a signal has no effect at all. A blocked signal is
// kept even when it is ignored: the action may change before it is unblocked.
func (p *Process) discards(to *Thread, sig linux.Signal) bool {
	m := sig.Set()
	t := to
	if t == nil {
		t = p.speaker()
	}
	if (t.sig.blocked|t.sig.wanted)&m != 0 {
		return false
	}
	ignored, caught := p.sig.actions.Sets()
	if ignored&m != 0 && signals.Unblockable&m == 0 {
		return true
	}
	return p.sig.unkillable && caught&m == 0 || p.PID == 1 && signals.Unblockable&m != 0
}

// speaker is the thread that represents the process; called with mu held and threads
// left.
func (g *threadGroup) speaker() *Thread {
	if g.leader != nil {
		return g.leader
	}
	return g.threads[0]
}

// wakeFor finds a thread for a new signal and wakes it; called with mu held.
func (g *threadGroup) wakeFor(to *Thread, sig linux.Signal) {
	m := sig.Set()
	if sig == linux.SIGKILL {
		g.beginExit(int32(sig))
		return
	}
	t := to
	if t == nil {
		if t = g.speaker(); !t.sig.wants(m) {
			for _, u := range g.threads {
				if u.sig.wants(m) {
					t = u
					break
				}
			}
		}
	}
	if t.sig.wants(m) {
		t.notify(workSignal)
	}
}

// wants reports whether one of m would be taken; called with Proc.mu held.
func (s *threadSignals) wants(m linux.SigSet) bool { return s.wanted&m != 0 || s.blocked&m == 0 }

func (s *threadSignals) frameBuffer() *signals.Frame {
	if s.frame == nil {
		s.frame = new(signals.Frame)
	}
	return s.frame
}

// notify sets work and makes the thread see it wherever it is.
func (t *Thread) notify(work uint32) {
	t.User.Work.Or(work)
	t.SetInterrupted(true)
	t.User.Kick()
	t.cancelWait()
}

// beginExit makes all threads end with a wait status; called with mu held. The
// first status counts.
func (g *threadGroup) beginExit(status int32) {
	if g.exiting {
		return
	}
	g.exiting = true
	g.status = status
	for _, t := range g.threads {
		t.notify(workExit)
	}
}

// recalc sets the thread's signal bits from what is pending; called with
// Proc.mu held by the thread itself.
func (t *Thread) recalc() {
	p := t.Proc
	if (t.sig.pending.Set|p.sig.pending.Set)&^t.sig.blocked != 0 {
		t.User.Work.Or(workSignal)
	} else {
		t.User.Work.And(^workSignal)
	}
	t.SetInterrupted(t.User.Work.Load()&(workSignal|workExit|workStop) != 0)
}

// setBlocked changes the signal mask.
func (t *Thread) setBlocked(m linux.SigSet) {
	m &^= signals.Unblockable
	p := t.Proc
	p.mu.Lock()
	newly := m &^ t.sig.blocked & p.sig.pending.Set
	t.sig.blocked = m
	if newly != 0 && len(p.threads) > 1 {
		// Signals that we might have taken need another thread.
		for newly != 0 {
			sig := signals.Lowest(newly)
			newly &^= sig.Set()
			for _, u := range p.threads {
				if u != t && u.sig.wants(sig.Set()) {
					u.notify(workSignal)
					break
				}
			}
		}
	}
	t.recalc()
	p.mu.Unlock()
}

// SetBlocked changes the signal mask (rt_sigprocmask).
func (t *Thread) SetBlocked(m linux.SigSet) {
	if m&^signals.Unblockable != t.sig.blocked {
		t.setBlocked(m)
	}
}

// Blocked returns the thread's signal mask.
func (t *Thread) Blocked() linux.SigSet { return t.sig.blocked }

// Pending returns the signals pending for the thread or its process.
func (t *Thread) Pending() linux.SigSet {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.sig.pending.Set | t.Proc.sig.pending.Set
}

// PendingSets returns what is pending for the thread and for the process (/proc/PID/status).
func (t *Thread) PendingSets() (thread, process linux.SigSet) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.sig.pending.Set, t.Proc.sig.pending.Set
}

// SignalSets returns which signals the process ignores and catches.
func (g *threadGroup) SignalSets() (ignored, caught linux.SigSet) {
	g.mu.Lock()
	a := g.sig.actions
	g.mu.Unlock()
	return a.Ignored()
}

// Ignored reports whether the process ignores a signal (SIG_IGN).
func (g *threadGroup) Ignored(sig linux.Signal) bool {
	g.mu.Lock()
	a := g.sig.actions
	g.mu.Unlock()
	return a.Get(sig).Handler == linux.SIG_IGN
}

// BlocksOrIgnores reports whether a signal would not reach the thread: what
// terminals ask before SIGTTIN and SIGTTOU.
func (t *Thread) BlocksOrIgnores(sig linux.Signal) bool {
	return t.sig.blocked.Has(sig) || t.Proc.Ignored(sig)
}

// DequeueSignal takes a pending signal out of set (signalfd, sigtimedwait).
func (t *Thread) DequeueSignal(set linux.SigSet) (linux.Siginfo, bool) {
	p := t.Proc
	p.mu.Lock()
	info, ok := t.sig.pending.Take(set)
	if !ok {
		info, ok = p.takeShared(set)
	}
	var timer *signals.Timer
	if ok {
		timer = signals.TakenTimer(&info, &t.sig.pending, &p.sig.pending)
		t.recalc()
	}
	p.mu.Unlock()
	if timer != nil {
		timer.Settle(&info)
	}
	return info, ok
}

// ForceSignal sends the thread a signal that it cannot block or ignore (faults).
func (t *Thread) ForceSignal(info *linux.Siginfo) {
	if TraceFault.Call != nil {
		TraceFault.Call(t, info)
	}
	p, sig := t.Proc, info.Signal()
	p.mu.Lock()
	a := p.sig.actions
	act := a.Get(sig)
	if act.Handler == linux.SIG_IGN || t.sig.blocked.Has(sig) {
		act = linux.SigAction{}
		a.Set(sig, &act)
	}
	if act.Handler == linux.SIG_DFL {
		p.sig.unkillable = false // even process 1 cannot go on
	}
	t.sig.blocked &^= sig.Set()
	t.sig.pending.Put(info, p.sig.user, linux.RLIM_INFINITY)
	t.recalc()
	p.mu.Unlock()
}

// NewTimerSignal makes a POSIX timer's signal and charges it to the process's user; EAGAIN
// if that one has as many as RLIMIT_SIGPENDING allows.
func (p *Process) NewTimerSignal() (*signals.Timer, linux.Errno) {
	p.mu.Lock()
	u := p.sig.user
	p.mu.Unlock()
	return signals.NewTimer(&p.mu, u, p.limits.get(linux.RLIMIT_SIGPENDING))
}

// SendTimer queues a timer's signal for a thread or (nil) the process. If it is queued
// still, the timer's expirations go to its overrun count. It reports whether the signal
// was queued: it is not if it is pending still, or just being taken, or ignored. Called
// with s.Counting held.
func (p *Process) SendTimer(s *signals.Timer, to *Thread, info *linux.Siginfo) (sent bool) {
	var after notice
	p.mu.Lock()
	if s.Merge(info) {
		p.mu.Unlock()
		return false
	}
	if !s.Ended() {
		p.queueLocked(to, info, s, &after)
	}
	sent = s.Queued()
	p.mu.Unlock()
	after.deliver()
	return sent
}

// AltStack is sigaltstack: it returns the old stack and sets a new one if n is given.
func (t *Thread) AltStack(n *linux.StackT) (old linux.StackT, e linux.Errno) {
	old = t.sig.alt.Get(t.User.RSP)
	if n != nil {
		e = t.sig.alt.Set(n, t.User.RSP)
	}
	return old, e
}

// SetTempMask installs a signal mask for the rest of the call (ppoll, pselect6,
// epoll_pwait, sigsuspend): when a handler interrupts the call it runs under
// this mask, and the old one comes back when it returns.
func (t *Thread) SetTempMask(mask linux.SigSet) {
	t.sig.saved = t.sig.blocked
	t.User.Work.Or(workMask)
	t.setBlocked(mask)
}

// RestoreTempMask ends SetTempMask: unless the call was interrupted the old
// mask is back at once.
func (t *Thread) RestoreTempMask(interrupted bool) {
	if !interrupted && t.User.Work.Load()&workMask != 0 {
		t.User.Work.And(^workMask)
		t.setBlocked(t.sig.saved)
	}
}

// SignalSelf is caller.SignalSelf for threads.
func SignalSelf(c *caller.Ctx, sig int) {
	if t := Of(c); t != nil {
		info := UserInfo(c, linux.Signal(sig), linux.SI_USER)
		t.Signal(&info)
	}
}

// SetAction changes what the process does with a signal and returns what it did.
func (p *Process) SetAction(sig linux.Signal, act *linux.SigAction) (old linux.SigAction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.sig.actions
	old = a.Get(sig)
	if act == nil {
		return old
	}
	act.Mask &^= signals.Unblockable
	if a.Set(sig, act) {
		p.dropPending(sig.Set()) // POSIX: setting to ignore discards
	}
	return old
}

// MaySignal is the permission check of kill(2), for a signal to a process or to its
// thread to. For a zombie, its leader's credentials count.
func MaySignal(c *creds.Cred, target *Process, to *Thread, sig linux.Signal, sameSession bool) bool {
	var o *creds.Cred
	if to != nil {
		o = to.Cred()
	} else if o = target.Cred(); o == nil {
		return true
	}
	return c.EUID == o.SUID || c.EUID == o.UID || c.UID == o.SUID || c.UID == o.UID ||
		sig == linux.SIGCONT && sameSession || c.Has(creds.CapKill)
}

// maySignalIO is the check for SIGIO, with only the user IDs of the process that asked
// for it.
func maySignalIO(c, o *creds.Cred) bool {
	return c.EUID == 0 || c.EUID == o.SUID || c.EUID == o.UID || c.UID == o.SUID || c.UID == o.UID
}

// SignalFor sends what F_SETOWN asked for: to thread (0), process (1) or group
// (2) id, as far as the credentials of whoever asked allow.
func SignalFor(kind int, id int32, info *linux.Siginfo, asker *creds.Cred) {
	send := func(p *Process, t *Thread) {
		o := p.Cred()
		if t != nil {
			o = t.Cred()
		}
		if o != nil && maySignalIO(asker, o) {
			p.send(t, info)
		}
	}
	switch kind {
	case 0:
		if t := ByTID(id); t != nil {
			send(t.Proc, t)
		}
	case 1:
		if p := Lookup(id); p != nil {
			send(p, nil)
		}
	case 2:
		for _, p := range GroupMembers(id) {
			send(p, nil)
		}
	}
}
