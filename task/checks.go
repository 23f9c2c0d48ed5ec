package task

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
)

// ChecksEnv names the environment variable that gives all runtimes WithChecks
// when it is set to anything but the empty string.
const ChecksEnv = "HARDTACK_TASK_CHECKS"

// WithChecks finds every misuse of a Ctx or Child of the ordinary form, at some
// microseconds a spawn: for tests. Each task gets a Ctx of its own, which is no
// other task's ever after, and each Spawn and Sync asks which goroutine calls.
//
// Without it, the use of a Ctx is found out of turn on its own worker, and after
// its Run, a stolen task or one of a Group has returned. What is not found: the
// use of a parent's Ctx in a stolen child (a data race: the race detector finds
// it), and in a child that the parent runs itself (harmless then: they are one).
func WithChecks() Option {
	return func(rt *Runtime) (int, error) { rt.checks = true; return 0, nil }
}

func checksWanted() bool { return os.Getenv(ChecksEnv) != "" }

// goroutine is the number of the calling goroutine, as its stack trace tells.
func goroutine() uint64 {
	var buf [64]byte
	s, _ := bytes.CutPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	s, _, _ = bytes.Cut(s, []byte(" "))
	n, _ := strconv.ParseUint(string(s), 10, 64)
	return n
}

// onIt tells whether the caller is w's goroutine. For runtimes with checks.
func (w *Worker) onIt() bool { return w.self.Load() == goroutine() }

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
