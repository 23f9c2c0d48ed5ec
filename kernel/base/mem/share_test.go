package mem

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whoever asks all the time gets a twentieth of the time, however long the work takes.
func TestShareBoundsTime(t *testing.T) {
	for _, took := range []time.Duration{time.Microsecond, 7 * time.Millisecond, 3 * time.Second} {
		now, busy := time.Duration(0), time.Duration(0)
		s := share{now: func() time.Duration { return now }}
		work := func() {
			s.charge(func() {
				now += took
				busy += took
			})
		}
		refused := 0
		for now < 2000*took {
			if !s.run(work) {
				refused++
				now += took / 5
			}
		}
		if busy*shareOfTime > now+shareOfTime*took {
			t.Errorf("work of %v: %v of %v", took, busy, now)
		}
		if busy*shareOfTime*2 < now || refused == 0 {
			t.Errorf("work of %v: only %v of %v, %d refused", took, busy, now, refused)
		}
	}
}

// What is done in spite of the pause lengthens it.
func TestShareIsCharged(t *testing.T) {
	now := time.Duration(0)
	s := share{now: func() time.Duration { return now }}
	for range 3 {
		s.charge(func() { now += time.Second })
	}
	if now = 59 * time.Second; !s.spent() {
		t.Error("three seconds of work are paid for in 59")
	}
	if now = 60 * time.Second; s.spent() {
		t.Error("three seconds of work are not paid for in 60")
	}
}

// Whoever waits for another's work need not do it again.
func TestShareServesThoseThatWait(t *testing.T) {
	s := share{now: func() time.Duration { return time.Hour }}
	begun, end := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	all.Go(func() {
		s.run(func() {
			close(begun)
			<-end
			s.next.Store(int64(2 * time.Hour))
		})
	})
	<-begun
	var asking, served atomic.Int32
	for range 8 {
		all.Go(func() {
			asking.Add(1)
			if s.run(func() { t.Error("the work was done twice") }) {
				served.Add(1)
			}
		})
	}
	for asking.Load() < 8 {
		runtime.Gosched()
	}
	close(end)
	all.Wait()
	// One that was stopped between asking and looking came too late: it is refused.
	if n := served.Load(); n == 0 {
		t.Error("nobody who waited was served")
	}
	if s.run(func() { t.Error("the work was done in the pause") }) {
		t.Error("a caller was served in the pause")
	}
}

// TestRelieveIsBounded asks for the heap's collection all the time.
func TestRelieveIsBounded(t *testing.T) {
	begin := time.Now()
	busy := time.Duration(0)
	for time.Since(begin) < 400*time.Millisecond {
		one := time.Now()
		if Relieve() {
			busy += time.Since(one)
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	// The first collection is free of charge, and the clock is read beside it.
	if all := time.Since(begin); busy == 0 || busy > all/3+100*time.Millisecond {
		t.Errorf("%v of %v in collections", busy, all)
	}
}
