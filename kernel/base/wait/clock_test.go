package wait

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	defer SetClock(0, 0)
	start, began := cputicks(), time.Now()
	time.Sleep(20 * time.Millisecond)
	ticks, took := cputicks()-start, time.Since(began)
	SetClock(uint64(start), uint64(float64(took)/float64(ticks)*(1<<32)))
	if got := time.Duration(sinceBoot(start + ticks)); (got - took).Abs() > took/100 {
		t.Errorf("%d ticks are %v, want %v", ticks, got, took)
	}
	if got := sinceBoot(start + 1000*ticks); time.Duration(got/1000)-took > took/100 {
		t.Errorf("%d ticks are %d ns, want a thousand times %v", 1000*ticks, got, took)
	}
	for _, ahead := range []int64{0, 1, 1e3, 1e6, 1e9, 1e12, 1e18} {
		when := sinceBoot(cputicks()) + ahead
		at := ticksAt(when)
		if at <= cputicks() {
			continue // it is past by now
		}
		early := when - sinceBoot(at)
		if early < 0 || ahead < mostAhead && early > ahead/1e5+2 {
			t.Errorf("ticks of a time %d ns ahead are %d ns early", ahead, early)
		}
	}
}
