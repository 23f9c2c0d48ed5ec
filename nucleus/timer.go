package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
)

// A user thread runs for a slice before its goroutine checks whether others want the CPU:
// as long as each of those that wait for a CPU has its turn within sliceRound, but at least
// sliceLeast, and sliceUser at most; sliceAlone at most where there is one CPU: a thread that
// is woken there has no other to run on. sliceThread is the slice of threads of the runtime
// when there are more of them than CPUs.
const (
	sliceUser   = 4e6
	sliceAlone  = 0.5e6
	sliceRound  = 8e6
	sliceLeast  = 0.5e6
	sliceThread = 1e6
)

// MaxGraces is how often a slice that ends in the kernel goes on for a moment, for as long again
// in all. Who is about to enter user mode then was often woken a moment ago, and would wait for
// its next turn with what it was woken for.
const MaxGraces = 16

// waitingTurns is the number of user threads that wait for a CPU, in its low half.
var waitingTurns = new(atomic.Int64)

// CountTurns says where the number of user threads is that wait for a CPU, in the low half
// of a word. Called once, before there are any.
func CountTurns(n *atomic.Int64) { waitingTurns = n }

// Slice returns how long a slice is that begins now, in nanoseconds.
func Slice() int64 {
	n, cpus := int64(uint32(waitingTurns.Load())), int64(numCPU.Load())
	most := int64(sliceUser)
	if cpus == 1 {
		most = sliceAlone
	}
	if n <= 1 {
		return most
	}
	return min(max(sliceRound*cpus/(n+cpus), sliceLeast), most)
}

// grace is by how much a slice is made longer.
func grace() int64 { return Slice() / MaxGraces }

// ProlongSlice makes the slice that has just ended on the processor that runs the caller go on
// for a moment.
func ProlongSlice() { amd64.ProlongSlice(now() + grace()) }

// now returns nanoseconds since the clock was set up.
func now() int64 { return ticksToNS(amd64.TSC() - amd64.ClockBase) }

// armTimer makes c's timer fire at a time at the latest.
func armTimer(c *amd64.CPU, at int64) {
	me := cpuPointer(c)
	if me.timerAt != 0 && me.timerAt <= at {
		return
	}
	me.timerAt = at
	setTimer(max(at-now(), 1000))
}

// timerFired wakes what is due and arms the timer for what comes next.
func timerFired(c *amd64.CPU, user bool) {
	me := cpuPointer(c)
	t := now()
	at := me.timerAt
	me.timerAt = 0
	if at > t+20000 { // the LAPIC and the TSC disagree: early
		me.arm(at)
		return
	}
	if !user && irqs.pending.Load() != 0 {
		signalIRQ(c)
	}
	sample := profile.next.Load()
	if profile.period != 0 && t >= sample && profile.next.CompareAndSwap(sample, t+profile.period) {
		profileTick(c)
	}
	next := int64(0)
	for i := range threads[:threadMax] {
		th := &threads[i]
		wakeAt := atomic.LoadInt64(&th.wakeAt)
		switch {
		case wakeAt == 0:
		case wakeAt <= t:
			timeOut(c, int32(i), t)
		case th.cpu == int32(c.Index) && (next == 0 || wakeAt < next):
			next = wakeAt // c armed its timer for it, and has to go on with that
		}
	}
	if me.SliceEnd != 0 && me.SliceEnd <= t {
		switch {
		case me.current == idleIndex(c.Index): // whose slice it was sleeps: the next one begins anew
			me.SliceEnd, me.SliceArmed = 0, 0
		case !user && me.graces < MaxGraces:
			me.graces++
			me.SliceEnd = t + grace()
		default:
			me.SliceEnd = 0
			me.giveWay(SliceOver, user)
		}
	}
	if due := me.TimerDue; due != 0 && due <= t {
		me.giveWay(TimerDue, user)
	} else if due != 0 && (next == 0 || due < next) {
		next = due
	}
	if me.SliceEnd != 0 && (next == 0 || me.SliceEnd < next) {
		next = me.SliceEnd
	}
	if sample = profile.next.Load(); profile.period != 0 && (next == 0 || sample < next) {
		next = sample
	}
	if next != 0 {
		me.arm(next)
	}
	if me.shares() {
		me.resched = true
	}
}

// giveWay has the thread that is in user mode, or the next that would enter it, leave
// for a reason.
func (me *cpu) giveWay(why uint32, user bool) {
	me.SliceArmed = 0
	if user {
		me.User().Trap.Error |= uint64(why)
	} else {
		me.Kicked.Or(why << 1)
	}
}

// timeOut ends the wait of thread i if it has lasted long enough.
func timeOut(c *amd64.CPU, i int32, t int64) {
	th, queue := lockWaiting(i)
	due := th.wakeAt != 0 && th.wakeAt <= t
	if due {
		result := uint64(0)
		if queue >= 0 && queue != pollQueue {
			result = errno(110) // ETIMEDOUT
		}
		unblock(i, result)
	}
	unlockWaiting(th, queue)
	if due {
		ready(c, i, true)
	}
}

// profile is the runtime's ITIMER_PROF.
var profile struct {
	period int64 // changes alone
	next   atomic.Int64
}

func sysSetitimer(c *amd64.CPU, which, new uint64) uint64 {
	if which != 2 || !touch(c, uintptr(new), 32) {
		return errno(22)
	}
	profile.period = int64(load64(uintptr(new)))*1e9 + int64(load64(uintptr(new)+8))*1000
	if profile.period != 0 {
		at := now() + profile.period
		profile.next.Store(at)
		cpus[c.Index].arm(at)
	}
	return 0
}

// profileTick samples the running thread of every CPU.
func profileTick(c *amd64.CPU) {
	for i := range int(numCPU.Load()) {
		if j := atomic.LoadInt32(&cpus[i].current); j >= 0 && j < int32(threadMax) {
			raise(c, j, sigPROF)
		}
	}
}
