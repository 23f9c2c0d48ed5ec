package proc

//oops:stop without process 1 there is nothing to go on with

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/program"
	"hardtack/kernel/process/signals"
)

// Start makes process 1 and begins to run it. The program is started on the new
// thread's own goroutine; done, where given, is told how that went before user
// mode is entered.
func Start(a *StartArgs) linux.Errno {
	t := newInit(a)
	if e := t.goTo(a.Dir); e != 0 {
		return e
	}
	if e := t.Exec(&program.Args{Path: a.Path, Walk: vfs.FollowLast, Argv: a.Argv, Env: a.Env}); e != 0 {
		return e
	}
	t.launch()
	return 0
}

// goTo changes to the program's working directory.
func (t *Thread) goTo(dir string) linux.Errno {
	if dir == "" {
		return 0
	}
	p, e := vfs.Lookup(&t.Ctx, t.FS, nil, dir, vfs.FollowLast)
	if e == 0 {
		e = t.FS.Chdir(&t.Ctx, p)
	}
	return e
}

// newInit makes process 1 without a program.
func newInit(a *StartArgs) *Thread {
	t := newRoot(a)
	p := t.Proc
	p.PID, t.PID, t.TID = 1, 1, 1
	if a.Console != nil {
		for i := range 3 {
			a.Console.Get()
			if _, e := t.FDs.Add(a.Console, i, 3, false); e != 0 {
				a.Console.Put()
			}
		}
		a.Console.Put()
	}
	p.reaps, p.sig.unkillable = a.Reap, !a.Reap
	p.charge()
	treeMu.Lock()
	defer treeMu.Unlock()
	if pid := allocPID(0); pid != 1 {
		panic("proc: process 1 exists already")
	}
	t.root()
	return t
}

// newRoot makes a process without parent, program and number.
func newRoot(a *StartArgs) *Thread {
	now := clocks.Monotonic()
	p := &Process{startTime: now}
	p.exitSignal.Store(int32(linux.SIGCHLD))
	p.limits.init()
	t := &Thread{Proc: p, startTime: now, FS: a.FS}
	t.Futex.Init(&t.Ctx)
	t.Futex.RaiseWith(t)
	cred := a.Cred
	if cred == nil {
		cred = &creds.RootCred
	}
	t.SetCred(cred)
	t.FileSizeLimit.Store(linux.RLIM_INFINITY)
	t.User.Reset()
	t.FDs = vfs.NewFDTable(cred)
	p.uid.Store(cred.UID)
	p.sig.actions = signals.NewActions()
	p.sig.user = t.Ctx.User()
	p.leader, p.first = t, t
	p.threads = append(p.threads, t)
	if a.origin != nil {
		a.origin.give(t)
	}
	return t
}

// root makes a process known that has a number and no parent; called with treeMu held.
func (t *Thread) root() {
	p := t.Proc
	s := slotOf(p.PID)
	s.proc.Store(p)
	s.thread.Store(t)
	newSession(p)
	nProcesses.Add(1)
	nThreads.Add(1)
}
