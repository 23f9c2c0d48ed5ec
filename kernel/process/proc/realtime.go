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

// RealTime is what the kernel's parameters say of real-time threads.
var RealTime struct {
	// Slice is that of SCHED_RR; of each Period real-time threads have Share of each
	// processor, or all if it is negative. Nanoseconds; 0: the defaults.
	Slice, Period, Share atomic.Int64
}

// Defaults, those of Linux.
const (
	realTimeSlice  = 100e6
	realTimePeriod = 1000e6
	realTimeShare  = 950e6
)

func init() {
	RealTime.Slice.Store(realTimeSlice)
	RealTime.Period.Store(realTimePeriod)
	RealTime.Share.Store(realTimeShare)
}

// chargeRealTime adds what a real-time thread has run until now, both in ticks. It keeps its
// place among those of its priority, but comes after them if it slept or its slice is over.
func (t *turn) chargeRealTime(ran, now int64) {
	t.round += ran
	if t.roundRobin && t.round >= ticksOf(RealTime.Slice.Load()) {
		t.Place, t.round = 0, 0
	}
	if t.Place == 0 {
		t.Place = wait.Arrive()
	}
	if share := RealTime.Share.Load(); share >= 0 {
		wait.RealTimeRan(ran, now, max(ticksOf(RealTime.Period.Load()), 1), ticksOf(share))
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

// The kernel's parameters are in milliseconds and microseconds, as Linux's.

// RealTimeSlice returns SCHED_RR's slice in milliseconds.
func RealTimeSlice() int64 { return RealTime.Slice.Load() / 1e6 }

// SetRealTimeSlice sets it; 0 and less mean the default.
func SetRealTimeSlice(msec int64) {
	if msec <= 0 {
		msec = realTimeSlice / 1e6
	}
	RealTime.Slice.Store(msec * 1e6)
}

// SetRealTimePeriod sets the period, in microseconds.
func SetRealTimePeriod(_ *caller.Ctx, usec int64) linux.Errno {
	if RealTime.Share.Load() > usec*1000 {
		return linux.EINVAL
	}
	RealTime.Period.Store(usec * 1000)
	return 0
}

// RealTimeShare returns the share in microseconds, -1 for all.
func RealTimeShare() int64 { return max(RealTime.Share.Load()/1000, -1) }

// SetRealTimeShare sets the share, in microseconds; -1: all.
func SetRealTimeShare(_ *caller.Ctx, usec int64) linux.Errno {
	if usec*1000 > RealTime.Period.Load() {
		return linux.EINVAL
	}
	RealTime.Share.Store(max(usec*1000, -1000))
	return 0
}
