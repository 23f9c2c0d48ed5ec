package proc

import (
	"sync"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/mm/vm"
)

// victimTime is how long a process that dies may take to give its memory back before
// another is killed, in nanoseconds.
const victimTime = 2_000_000_000

// maxVictims die together at most.
const maxVictims = 64

// Victims are processes that were killed together for their memory.
type Victims struct {
	list [maxVictims]*Process
	n    int
}

// Gone reports whether all of them have given back what they held.
func (v *Victims) Gone() bool {
	for _, p := range v.list[:v.n] {
		if !p.Zombie() {
			return false
		}
	}
	return true
}

// Hurry empties the address spaces of those that have not got so far.
func (v *Victims) Hurry() {
	for _, p := range v.list[:v.n] {
		p.reapMemory()
	}
}

// reapMemory gives back the pages of a process that is ending, if it has them alone.
func (p *Process) reapMemory() {
	s := p.AcquireSpace()
	if s == nil {
		return
	}
	p.mu.Lock()
	alone := p.exiting && p.hasAlone(s)
	p.mu.Unlock()
	if alone {
		s.Reap()
	}
	s.EndLook()
}

// hasAlone reports whether no other process runs in the address space s; called with mu
// held.
func (p *Process) hasAlone(s *vm.Space) bool {
	own := int64(0)
	for _, t := range p.threads {
		if t.Space == s {
			own++
		}
	}
	return s.Users() <= own
}

// killer knows whose death is waited for.
var killer struct {
	mu   sync.Mutex
	last Victims     // guarded by mu
	list []candidate // room for the next choice; guarded by mu
	all  []*Process  // room for the next survey; guarded by mu
	part int64       // of all memory the last kill was for; guarded by mu
	when int64       // that was, in monotonic nanoseconds; guarded by mu
}

// Kill kills who holds most, to get so many bytes back, and returns who that is; nil for
// nobody. Somebody who is still on its way out is enough: nobody else dies before it has
// given its memory back, or had time to. Process 1 dies only if it is alone.
func Kill(bytes int64) *Victims {
	killer.mu.Lock()
	defer killer.mu.Unlock()
	now := clocks.Monotonic()
	list := killer.list[:0]
	v := &killer.last
	*v = Victims{}
	Each(func(p *Process) bool {
		if p.Zombie() {
			return true
		}
		if p.ending(now) {
			if v.n < maxVictims {
				v.list[v.n] = p
				v.n++
			}
			return true
		}
		if p.PID != 1 && p.OOMScoreAdj() != -1000 && !p.stuck() {
			list = append(list, candidate{p: p, had: p.lately(now, 0), adj: int64(p.OOMScoreAdj())})
		}
		return true
	})
	killer.list = list
	if v.n > 0 {
		return v.copy()
	}
	addKept(list)
	for _, i := range choose(list, int64(mem.Total())*mem.PageSize, bytes) {
		c := &list[i]
		Killed.Call(c.p, c.had)
		c.p.endForMemory(now)
		v.list[v.n] = c.p
		v.n++
	}
	if init := Lookup(1); v.n == 0 && len(list) == 0 && init != nil && !init.Zombie() && nProcesses.Load() == 1 {
		if had := init.Holding(); had.All() > int64(mem.Total())*mem.PageSize/4 {
			Killed.Call(init, had)
			init.endForMemory(now)
			v.list[0], v.n = init, 1
		}
	}
	clear(list)
	if v.n == 0 {
		return nil
	}
	return v.copy()
}

// addKept notes for each candidate what its user keeps.
func addKept(list []candidate) {
	kept := map[uint32]int64{}
	for i := range list {
		c := &list[i]
		n, ok := kept[c.had.UID]
		if !ok {
			n = KeptBy.Call(c.had.UID)
			kept[c.had.UID] = n
		}
		c.kept = n
	}
}

func (v *Victims) copy() *Victims {
	c := *v
	return &c
}

// KillBiggest is Kill for a sixteenth of all memory, and for more if the last time was a
// moment ago: what many take at once comes back at once, and not after as many collections
// of garbage.
func KillBiggest() *Victims {
	killer.mu.Lock()
	now := clocks.Monotonic()
	part := nextPart(killer.part, now-killer.when)
	killer.part = part
	killer.mu.Unlock()
	v := Kill(int64(mem.Total()) * mem.PageSize / part)
	killer.mu.Lock()
	killer.when = clocks.Monotonic()
	killer.mu.Unlock()
	return v
}

// againSoon is how long after a kill the next one counts as part of the same trouble.
const againSoon = 2_000_000_000

// nextPart is which part of memory a kill is for, given that of the last one and how long
// ago that was.
func nextPart(last, ago int64) int64 {
	if last == 0 || ago > againSoon {
		return 16
	}
	return max(last/2, 3)
}

// endForMemory kills a process, wherever it waits, and who has the same address space:
// otherwise it would not go.
func (p *Process) endForMemory(now int64) {
	p.doomed.Store(now)
	s := p.AcquireSpace()
	p.kill()
	if s == nil {
		return
	}
	p.mu.Lock()
	alone := p.hasAlone(s)
	p.mu.Unlock()
	if !alone && !p.endSharers(s, now) {
		s.EndLook()
		return
	}
	s.Doom()
	s.EndLook()
}

// endSharers kills the other processes that have the address space s. It reports false if
// one must not be killed.
func (p *Process) endSharers(s *vm.Space, now int64) bool {
	all := true
	Each(func(q *Process) bool {
		if q == p {
			return true
		}
		o := q.AcquireSpace()
		switch {
		case o == nil:
			return true
		case o != s:
		case q.PID == 1 || q.OOMScoreAdj() == -1000:
			all = false
		default:
			q.doomed.Store(now)
			q.kill()
		}
		o.EndLook()
		return true
	})
	return all
}

// ending reports whether a process is on its way out and may still be waited for.
func (p *Process) ending(now int64) bool {
	p.mu.Lock()
	ends := p.exiting && len(p.threads) > 0
	p.mu.Unlock()
	if !ends {
		return false
	}
	p.doomed.CompareAndSwap(0, now)
	return now-p.doomed.Load() < victimTime
}

// stuck reports whether a process does not end in spite of all.
func (p *Process) stuck() bool { return p.doomed.Load() != 0 }

// OOMScore is what /proc/PID/oom_score shows: two thirds of a thousand, with what the
// process holds and its oom_score_adj in thousandths of all memory. Nobody kills 0.
func (p *Process) OOMScore() int64 {
	adj := int64(p.OOMScoreAdj())
	if adj == -1000 || p.PID == 1 || p.Zombie() {
		return 0
	}
	had := p.Holding()
	total := max(int64(mem.Total())*mem.PageSize, 1)
	return max((1000+had.All()*1000/total+adj)*2/3, 0)
}
