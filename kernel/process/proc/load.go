package proc

//oops:stop half of the old program and half of the new

import (
	"math"
	"sync"
	"sync/atomic"

	"hardtack/kernel/base/clocks"
)

// ended is what threads that have ended took of the CPUs.
var ended endedTimes

type endedTimes struct{ user, system, demand, faults, switches atomic.Int64 }

// add counts a thread that ends.
func (e *endedTimes) add(user, system, demand int64) {
	e.user.Add(user)
	e.system.Add(system)
	e.demand.Add(demand)
}

// Totals returns the user and system time of all threads since boot, in nanoseconds.
func Totals() (user, system int64) {
	user, system = ended.user.Load(), ended.system.Load()
	eachThread(func(t *Thread) {
		u, s := t.CPUTime()
		user, system = user+u, system+s
	})
	return user, system
}

// Waited returns for how many nanoseconds threads have waited for their turn on a CPU
// since boot, all of them together.
func Waited() int64 {
	n := ended.demand.Load() - ended.user.Load() - ended.system.Load()
	eachThread(func(t *Thread) {
		_, waited, _ := t.Queue()
		n += waited
	})
	return max(n, 0)
}

// Load averages are worked out when somebody asks: no timer runs for them. What counts
// is for how long threads wanted a CPU since the last look, whether or not they got one.
var load struct {
	mu     sync.Mutex
	last   int64      // monotonic; guarded by mu
	demand int64      // of all threads at last; guarded by mu
	avg    [3]float64 // guarded by mu
}

func eachThread(fn func(*Thread)) {
	Each(func(p *Process) bool {
		for _, t := range p.Threads() {
			fn(t)
		}
		return true
	})
}

// Running returns how many threads are not blocked.
func Running() int {
	n := 0
	eachThread(func(t *Thread) {
		if t.State() == StateRunning {
			n++
		}
	})
	return n
}

// loadGrain is the least time between two samples (Linux's is 5 s).
const loadGrain = 1e9

// LoadAverages returns the averages over 1, 5 and 15 minutes.
func LoadAverages() [3]float64 {
	load.mu.Lock()
	defer load.mu.Unlock()
	now := clocks.Monotonic()
	if load.last == 0 {
		load.last = nanoOrigin
	}
	passed := now - load.last
	if passed < loadGrain {
		return load.avg
	}
	demand := ended.demand.Load()
	eachThread(func(t *Thread) { demand += t.demand() })
	n := max(float64(demand-load.demand)/float64(passed), 0)
	for i, minutes := range [3]float64{1, 5, 15} {
		k := math.Exp(-float64(passed) / (60e9 * minutes))
		load.avg[i] = load.avg[i]*k + n*(1-k)
	}
	load.last, load.demand = now, demand
	return load.avg
}
