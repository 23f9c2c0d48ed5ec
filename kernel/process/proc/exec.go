package proc

//oops:stop half of the old program and half of the new

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
)

// Exec replaces the calling process's program. Everything that can fail is done
// in a new address space first; only then do the other threads end and is the
// old program given up.
func (t *Thread) Exec(a *program.Args) linux.Errno {
	// setuid does not fail for this reason, because programs that ignore the error would
	// continue as root.
	if t.tooMany = t.tooMany && t.Proc.manyThreads(t.Cred().User); t.tooMany {
		return linux.EAGAIN
	}
	var x program.Program
	if e := x.Open(&t.Ctx, t.FS, a); e != 0 {
		x.Close()
		return e
	}
	shared := t.beginExec()
	if !shared {
		defer t.FS.EndExec()
	}
	if e := x.Decide(t.Cred(), shared); e != 0 {
		x.Close()
		return e
	}
	p := t.Proc
	env := program.Env{Strings: a.Env, Personality: p.Personality(), Limits: p.limits.get}
	if x.Secure {
		env.Limits = p.limits.secure
	}
	s, img, start, e := x.Build(&t.Ctx, &env)
	if e != 0 {
		if x.Lost {
			t.dieLoading()
		}
		x.Close()
		return e
	}
	if !t.killSiblings() {
		s.Release()
		x.Close()
		return linux.EAGAIN // being killed; nobody sees this
	}
	x.TakeFile(img)
	x.Close()
	t.becomeProgram(&x, s, img, start)
	return 0
}

// dieLoading kills a process whose new program turned out to be unloadable at a point
// where, on Linux, the old program is already gone.
func (t *Thread) dieLoading() {
	p := t.Proc
	p.mu.Lock()
	p.beginExit(int32(linux.SIGSEGV))
	p.mu.Unlock()
}

// killSiblings ends the process's other threads. It reports false if the
// process is being killed instead.
func (t *Thread) killSiblings() bool {
	p := t.Proc
	p.mu.Lock()
	if p.exiting || p.execing != nil {
		p.mu.Unlock()
		return false
	}
	if len(p.threads) == 1 && t.TID == p.PID {
		p.mu.Unlock()
		return true
	}
	p.execing = t
	for _, u := range p.threads {
		if u != t {
			u.notify(workExit)
		}
	}
	for len(p.threads) > 1 && !p.exiting {
		t.Arm()
		p.mu.Unlock()
		t.SleepUninterruptible(wait.NoDeadline)
		p.mu.Lock()
	}
	p.execing = nil
	alone := !p.exiting
	p.mu.Unlock()
	if alone && t.TID != p.PID {
		t.becomeLeader()
	}
	return alone
}

// becomeLeader gives the last thread the number of the leader, which has ended.
func (t *Thread) becomeLeader() {
	p := t.Proc
	treeMu.Lock()
	slotOf(t.TID).thread.Store(nil)
	dropPID(t.TID)
	p.mu.Lock()
	t.TID = p.PID
	p.leader, p.first = t, t
	p.uncharge() // for the old leader
	p.mu.Unlock()
	slotOf(p.PID).thread.Store(t)
	treeMu.Unlock()
}

// becomeProgram is the point of no return: the thread, now alone, replaces the old
// program with the new one. Descriptors are adjusted before that, while they still belong
// to the old program.
func (t *Thread) becomeProgram(x *program.Program, s *vm.Space, img *program.Image, at program.Entry) {
	p := t.Proc
	if t.Space != nil {
		t.Futex.Exit(t.Space)
		t.Futex.Reset()
	}
	t.forgetRseq()
	t.restartFn = nil
	t.leavePartner()
	if t.FDs.Users() > 1 {
		fds := t.FDs
		own, e := fds.Fork()
		if e != 0 { // as on Linux, it is too late to go back
			own = vfs.NewFDTable(t.Cred())
			p.SendSignal(linux.SIGKILL)
		}
		p.mu.Lock()
		t.FDs = own
		p.mu.Unlock()
		fds.Release(&t.Ctx)
	}
	t.FDs.CloseExec(&t.Ctx)
	t.SetName(x.Comm)
	old, prev := t.assume(x, s, img)
	t.FDs.SetOwner(x.Cred)
	t.sig.alt.Clear()
	if old != nil {
		p.noteRSS(old)
		t.vforkDone()
		old.End(&t.Ctx)
	}
	if prev != nil && prev.File != nil {
		prev.File.Put()
	}
	Execed.Call(t)
	u := &t.User
	u.Reset()
	u.RIP, u.RSP = at.RIP, at.RSP
}

// beginExec reports whether another process shares the thread's directories. If
// not, none can begin to until FS.EndExec.
func (t *Thread) beginExec() (shared bool) {
	p := t.Proc
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, u := range p.threads {
		if u.FS == t.FS {
			n++
		}
	}
	return t.FS.BeginExec(n)
}
