package caller

import (
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/wait"
)

// OnSignalSelf is how SignalSelf works; kernel/process/proc provides it. Tests may leave it
// unset.
var OnSignalSelf = hook.Default(func(c *Ctx, sig int) {})

// SignalSelf sends the calling thread a signal that its own call causes, before
// the call returns its error: SIGPIPE with EPIPE, SIGXFSZ with EFBIG. The code
// that returns EPIPE calls it (write handlers need not).
func SignalSelf(c *Ctx, sig int) { OnSignalSelf.Call(c, sig) }

// OnKilled is how Killed works; kernel/process/proc provides it.
var OnKilled = hook.Default(func(c *Ctx) bool { return false })

// Killed reports that the calling thread is to end: who moves or makes much memory at
// once looks now and then, and gives up.
func Killed(c *Ctx) bool { return c != nil && OnKilled.Call(c) }

// OnMemoryWanted is how MemoryCame works; kernel/process/proc provides it.
var OnMemoryWanted = hook.Default(func(c *Ctx) bool { return false })

// MemoryCame is for a call that found no frame after it had moved a part: it waits for memory
// if that was the machine's fault and it may wait, and reports whether to go on. Otherwise the call
// ends short. The caller holds no lock.
func MemoryCame(c *Ctx) bool { return c != nil && !c.NoWait && OnMemoryWanted.Call(c) }

// OnRest is how Rest works; kernel/process/proc provides it.
var OnRest = hook.Default(func(c *Ctx) {})

// Rest is for long work in the kernel, such as giving back what a process held: it gives way to
// goroutines that are runnable, and to the thread that is next in user mode for a slice. The
// caller holds no lock. A goroutine of the kernel, whose c is nil, gives way to goroutines only:
// wait.Rest does more.
func Rest(c *Ctx) { OnRest.Call(c) }

// A Pace tells work that may be long when to rest. The zero Pace is that of work that begins.
type Pace struct{ due int64 }

// restAfter is how long work goes on between two rests, in nanoseconds.
const restAfter = 250_000

// Due reports whether it is time to rest.
func (p *Pace) Due() bool {
	now := wait.Now()
	if p.due == 0 {
		p.due = now + restAfter
	}
	return now >= p.due
}

// Rest is Rest of the work's caller.
func (p *Pace) Rest(c *Ctx) {
	Rest(c)
	p.Rested()
}

// Rested says that the work has rested.
func (p *Pace) Rested() { p.due = wait.Now() + restAfter }

// KillStep is how many bytes are moved between two looks; a power of two.
const KillStep = 1 << 20

// KilledAt is Killed where off, the position of a transfer, is a multiple of KillStep.
func KilledAt(c *Ctx, off int64) bool { return off&(KillStep-1) == 0 && Killed(c) }
