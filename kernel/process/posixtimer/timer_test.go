package posixtimer

import (
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/process/proc"
)

var monotonic = ktime.Clock{ID: linux.CLOCK_MONOTONIC}

func TestTable(t *testing.T) {
	p, q := &proc.Process{PID: 1}, &proc.Process{PID: 2}
	silent := Notify{How: linux.SIGEV_NONE}
	var ids []int32
	for i := range 1024 {
		id, e := Create(p, monotonic, silent)
		if e != 0 || id != int32(i) {
			t.Fatal(i, id, e)
		}
		ids = append(ids, id)
	}
	if id, e := Create(q, monotonic, silent); id != 0 || e != 0 {
		t.Fatal(id, e)
	}
	if Find(q, 5) != nil || Find(p, 5) == nil || Find(p, -1) != nil {
		t.Fatal("found another's timer, or not its own")
	}
	if !Delete(p, 5) || Delete(p, 5) || Find(p, 5) != nil {
		t.Fatal("deleting")
	}
	// The number is not used again at once: a late caller finds nothing.
	if id, e := Create(p, monotonic, silent); id == 5 || e != 0 {
		t.Fatal(id, e)
	}
	DeleteAll(p)
	if Find(p, ids[7]) != nil || Find(q, 0) == nil {
		t.Fatal("exec deletes all of one process")
	}
	DeleteAll(q)
	if len(tables) != 0 {
		t.Fatal(len(tables), "tables left")
	}
}

// A timer without a signal still runs: timer_gettime shows it.
func TestSilentTimerCounts(t *testing.T) {
	p := &proc.Process{PID: 1}
	defer DeleteAll(p)
	id, _ := Create(p, monotonic, Notify{How: linux.SIGEV_NONE})
	x := Find(p, id)
	period := int64(20 * time.Millisecond)
	if old := x.Set(ktime.Setting{Value: period, Interval: period}, false); old != (ktime.Setting{}) {
		t.Fatal(old)
	}
	time.Sleep(50 * time.Millisecond)
	if s := x.Get(); s.Value <= 0 || s.Value > period || s.Interval != period {
		t.Fatal(s)
	}
	if old := x.Set(ktime.Setting{}, false); old.Interval != period || x.Get().Value != 0 {
		t.Fatal(old)
	}
}

// TestSetAfterDelete sets a timer that another thread has deleted meanwhile: nobody could
// stop it any more.
func TestSetAfterDelete(t *testing.T) {
	p := &proc.Process{PID: 1}
	id, _ := Create(p, monotonic, Notify{How: linux.SIGEV_NONE})
	x := Find(p, id)
	if !Delete(p, id) {
		t.Fatal("deleting")
	}
	x.Set(ktime.Setting{Value: int64(time.Hour), Interval: 1}, false)
	if s := x.Get(); s.Value != 0 {
		t.Error("a deleted timer is armed:", s)
	}
}
