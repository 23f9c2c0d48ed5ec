package ext4

import (
	"testing"
	"time"
)

// TestGathering: who syncs waits for as many as there were last time, not longer than
// till the commit, and not at all when alone.
func TestGathering(t *testing.T) {
	var g gathering
	g.join(1) // nobody is known
	g.join(1)
	g.join(2) // during the commit of 1
	g.committed(1, time.Hour)
	if g.crowd != 3 {
		t.Fatalf("%d were there, not 3", g.crowd)
	}
	done := make(chan bool)
	join := func(id uint32) {
		g.join(id)
		done <- true
	}
	waits := func() {
		t.Helper()
		select {
		case <-done:
			t.Fatal("it did not wait")
		case <-time.After(20 * time.Millisecond):
		}
	}
	g.join(2) // nobody waited for it from the beginning
	g.join(2)
	g.committed(2, time.Hour)
	go join(3)
	go join(3)
	waits()
	g.join(3) // the third
	<-done
	<-done
	g.committed(3, time.Hour)
	go join(4)
	waits()
	g.committed(4, time.Hour) // by somebody who needed room
	<-done
	if g.crowd != 1 {
		t.Fatalf("%d were there, not one", g.crowd)
	}
	g.join(5) // alone
	g.join(4) // late: durable, or on its way
	g.committed(5, time.Millisecond)
	g.join(6)
	g.join(7)
	g.committed(6, time.Millisecond)
	g.join(8) // the second does not come: the time ends it
	if g.crowd != 2 {
		t.Fatalf("%d were there, not two", g.crowd)
	}
}
