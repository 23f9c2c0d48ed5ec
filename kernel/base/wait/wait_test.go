package wait

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestSleepTimesOut(t *testing.T) {
	var s Sleeper
	for i := 0; i < 3; i++ { // the timer is reused
		s.Arm()
		start := Now()
		for r := Woken; r != TimedOut; {
			if r = s.Sleep(start + int64(5*time.Millisecond)); r == Interrupted {
				t.Fatalf("round %d: %v", i, r)
			}
			s.Arm()
		}
		if d := Now() - start; d < int64(5*time.Millisecond) {
			t.Fatalf("slept %d ns only", d)
		}
	}
}

func TestInterruptEndsSleep(t *testing.T) {
	var s Sleeper
	s.Arm()
	go s.SetInterrupted(true)
	for s.Sleep(NoDeadline) == Woken {
		s.Arm()
	}
	s.Arm()
	if r := s.Sleep(NoDeadline); r != Interrupted {
		t.Fatal("a pending signal does not keep the thread from sleeping")
	}
}

// A signal or the time limit that ends a sleep lets the caller look at its
// condition before it is told.
func TestLookAgainBeforeGivingUp(t *testing.T) {
	var s Sleeper
	s.Arm()
	go func() {
		for s.state.Load() != stateParked {
			runtime.Gosched()
		}
		s.SetInterrupted(true)
	}()
	if r := s.Sleep(NoDeadline); r != Woken {
		t.Fatalf("a signal during the sleep: %v", r)
	}
	s.Arm()
	if r := s.Sleep(Now() + int64(time.Hour)); r != Interrupted {
		t.Fatalf("a signal before the sleep: %v", r)
	}
	s.Arm()
	if r := s.Sleep(Now() - 1); r != TimedOut {
		t.Fatalf("a deadline that passed, and a signal: %v", r)
	}
	s.SetInterrupted(false)
	s.Arm()
	if r := s.Sleep(Now() + int64(time.Millisecond)); r != Woken {
		t.Fatalf("a deadline during the sleep: %v", r)
	}
}

// Two goroutines hand a token back and forth; a lost wake-up hangs the test.
func TestNoWakeupLost(t *testing.T) {
	var q [2]Queue
	var mu sync.Mutex
	turn := 0
	var wg sync.WaitGroup
	for me := 0; me < 2; me++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var s Sleeper
			var e Entry
			q[me].Add(&e, &s, In)
			defer q[me].Remove(&e)
			for i := 0; i < 20000; i++ {
				for {
					s.Arm()
					mu.Lock()
					mine := turn == me
					mu.Unlock()
					if mine {
						break
					}
					s.Sleep(NoDeadline)
				}
				mu.Lock()
				turn = 1 - me
				mu.Unlock()
				q[1-me].Notify(In)
			}
		}()
	}
	wg.Wait()
}

type counter struct{ n int }

func (c *counter) NotifyEvent(*Entry, Events) bool { c.n++; return true }

func TestExclusiveAndMask(t *testing.T) {
	var q Queue
	var a, b, c, d counter
	var ea, eb, ec, ed Entry
	q.AddExclusive(&ea, &a, In)
	q.AddExclusive(&eb, &b, In)
	q.Add(&ec, &c, In)
	q.Add(&ed, &d, Out)
	q.Notify(In)
	if a.n != 1 || b.n != 0 || c.n != 1 || d.n != 0 {
		t.Fatal(a, b, c, d)
	}
	q.Notify(Hup) // always told
	if d.n != 1 {
		t.Fatal("Hup not told")
	}
	q.Remove(&ea)
	q.Remove(&ea)
	q.Notify(In)
	if b.n != 1 {
		t.Fatal("exclusive entry behind the removed one not told")
	}
	for _, e := range []*Entry{&eb, &ec, &ed} {
		q.Remove(e)
	}
	if !q.Empty() {
		t.Fatal("not empty")
	}
}

func TestSleepDoesNotAllocate(t *testing.T) {
	var s Sleeper
	s.Arm()
	s.Sleep(Now() + 1000)
	if n := testing.AllocsPerRun(50, func() {
		s.Arm()
		s.Sleep(Now() + 1000)
		runtime.Gosched()
	}); n != 0 {
		t.Fatal(n, "allocations a sleep")
	}
}

// A timer that an earlier sleep left behind neither ends a later one early nor
// makes it late.
func TestTimersLeftBehind(t *testing.T) {
	var s Sleeper
	ms := int64(time.Millisecond)
	sleep := func(deadline int64) Result {
		for {
			s.Arm()
			if r := s.Sleep(deadline); r != Woken {
				return r
			}
		}
	}
	for range 20 {
		s.Arm()
		s.Wake()
		s.Sleep(Now() + 3*ms) // leaves a timer
		start := Now()
		if sleep(start + 6*ms); Now() < start+6*ms || Now() > start+500*ms {
			t.Fatalf("slept %d µs", (Now()-start)/1000)
		}
		s.Arm()
		s.Wake()
		s.Sleep(Now() + 2000*ms) // leaves a later one
		start = Now()
		if sleep(start + ms); Now() < start+ms || Now() > start+1000*ms {
			t.Fatalf("slept %d µs", (Now()-start)/1000)
		}
	}
	s.Retire()
}
