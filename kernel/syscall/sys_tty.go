package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/proc"
	"hardtack/kernel/tty"
	"hardtack/kernel/vfs"
)

var ttyCalls = []Call{
	{linux.SYS_vhangup, "vhangup", sysVhangup, "works"},
}

func init() {
	tty.SetJobControl(jobControl{})
	proc.SessionEnded = func(s *proc.Session) { tty.SessionEnded(s.ID) }
}

// sysVhangup is vhangup(): it hangs the caller's terminal up.
func sysVhangup(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(kern.CapSysTTYConfig) {
		return 0, linux.EPERM
	}
	if x := tty.Controlling(&t.Ctx); x != nil {
		x.Hangup()
	}
	return 0, 0
}

// jobControl is processes as terminals see them.
type jobControl struct{}

// Caller returns the calling process's session and group.
func (jobControl) Caller(c *kern.Ctx) (session, group int32, leader bool) {
	t := proc.Of(c)
	if t == nil {
		return 0, 0, false
	}
	g := t.Proc.Group()
	return g.Session.ID, g.ID, g.Session.ID == t.Proc.PID
}

// Ignores reports whether the calling thread blocks or ignores a signal.
func (jobControl) Ignores(c *kern.Ctx, sig linux.Signal) bool {
	t := proc.Of(c)
	return t != nil && t.BlocksOrIgnores(sig)
}

// Orphaned reports whether a group is orphaned.
func (jobControl) Orphaned(group int32) bool {
	g := proc.GroupByID(group)
	return g != nil && g.IsOrphaned()
}

// SessionOf returns the session of a group, 0 if there is none.
func (jobControl) SessionOf(group int32) int32 {
	if g := proc.GroupByID(group); g != nil {
		return g.Session.ID
	}
	return 0
}

// SignalGroup sends a signal to a process group.
func (jobControl) SignalGroup(group int32, sig linux.Signal) { proc.SignalGroup(group, sig) }

// SignalLeader sends a signal to a session's leader.
func (jobControl) SignalLeader(session int32, sig linux.Signal) {
	if p := proc.Lookup(session); p != nil {
		p.SendSignal(sig)
	}
}

// SetTerminal tells a session of its controlling terminal.
func (jobControl) SetTerminal(session int32, x *tty.TTY) {
	s := proc.SessionByID(session)
	if s == nil {
		return
	}
	if x == nil {
		s.SetTTY(nil)
	} else {
		s.SetTTY(x)
	}
}

// Install gives the caller a descriptor.
func (jobControl) Install(c *kern.Ctx, f *vfs.File, cloexec bool) (int32, linux.Errno) {
	t := proc.Of(c)
	if t == nil {
		return -1, linux.EBADF
	}
	return t.FDs.Add(f, 0, t.NoFile(), cloexec)
}
