package inet

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/wait"
)

// clock is the time that netstack sees. (Its own takes a lock for every look.) Its methods are a
// pointer's: an interface calls them directly.
type clock struct{}

// Now is the wall clock.
func (*clock) Now() time.Time { return time.Unix(0, clocks.Realtime()) }

// NowMonotonic is CLOCK_MONOTONIC.
func (*clock) NowMonotonic() tcpip.MonotonicTime {
	return monotonic(wait.Now())
}

// AfterFunc calls fn after d.
func (*clock) AfterFunc(d time.Duration, fn func()) tcpip.Timer {
	t := &timer{fn: fn}
	timers.set(t, d)
	return t
}
