package reserve

import (
	"math/rand/v2"
	"testing"

	"hardtack/kernel/base/wait"
)

// enter makes a claim of somebody who does not sleep.
func enter(q *Queue, bytes int64) *Claim {
	c := new(Claim)
	s := new(wait.Sleeper)
	s.Arm()
	q.Enter(c, bytes, s)
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
	q := NewQueue(func() int64 { return free })
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
	q := NewQueue(func() int64 { return 100 })
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
	q := NewQueue(func() int64 { return 100 })
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
	q := NewQueue(func() int64 { return free })
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
		if q.head != nil && promised+q.head.bytes <= free {
			t.Fatal("the first one waits although there is memory")
		}
	}
}

func TestBounds(t *testing.T) {
	for _, x := range []struct {
		name string
		want uint32
	}{
		{"getpid", 0}, {"exit_group", 0}, {"munmap", 0}, {"read", small}, {"openat", Default}, {"dup", 112 + points},
	} {
		if got := boundOf(x.name); got != x.want {
			t.Errorf("%s reserves %d, want %d", x.name, got, x.want)
		}
	}
	if Bound(1<<40) != small {
		t.Error("a number beyond the table")
	}
}
