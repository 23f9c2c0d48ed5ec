package mem

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// SqueezeForAll empties the caches of the kernel's heap and collects its garbage while
// threads wait for memory, unless there was a collection a moment ago and little was
// allocated since: of a large heap a collection takes long, and what it cannot free should
// not be waited for. It reports whether it did something.
func SqueezeForAll() bool {
	heap.mu.Lock()
	list := heap.shrink
	heap.mu.Unlock()
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	n := int64(0)
	for _, shrink := range list {
		n += shrink()
	}
	if n < worthSqueezing && fruitless() {
		return false
	}
	debug.FreeOSMemory()
	return true
}

// lately is how long ago a collection may be for its result to be of use.
const lately = 2 * time.Second

// state is what fruitless reads; guarded by heap.squeezing.
var state struct {
	samples [2]metrics.Sample
	gc      debug.GCStats
}

// fruitless reports that a collection would free little: less than a 128th of all memory,
// which is what a fork waits for. Where the heap itself takes a quarter of memory, it is also
// less than an eighth of what is alive: a collection takes time in proportion to that, and all
// that wait for memory wait for it.
// The caller holds heap.squeezing.
func fruitless() bool {
	s := &state.samples
	if s[0].Name == "" {
		s[0].Name, s[1].Name = "/memory/classes/heap/objects:bytes", "/gc/heap/live:bytes"
	}
	debug.ReadGCStats(&state.gc)
	if time.Since(state.gc.LastGC) > lately {
		return false
	}
	metrics.Read(s[:])
	objects, live := int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
	return objects-live < leastGarbage(int64(Total())*PageSize, live)
}

// leastGarbage is how much garbage a collection is worth, of so much memory in all, if so much of
// the heap is alive.
func leastGarbage(total, live int64) int64 {
	if live > total/4 {
		return max(total/128, live/8)
	}
	return total / 128
}
