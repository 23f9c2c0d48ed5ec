package ktime

import (
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/wait"
)

func TestSleep(t *testing.T) {
	c := caller.NewKernelCtx()
	SetRealtime(time.Now().UnixNano())
	for _, clock := range []int32{linux.CLOCK_MONOTONIC, linux.CLOCK_REALTIME, linux.CLOCK_BOOTTIME, linux.CLOCK_TAI} {
		now, ok := Wall(clock)
		if !ok {
			t.Fatal(clock)
		}
		if r := Sleep(c, clock, now+3e6); r != wait.TimedOut {
			t.Fatal(r)
		}
		if after, _ := Wall(clock); after < now+3e6 {
			t.Fatal("woke early by", now+3e6-after)
		}
		if r := Sleep(c, clock, 0); r != wait.TimedOut {
			t.Fatal("the past:", r)
		}
	}
	// Setting the clock wakes who sleeps until a time of it.
	start, until := time.Now(), clocks.Realtime()+int64(30*time.Minute)
	go func() {
		time.Sleep(3 * time.Millisecond)
		SetRealtime(clocks.Realtime() + int64(time.Hour))
	}()
	if r := Sleep(c, linux.CLOCK_REALTIME, until); r != wait.TimedOut || time.Since(start) > time.Minute {
		t.Fatal(r)
	}
	go func() {
		time.Sleep(2 * time.Millisecond)
		c.SetInterrupted(true)
	}()
	if r := Sleep(c, linux.CLOCK_REALTIME, clocks.Realtime()+int64(time.Hour)); r != wait.Interrupted {
		t.Fatal(r)
	}
}

// A timer on a clock that runs at its own speed fires when that says so.
func TestCPUClock(t *testing.T) {
	var spent atomic.Int64
	var fired atomic.Int32
	var x Timer
	x.Init(Clock{Now: spent.Load, ID: linux.CLOCK_PROCESS_CPUTIME_ID}, func() { fired.Add(1); x.Take() }, nil)
	x.Set(Setting{Value: 1e6, Interval: 1e6}, false)
	time.Sleep(10 * time.Millisecond)
	if fired.Load() != 0 {
		t.Fatal("fired though no time was spent")
	}
	spent.Store(3_500_000)
	for end := time.Now().Add(time.Minute); fired.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never fired")
		}
	}
	if s := x.Get(); s.Value != 500_000 {
		t.Fatal(s)
	}
	x.Stop()
	n := fired.Load()
	spent.Store(1e12)
	time.Sleep(5 * time.Millisecond)
	if fired.Load() != n {
		t.Fatal("fires after Stop")
	}
}

func TestOverflow(t *testing.T) {
	var x Timer
	x.Init(Clock{ID: linux.CLOCK_MONOTONIC}, func() {}, nil)
	x.Set(Setting{Value: 1<<63 - 1, Interval: 1<<63 - 1}, false)
	if s := x.Get(); s.Value <= 0 {
		t.Fatal(s)
	}
	x.Set(Setting{Value: 1, Interval: 1<<63 - 1}, true)
	if n := x.Take(); n != 1 {
		t.Fatal(n)
	}
	if s := x.Get(); s.Value <= 0 {
		t.Fatal(s)
	}
	x.Stop()
}
