// Package clocks has the two clocks that the whole kernel reads: the monotonic one and
// the time of day.
package clocks

import (
	"sync/atomic"

	"hardtack/kernel/base/wait"
)

// realOffset is what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, nanoseconds.
var realOffset atomic.Int64

// Monotonic returns CLOCK_MONOTONIC in nanoseconds; deadlines of
// wait.Sleeper.Sleep count on it.
func Monotonic() int64 { return wait.Now() }

// Realtime returns CLOCK_REALTIME in nanoseconds since 1970.
func Realtime() int64 { return wait.Now() + realOffset.Load() }

// SetRealtime sets CLOCK_REALTIME (boot from the RTC, clock_settime).
func SetRealtime(ns int64) { realOffset.Store(ns - wait.Now()) }

// RealtimeOffset returns CLOCK_REALTIME minus CLOCK_MONOTONIC.
func RealtimeOffset() int64 { return realOffset.Load() }
