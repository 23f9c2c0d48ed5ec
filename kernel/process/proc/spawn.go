package proc

//oops:stop a process that is known and never starts

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/program"
)

// Spawned is a process that the kernel started beside process 1: it has no parent and a
// session of its own. Whoever spawned it collects it with Collect.
type Spawned struct {
	*Process
	mu   sync.Mutex // before treeMu
	gone bool       // collected: its number may be another's; guarded by mu
}

// SignalGroup sends the processes of its group a signal, until it has been collected.
func (s *Spawned) SignalGroup(sig linux.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		SignalGroup(s.PID, sig)
	}
}

// Spawn makes a process with these descriptors, whose references it takes over. before is
// called when the process has its number, and before its program is loaded. Of several
// paths the first that can be loaded is; the error is that of the last but for files that
// are missing.
func Spawn(a *StartArgs, paths []string, files []*vfs.File, before func(pid int32)) (*Spawned, linux.Errno) {
	t := newRoot(a)
	p := t.Proc
	for i, f := range files {
		if _, e := t.FDs.Add(f, i, uint64(len(files)), false); e != 0 {
			f.Put()
		}
	}
	treeMu.Lock()
	id := allocPID(0)
	if id == 0 {
		treeMu.Unlock()
		t.FDs.Release(&t.Ctx)
		t.FS.Release()
		p.sig.actions.Release()
		return nil, linux.EAGAIN
	}
	p.PID, t.PID, t.TID = id, id, id
	p.mu.Lock()
	p.charge()
	p.mu.Unlock()
	t.root()
	treeMu.Unlock()
	before(id)
	e := t.goTo(a.Dir)
	if e == 0 {
		e = linux.ENOENT
		for _, path := range paths {
			now := t.Exec(&program.Args{Path: path, Walk: vfs.FollowLast, Argv: a.Argv, Env: a.Env})
			if now == 0 || e == linux.ENOENT || e == linux.ENOTDIR {
				e = now
			}
			if e == 0 || now != linux.ENOENT && now != linux.ENOTDIR && now != linux.EACCES {
				break
			}
		}
	}
	if e != 0 {
		t.ExitGroup(127) // it ends where other threads do
	}
	t.launch()
	return &Spawned{Process: p}, e
}

// Collect waits for the process's end, removes it and returns its status.
func (s *Spawned) Collect(w *wait.Sleeper, entry *wait.Entry) int32 {
	p := s.Process
	w.Arm()
	p.Ended.Add(entry, w, wait.In)
	for !p.Zombie() {
		w.SleepUninterruptible(wait.NoDeadline)
		w.Arm()
	}
	p.Ended.Remove(entry)
	s.mu.Lock()
	defer s.mu.Unlock()
	treeMu.Lock()
	defer treeMu.Unlock()
	s.gone = true
	p.release()
	return p.status
}
