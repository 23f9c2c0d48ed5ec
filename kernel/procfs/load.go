package procfs

import (
	"fmt"
	"math"
	"sync"

	"hardtack/kernel/kern"
)

// load keeps the load averages. Nothing samples them in the background: a
// reader brings them up to date with the threads that run then, decayed over
// the time since the last look.
var load struct {
	mu   sync.Mutex
	at   int64      // guarded by mu
	avgs [3]float64 // guarded by mu
}

// Load returns the load averages over 1, 5 and 15 minutes.
func Load() [3]float64 {
	n, _ := running()
	if n > 0 {
		n-- // the reader itself
	}
	now := kern.Monotonic()
	load.mu.Lock()
	defer load.mu.Unlock()
	if load.at == 0 {
		load.at = bootTime
	}
	passed := float64(now-load.at) / 1e9
	if passed > 1 {
		for i, span := range [3]float64{60, 300, 900} {
			keep := math.Exp(-passed / span)
			load.avgs[i] = load.avgs[i]*keep + float64(n)*(1-keep)
		}
		load.at = now
	}
	return load.avgs
}

func loadText() string {
	a := Load()
	return fmt.Sprintf("%.2f %.2f %.2f", a[0], a[1], a[2])
}
