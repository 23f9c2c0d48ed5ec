package proc

import (
	"hardtack/abi/linux"
)

// join puts p into a group; called with treeMu held, p in no group.
func (g *Group) join(p *Process) {
	p.prevMember, p.nextMember = nil, g.first
	if g.first != nil {
		g.first.prevMember = p
	} else {
		g.last = p
	}
	g.first = p
	g.n++
	p.group.Store(g)
}

// leave takes p out of its group, which ends with its last member; called with
// treeMu held. The group pointer stays, for readers without the lock.
func (p *Process) leave() {
	g := p.group.Load()
	g.unlink(p)
	if g.n--; g.n > 0 {
		return
	}
	slotOf(g.ID).group.Store(nil)
	dropPID(g.ID)
	s := g.Session
	if s.groups--; s.groups == 0 {
		slotOf(s.ID).session.Store(nil)
		dropPID(s.ID)
	}
}

// unlink takes p out of the list of members; called with treeMu held.
func (g *Group) unlink(p *Process) {
	if p.prevMember != nil {
		p.prevMember.nextMember = p.nextMember
	} else {
		g.first = p.nextMember
	}
	if p.nextMember != nil {
		p.nextMember.prevMember = p.prevMember
	} else {
		g.last = p.prevMember
	}
	p.prevMember, p.nextMember = nil, nil
}

// sink moves a zombie behind the living members; called with treeMu held.
func (g *Group) sink(p *Process) {
	if p == g.last {
		return
	}
	g.unlink(p)
	p.prevMember = g.last
	g.last.nextMember = p
	g.last = p
}

// newGroup makes an empty group with p's number; called with treeMu held.
func newGroup(id int32, s *Session) *Group {
	g := &Group{ID: id, Session: s}
	s.groups++
	slotOf(id).group.Store(g)
	return g
}

// newSession makes p the leader of a new session and group; called with treeMu
// held, p in no group.
func newSession(p *Process) {
	s := &Session{ID: p.PID, Leader: p}
	slotOf(p.PID).session.Store(s)
	newGroup(p.PID, s).join(p)
}

// Setsid is setsid(2).
func (p *Process) Setsid() linux.Errno {
	treeMu.Lock()
	defer treeMu.Unlock()
	if s := slotOf(p.PID); s.group.Load() != nil || s.session.Load() != nil {
		return linux.EPERM
	}
	p.leave()
	newSession(p)
	return 0
}

// Setpgid is setpgid(2) called by p; 0 stands for p and for the target's number.
func (p *Process) Setpgid(pid, pgid int32) linux.Errno {
	if pid == 0 {
		pid = p.PID
	}
	if pgid == 0 {
		pgid = pid
	}
	if pgid < 0 {
		return linux.EINVAL
	}
	treeMu.Lock()
	defer treeMu.Unlock()
	q := Lookup(pid)
	if q == nil && ByTID(pid) != nil {
		return linux.EINVAL // a thread that is not the first
	}
	if q == nil || q.reaped {
		return linux.ESRCH
	}
	session := p.Session()
	switch {
	case q == p:
	case q.parent.Load() != p:
		return linux.ESRCH
	case q.Session() != session:
		return linux.EPERM
	case q.execs.Load() != 0:
		return linux.EACCES
	}
	if q.Session().Leader == q {
		return linux.EPERM
	}
	old := q.Group()
	if old.ID == pgid {
		return 0
	}
	g := GroupByID(pgid)
	switch {
	case g != nil && g.Session != session:
		return linux.EPERM
	case g == nil && pgid != pid:
		return linux.EPERM
	}
	if g == nil {
		g = newGroup(pgid, session)
	}
	q.leave()
	g.join(q)
	return 0
}

// IsOrphaned reports whether no member has a parent outside the group but in
// the session: nobody would ever continue it.
func (g *Group) IsOrphaned() bool {
	treeMu.Lock()
	defer treeMu.Unlock()
	return g.orphaned(nil)
}

// orphaned is IsOrphaned as if ignore were gone; called with treeMu held.
func (g *Group) orphaned(ignore *Process) bool {
	for p := g.first; p != nil; p = p.nextMember {
		if p.Zombie() {
			break
		}
		if p == ignore {
			continue
		}
		q := p.parent.Load()
		if q == nil || q.PID == 1 && q.Session() != g.Session {
			continue
		}
		if pg := q.group.Load(); pg != g && pg.Session == g.Session {
			return false
		}
	}
	return true
}

// hasStopped reports a stopped member; called with treeMu held.
func (g *Group) hasStopped() bool {
	for p := g.first; p != nil; p = p.nextMember {
		p.mu.Lock()
		stopped := p.sig.stop == stopDone
		p.mu.Unlock()
		if stopped {
			return true
		}
	}
	return false
}

// members returns the group's processes; called with treeMu held.
func (g *Group) members() []*Process {
	out := make([]*Process, 0, g.n)
	for p := g.first; p != nil; p = p.nextMember {
		out = append(out, p)
	}
	return out
}

// GroupMembers returns the processes of a group.
func GroupMembers(pgid int32) []*Process {
	treeMu.Lock()
	defer treeMu.Unlock()
	if g := GroupByID(pgid); g != nil {
		return g.members()
	}
	return nil
}

// SignalGroup sends sig to every process of a group as the kernel; ESRCH if there is none.
func SignalGroup(pgid int32, sig linux.Signal) linux.Errno {
	list := GroupMembers(pgid)
	if len(list) == 0 {
		return linux.ESRCH
	}
	for _, p := range list {
		p.SendSignal(sig)
	}
	return 0
}
