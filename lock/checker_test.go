//go:build lockcheck

package lock

import (
	"strings"
	"testing"
)

func complains(t *testing.T, about string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		text, _ := recover().(string)
		if !strings.Contains(text, about) {
			t.Errorf("%q, want a complaint about %q", text, about)
		}
	}()
	f()
}

func TestChecker(t *testing.T) {
	for name, make := range lockers() {
		l := make()
		l.Lock()
		done := false
		complains(t, "which it does not hold", func() {
			c := inGoroutine(func() { l.Unlock() })
			if r := <-c; r != nil {
				panic(r)
			}
			done = true
		})
		if done {
			t.Errorf("%s: another goroutine unlocks", name)
		}
		complains(t, "which it holds", l.Lock)
		l.Unlock()
		pass(l)
	}
	if Transactions() {
		t.Error("transactions and checks at once")
	}
}

func inGoroutine(f func()) chan any {
	c := make(chan any, 1)
	go func() {
		defer func() { c <- recover() }()
		f()
	}()
	return c
}

func TestRanks(t *testing.T) {
	var low, high CLH
	low.SetRank(1, "low")
	high.SetRank(2, "high")
	low.Lock()
	pass(&high)
	low.Unlock()
	high.Lock()
	complains(t, "locks low (rank 1", low.Lock)
	if !low.TryLock() { // cannot hang, is allowed
		t.Error("TryLock fails")
	}
	low.Unlock()
	high.Unlock()

	same := make([]Ticket, 2)
	same[0].SetRank(3, "first")
	same[1].SetRank(3, "second")
	same[0].Lock()
	same[1].Lock()
	same[0].Unlock()
	complains(t, "want ascending addresses", same[0].Lock)
	same[1].Unlock()

	var free Elided // no rank: no order
	high.Lock()
	pass(&free)
	high.Unlock()
}
