package futex

import (
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// raised is what a thread was told of its priority.
type raised struct{ priority atomic.Int32 }

func (r *raised) Raise(priority int32) { r.priority.Store(priority) }

// urgent is a thread with a number and a priority.
func urgent(tid int32, priority int32) (*testThread, *raised) {
	x, r := newThread(), new(raised)
	x.TID = tid
	x.RaiseWith(r)
	x.SetPriority(priority)
	return x, r
}

// lock has x lock the word at 4 times n, and returns once it owns it or waits.
func (m *words) lock(t *testing.T, find Finder, x *testThread, n int, deadline int64) {
	x.done = make(chan linux.Errno, 1)
	go func() { x.done <- x.LockPI(m, find, uio.Addr(4*(n)), true, deadline) }()
	eventually(t, "lock", func() bool { return x.q.bucket.Load() != nil || len(x.done) > 0 })
}

// TestLend has threads wait for each other's locks: their owners have the priorities of those
// that wait, as long as they wait, and the most urgent one is next.
func TestLend(t *testing.T) {
	m := &words{id: 77}
	a, ra := urgent(1, 0)
	b, rb := urgent(2, 10)
	c, rc := urgent(3, 30)
	d, _ := urgent(4, 20)
	all := map[int32]*testThread{1: a, 2: b, 3: c, 4: d}
	find := func(tid int32) *Thread { return &all[tid].Thread }
	is := func(what string, r *raised, want int32) {
		t.Helper()
		eventually(t, what, func() bool { return r.priority.Load() == want })
	}
	m.lock(t, find, a, 0, wait.NoDeadline)
	m.lock(t, find, b, 1, wait.NoDeadline)
	m.lock(t, find, b, 0, wait.NoDeadline) // b owns 1 and waits for 0, which a owns
	is("a has b's", ra, 10)
	m.lock(t, find, d, 0, wait.Now()+int64(time.Hour))
	is("a has d's", ra, 20)
	m.lock(t, find, c, 1, wait.Now()+int64(300*time.Millisecond))
	is("b has c's", rb, 30)
	is("a has c's, through b", ra, 30)
	if e := <-c.done; e != linux.ETIMEDOUT {
		t.Fatal(e)
	}
	is("b has its own again", rb, 10)
	is("a has d's again", ra, 20)
	b.SetPriority(25)
	is("a has b's new one", ra, 25)
	if e := a.UnlockPI(m, uio.Addr(4*(0)), true); e != 0 {
		t.Fatal(e)
	}
	is("a has none", ra, 0)
	if e := <-b.done; e != 0 {
		t.Fatal("b comes before d, and got", e)
	}
	m.lock(t, find, c, 0, wait.NoDeadline)
	is("b has c's", rb, 30)
	b.leavePI()
	if e := <-c.done; e != 0 {
		t.Fatal("c takes the lock of b, which ended, and got", e)
	}
	c.SetPriority(5)
	is("c has d's", rc, 20)
	if e := c.UnlockPI(m, uio.Addr(4*(0)), true); e != 0 {
		t.Fatal(e)
	}
	is("c has its own", rc, 5)
	if e := <-d.done; e != 0 {
		t.Fatal(e)
	}
}
