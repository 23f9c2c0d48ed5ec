package proc

import (
	"testing"

	"hardtack/kernel/base/wait"
	"hardtack/nucleus"
)

// TestPlace shows where threads come among those that wait.
func TestPlace(t *testing.T) {
	const ms = 1e6
	for _, c := range []struct {
		what                     string
		virtual, slept, now, lag int64
		want                     int64
	}{
		{"its own time, where that is near the others'", 1000 * ms, 0, 1001 * ms, 100 * ms, 1000 * ms},
		{"who slept long has the bonus alone", 10 * ms, 5000 * ms, 1000 * ms, 100 * ms, 997 * ms},
		{"who slept a little loses as much", 990 * ms, 2 * ms, 1000 * ms, 100 * ms, 992 * ms},
		{"who is ahead is not moved by sleep", 1050 * ms, 5000 * ms, 1000 * ms, 100 * ms, 1050 * ms},
		{"who is far behind keeps what all run in the longest wait", 10 * ms, 0, 1000 * ms, 100 * ms, 900 * ms},
		{"who is far ahead waits no longer than that", 90000 * ms, 0, 1000 * ms, 100 * ms, 1100 * ms},
		{"the first thread of all", 0, 0, 0, 100 * ms, 1},
	} {
		got := place(ticksOf(c.virtual), ticksOf(c.slept), ticksOf(c.now), ticksOf(c.lag), bonus(nil))
		if d := got - max(ticksOf(c.want), 1); d > ticksOf(ms/10) || -d > ticksOf(ms/10) {
			t.Errorf("%s: %d ticks off", c.what, d)
		}
	}
}

// TestSleptKey: who slept and is woken for its own processor comes before one that ran there
// meanwhile and gave way within its slice.
func TestSleptKey(t *testing.T) {
	const ms = 1e6
	slice := ticksOf(nucleus.Slice())
	var crowd wait.Crowd
	now := wait.VirtualTime()
	for _, c := range []struct {
		what    string
		virtual int64
		most    int64
	}{
		{"it ran no less than others", now, now - slice},
		{"it slept long", now - ticksOf(1000*ms), now - ticksOf(sleeperBonus) - slice},
		{"it is far ahead", now + ticksOf(1000*ms), now},
	} {
		w := wait.Turn{Virtual: c.virtual, Crowd: &crowd}
		if got := SleptKey(&w); got > max(c.most, 1) {
			t.Errorf("%s: key %d, want %d at most", c.what, got-now, c.most-now)
		}
	}
}

// TestBind: processors stand by for a thread with a mask while it lives, and not for one that
// never begins, or whose mask is set when it has ended.
func TestBind(t *testing.T) {
	th := &Thread{Proc: new(Process)}
	bound := func() bool { return th.Home.Load() != nil }
	th.User.Allowed.Store(1)
	if th.bind(); bound() {
		t.Error("a thread that has not begun is bound")
	}
	if th.setLive(true); !bound() {
		t.Error("a thread with a mask is not bound")
	}
	th.User.Allowed.Store(0)
	if th.bind(); bound() {
		t.Error("a thread without a mask is bound")
	}
	th.User.Allowed.Store(2)
	if th.bind(); !bound() {
		t.Error("a thread with another mask is not bound")
	}
	if th.setLive(false); bound() {
		t.Error("a thread that has ended is bound")
	}
	if th.bind(); bound() {
		t.Error("one that has ended is bound by a new mask")
	}
}
