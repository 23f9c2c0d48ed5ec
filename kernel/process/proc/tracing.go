package proc

import "sync/atomic"

// tracing says whose calls are intercepted. Each thread has a function of its own for its
// calls, so that those of others cost nothing more.
var tracing struct {
	session atomic.Uint32 // processes with this mark (Process.Traced); 0: none
	all     atomic.Bool   // all processes
}

// SetTracing has calls of marked processes, or of all, go through Intercept from each thread's
// next way into user mode on; session 0 and no all ends that.
func SetTracing(session uint32, all bool) {
	tracing.session.Store(session)
	tracing.all.Store(all)
	Each(func(p *Process) bool {
		p.lookAtTracing()
		return true
	})
}

// TracingAll reports whether all processes' calls are intercepted.
func TracingAll() bool { return tracing.all.Load() }

// Trace gives the process a session's mark.
func (p *Process) Trace(session uint32) {
	p.Traced.Store(session)
	p.lookAtTracing()
}

// lookAtTracing has the process's threads choose again. Those that are made meanwhile choose
// when they begin.
func (p *Process) lookAtTracing() {
	for _, t := range p.Threads() {
		t.User.Work.Or(workChoose)
		t.User.Kick()
	}
}

// chooseCall chooses what carries out the thread's calls; it is the thread itself.
func (t *Thread) chooseCall() {
	t.doCall = Syscall.Call
	if s := tracing.session.Load(); s != 0 && t.Proc.Traced.Load() == s || tracing.all.Load() {
		t.doCall = Intercept.Call
	}
}
