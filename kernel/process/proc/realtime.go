package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// Real-time threads come before all others, by priority (sched(7)). A thread of SCHED_FIFO
// runs until it blocks, yields, or one of higher priority can run; one of SCHED_RR until its
// slice is over, too.

// Of each period real-time threads have a share of each processor, or all if it is negative.
// Nanoseconds; the values are Linux's.
const (
	realTimeSlice  = 100e6 // of SCHED_RR
	realTimePeriod = 1000e6
	realTimeShare  = 950e6
)

// realTime is by what the kernel's parameters differ from those.
var realTime struct{ slice, period, share atomic.Int64 }

// RealTimeSlice returns the slice of SCHED_RR in nanoseconds.
func RealTimeSlice() int64 { return realTimeSlice + realTime.slice.Load() }

func period() int64       { return realTimePeriod + realTime.period.Load() }
func realTimeNsec() int64 { return realTimeShare + realTime.share.Load() }

// chargeRealTime adds what a real-time thread has run until now, both in ticks. It keeps its
// place among those of its priority, but comes after them if it slept or its slice is over.
func (t *turn) chargeRealTime(ran, now int64) {
	t.round += ran
	if t.roundRobin && t.round >= ticksOf(RealTimeSlice()) {
		t.Place, t.round = 0, 0
	}
	if t.Place == 0 {
		t.Place = wait.Arrive()
	}
	if share := realTimeNsec(); share >= 0 {
		wait.RealTimeRan(ran, now, max(ticksOf(period()), 1), ticksOf(share))
	}
}

// mustGiveWay reports whether another comes before the thread, which is about to enter user
// mode, where real-time threads exist. Charged before.
func (t *Thread) mustGiveWay() bool {
	own := t.turn.RealTime()
	if woken := wait.Hurry(); woken > own || woken > 0 && !wait.OneP() {
		return true // with several processors another may have to run it
	}
	first := wait.FirstRealTime()
	switch full := wait.RealTimeFull(ticks()); {
	case own > 0 && full && wait.OthersWait():
		return true
	case own > 0:
		return first > own || first == own && t.turn.Behind()
	case first > 0 && !full:
		return true
	}
	return t.ahead()
}

// SetRealTimeSlice sets the slice, in milliseconds; 0 and less mean the default.
func SetRealTimeSlice(msec int64) {
	if msec <= 0 {
		msec = realTimeSlice / 1e6
	}
	realTime.slice.Store(msec*1e6 - realTimeSlice)
}

// RealTimePeriod returns the period in microseconds.
func RealTimePeriod() int64 { return period() / 1000 }

// SetRealTimePeriod sets it.
func SetRealTimePeriod(_ *caller.Ctx, usec int64) linux.Errno {
	if realTimeNsec() > usec*1000 {
		return linux.EINVAL
	}
	realTime.period.Store(usec*1000 - realTimePeriod)
	return 0
}

// RealTimeShare returns the share in microseconds, -1 for all.
func RealTimeShare() int64 { return max(realTimeNsec()/1000, -1) }

// SetRealTimeShare sets it.
func SetRealTimeShare(_ *caller.Ctx, usec int64) linux.Errno {
	if usec*1000 > period() {
		return linux.EINVAL
	}
	realTime.share.Store(max(usec*1000, -1000) - realTimeShare)
	return 0
}
