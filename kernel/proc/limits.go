package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/vfs"
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
	p.setLimit(linux.RLIMIT_NOFILE, 1024, vfs.MaxFDs)
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

// SetRlimit changes a resource limit with the rights of c.
func (p *Process) SetRlimit(c *kern.Cred, n int, l linux.Rlimit) linux.Errno {
	if l.Cur > l.Max {
		return linux.EINVAL
	}
	if n == linux.RLIMIT_NOFILE && l.Max > vfs.MaxFDs {
		return linux.EPERM
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Max > p.limits[n].max.Load() && !c.Has(kern.CapSysResource) {
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
