package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
)

// A Go panic below serve (a system call, a fault, a signal's delivery) is a bug of the
// kernel. The thread's process dies of it and the others go on, if the panicking
// goroutine left no lock behind. A panic anywhere else stops the machine.

// Hooks for panics.
var (
	// MayOutlive is asked before a panic is recovered from, on the panicking
	// goroutine. If it says no the Go runtime prints the panic and ends the machine.
	MayOutlive = hook.Default(func() bool { return false })
	// Oops reports a panic from which the kernel has recovered, while the stack is
	// still that of the panic.
	Oops = hook.Default(func(t *Thread, reason any) {})
)

// caught is deferred by serve. recover works only in the deferred function itself.
func (r *runner) caught(returned *bool, end **Thread) {
	if *returned || !MayOutlive.Call() {
		return
	}
	reason := recover()
	t := r.thread
	Oops.Call(t, reason)
	t.Entry.Leave()
	t.Proc.kill()
	*end = t
}

// kill ends the process as SIGKILL does.
func (g *threadGroup) kill() {
	g.mu.Lock()
	g.beginExit(int32(linux.SIGKILL))
	g.resumeForKill()
	g.mu.Unlock()
}
