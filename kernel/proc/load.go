package proc

//oops:stop half of the old program and half of the new

import (
	"math"
	"sync"

	"hardtack/kernel/kern"
)

// Load averages are worked out when somebody asks: no timer runs for them. The
// number of running threads is taken to have been the same since the last look.
var load struct {
	mu   sync.Mutex
	last int64      // monotonic; guarded by mu
	avg  [3]float64 // guarded by mu
}

// Running returns how many threads are not blocked.
func Running() int {
	n := 0
	Each(func(p *Process) bool {
		for _, t := range p.Threads() {
			if t.State() == StateRunning {
				n++
			}
		}
		return true
	})
	return n
}

// LoadAverages returns the averages over 1, 5 and 15 minutes.
func LoadAverages() [3]float64 {
	n := float64(Running())
	load.mu.Lock()
	defer load.mu.Unlock()
	now := kern.Monotonic()
	if load.last != 0 {
		d := float64(now-load.last) / 1e9
		for i, minutes := range [3]float64{1, 5, 15} {
			k := math.Exp(-d / (60 * minutes))
			load.avg[i] = load.avg[i]*k + n*(1-k)
		}
	}
	load.last = now
	return load.avg
}
