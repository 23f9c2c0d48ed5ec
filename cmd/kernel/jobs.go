package main

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/tty"
)

// jobs is tty.JobControl over the processes.
type jobs struct{}

func (jobs) Caller(c *caller.Ctx) (session, group int32, leader bool) {
	t := proc.Of(c)
	if t == nil {
		return 0, 0, false
	}
	s := t.Proc.Session()
	return s.ID, t.Proc.Group().ID, s.ID == t.Proc.PID
}

func (jobs) Ignores(c *caller.Ctx, sig linux.Signal) bool {
	t := proc.Of(c)
	return t == nil || t.BlocksOrIgnores(sig)
}

func (jobs) Orphaned(group int32) bool {
	g := proc.GroupByID(group)
	return g == nil || g.IsOrphaned()
}

func (jobs) SessionOf(group int32) int32 {
	if g := proc.GroupByID(group); g != nil {
		return g.Session.ID
	}
	return 0
}

func (jobs) SignalGroup(group int32, sig linux.Signal) { proc.SignalGroup(group, sig) }

func (jobs) SignalLeader(session int32, sig linux.Signal) {
	if p := proc.Lookup(session); p != nil {
		p.SendSignal(sig)
	}
}

func (jobs) SetTerminal(session int32, t *tty.TTY) {
	s := proc.SessionByID(session)
	if s == nil {
		return
	}
	if t == nil {
		s.SetTTY(nil) // not a TTY in the interface that is nil
		return
	}
	s.SetTTY(t)
}

func (jobs) Install(c *caller.Ctx, f *vfs.File, cloexec bool) (int32, linux.Errno) {
	t := proc.Of(c)
	if t == nil {
		return -1, linux.ENOSYS
	}
	return t.FDs.Add(f, 0, t.NoFile(), cloexec)
}
