package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
)

// resourceLimits are a process's limits; readers take no lock, writers hold Process.mu.
type resourceLimits [linux.RLIM_NLIMITS]struct{ soft, hard atomic.Uint64 }

// init sets process 1's limits (include/asm-generic/resource.h); the rest is unlimited.
func (l *resourceLimits) init() {
	for i := range l {
		l.set(i, linux.RLIM_INFINITY, linux.RLIM_INFINITY)
	}
	half := uint64(MaxThreads() / 2)
	l.set(linux.RLIMIT_STACK, 8<<20, linux.RLIM_INFINITY)
	l.set(linux.RLIMIT_CORE, 0, linux.RLIM_INFINITY)
	l.set(linux.RLIMIT_NPROC, half, half)
	l.set(linux.RLIMIT_NOFILE, 1024, uint64(settings.NrOpen.Get()))
	l.set(linux.RLIMIT_MEMLOCK, 8<<20, 8<<20)
	l.set(linux.RLIMIT_SIGPENDING, half, half)
	l.set(linux.RLIMIT_MSGQUEUE, 819200, 819200)
	l.set(linux.RLIMIT_NICE, 0, 0)
	l.set(linux.RLIMIT_RTPRIO, 0, 0)
}

func (l *resourceLimits) set(n int, soft, hard uint64) {
	l[n].soft.Store(soft)
	l[n].hard.Store(hard)
}

// inherit sets the limits that a new process has from its parent.
func (l *resourceLimits) inherit(from *resourceLimits) {
	for i := range l {
		l.set(i, from.get(i), from[i].hard.Load())
	}
}

// get returns a soft limit: what counts. Address spaces ask it too.
func (l *resourceLimits) get(n int) uint64 { return l[n].soft.Load() }

// stackLimit is what RLIMIT_STACK is cut to for a program that is more than its
// caller (_STK_LIM): its caller must not choose where its mappings lie.
const stackLimit = 8 << 20

// secure is get as it will be for such a program.
func (l *resourceLimits) secure(n int) uint64 {
	v := l.get(n)
	if n == linux.RLIMIT_STACK {
		v = min(v, stackLimit)
	}
	return v
}

// cutStack does what secure says.
func (l *resourceLimits) cutStack() { l[linux.RLIMIT_STACK].soft.Store(l.secure(linux.RLIMIT_STACK)) }

// cpuTime says what is due after so many seconds of CPU time: a signal, or 0. It moves the
// soft limit, which the program sees, as on Linux.
func (l *resourceLimits) cpuTime(sec uint64) linux.Signal {
	c := &l[linux.RLIMIT_CPU]
	switch soft := c.soft.Load(); {
	case sec >= c.hard.Load():
		return linux.SIGKILL
	case sec >= soft:
		c.soft.Store(soft + 1)
		return linux.SIGXCPU
	}
	return 0
}

// change sets a limit with the rights of c.
func (l *resourceLimits) change(c *creds.Cred, n int, v *linux.Rlimit) linux.Errno {
	switch {
	case v.Cur > v.Max:
		return linux.EINVAL
	case n == linux.RLIMIT_NOFILE && v.Max > uint64(settings.NrOpen.Get()),
		v.Max > l[n].hard.Load() && !c.Has(creds.CapSysResource):
		return linux.EPERM
	}
	l.set(n, v.Cur, v.Max)
	return 0
}

// Rlimit returns a resource limit.
func (p *Process) Rlimit(n int) linux.Rlimit {
	return linux.Rlimit{Cur: p.limits.get(n), Max: p.limits[n].hard.Load()}
}

// Prlimit returns a resource limit and, where l is not nil, changes it, with the
// rights of c: another process must have the caller's real IDs throughout.
func (p *Process) Prlimit(c *caller.Ctx, n int, l *linux.Rlimit) (old linux.Rlimit, e linux.Errno) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cred := c.Cred()
	if _, o := p.subject(); c.PID != p.PID && o != nil && !cred.Has(creds.CapSysResource) &&
		(cred.UID != o.UID || cred.UID != o.EUID || cred.UID != o.SUID || cred.GID != o.GID || cred.GID != o.EGID || cred.GID != o.SGID) {
		return old, linux.EPERM
	}
	old = p.Rlimit(n)
	if l != nil {
		e = p.setRlimit(cred, n, l)
	}
	return old, e
}

// setRlimit changes a resource limit with the rights of c; called with mu held.
func (p *Process) setRlimit(c *creds.Cred, n int, l *linux.Rlimit) linux.Errno {
	if e := p.limits.change(c, n, l); e != 0 {
		return e
	}
	switch n {
	case linux.RLIMIT_FSIZE:
		for _, t := range p.threads {
			t.FileSizeLimit.Store(l.Cur)
		}
	case linux.RLIMIT_CPU:
		p.armTimers()
	}
	return 0
}

// ArgLimit returns how many bytes arguments and environment may take with
// their pointers: a quarter of the stack limit, at least 128 KiB, at most 6 MiB.
func (p *Process) ArgLimit() uint64 {
	return max(min(p.limits.get(linux.RLIMIT_STACK)/4, 6<<20), 128<<10)
}
