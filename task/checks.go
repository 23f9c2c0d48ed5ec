package task

import (
	"os"

	"hardtack/lock/core"
)

// ChecksEnv names the environment variable that gives all runtimes WithChecks
// when it is set to anything but the empty string.
const ChecksEnv = "HARDTACK_TASK_CHECKS"

// WithChecks finds every misuse of a Ctx or Child of the ordinary form, at some
// hundred nanoseconds per spawn: for tests. Each task gets a Ctx of its own, which is no
// other task's ever after, and each Spawn and Sync asks which goroutine calls.
//
// Without it, use is found out of turn on the Ctx's own worker, after its Run, a
// stolen task or one of a Group has returned, and on another goroutine wherever a
// call does not take the short way (Block, Fast, NewGroup, a Spawn of another
// function than the last at this depth, a Sync of a stolen child). Not found: the
// other uses of a parent's Ctx in a stolen child, a data race that the race
// detector finds; and its use in a child that the parent runs itself, where it
// does no harm, since the two are one.
func WithChecks() Option {
	return func(rt *Runtime) (int, error) { rt.checks = true; return 0, nil }
}

func checksWanted() bool { return os.Getenv(ChecksEnv) != "" }

// onIt tells whether the caller is w's goroutine.
func (w *Worker) onIt() bool { return w.self.Load() == core.Self() }

// callChecked is call with an activation of the child's own.
func (s *slot[A, R]) callChecked(a *activation) R {
	w := a.w
	b, fine := w.enter(a.top(), w.scope()), false
	defer func() {
		if fine {
			w.leave(b)
			return
		}
		p := w.failed(b, recover())
		w.leave(b)
		p.throw()
	}()
	r := s.fn(Ctx{b}, s.arg)
	if b.used != 0 {
		b.syncFrom(0)
	}
	fine = true
	return r
}
