package msg

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// One holds the lock at a time, those who give up lose nothing for the others, and it is
// free at the end.
func TestSendLock(t *testing.T) {
	var l sendLock
	var inside, had, gaveUp atomic.Int64
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(200))*time.Microsecond)
				if l.lock(ctx) != nil {
					gaveUp.Add(1)
					cancel()
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock")
				}
				had.Add(1)
				if rand.IntN(8) == 0 {
					time.Sleep(20 * time.Microsecond)
				}
				inside.Add(-1)
				l.unlock()
				cancel()
			}
		})
	}
	work.Wait()
	t.Logf("%d had it, %d gave up", had.Load(), gaveUp.Load())
	if had.Load() == 0 || len(l.queue) != 0 {
		t.Errorf("%d had the lock, %d are queued", had.Load(), len(l.queue))
	}
	if err := l.lock(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	l.unlock()
	if s := l.state.Load(); s != sendFree {
		t.Errorf("state %d at the end", s)
	}
}

// A waiter that was passed over gets the lock, however often others take it.
func TestSendLockHunger(t *testing.T) {
	var l sendLock
	var stop atomic.Bool
	var work sync.WaitGroup
	defer work.Wait()
	defer stop.Store(true)
	for range 2 {
		work.Go(func() {
			for !stop.Load() {
				l.lock(context.Background())
				for start := time.Now(); time.Since(start) < 10*time.Microsecond; {
				}
				l.unlock()
			}
		})
	}
	for range 20 {
		if err := l.lock(ctxFor(t)); err != nil {
			t.Fatal(err)
		}
		l.unlock()
	}
}
