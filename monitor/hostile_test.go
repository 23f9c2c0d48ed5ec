//go:build !race

package monitor

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"hardtack/idl/monitor"
)

// A hostile peer races with the reader of its messages: that is the attack, so the race
// detector is not asked.

// A peer that writes anything into the areas ends the links at worst.
func TestHostile(t *testing.T) {
	for seed := range uint64(20) {
		a, b, _, areas := pair(t)
		r := rand.New(rand.NewPCG(seed, 9))
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for i, m := range []*Monitor{a, b} {
			c := client(t, m, 1-i)
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
					_, err := c.Ping(ctx, monitor.PingCall{Number: 1})
					cancel()
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						return // the link has ended
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
		}
		for range 200 {
			mem := areas[r.IntN(2)]
			at := r.IntN(len(mem)/4) * 4
			if r.IntN(2) == 0 { // mostly where it matters
				at = r.IntN(64) * 4
			}
			wordAt(mem, at).Store([]uint32{0, 1, r.Uint32(), 1 << 31, ^uint32(0)}[r.IntN(5)])
			if r.IntN(10) == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
		close(stop)
		for _, m := range []*Monitor{a, b} {
			m.mu.Lock()
			for _, l := range m.links {
				l.Die()
			}
			m.mu.Unlock()
		}
		wg.Wait()
	}
}
