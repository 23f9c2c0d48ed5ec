package proc

import (
	"hardtack/abi/linux"
	"hardtack/nucleus"
)

// restartState is what becomes of a call that a signal interrupted; the thread's.
type restartState struct {
	callNumber uint64      // number of the call in progress
	restartErr linux.Errno // a restart error to be dealt with
	restartFn  func(t *Thread) (uint64, linux.Errno)
}

// SetCallNumber remembers which call is in progress.
func (r *restartState) SetCallNumber(nr uint64) { r.callNumber = nr }

// CallNumber returns the number of the call in progress, or of the last one.
func (r *restartState) CallNumber() uint64 { return r.callNumber }

// SetRestart stores how to continue an interrupted call, and returns the error that makes
// restart_syscall do so.
func (r *restartState) SetRestart(fn func(t *Thread) (uint64, linux.Errno)) linux.Errno {
	r.restartFn = fn
	return linux.ERESTART_RESTARTBLOCK
}

// ResumeRestart is restart_syscall: it goes on with the interrupted call.
func (t *Thread) ResumeRestart() (uint64, linux.Errno) {
	fn := t.restartFn
	t.restartFn = nil
	if fn == nil {
		return 0, linux.EINTR
	}
	return fn(t)
}

// FinishRestart records that the call ended with a restart error, which never
// reaches the program: a handler turns it into EINTR or a restart.
func (t *Thread) FinishRestart(e linux.Errno) {
	t.restartErr = e
	t.User.Work.Or(workSignal) // at least look
}

const syscallInsnLen = 2

// again makes the program call again, no handler having run.
func (r *restartState) again(u *nucleus.UserContext) {
	nr := r.callNumber
	if r.restartErr == linux.ERESTART_RESTARTBLOCK {
		nr = linux.SYS_restart_syscall
	}
	r.restartErr = 0
	u.RAX = nr
	u.RIP -= syscallInsnLen
}

// beforeHandler settles an interrupted call before a handler runs.
func (r *restartState) beforeHandler(u *nucleus.UserContext, act *linux.SigAction) {
	e := r.restartErr
	if e == 0 {
		return
	}
	r.restartErr = 0
	if e == linux.ERESTARTNOINTR || e == linux.ERESTARTSYS && act.Flags&linux.SA_RESTART != 0 {
		u.RAX = r.callNumber
		u.RIP -= syscallInsnLen
		return
	}
	u.RAX = ^uint64(linux.EINTR) + 1
}
