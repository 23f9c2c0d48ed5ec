//go:build !race

package clusternet

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/kernel/net/netdev"
)

// A hostile peer races with the reader of its packets: that is the attack, so the race
// detector is not asked.

// A peer that writes anything into the wire ends it at worst.
func TestHostile(t *testing.T) {
	for seed := range uint64(50) {
		m := newMachine(t, 2)
		for _, recv := range []*Net{m.nets[0], m.nets[1]} {
			recv.SetReceiver(func([]netdev.Frame) {})
		}
		mem := m.start(1)
		var done atomic.Bool
		go func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for !done.Load() {
				at := r.IntN(len(mem))
				if r.IntN(3) > 0 {
					at = r.IntN(256)
				}
				mem[at] = byte(r.Uint32())
				m.nets[r.IntN(2)].Rung()
			}
		}()
		for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
			for i := range 2 {
				m.nets[i].Transmit([]netdev.Frame{{Parts: [][]byte{packet(i, 1-i, 28+rand.IntN(2000))}}})
			}
		}
		done.Store(true)
		m.nets[0].End(1, m.wires[1])
	}
}
