package inet

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The heap gives timers in the order of their times, whatever was set, moved
// and stopped before.
func TestTimerQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q timerQueue
		q.start.Do(func() {}) // no goroutine: the test takes what is due
		all := make([]timer, 12)
		set := map[*timer]bool{}
		pick := func(t *rapid.T) *timer { return &all[rapid.IntRange(0, len(all)-1).Draw(t, "timer")] }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				x := pick(t)
				d := time.Duration(rapid.IntRange(0, 1000).Draw(t, "delay")) * time.Hour
				if q.set(x, d) != set[x] {
					t.Fatal("set says what it was wrongly")
				}
				set[x] = true
			},
			"stop": func(t *rapid.T) {
				x := pick(t)
				if q.stop(x) != set[x] {
					t.Fatal("stop says what it was wrongly")
				}
				delete(set, x)
			},
			"due": func(t *rapid.T) {
				var want []int64
				for x := range set {
					want = append(want, x.when)
				}
				slices.Sort(want)
				for range rapid.IntRange(0, 3).Draw(t, "how many") {
					if len(want) == 0 {
						break
					}
					x, next := q.due(want[0] - 1)
					if x != nil || next != want[0] {
						t.Fatalf("%v at %d before the first is due at %d", x, next, want[0])
					}
					if x, _ = q.due(want[0]); x == nil || x.when != want[0] || !set[x] {
						t.Fatal("not the first timer")
					}
					delete(set, x)
					want = want[1:]
				}
			},
			"": func(t *rapid.T) {
				if len(q.heap) != len(set) {
					t.Fatalf("%d timers, %d are set", len(q.heap), len(set))
				}
				for i, x := range q.heap {
					if x.at != i+1 || i > 0 && q.heap[(i-1)/2].when > x.when {
						t.Fatal("no heap")
					}
				}
			},
		})
	})
}

func TestTimersFire(t *testing.T) {
	order := make(chan int, 8)
	var c clock
	c.AfterFunc(40*time.Millisecond, func() { order <- 3 })
	c.AfterFunc(time.Millisecond, func() { order <- 1 })
	late := c.AfterFunc(time.Hour, func() { order <- 2 })
	never := c.AfterFunc(20*time.Millisecond, func() { order <- 4 })
	if !never.Stop() || never.Stop() {
		t.Error("stopped not exactly once")
	}
	if got := <-order; got != 1 {
		t.Fatal(got)
	}
	late.Reset(10 * time.Millisecond)
	first, second := <-order, <-order
	if first+second != 5 {
		t.Fatal(first, second)
	}
	if late.Stop() {
		t.Error("stopped after it fired")
	}
}
