package proc

import (
	"runtime"
	"sync/atomic"

	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/wait"
)

// outOfMemory is a fault that found no memory: the kernel gives up what it keeps in
// its heap for speed, or the biggest process dies, and the thread tries again.
func (t *Thread) outOfMemory() {
	if mem.Squeeze() {
		return
	}
	if kern.OOMKillAllocator.Get() != 0 && t.Proc.OOMScoreAdj() != -1000 && t.Proc.PID != 1 {
		lastOOM.Store(kern.Monotonic())
		t.Proc.kill()
		return
	}
	if victim := KillBiggest(); victim == t.Proc {
		return
	}
	// The victim needs a moment to give up its memory.
	t.Arm()
	t.SleepUninterruptible(wait.Now() + 2_000_000)
}

// For oomPause after somebody was killed for memory, forks need an eighth of all
// memory free: what the victim gives up is for those that run already.
const oomPause = 200_000_000

var lastOOM atomic.Int64 // monotonic nanoseconds

func init() { lastOOM.Store(-1 << 62) }

// KillBiggest kills the process that uses most memory (oom_score_adj counted
// in thousandths of all memory) and returns it; process 1 only when it is
// alone. A victim that is still on its way out is enough: nobody else dies.
func KillBiggest() *Process {
	var victim *Process
	best := int64(-1)
	Each(func(p *Process) bool {
		if p.Zombie() {
			return true
		}
		p.mu.Lock()
		dying := p.exiting && len(p.threads) > 0
		p.mu.Unlock()
		adj := int64(p.oomScore.Load())
		if adj == -1000 || p.PID == 1 {
			return true
		}
		score := p.residentPages()
		if dying && score > 0 {
			victim, best = p, 1<<62
			return false
		}
		if score += adj * int64(mem.Total()) / 1000; score >= best { // of equals the youngest
			victim, best = p, score
		}
		return true
	})
	if victim == nil {
		victim = Lookup(1)
	}
	lastOOM.Store(kern.Monotonic())
	if victim != nil && best != 1<<62 {
		victim.kill()
	}
	runtime.Gosched()
	return victim
}

// residentPages returns how many frames the process's address space holds.
func (p *Process) residentPages() int64 {
	s := p.AcquireSpace()
	if s == nil {
		return 0
	}
	defer s.Release()
	return s.RSS()
}
