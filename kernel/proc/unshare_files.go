package proc

// UnshareFiles gives the calling thread a descriptor table of its own, a copy
// of the present one.
func (t *Thread) UnshareFiles() {
	n := t.FDs.Fork()
	t.Proc.mu.Lock()
	old := t.FDs
	t.FDs = n
	t.Proc.mu.Unlock()
	t.forgetTargets()
	old.Release(&t.Ctx)
}
