package proc

import (
	"runtime"
	"sync"
	"sync/atomic"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
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
		bytes -= v.had.all()
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
		c.score = c.had.all() + adj*int64(mem.Total())*mem.PageSize/1000
		for i := range list { // of equals the youngest is first
			if list[i].p == nil || c.score >= list[i].score {
				list[i], c = c, list[i]
			}
		}
		return true
	})
	return list, dying
}

// Holding is what a process holds of memory, in bytes.
type Holding struct {
	UID    uint32 // whose process it is
	Pages  int64  // of its address space, with page tables
	Kernel int64  // of the kernel's heap and of pages that its open files keep, about
}

func (h Holding) all() int64 { return h.Pages + h.Kernel }

// What a thread takes of the kernel's heap, with its goroutine's stack, and a process.
const (
	threadBytes  = 16 << 10
	processBytes = 8 << 10
)

// Holding estimates what would be free if the process ended. What it shares with others
// counts in part.
func (p *Process) Holding() Holding {
	h := Holding{UID: p.uid.Load(), Kernel: processBytes + p.fileBytes()}
	p.mu.Lock()
	h.Kernel += int64(len(p.threads)) * threadBytes
	p.mu.Unlock()
	if s := p.AcquireSpace(); s != nil {
		h.Pages = s.RSS() * mem.PageSize
		s.Release()
	}
	return h
}

// fileBytes is the process's part of what its open files take.
func (p *Process) fileBytes() (sum int64) {
	var batch [64]*vfs.File
	for fd := int32(0); fd >= 0; {
		n := 0
		p.mu.Lock()
		if t, _ := p.subject(); t != nil && t.FDs != nil {
			for fd = t.FDs.Next(fd); fd >= 0 && n < len(batch); fd = t.FDs.Next(fd + 1) {
				if f, _ := t.FDs.Hold(fd); f != nil { // the end of a file may signal this process
					batch[n] = f
					n++
				}
			}
		} else {
			fd = -1
		}
		p.mu.Unlock()
		for _, f := range batch[:n] {
			sum += f.HeldBytes() / max(f.Refs()-1, 1)
			f.Put()
		}
	}
	return sum
}
