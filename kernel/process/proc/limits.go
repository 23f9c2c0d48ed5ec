package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
)

// limit is one resource limit; readers take no lock, writers hold Process.mu.
type limit struct{ cur, max atomic.Uint64 }

// firstLimits are process 1's (include/asm-generic/resource.h), the rest is unlimited.
func (p *Process) firstLimits() {
	for i := range p.limits {
		p.setLimit(i, linux.RLIM_INFINITY, linux.RLIM_INFINITY)
	}
	half := uint64(MaxThreads() / 2)
	p.setLimit(linux.RLIMIT_STACK, 8<<20, linux.RLIM_INFINITY)
	p.setLimit(linux.RLIMIT_CORE, 0, linux.RLIM_INFINITY)
	p.setLimit(linux.RLIMIT_NPROC, half, half)
	p.setLimit(linux.RLIMIT_NOFILE, 1024, uint64(settings.NrOpen.Get()))
	p.setLimit(linux.RLIMIT_MEMLOCK, 8<<20, 8<<20)
	p.setLimit(linux.RLIMIT_SIGPENDING, half, half)
	p.setLimit(linux.RLIMIT_MSGQUEUE, 819200, 819200)
	p.setLimit(linux.RLIMIT_NICE, 0, 0)
	p.setLimit(linux.RLIMIT_RTPRIO, 0, 0)
}

func (p *Process) setLimit(n int, cur, max uint64) {
	p.limits[n].cur.Store(cur)
	p.limits[n].max.Store(max)
}

// limitOf is what the address space asks.
func (p *Process) limitOf(n int) uint64 { return p.limits[n].cur.Load() }

// Rlimit returns a resource limit.
func (p *Process) Rlimit(n int) linux.Rlimit {
	return linux.Rlimit{Cur: p.limits[n].cur.Load(), Max: p.limits[n].max.Load()}
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
	switch {
	case l.Cur > l.Max:
		return linux.EINVAL
	case n == linux.RLIMIT_NOFILE && l.Max > uint64(settings.NrOpen.Get()),
		l.Max > p.limits[n].max.Load() && !c.Has(creds.CapSysResource):
		return linux.EPERM
	}
	p.setLimit(n, l.Cur, l.Max)
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
	return max(min(p.limits[linux.RLIMIT_STACK].cur.Load()/4, 6<<20), 128<<10)
}
