package proc

import (
	"math"
	"sync"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/reserve"
	"hardtack/nucleus"
)

// Hooks for want of memory.
var (
	// Relieve makes memory free, in a goroutine of its own; the call returns at once.
	Relieve = hook.Default(func() {})
	// KeptBy returns roughly how many bytes of files in memory, System V segments and
	// descriptors in flight a user keeps. They are not freed when a process ends.
	KeptBy = hook.Default(func(uid uint32) int64 { return 0 })
	// Killed hears who was killed for memory and what it had.
	Killed = hook.Default(func(p *Process, had Holding) {})
)

// HeapQueue and PageQueue are the threads that wait for the kernel's heap and for pages.
var (
	HeapQueue = reserve.NewQueue(reserve.Supply{Free: heapRoom, Most: mostOfHeap, Much: holdsMuch})
	PageQueue = reserve.NewQueue(reserve.Supply{Free: pagesRoom, Most: func() int64 { return math.MaxInt64 }, Much: holdsMuch})
)

// heapRoom is what calls may reserve. The reserve is for users who hold little, for their calls
// and for their pages.
func heapRoom(much bool) int64 {
	if m := nucleus.MemoryInfo(); much {
		return int64(m.Free-m.Reserve) * mem.PageSize
	}
	return int64(nucleus.HeapRoom()) * mem.PageSize
}

// pagesRoom is how many bytes of pages may be taken.
func pagesRoom(much bool) int64 {
	if much {
		return int64(mem.Spare()) * mem.PageSize
	}
	return int64(mem.SpareForLittle()) * mem.PageSize
}

// Serve grants those who wait what there is.
func Serve() {
	HeapQueue.Serve()
	PageQueue.Serve()
}

// mostOfHeap is what a single call may reserve. Only calls that read the longest access
// control list (open, 1.4 MB) need more on the smallest machines; if each waited for so much,
// a program that opens files would wait for every collection.
func mostOfHeap() int64 { return int64(nucleus.MemoryInfo().Reserve/16) * mem.PageSize }

// reserve holds a thread back that wants something of the kernel while the heap is short,
// until there is memory for its call. The thread holds nothing. If it is to end it goes on:
// its end gives memory back.
func (t *Thread) reserve() {
	if !nucleus.MemoryShort() {
		if HeapQueue.Waiting() == 0 {
			return
		}
		nucleus.HoldThreads()
	}
	Relieve.Call()
	need := int64(reserve.Fault)
	if t.User.Trap.Kind == nucleus.TrapSyscall {
		u := &t.User
		if need = reserve.Bound(uint64(uint32(u.RAX)), u.RDI, u.RSI, u.RDX); need == 0 {
			return
		}
	}
	t.wait(HeapQueue, need)
	t.User.Work.Or(workRelease)
}

// ReserveNext is for a long call that does the work of another one several times. Before each
// time, while memory is short, it gives back what it reserved and reserves what that call
// needs. The caller holds no lock.
func (t *Thread) ReserveNext(nr uint64) {
	if !nucleus.Attention() || !nucleus.MemoryShort() && HeapQueue.Waiting() == 0 {
		return
	}
	if t.User.Work.Load()&workRelease != 0 {
		t.release()
	}
	Relieve.Call()
	t.wait(HeapQueue, reserve.Bound(nr, 0, 0, 0))
	t.User.Work.Or(workRelease)
}

// wait makes a claim and waits until it is granted or the thread is to end.
func (t *Thread) wait(q *reserve.Queue, bytes int64) {
	if q.Enter(&t.claim, bytes, t.Proc.uid.Load(), &t.Sleeper) {
		return
	}
	Relieve.Call()
	mem.Stalled.Begin()
	for {
		t.Arm()
		if t.claim.Granted() || t.Killed() {
			break
		}
		t.SleepUninterruptible(wait.NoDeadline)
	}
	mem.Stalled.End()
	if t.Killed() {
		q.Leave(&t.claim)
		return
	}
	t.lineUp()
}

// release gives back what the call reserved.
func (t *Thread) release() {
	t.User.Work.And(^workRelease)
	HeapQueue.Leave(&t.claim)
}

// pageRoom is what a thread that found no frame waits for.
const pageRoom = 16 * mem.PageSize

// outOfMemory is a fault that found no memory: the thread waits until there is some, and
// tries again.
func (t *Thread) outOfMemory() {
	if settings.OOMKillAllocator.Get() != 0 && t.Proc.OOMScoreAdj() != -1000 && t.Proc.PID != 1 && !mem.SqueezeForFault() {
		t.Proc.kill()
		return
	}
	t.awaitPages(pageRoom)
}

// awaitPages waits until there are frames for so many bytes.
func (t *Thread) awaitPages(bytes int64) {
	if t.favoured(bytes / mem.PageSize) {
		return
	}
	if t.User.Work.Load()&workRelease != 0 {
		t.release()
	}
	t.wait(PageQueue, bytes)
	PageQueue.Leave(&t.claim)
	t.favoured(bytes / mem.PageSize)
}

// favoured gets so many frames for a thread whose user holds little, and reports whether it
// may go on: others wait for relief, as who holds much does.
func (t *Thread) favoured(frames int64) bool {
	return !holdsMuch(t.Proc.uid.Load()) && mem.Favour(int(frames))
}

// MemoryCame is for a call that failed for want of memory and has given back all that it
// took. If that was the machine's fault it waits for memory, and reports whether to call
// again. Otherwise the failure stands.
func (t *Thread) MemoryCame() bool {
	if t.Killed() {
		return false
	}
	if !mem.CallsWait() { // perhaps only since a moment ago: another processor gave some back
		n := mem.Refused()
		if n == t.refusals {
			return false
		}
		t.refusals = n
	}
	t.awaitPages(int64(mem.ForkReserve()) * mem.PageSize)
	if nucleus.Attention() {
		t.reserve()
	}
	return !t.Killed()
}

// MemoryCameSelf is MemoryCame of the calling thread.
func MemoryCameSelf(c *caller.Ctx) bool {
	t := Of(c)
	return t != nil && t.MemoryCame()
}

// pageWaiter waits for a page in the middle of a call.
type pageWaiter struct {
	wait.Sleeper
	claim reserve.Claim
}

var pageWaiters = sync.Pool{New: func() any { return new(pageWaiter) }}

// inCallStep is how often a thread that waits in a call looks whether it is to end.
const inCallStep = 10_000_000

// AwaitPage waits for a page in a copy to or from user memory. Callers may hold locks that
// the victim needs: relief does not wait for a victim for long. It returns false if stop
// says that the memory is to be given up.
func AwaitPage(owner uint32, stop func() bool) bool {
	little := !holdsMuch(owner)
	if little && mem.Favour(pageRoom/mem.PageSize) {
		return !stop()
	}
	w := pageWaiters.Get().(*pageWaiter)
	if !PageQueue.Enter(&w.claim, pageRoom, owner, &w.Sleeper) {
		Relieve.Call()
		mem.Stalled.Begin()
		for {
			w.Arm()
			if w.claim.Granted() || stop() {
				break
			}
			w.SleepUninterruptible(clocks.Monotonic() + inCallStep)
		}
		mem.Stalled.End()
	}
	PageQueue.Leave(&w.claim)
	pageWaiters.Put(w)
	if little {
		mem.Favour(pageRoom / mem.PageSize)
	}
	return !stop()
}
