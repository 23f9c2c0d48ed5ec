// Package ktime has the clocks that can be set, and the timers that run on them, for
// timerfd, POSIX timers and clock_nanosleep.
//
// Lock order: Timer.mu, then realMu. A timer's call-back runs in a goroutine
// of its own with no lock held.
package ktime

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/vdso"
	"hardtack/kernel/base/wait"
)

// Changed announces to sleepers that CLOCK_REALTIME was set.
var Changed wait.Queue

// setMu makes one setting of the clock at a time.
var setMu sync.Mutex

// SetRealtime sets CLOCK_REALTIME (from the RTC at boot, clock_settime) for the
// kernel and the vDSO, moves absolute timers along and tells who wants to know.
func SetRealtime(ns int64) {
	setMu.Lock()
	jump(ns)
	ntp.clear()
	c := ntp.take()
	setMu.Unlock()
	c.announce()
}

// jump sets CLOCK_REALTIME; setMu is held.
func jump(ns int64) {
	clocks.SetRealtime(ns)
	vdso.SetSlew(clocks.Running())
	ntp.jumped = true
}

// Wall returns the time of a clock that runs whatever the program does; false
// for the others.
func Wall(clock int32) (int64, bool) {
	switch clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_REALTIME_ALARM:
		return clocks.Realtime(), true
	case linux.CLOCK_TAI:
		return clocks.Realtime() + tai.Load(), true
	case linux.CLOCK_MONOTONIC, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_MONOTONIC_COARSE,
		linux.CLOCK_BOOTTIME, linux.CLOCK_BOOTTIME_ALARM:
		return clocks.Monotonic(), true
	}
	return 0, false
}

// settable reports whether a clock follows CLOCK_REALTIME.
func settable(clock int32) bool {
	switch clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_REALTIME_ALARM, linux.CLOCK_TAI:
		return true
	}
	return false
}

// Sleep waits until a wall clock shows when (nanoseconds on that clock):
// TimedOut then, Interrupted for a signal. Setting the clock is honoured.
func Sleep(c *caller.Ctx, clock int32, when int64) wait.Result {
	if !settable(clock) {
		return sleepUntil(c, when)
	}
	Changed.Add(&c.Entry, &c.Sleeper, wait.In)
	defer Changed.Remove(&c.Entry)
	for {
		c.Arm()
		now, _ := Wall(clock)
		if now >= when {
			return wait.TimedOut
		}
		r := c.Sleep(max(clocks.Monotonic()+clocks.Until(when-now), 1))
		if r == wait.Interrupted {
			return r
		}
	}
}

func sleepUntil(c *caller.Ctx, when int64) wait.Result {
	when = max(when, 1) // 0 would be for ever
	for {
		c.Arm()
		if r := c.Sleep(when); r != wait.Woken {
			return r
		}
	}
}
