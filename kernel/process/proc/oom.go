package proc

import (
	"runtime"
	"sync"
	"sync/atomic"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/nucleus"
)

// Hooks for want of memory.
var (
	// Relieve makes memory free, in a goroutine of its own; the call returns at once.
	Relieve = hook.Default(func() {})
	// Killed hears who was killed for memory and what it had.
	Killed = hook.Default(func(p *Process, had Holding) {})
)

// memoryPause is how long a thread waits before it looks again, in nanoseconds.
const memoryPause = 1_000_000

// awaitMemory holds a thread back that wants something of the kernel while the kernel's
// own reserve of memory is used up in part. The thread holds nothing. What calls under
// way still need comes from the rest of the reserve. A thread that is to end goes on:
// its end gives memory back.
func (t *Thread) awaitMemory() {
	for nucleus.MemoryShort() {
		Relieve.Call()
		t.Arm()
		if t.User.Work.Load()&workExit != 0 {
			return
		}
		mem.Stalled.Begin()
		t.SleepUninterruptible(wait.Now() + memoryPause)
		mem.Stalled.End()
	}
}

// outOfMemory is a fault that found no memory: the kernel gives up what it keeps in
// its heap for speed, or the biggest process dies, and the thread tries again.
func (t *Thread) outOfMemory() {
	if mem.SqueezeForFault() {
		return
	}
	if settings.OOMKillAllocator.Get() != 0 && t.Proc.OOMScoreAdj() != -1000 && t.Proc.PID != 1 {
		pauseEnd.Store(clocks.Monotonic() + oomPause)
		t.Proc.kill()
		return
	}
	if victim := KillBiggest(); victim == t.Proc {
		return
	}
	// The victim needs a moment to give up its memory.
	t.Arm()
	mem.Stalled.Begin()
	t.SleepUninterruptible(wait.Now() + 2_000_000)
	mem.Stalled.End()
}

// For oomPause after somebody was killed for memory, forks need an eighth of all
// memory free: what the victim gives up is for those that run already.
const oomPause = 200_000_000

// pauseEnd is when that ends, in monotonic nanoseconds.
var pauseEnd atomic.Int64

// victimTime is how long a process that dies may take to give its memory back before
// another is killed, in nanoseconds.
const victimTime = 2_000_000_000

// killer knows whose death is waited for.
var killer struct {
	mu     sync.Mutex
	victim *Process // guarded by mu; nil for nobody
	since  int64    // guarded by mu; monotonic nanoseconds
}

// KillBiggest kills the process that holds most memory (oom_score_adj counted
// in thousandths of all memory) and returns it; process 1 only when it is
// alone. A victim that is still on its way out is enough: nobody else dies before it
// has given its memory back, or had time to.
func KillBiggest() *Process { return Kill(1) }

// Kill is KillBiggest for so many bytes. If the biggest process has less, others of its
// user die with it that have nearly as much.
func Kill(bytes int64) *Process {
	killer.mu.Lock()
	defer killer.mu.Unlock()
	now := clocks.Monotonic()
	pauseEnd.Store(now + oomPause)
	if v := killer.victim; v != nil && !v.Zombie() && now-killer.since < victimTime {
		return v
	}
	list, dying := candidates()
	if dying != nil && dying != killer.victim {
		killer.victim, killer.since = dying, now
		return dying
	}
	first := list[0]
	if first.p == nil {
		if first.p = Lookup(1); first.p == nil {
			return nil
		}
	}
	killer.victim, killer.since = first.p, now
	list[0] = first
	for _, v := range list {
		if v.p == nil || v.had.UID != first.had.UID || v.score < first.score/2 || bytes <= 0 {
			break
		}
		Killed.Call(v.p, v.had)
		v.p.kill()
		bytes -= v.had.All()
	}
	runtime.Gosched()
	return first.p
}

// candidate is a process that may die.
type candidate struct {
	p     *Process // nil for none
	had   Holding
	score int64
}

// candidates finds the biggest processes, in order, and somebody who dies already and
// has not given memory back.
func candidates() (list [16]candidate, dying *Process) {
	Each(func(p *Process) bool {
		adj := int64(p.oomScore.Load())
		if p.Zombie() || adj == -1000 || p.PID == 1 {
			return true
		}
		p.mu.Lock()
		ends := p.exiting && len(p.threads) > 0
		p.mu.Unlock()
		if ends {
			dying = p
			return true
		}
		c := candidate{p: p, had: p.Holding()}
		c.score = c.had.All() + adj*int64(mem.Total())*mem.PageSize/1000
		for i := range list { // of equals the youngest is first
			if list[i].p == nil || c.score >= list[i].score {
				list[i], c = c, list[i]
			}
		}
		return true
	})
	return list, dying
}

// Holding is what a process holds of memory.
type Holding struct {
	UID uint32 // whose process it is
	ledger.Sum
}

// Holding returns what would be free if the process ended. What it shares with others
// counts in part.
func (p *Process) Holding() Holding { return Holding{p.uid.Load(), p.Ledger()} }
