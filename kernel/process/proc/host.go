package proc

import "hardtack/nucleus"

// What the tests' world (kernel/process/proctest) is built on. A host has no user mode, and its
// tests bring the program.

// StartOnHost makes process 1 without a program. Its threads, and those of all processes
// after it, run loop instead of user mode.
func StartOnHost(a *StartArgs, loop func(t *Thread)) *Thread {
	threadLoop = func(t *Thread) (*nucleus.UserContext, bool) {
		if t.Return() {
			loop(t)
		}
		return nil, true
	}
	return newInit(a)
}

// Launch runs the thread that StartOnHost made.
func (t *Thread) Launch() { t.launch() }

// Return does what is due when a thread goes back to user mode. If it is false the
// thread must end.
func (t *Thread) Return() bool { return t.User.Work.Load() == 0 || t.handleWork() }

// Ending reports whether the thread has been told to end.
func (t *Thread) Ending() bool { return t.User.Work.Load()&workExit != 0 }
