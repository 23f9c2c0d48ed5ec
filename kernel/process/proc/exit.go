package proc

//oops:stop a thread that cannot end keeps its process and its parent waiting

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// Exit ends the calling thread when its call returns (exit(2)).
func (t *Thread) Exit(code int32) {
	t.exitStatus = code & 0xff << 8
	t.User.Work.Or(workExit)
}

// ExitGroup ends the calling process (exit_group(2)).
func (t *Thread) ExitGroup(code int32) {
	p := t.Proc
	t.exitStatus = code & 0xff << 8
	p.mu.Lock()
	p.beginExit(t.exitStatus)
	p.mu.Unlock()
	t.User.Work.Or(workExit)
}

// Killed reports that the thread is to end: sleeps that signals do not end early
// look at it.
func (t *Thread) Killed() bool { return t.User.Work.Load()&workExit != 0 }

// KilledSelf is Killed of the calling thread.
func KilledSelf(c *caller.Ctx) bool {
	t := Of(c)
	return t != nil && t.Killed()
}

// exit ends a thread on its own goroutine. What it holds is given up before
// anybody hears of its end.
func (t *Thread) exit() {
	p := t.Proc
	t.leavePartner()
	t.User.SyncFPU() // the processor keeps no pointer to a dead thread
	t.stopTakingSignals()
	p.mu.Lock()
	last := p.aliveBut(t) == 0
	p.mu.Unlock()
	if last && p.PID == 1 {
		InitExited.Call(p.statusOf(t))
	}
	ThreadExited.Call(t, last)
	if t.Space != nil {
		t.Futex.Exit(t.Space)
	}
	t.giveUp()
	if t.User.Work.Load()&workRelease != 0 {
		t.release()
	}
	t.unlink()
}

// stopTakingSignals keeps the dying thread from being chosen for the process's
// signals, and finds another for those it was chosen for.
func (t *Thread) stopTakingSignals() {
	t.setBlocked(^linux.SigSet(0))
	t.Proc.mu.Lock()
	t.dying = true
	t.Proc.mu.Unlock()
}

func (g *threadGroup) aliveBut(t *Thread) (n int) {
	for _, u := range g.threads {
		if u != t && !u.dying {
			n++
		}
	}
	return n
}

// EndStatus returns the wait status that the thread ends with, once ThreadExited is told.
func (t *Thread) EndStatus() int32 { return t.Proc.statusOf(t) }

// statusOf returns the wait status the process ends with if t is its last thread.
func (g *threadGroup) statusOf(t *Thread) int32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.exiting {
		return g.status
	}
	return t.exitStatus
}

// giveUp ends the thread's share of address space, descriptors and directories,
// and lets a vfork parent go on. All go at once: who may look into the thread is
// asked of its address space.
func (t *Thread) giveUp() {
	p := t.Proc
	p.mu.Lock()
	space, fds, fs := t.Space, t.FDs, t.FS
	t.Space, t.FDs, t.FS = nil, nil, nil
	last := fs != nil && fs.Leave() // what exec counts (beginExec)
	p.mu.Unlock()
	t.Mem = nil
	t.vforkDone()
	if space != nil {
		p.noteRSS(space)
		space.End(&t.Ctx)
	}
	if fds != nil {
		fds.Release(&t.Ctx)
	}
	if last {
		fs.End()
	}
}

// vforkDone lets the parent that waits in vfork go on.
func (t *Thread) vforkDone() {
	if v := t.vfork; v != nil {
		t.vfork = nil
		v.done.Store(true)
		v.parent.Wake()
	}
}

// unlink takes the ended thread out of its process; the last one ends that too.
func (t *Thread) unlink() {
	p := t.Proc
	ended.faults.Add(t.Faults)
	var after notice
	p.mu.Lock()
	user, system, demand := t.times()
	t.told.advance(user, system)
	ended.add(t.told.user, t.told.system, demand)
	t.noteQueue(user, system, demand)
	for i, u := range p.threads {
		if u == t {
			n := len(p.threads) - 1
			copy(p.threads[i:], p.threads[i+1:])
			p.threads[n] = nil
			p.threads = p.threads[:n]
			break
		}
	}
	if t != p.leader {
		p.uncharge()
	} else {
		p.leader = nil
	}
	if p.sig.stop == stopUnderway && t.User.Work.Load()&workStop != 0 {
		p.oneStopped(&after)
	}
	t.sig.pending.Drop(^linux.SigSet(0))
	p.deadTime.add(t.told.user, t.told.system)
	p.deadFaults += t.Faults
	t.IO = t.ioCount()
	p.deadIO.add(t.IO)
	p.noteSwitches(t)
	t.setLive(false)
	last := len(p.threads) == 0
	if p.execing != nil {
		p.execing.Wake()
	}
	p.mu.Unlock()
	after.deliver()

	nThreads.Add(-1)
	t.Retire()
	treeMu.Lock()
	// Whoever reads that the process is a zombie finds it with wait: that takes treeMu.
	if t.TID == p.PID {
		t.state.Store(uint32(StateZombie))
	} else {
		t.state.Store(uint32(StateDead))
	}
	slotOf(t.TID).thread.CompareAndSwap(t, nil)
	dropPID(t.TID)
	if last {
		p.finish(t)
	} else {
		p.leaveChildren(t)
	}
	treeMu.Unlock()
	if last {
		if s := p.Session(); p.PID == s.ID {
			SessionEnded.Call(s)
		}
	}
}

// finish makes a process without threads a zombie; called with treeMu held.
func (p *Process) finish(t *Thread) {
	p.mu.Lock()
	if !p.exiting {
		p.exiting = true
		p.status = t.exitStatus
	}
	p.sig.pending.Drop(^linux.SigSet(0))
	p.sig.stop = stopNone
	p.cpuTimeLocked()
	p.itimers.stop()
	p.sig.actions.Release()
	img := p.image.Load()
	p.mu.Unlock()
	if img != nil && img.File != nil {
		img.File.Put()
	}
	if s := p.Session(); s.Leader == p {
		s.Leader = nil
	}
	p.giveChildrenAway()
	parent := p.parent.Load()
	p.zombie.Store(true)
	p.group.Load().sink(p)
	if parent != nil {
		parent.zombies.push(p)
		p.orphanCheck(p.group.Load(), parent, p)
	}
	p.tellParent(parent)
	p.Ended.Notify(wait.In)
}

// tellParent announces a zombie to its parent, or removes it at once if the
// parent does not want to know; called with treeMu held.
func (p *Process) tellParent(parent *Process) {
	if parent == nil {
		return
	}
	reap := p.inherited
	if sig := p.signalAtExit(parent); sig.Valid() && !reap {
		code, status := exitCode(p.status)
		info := p.childInfo(code, status)
		info.Signo = int32(sig)
		parent.mu.Lock()
		act := parent.sig.actions.Get(linux.SIGCHLD)
		send := true
		if sig == linux.SIGCHLD && (act.Handler == linux.SIG_IGN || act.Flags&linux.SA_NOCLDWAIT != 0) {
			reap = true
			send = act.Handler != linux.SIG_IGN
		}
		if send {
			var none notice
			parent.sendLocked(nil, &info, &none)
		}
		parent.mu.Unlock()
	}
	if reap {
		p.release()
	}
	parent.Children.Notify(wait.In)
}

// signalAtExit is what the parent gets. Another signal than SIGCHLD is an agreement
// with the program that made this process. If exec has replaced that, the new one,
// which may be more than its caller, gets SIGCHLD.
func (p *Process) signalAtExit(parent *Process) linux.Signal {
	sig := linux.Signal(p.exitSignal.Load())
	if sig != linux.SIGCHLD && p.parentExecs != parent.execs.Load() {
		return linux.SIGCHLD
	}
	return sig
}

// exitCode splits a wait status into siginfo's code and status.
func exitCode(status int32) (code, value int32) {
	switch {
	case status&0x7f == 0:
		return linux.CLD_EXITED, status >> 8 & 0xff
	case status&0x80 != 0:
		return linux.CLD_DUMPED, status & 0x7f
	}
	return linux.CLD_KILLED, status & 0x7f
}

// giveChildrenAway reparents the children of a dying process; called with
// treeMu held.
func (p *Process) giveChildrenAway() {
	if p.firstChild == nil {
		return
	}
	to := p.reaper()
	for p.firstChild != nil {
		c := p.firstChild
		p.removeChild(c)
		if to == nil {
			c.parent.Store(nil)
			continue
		}
		c.maker = 0
		to.addChild(c)
		c.inherited = to.reaps
		c.exitSignal.Store(int32(linux.SIGCHLD))
		c.parentDied(p)
		if c.Zombie() {
			c.tellParent(to)
		} else {
			to.jobs.Store(true) // it may be stopped
			p.orphanCheck(c.group.Load(), p, nil)
		}
	}
}

// parentDied sends what PR_SET_PDEATHSIG asked for; called with treeMu held.
func (p *Process) parentDied(parent *Process) {
	if sig := linux.Signal(p.deathSignal.Load()); sig != 0 && !p.Zombie() {
		info := linux.Siginfo{Signo: int32(sig), Code: linux.SI_USER}
		info.SetSender(parent.PID, parent.uid.Load())
		p.send(nil, &info)
	}
}

// leaveChildren gives the children of a thread that ended to the others of its
// process; called with treeMu held.
func (p *Process) leaveChildren(t *Thread) {
	if !t.maker {
		return
	}
	for c := p.firstChild; c != nil; c = c.nextSibling {
		if c.maker == t.TID {
			c.maker = 0
			c.parentDied(p)
		}
	}
}

// reaper returns who gets the children: the nearest living ancestor that is a
// subreaper, or process 1; called with treeMu held.
func (p *Process) reaper() *Process {
	if p.hasSubreaper {
		for q := p.parent.Load(); q != nil; q = q.parent.Load() {
			if q.subreaper && !q.Zombie() {
				return q
			}
		}
	}
	if init := Lookup(1); init != p {
		return init
	}
	return nil
}

// orphanCheck hangs up a group that loses its last member with a parent in
// another group of the session, through the death of dying or of that parent,
// if a member is stopped; called with treeMu held.
func (p *Process) orphanCheck(g *Group, parent, dying *Process) {
	pg := parent.group.Load()
	if pg == g || pg.Session != g.Session || !g.orphaned(dying) || !g.hasStopped() {
		return
	}
	for q := g.first; q != nil; q = q.nextMember {
		q.SendSignal(linux.SIGHUP)
		q.SendSignal(linux.SIGCONT)
	}
}

// births numbers children; guarded by treeMu.
var births uint64

// addChild and removeChild keep the list of children; called with treeMu held.
func (p *Process) addChild(c *Process) {
	births++
	c.parent.Store(p)
	c.born = births
	if c.Zombie() {
		p.zombies.push(c)
	}
	c.prevSibling, c.nextSibling = p.lastChild, nil
	if p.lastChild != nil {
		p.lastChild.nextSibling = c
	} else {
		p.firstChild = c
	}
	p.lastChild = c
}

func (p *Process) removeChild(c *Process) {
	p.zombies.remove(c)
	if c.prevSibling != nil {
		c.prevSibling.nextSibling = c.nextSibling
	} else {
		p.firstChild = c.nextSibling
	}
	if c.nextSibling != nil {
		c.nextSibling.prevSibling = c.prevSibling
	} else {
		p.lastChild = c.prevSibling
	}
	c.prevSibling, c.nextSibling = nil, nil
}

// release removes a zombie for good; called with treeMu held.
func (p *Process) release() {
	if p.reaped {
		return
	}
	p.reaped = true
	if parent := p.parent.Load(); parent != nil {
		parent.removeChild(p)
		u, s := p.CPUTime()
		cu, cs := p.ChildrenTime()
		parent.childTime.add(u+cu, s+cs)
		for i := range p.deadSwitches {
			parent.childSwitches[i] += p.deadSwitches[i] + p.childSwitches[i]
		}
		parent.childFaults.Add(p.deadFaults)
		parent.childMaxRSS.Store(max(parent.childMaxRSS.Load(), p.maxRSS.Load(), p.childMaxRSS.Load()))
	}
	p.leave()
	slotOf(p.PID).proc.Store(nil)
	dropPID(p.PID)
	nProcesses.Add(-1)
	p.mu.Lock()
	p.uncharge()
	p.mu.Unlock()
}
