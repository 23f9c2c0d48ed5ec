package tty

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

// JobControl is what terminals need of processes. Sessions and groups are
// named by their numbers; 0 is none.
type JobControl interface {
	// Caller returns the calling process's session and group and whether it
	// leads the session; zeros for kernel goroutines.
	Caller(c *caller.Ctx) (session, group int32, leader bool)
	// Ignores reports whether the caller blocks or ignores a signal.
	Ignores(c *caller.Ctx, sig linux.Signal) bool
	// Orphaned reports whether a group is orphaned.
	Orphaned(group int32) bool
	// SessionOf returns the session of a group.
	SessionOf(group int32) int32
	// SignalGroup and SignalLeader send a signal to a group, and to the leader
	// of a session.
	SignalGroup(group int32, sig linux.Signal)
	SignalLeader(session int32, sig linux.Signal)
	// SetTerminal says what a session's controlling terminal is; nil: none.
	SetTerminal(session int32, t *TTY)
	// Install gives the caller a descriptor for a file (TIOCGPTPEER).
	Install(c *caller.Ctx, f *vfs.File, cloexec bool) (int32, linux.Errno)
}

// jobs is the kernel's processes; set once before the first program runs.
var jobs JobControl = noJobs{}

// SetJobControl plugs the processes in. There is one implementation: a second call
// panics.
func SetJobControl(j JobControl) {
	if jobs != (noJobs{}) {
		panic("tty: job control is set twice")
	}
	jobs = j
}

// noJobs is a world without processes.
type noJobs struct{}

func (noJobs) Caller(*caller.Ctx) (int32, int32, bool) { return 0, 0, false }
func (noJobs) Ignores(*caller.Ctx, linux.Signal) bool  { return false }
func (noJobs) Orphaned(int32) bool                     { return false }
func (noJobs) SessionOf(int32) int32                   { return 0 }
func (noJobs) SignalGroup(int32, linux.Signal)         {}
func (noJobs) SignalLeader(int32, linux.Signal)        {}
func (noJobs) SetTerminal(int32, *TTY)                 {}
func (noJobs) Install(*caller.Ctx, *vfs.File, bool) (int32, linux.Errno) {
	return -1, linux.ENOSYS
}

var (
	jobsMu sync.Mutex
	// terminals has the controlling terminal of each session that has one;
	// guarded by jobsMu.
	terminals = map[int32]*TTY{}
)

// Controlling returns the caller's controlling terminal, or nil.
func Controlling(c *caller.Ctx) *TTY {
	session, _, _ := jobs.Caller(c)
	return OfSession(session)
}

// OfSession returns a session's controlling terminal, or nil.
func OfSession(session int32) *TTY {
	if session == 0 {
		return nil
	}
	jobsMu.Lock()
	defer jobsMu.Unlock()
	return terminals[session]
}

// Foreground returns the terminal's session and foreground group.
func (t *TTY) Foreground() (session, group int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.group
}

// Device returns the terminal's st_rdev.
func (t *TTY) Device() uint64 { return linux.Makedev(t.major, t.minor) }

// ForegroundGroup returns the group in the foreground, 0 for none.
func (t *TTY) ForegroundGroup() int32 {
	_, group := t.Foreground()
	return group
}

// Adopt makes the terminal a session's controlling one with a group in the
// foreground (the first process, which opens nothing itself).
func (t *TTY) Adopt(session, group int32) {
	jobsMu.Lock()
	defer jobsMu.Unlock()
	t.mu.Lock()
	t.adopt(session, group)
	t.mu.Unlock()
}

// adopt is Adopt with jobsMu and mu held.
func (t *TTY) adopt(session, group int32) {
	t.forgetSession()
	t.session, t.group = session, group
	terminals[session] = t
	jobs.SetTerminal(session, t)
}

// forgetSession ends being a controlling terminal; called with jobsMu and mu held.
func (t *TTY) forgetSession() {
	if t.session != 0 {
		delete(terminals, t.session)
		jobs.SetTerminal(t.session, nil)
	}
	t.session, t.group = 0, 0
}

// SessionEnded is told that a session's leader has ended: its terminal hangs up.
// A pty does not, for its master is still there: only the foreground hears of it.
func SessionEnded(session int32) {
	switch t := OfSession(session); {
	case t == nil:
	case t.pty:
		t.leave(session, linux.SIGHUP)
	default:
		t.hangup(true)
	}
}

// leave ends being the session's controlling terminal and signals the
// foreground.
func (t *TTY) leave(session int32, sigs ...linux.Signal) {
	jobsMu.Lock()
	t.mu.Lock()
	if t.session != session {
		t.mu.Unlock()
		jobsMu.Unlock()
		return
	}
	group := t.group
	t.forgetSession()
	t.mu.Unlock()
	jobsMu.Unlock()
	if group == 0 {
		return
	}
	for _, sig := range sigs {
		jobs.SignalGroup(group, sig)
	}
}

// opened makes the terminal the controlling one of a session leader without.
func (t *TTY) opened(c *caller.Ctx) {
	session, group, leader := jobs.Caller(c)
	if !leader || session == 0 {
		return
	}
	jobsMu.Lock()
	defer jobsMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if terminals[session] == nil && t.session == 0 {
		t.adopt(session, group)
	}
}

// steal is TIOCSCTTY.
func (t *TTY) steal(c *caller.Ctx, f *vfs.File, force bool) linux.Errno {
	session, group, leader := jobs.Caller(c)
	jobsMu.Lock()
	defer jobsMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	admin := c.Cred().Has(creds.CapSysAdmin)
	switch {
	case leader && session != 0 && t.session == session:
		return 0
	case !leader || session == 0 || terminals[session] != nil:
		return linux.EPERM
	case t.session != 0 && !(force && admin):
		return linux.EPERM
	case !f.Readable() && !admin:
		return linux.EPERM
	}
	t.adopt(session, group)
	return 0
}

// giveUp is TIOCNOTTY: a session leader's whole session loses its terminal.
// (Another process keeps it, since terminals belong to sessions here.)
func (t *TTY) giveUp(c *caller.Ctx) linux.Errno {
	session, _, leader := jobs.Caller(c)
	if session == 0 || OfSession(session) != t {
		return linux.ENOTTY
	}
	if !leader {
		return 0
	}
	t.leave(session, linux.SIGHUP, linux.SIGCONT)
	return 0
}

// mayChange stops a background process that reads (SIGTTIN) or changes the
// terminal (SIGTTOU): ERESTARTSYS after the signal was sent.
func (t *TTY) mayChange(c *caller.Ctx, sig linux.Signal) linux.Errno {
	session, group, _ := jobs.Caller(c)
	if session == 0 {
		return 0
	}
	t.mu.Lock()
	mine, foreground := t.session == session, t.group
	t.mu.Unlock()
	if !mine || foreground == 0 || foreground == group {
		return 0
	}
	if jobs.Ignores(c, sig) {
		if sig == linux.SIGTTIN {
			return linux.EIO
		}
		return 0
	}
	if jobs.Orphaned(group) {
		return linux.EIO
	}
	jobs.SignalGroup(group, sig)
	return linux.ERESTARTSYS
}

// foregroundOf is TIOCGPGRP and TIOCGSID: only the caller's own terminal tells,
// and a pty's master of its slave.
func (t *TTY) foregroundOf(c *caller.Ctx, master bool) (session, group int32, e linux.Errno) {
	s, _, _ := jobs.Caller(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !master && (s == 0 || t.session != s) {
		return 0, 0, linux.ENOTTY
	}
	return t.session, t.group, 0
}

// setForeground is TIOCSPGRP.
func (t *TTY) setForeground(c *caller.Ctx, group int32) linux.Errno {
	if e := t.mayChange(c, linux.SIGTTOU); e != 0 {
		if e == linux.EIO {
			e = linux.ENOTTY
		}
		return e
	}
	session, _, _ := jobs.Caller(c)
	jobsMu.Lock()
	defer jobsMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if session == 0 || t.session != session {
		return linux.ENOTTY
	}
	if group < 0 {
		return linux.EINVAL
	}
	switch jobs.SessionOf(group) {
	case 0:
		return linux.ESRCH
	case session:
		t.group = group
		return 0
	}
	return linux.EPERM
}
