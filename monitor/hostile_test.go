//go:build !race

package monitor

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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
				at = r.IntN(160) * 4
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

// A peer that sets any bell at any time wakes its own channels at most: once each, until they are read.
func TestHostileBells(t *testing.T) {
	for seed := range uint64(10) {
		ms, hosts, areas := machine(t, 3)
		fineX, fineY := ringed(t, ms, 2, 0, 1)
		others := onRung(fineY)
		var told, taken atomic.Int32
		var mine []*Channel
		for range 5 {
			_, y := ringed(t, ms, 1, 0, 1)
			y.OnRung(func() { told.Add(1) })
			mine = append(mine, y)
		}
		r := rand.New(rand.NewPCG(seed, 10))
		for range 2000 {
			mem := areas[1][r.IntN(2)]
			at := 256 + r.IntN(96)*4
			wordAt(mem, at).Store([]uint32{0, 1, r.Uint32(), 1 << 31, ^uint32(0)}[r.IntN(5)])
			ms[0].Rung(atOnce)
			if r.IntN(3) == 0 {
				mine[r.IntN(len(mine))].TakeRung()
				taken.Add(1)
			}
		}
		if n := told.Load(); n > taken.Load()+int32(len(mine)) {
			t.Errorf("told %d times of bells that were taken %d times", n, taken.Load())
		}
		select {
		case <-others:
			t.Error("another kernel's channel was rung")
		default:
		}
		fineX.Ring()
		<-others
		leave(ms[0], hosts[0].ram, 1)
		fineX.Close()
		fineY.Close()
	}
}
