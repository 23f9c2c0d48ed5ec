package proc

import "hardtack/kernel/kern"

// Shared says what kcmp compares.
type Shared int

// What two threads may share, in kcmp's numbers.
const (
	SharedVM      Shared = 1
	SharedFiles   Shared = 2
	SharedFS      Shared = 3
	SharedSighand Shared = 4
)

// Same reports whether two threads share something.
func Same(a, b *Thread, what Shared) bool {
	get := func(t *Thread) any {
		t.Proc.mu.Lock()
		defer t.Proc.mu.Unlock()
		switch what {
		case SharedVM:
			return t.Space
		case SharedFiles:
			return t.FDs
		case SharedFS:
			return t.FS
		}
		return t.Proc.sig.actions
	}
	return get(a) == get(b)
}

// Exiting reports that all threads are to end or have ended.
func (p *Process) Exiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exiting
}

// IOPriority returns what ioprio_set set.
func (p *Process) IOPriority() int32 { return p.ioprio.Load() }

// SetIOPriority sets it.
func (p *Process) SetIOPriority(v int32) { p.ioprio.Store(v) }

// MayInspect is the rule who may look into a process (ptrace's read access).
func MayInspect(c *kern.Cred, p *Process) bool {
	o := p.Cred()
	if o == nil || c.Has(kern.CapSysPtrace) {
		return true
	}
	return c.FSUID == o.UID && c.FSUID == o.EUID && c.FSUID == o.SUID &&
		c.FSGID == o.GID && c.FSGID == o.EGID && c.FSGID == o.SGID && p.Dumpable() == 1
}
