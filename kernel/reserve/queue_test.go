package reserve

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

func noLimit() int64 { return math.MaxInt64 }

func nobody(uint32) bool { return false }

// queueOf is a queue for users who all hold little.
func queueOf(free func() int64) *Queue {
	return NewQueue(Supply{Free: func(bool) int64 { return free() }, Most: noLimit, Much: nobody})
}

// enter makes a claim of somebody who does not sleep.
func enter(q *Queue, bytes int64) *Claim {
	c := new(Claim)
	s := new(wait.Sleeper)
	s.Arm()
	q.Enter(c, bytes, 0, s)
	return c
}

func wantGranted(t *testing.T, what string, c *Claim, want bool) {
	t.Helper()
	if got := c.Granted(); got != want {
		t.Errorf("%s: granted is %v, want %v", what, got, want)
	}
}

func TestQueueIsInOrderOfArrival(t *testing.T) {
	free := int64(100)
	q := queueOf(func() int64 { return free })
	first := enter(q, 60)
	large, small := enter(q, 90), enter(q, 10)
	wantGranted(t, "the first", first, true)
	wantGranted(t, "a large one", large, false)
	wantGranted(t, "a small one behind it", small, false)
	free = 120 // what it took is part of what it was promised
	q.Serve()
	wantGranted(t, "the large one too early", large, false)
	q.Leave(first)
	wantGranted(t, "the large one", large, true)
	wantGranted(t, "the small one behind it", small, true)
	if q.Waiting() != 0 {
		t.Errorf("%d wait", q.Waiting())
	}
}

func TestQueueGiveUp(t *testing.T) {
	q := queueOf(func() int64 { return 100 })
	first, killed, last := enter(q, 100), enter(q, 100), enter(q, 50)
	q.Leave(killed)
	q.Leave(killed) // nothing is left to give up
	wantGranted(t, "the last", last, false)
	q.Leave(first)
	wantGranted(t, "the last", last, true)
	wantGranted(t, "who gave up", killed, false)
}

// What is promised while memory is short counts until it is plentiful: calls that block
// for hours must not keep others from memory.
func TestQueuePlenty(t *testing.T) {
	q := queueOf(func() int64 { return 100 })
	blocked := enter(q, 100)
	waiting := enter(q, 10)
	q.Plenty()
	wantGranted(t, "who waits, with somebody in the queue", waiting, false)
	q.Leave(waiting)
	q.Plenty()
	next := enter(q, 100)
	wantGranted(t, "the next one", next, true)
	q.Leave(blocked) // of an earlier lap
	more := enter(q, 1)
	wantGranted(t, "beyond what is free", more, false)
}

// TestQueueNeverPromisesTooMuch compares the queue with its rules in random histories.
func TestQueueNeverPromisesTooMuch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	free := int64(1000)
	q := queueOf(func() int64 { return free })
	var claims []*Claim // in order of arrival
	for range 20000 {
		switch n := r.IntN(10); {
		case n < 4:
			claims = append(claims, enter(q, 1+r.Int64N(300)))
		case n < 8 && len(claims) > 0:
			i := r.IntN(len(claims))
			q.Leave(claims[i])
			claims = append(claims[:i], claims[i+1:]...)
		default:
			free = r.Int64N(2000)
			q.Serve()
		}
		promised, waits := int64(0), 0
		for _, c := range claims {
			if c.Granted() {
				if waits > 0 {
					t.Fatal("somebody overtook another")
				}
				promised += c.bytes
			} else {
				waits++
			}
		}
		if promised != q.promised || waits != q.Waiting() {
			t.Fatalf("promised %d, want %d; %d wait, want %d", q.promised, promised, q.Waiting(), waits)
		}
		if h := q.lines[0].head; h != nil && promised+h.bytes <= free {
			t.Fatal("the first one waits although there is memory")
		}
	}
}

// Whoever blocks in its call keeps nothing from those who wait.
func TestQueueLapse(t *testing.T) {
	q := queueOf(func() int64 { return 100 })
	c, s := new(Claim), new(wait.Sleeper)
	q.Enter(c, 100, 0, s)
	woken := make(chan bool)
	s.Arm()
	go func() {
		s.SleepUninterruptible(wait.NoDeadline)
		woken <- true
	}()
	for !s.Parked() {
		runtime.Gosched()
	}
	wantGranted(t, "the next one", enter(q, 70), true)
	wantGranted(t, "who asks for more than is left", enter(q, 70), false)
	s.Wake()
	<-woken
	q.Leave(c)
	if q.promised != 70 || q.grants.head != q.grants.tail {
		t.Errorf("promised %d, want 70", q.promised)
	}
}

// A claim of more than there can be is served like one of the most.
func TestQueueMost(t *testing.T) {
	q := NewQueue(Supply{Free: func(bool) int64 { return 100 }, Most: func() int64 { return 50 }, Much: nobody})
	first, second, third := enter(q, 1000), enter(q, 1000), enter(q, 1)
	wantGranted(t, "the first", first, true)
	wantGranted(t, "the second", second, true)
	wantGranted(t, "the third", third, false)
	q.Leave(first)
	wantGranted(t, "the third", third, true)
}

func TestBounds(t *testing.T) {
	whole := Table[linux.SYS_shmget]
	for _, x := range []struct {
		nr   uint64
		n    uint64
		want int64
	}{
		{linux.SYS_getpid, 0, 0},
		{linux.SYS_exit_group, 0, 0},
		{linux.SYS_munmap, 0, 0},
		{linux.SYS_read, 0, Fault},
		{linux.SYS_execve, 0, Default},
		{linux.SYS_dup, 0, int64(Table[linux.SYS_dup].Transient) + Points},
		{linux.SYS_shmget, 0, int64(whole.Transient + whole.Lasting)},
		{linux.SYS_poll, 1000, Fault + 1000*pollBytes},
		{linux.SYS_poll, 1 << 60, Fault + 1<<24*pollBytes},
		{1 << 40, 0, Fault},
	} {
		if got := Bound(x.nr, 0, x.n, 0); got != x.want {
			t.Errorf("call %d reserves %d, want %d", x.nr, got, x.want)
		}
	}
	if !whole.Whole {
		t.Error("shmget has a point without a bound; choose another call for this test")
	}
}
