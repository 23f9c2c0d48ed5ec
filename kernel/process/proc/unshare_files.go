package proc

import "hardtack/abi/linux"

// UnshareFiles gives the calling thread a descriptor table of its own, a copy
// of the present one; ENOMEM if its user may not have it.
func (t *Thread) UnshareFiles() linux.Errno {
	n, e := t.FDs.Fork()
	if e != 0 {
		return e
	}
	t.Proc.mu.Lock()
	old := t.FDs
	t.FDs = n
	t.Proc.mu.Unlock()
	t.forgetTargets()
	old.Release(&t.Ctx)
	return 0
}
