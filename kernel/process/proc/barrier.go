package proc

import "runtime"

// Barrier makes every thread of the process (of the system with all) that runs
// in user mode come into the kernel once, which orders its memory accesses. A
// thread in the kernel is ordered by its way out.
func (t *Thread) Barrier(all bool) {
	kick := func(p *Process) bool {
		for _, u := range p.Threads() {
			if u != t {
				u.leaveUserMode()
			}
		}
		return true
	}
	if all {
		Each(kick)
	} else {
		kick(t.Proc)
	}
}

// leaveUserMode returns when the thread has been outside of user mode at least
// for a moment. While it has not, the kick is still to be taken note of.
func (t *Thread) leaveUserMode() {
	u := &t.User
	if u.CPU.Load() == 0 {
		return
	}
	u.Kick()
	for u.CPU.Load() != 0 && u.UserState.Kick.Load() != 0 {
		runtime.Gosched()
	}
}
