// Package clocks has the two clocks that the whole kernel reads: the monotonic one and
// the time of day.
package clocks

import (
	"math/bits"
	"sync/atomic"

	"hardtack/kernel/base/wait"
)

// realOffset is what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, nanoseconds.
var realOffset atomic.Int64

// Monotonic returns CLOCK_MONOTONIC in nanoseconds; deadlines of
// wait.Sleeper.Sleep count on it.
func Monotonic() int64 { return wait.Now() }

// A Slew is how CLOCK_REALTIME runs while it is faster or slower than CLOCK_MONOTONIC: at
// the monotonic time At it is Offset ahead, and gains Rate / 2³² of what passes.
type Slew struct{ At, Offset, Rate int64 }

// slew is nil while both clocks have the same speed.
var slew atomic.Pointer[Slew]

// Realtime returns CLOCK_REALTIME in nanoseconds since 1970.
func Realtime() int64 {
	now := wait.Now()
	if s := slew.Load(); s != nil {
		return now + s.offset(now)
	}
	return now + realOffset.Load()
}

// offset is what CLOCK_REALTIME is ahead at a monotonic time.
func (s *Slew) offset(now int64) int64 {
	d, r := now-s.At, s.Rate
	hi, lo := bits.Mul64(uint64(d), uint64(r)) // of signed numbers, corrected
	if d < 0 {
		hi -= uint64(r)
	}
	if r < 0 {
		hi -= uint64(d)
	}
	return s.Offset + int64(hi<<32|lo>>32)
}

// SetRealtime sets CLOCK_REALTIME (boot from the RTC, clock_settime), which keeps its
// speed. One caller at a time.
func SetRealtime(ns int64) {
	now := wait.Now()
	if s := slew.Load(); s != nil {
		slew.Store(&Slew{now, ns - now, s.Rate})
		return
	}
	realOffset.Store(ns - now)
}

// Running is how CLOCK_REALTIME runs now.
func Running() Slew {
	if s := slew.Load(); s != nil {
		return *s
	}
	return Slew{Offset: realOffset.Load()}
}

// Until is how much of CLOCK_MONOTONIC passes while CLOCK_REALTIME gains ns.
func Until(ns int64) int64 {
	s := slew.Load()
	if s == nil || ns <= 0 {
		return ns
	}
	return int64(float64(ns) / (1 + float64(s.Rate)/(1<<32)))
}

// SetRate makes CLOCK_REALTIME gain rate / 2³² from now on, and returns how it runs then.
// One caller at a time.
func SetRate(rate int64) Slew {
	now := wait.Now()
	offset := realOffset.Load()
	if s := slew.Load(); s != nil {
		offset = s.offset(now)
	}
	s := Slew{now, offset, rate}
	if rate == 0 {
		realOffset.Store(offset)
		slew.Store(nil)
	} else {
		slew.Store(&s)
	}
	return s
}

// RealtimeOffset returns CLOCK_REALTIME minus CLOCK_MONOTONIC.
func RealtimeOffset() int64 {
	if s := slew.Load(); s != nil {
		return s.offset(wait.Now())
	}
	return realOffset.Load()
}
