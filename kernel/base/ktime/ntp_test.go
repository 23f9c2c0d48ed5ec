package ktime

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
)

// A phase is made good by a quarter of what is left each second, if the constant is 0.
func TestPhase(t *testing.T) {
	d := discipline{tick: 10_000, status: linux.STA_PLL | linux.STA_NANO, leap: noLeap}
	d.setOffset(400_000)
	total := int64(0)
	for second := range int64(60) {
		d.overflow(1000 + second)
		if second == 0 && (d.phase>>scale < 99_990 || d.phase>>scale > 100_010) {
			t.Errorf("the first second makes %d ns good", d.phase>>scale)
		}
		total += d.phase
	}
	if total>>scale < 399_900 || total>>scale > 400_000 {
		t.Errorf("%d ns were made good", total>>scale)
	}
}

// adjtime(3) makes half a millisecond good in a second, in either direction.
func TestOldAdjust(t *testing.T) {
	d := discipline{tick: 10_000, adjust: -1200, leap: noLeap}
	for _, want := range []int64{-500_000, -500_000, -200_000, 0} {
		if d.overflow(1); d.phase>>scale != want {
			t.Errorf("%d ns in a second, want %d", d.phase>>scale, want)
		}
	}
}

func TestLeapSecond(t *testing.T) {
	for _, c := range []struct {
		status int32
		at     int64 // second of the day in which the clock leaps
		leap   int64
		states []int32
	}{
		{linux.STA_INS, 0, -1, []int32{linux.TIME_INS, linux.TIME_OOP, linux.TIME_WAIT}},
		{linux.STA_DEL, day - 1, 1, []int32{linux.TIME_DEL, linux.TIME_WAIT}},
	} {
		d := discipline{tick: 10_000, status: c.status, leap: noLeap}
		states := []int32{}
		for now := int64(day/2 + 100*day); now < 102*day+5; now++ {
			before := d.state
			if by := d.overflow(now); by != 0 {
				if by != c.leap || now%day != c.at || now/day > 101 {
					t.Errorf("leaps by %d in second %d of day %d", by, now%day, now/day)
				}
				now += by
			}
			if d.state != before {
				states = append(states, d.state)
			}
		}
		if len(states) != len(c.states) {
			t.Fatal(states)
		}
		for i := range states {
			if states[i] != c.states[i] {
				t.Errorf("states %v, want %v", states, c.states)
			}
		}
		d.status = 0
		if d.overflow(1); d.state != linux.TIME_OK {
			t.Error("the state stays", d.state)
		}
	}
}

// The clock gains exactly what its rate says, never goes back, and keeps its time when
// the rate changes.
func TestRate(t *testing.T) {
	defer func() {
		var x = Timex{Modes: linux.ADJ_TICK, Tick: 10_000}
		Adjust(&x, true)
	}()
	SetRealtime(1_800_000_000 * linux.NsecPerSec)
	for _, tick := range []int64{11_000, 9000} {
		x := Timex{Modes: linux.ADJ_TICK, Tick: tick}
		if _, e := Adjust(&x, true); e != 0 {
			t.Fatal(e)
		}
		s := clocks.Running()
		if want := (tick - 10_000) << 32 / 10_000; s.Rate < want-1 || s.Rate > want+1 {
			t.Errorf("tick %d: rate %d, want %d", tick, s.Rate, want)
		}
		last := clocks.Realtime()
		for clocks.Monotonic() < s.At+20e6 {
			now := clocks.Realtime()
			if now < last {
				t.Fatal("the clock went back")
			}
			last = now
		}
		m := clocks.Monotonic()
		gained := clocks.Realtime() - m - s.Offset
		after := clocks.Monotonic()
		low, high := (m-s.At)*(tick-10_000)/10_000, (after-s.At)*(tick-10_000)/10_000
		if gained < min(low, high)-2 || gained > max(low, high)+2+after-m {
			t.Errorf("tick %d: gained %d ns in %d to %d", tick, gained, m-s.At, after-s.At)
		}
	}
}
