package nucleus

import "hardtack/arch/amd64"

// sliceUser is how long a user thread runs before its goroutine looks whether
// others want the CPU; sliceThread the same for threads of the runtime when
// there are more of them than CPUs.
const (
	sliceUser   = 4e6
	sliceThread = 1e6
)

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

func armSlice(c *amd64.CPU) { armTimer(c, now()+sliceThread) }

// timerFired wakes what is due and arms the timer for what comes next.
func timerFired(c *amd64.CPU, user bool) {
	me := cpuPointer(c)
	t := now()
	if at := me.timerAt; at > t+20000 { // the LAPIC and the TSC disagree: early
		setTimer(at - t)
		return
	}
	me.timerAt = 0
	if profile.period != 0 && t >= profile.next {
		profileTick(c, t)
	}
	next := int64(0)
	for i := range threads[:threadMax] {
		th := &threads[i]
		if th.state != threadBlocked || th.wakeAt == 0 {
			continue
		}
		if th.wakeAt <= t {
			result := uint64(0)
			if th.waiting == waitFutex {
				result = errno(110) // ETIMEDOUT
			}
			wake(c, int32(i), result, true)
		} else if th.cpu == int32(c.Index) && (next == 0 || th.wakeAt < next) {
			next = th.wakeAt
		}
	}
	if me.sliceEnd != 0 {
		if me.sliceEnd <= t {
			me.sliceEnd = 0
			c.SliceArmed = 0
			if !user {
				c.Kicked.Store(1)
			}
		} else if next == 0 || me.sliceEnd < next {
			next = me.sliceEnd
		}
	}
	if profile.period != 0 && (next == 0 || profile.next < next) {
		next = profile.next
	}
	if next != 0 {
		armTimer(c, next)
	}
	if runq.head >= 0 {
		me.resched = true
	}
}

// profile is the runtime's ITIMER_PROF; guarded by big.
var profile struct{ period, next int64 }

func sysSetitimer(c *amd64.CPU, which, new uint64) uint64 {
	if which != 2 || !touch(c, uintptr(new), 32) {
		return errno(22)
	}
	profile.period = int64(load64(uintptr(new)))*1e9 + int64(load64(uintptr(new)+8))*1000
	if profile.period != 0 {
		profile.next = now() + profile.period
		armTimer(c, profile.next)
	}
	return 0
}

// profileTick samples the running thread of every CPU.
func profileTick(c *amd64.CPU, t int64) {
	profile.next = t + profile.period
	for i := range int(numCPU.Load()) {
		if j := cpus[i].current; j >= 0 && j < int32(threadMax) && threads[j].state == threadRunning {
			raise(c, j, sigPROF)
		}
	}
}
