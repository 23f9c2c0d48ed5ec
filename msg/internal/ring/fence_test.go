//go:build !race

package ring

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A sender that will sleep and a receiver that makes room, at the same time, do not miss each
// other where the sender's barrier is its own only: with Fence either the sender sees the room or
// the receiver sees that it sleeps.
func TestFence(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors")
	}
	a, b := make([]byte, PageBytes), make([]byte, PageBytes)
	tx, _, err := Open(a, b)
	if err != nil {
		t.Fatal(err)
	}
	_, rx, err := Open(b, a)
	if err != nil {
		t.Fatal(err)
	}
	rx.Fence = true
	const rounds = 200000
	end := time.Now().Add(5 * time.Second) // enough, where the two seldom run at once
	var round, done atomic.Uint32
	var woken atomic.Bool
	var stop atomic.Bool
	await := func(w *atomic.Uint32, n uint32) {
		for i := 0; w.Load() != n && !stop.Load(); i++ {
			if i%1000 == 999 {
				runtime.Gosched() // the other may need this processor
			}
		}
	}
	go func() {
		for n := uint32(1); n <= rounds; n++ {
			if await(&round, n); stop.Load() {
				return
			}
			h, ok := rx.Peek()
			if !ok {
				t.Errorf("round %d: no message", n)
			}
			wake := rx.Consume(h)
			woken.Store(rx.Flush(true) || wake)
			done.Store(n)
		}
	}()
	var fence atomic.Uint32
	lost := 0
	for n := uint32(1); n <= rounds && (n%1000 != 0 || time.Now().Before(end)); n++ {
		tx.Publish(1, 0, 0)
		round.Store(n)
		for range n % 64 {
			_ = fence.Load()
		}
		tx.SetBlocked(true)
		fence.Add(1)
		room, err := tx.Refill()
		await(&done, n)
		if err != nil {
			t.Fatal(err)
		}
		if room < tx.Slots() && !woken.Load() {
			lost++
		}
		tx.SetBlocked(false)
		tx.Refill()
	}
	stop.Store(true)
	if lost > 0 {
		t.Errorf("%d of %d wakes were lost", lost, rounds)
	}
}
