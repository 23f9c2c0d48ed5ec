package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
	"hardtack/nucleus"
)

// One process may look into another if it could trace it (ptrace_may_access).
// Exec and changes of credentials alter the answer, so that a look is a check and
// a take under the same Process.mu: what was taken belonged to what was checked.
// Nobody keeps a share of another's descriptor table or directories: both
// outlive an exec, and the share would show what the new program opens.

// Creds says which credentials of the asker count.
type Creds uint8

// Kinds of credentials.
const (
	FSCreds   Creds = iota // file-system IDs, effective capabilities: /proc
	RealCreds              // real IDs, permitted capabilities: system calls
)

// mayInspect is the rule. o are the credentials of the thread that is looked
// into, s its address space, nil if it has given that up.
func mayInspect(c *creds.Cred, as Creds, o *creds.Cred, s *vm.Space) bool {
	uid, gid, caps := c.FSUID, c.FSGID, c.Effective
	if as == RealCreds {
		uid, gid, caps = c.UID, c.GID, c.Permitted
	}
	switch {
	case c.Has(creds.CapSysPtrace):
		return true
	case uid != o.UID || uid != o.EUID || uid != o.SUID:
		return false
	case gid != o.GID || gid != o.EGID || gid != o.SGID:
		return false
	case s != nil && s.Dumpable() != vm.DumpUser:
		return false
	}
	return o.Permitted&^caps == 0
}

// subject returns the thread that speaks for the process, its first one, and its
// credentials. The thread is nil once it has ended: nothing can be seen through it
// then. Called with mu held.
func (g *threadGroup) subject() (*Thread, *creds.Cred) { return g.leader, g.first.Cred() }

// Inspect calls take with the process locked if the asker may look into its
// thread t, or into its first thread if t is nil; u is that
// thread, nil if the first has ended. It reports whether the asker may.
func (p *Process) Inspect(t *Thread, c *caller.Ctx, as Creds, take func(u *Thread)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var o *creds.Cred
	if t == nil {
		t, o = p.subject()
	} else {
		o = t.Cred()
	}
	if c.PID != p.PID && o != nil {
		var s *vm.Space
		if t != nil {
			s = t.Space
		}
		if !mayInspect(c.Cred(), as, o, s) {
			return false
		}
	}
	if take != nil {
		take(t)
	}
	return true
}

// InspectSpace returns the address space of a process or of its thread t, which
// may be nil, to look at (EndLook), and the program in it; nil if there is none
// any more. EPERM if the asker may not.
func (p *Process) InspectSpace(t *Thread, c *caller.Ctx, as Creds) (s *vm.Space, img *program.Image, e linux.Errno) {
	if !p.Inspect(t, c, as, func(u *Thread) {
		if u != nil && u.Space != nil {
			s, img = u.Space, p.image.Load()
			s.Look()
		}
	}) {
		return nil, nil, linux.EPERM
	}
	return s, img, 0
}

// InspectFile returns an open file with a reference, and whether it is closed on
// exec; nil if there is none. EPERM if the asker may not.
func (p *Process) InspectFile(t *Thread, c *caller.Ctx, as Creds, fd int32) (f *vfs.File, cloexec bool, e linux.Errno) {
	if !p.Inspect(t, c, as, func(u *Thread) {
		if u != nil && u.FDs != nil {
			f, cloexec = u.FDs.Hold(fd) // the end of a file may signal this process
		}
	}) {
		return nil, false, linux.EPERM
	}
	return f, cloexec, 0
}

// InspectFDs puts numbers of open descriptors from first on into list and
// returns how many.
func (p *Process) InspectFDs(t *Thread, c *caller.Ctx, as Creds, first int32, list []int32) (n int, e linux.Errno) {
	if !p.Inspect(t, c, as, func(u *Thread) {
		if u == nil || u.FDs == nil {
			return
		}
		for fd := u.FDs.Next(first); fd >= 0 && n < len(list); fd = u.FDs.Next(fd + 1) {
			list[n] = fd
			n++
		}
	}) {
		return 0, linux.EPERM
	}
	return n, 0
}

// InspectDirs returns root and working directory, zero paths if there are none.
func (p *Process) InspectDirs(t *Thread, c *caller.Ctx, as Creds) (root, cwd vfs.Path, e linux.Errno) {
	if !p.Inspect(t, c, as, func(u *Thread) {
		if u != nil && u.FS != nil {
			root, cwd = u.FS.Root(), u.FS.Cwd()
		}
	}) {
		return root, cwd, linux.EPERM
	}
	return root, cwd, 0
}

// Shared says what kcmp compares.
type Shared int

// What two threads may share, in kcmp's numbers.
const (
	SharedVM      Shared = 1
	SharedFiles   Shared = 2
	SharedFS      Shared = 3
	SharedSighand Shared = 4
)

// InspectShared returns what stands for what a thread may share: the same value
// for all that share it.
func (t *Thread) InspectShared(c *caller.Ctx, what Shared) (v any, e linux.Errno) {
	if !t.Proc.Inspect(t, c, RealCreds, func(u *Thread) {
		switch what {
		case SharedVM:
			v = u.Space
		case SharedFiles:
			v = u.FDs
		case SharedFS:
			v = u.FS
		default:
			v = t.Proc.sig.actions
		}
	}) {
		return nil, linux.EPERM
	}
	return v, 0
}

// Owner returns whose the process's files in /proc are: its effective user's, or
// root's if the process is not dumpable and always is false.
func (g *threadGroup) Owner(t *Thread, always bool) (uid, gid uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var o *creds.Cred
	if t == nil {
		t, o = g.subject()
	} else {
		o = t.Cred()
	}
	if o == nil || !always && t != nil && t.Space != nil && t.Space.Dumpable() != vm.DumpUser {
		return 0, 0
	}
	return o.EUID, o.EGID
}

// Children returns the numbers of the children of the process, if t is its first
// thread.
func (t *Thread) Children() (pids []int32) {
	if t.TID != t.Proc.PID {
		return nil
	}
	treeMu.Lock()
	defer treeMu.Unlock()
	for c := t.Proc.firstChild; c != nil; c = c.nextSibling {
		pids = append(pids, c.PID)
	}
	return pids
}

// Call is the system call that a thread is in.
type Call struct {
	In     bool // else it is in no call
	Number uint64
	Args   [6]uint64
	SP, PC uint64
}

// Call returns the call in which the thread is blocked, or which it is making if it
// asks itself. It tells nothing of a thread that runs.
func (t *Thread) Call(itself bool) (c Call, running bool) {
	switch s := t.State(); {
	case s >= StateZombie:
		return c, false
	case s == StateRunning && !itself:
		return c, true
	}
	if c.In = t.User.Trap.Kind == nucleus.TrapSyscall; c.In {
		c.Number, c.Args = t.callNumber, t.Args
	}
	c.SP, c.PC = t.User.RSP, t.User.RIP
	return c, false
}

// Exiting reports that all threads are to end or have ended.
func (g *threadGroup) Exiting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.exiting
}
