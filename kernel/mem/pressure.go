package mem

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Caches in the kernel's own heap (the tree of names with its inodes) live from memory
// that nobody else wants: the collector's soft limit grows by what they hold, and
// they give it up before a program is killed for memory.
var heap struct {
	mu       sync.Mutex
	limit    int64          // without caches, bytes; guarded by mu
	cached   int64          // by caches; guarded by mu
	shrink   []func() int64 // guarded by mu
	squeezed int            // how often; guarded by mu

	squeezing sync.Mutex // before mu
}

// SetHeapLimit sets the soft limit of the kernel's heap in bytes, caches left out.
func SetHeapLimit(bytes int64) {
	heap.mu.Lock()
	heap.limit = bytes
	setLimit(heap.limit + heap.cached)
	heap.mu.Unlock()
}

// HeapCache notes that a cache holds so many bytes more than before. The world stops
// for a moment: it is for large steps.
func HeapCache(more int64) {
	heap.mu.Lock()
	heap.cached += more
	setLimit(heap.limit + heap.cached)
	heap.mu.Unlock()
}

// OnPressure registers what lets a cache in the heap shrink: it gives up all that it
// can and returns how many bytes that may have been. It is called without locks.
func OnPressure(shrink func() int64) {
	heap.mu.Lock()
	heap.shrink = append(heap.shrink, shrink)
	heap.mu.Unlock()
}

// setLimit tells the collector, if the machine has set a limit (tests have not).
func setLimit(bytes int64) {
	if heap.limit > 0 {
		debug.SetMemoryLimit(bytes)
	}
}

// worthSqueezing is what caches must have given up for a program that wants memory to
// try again.
const worthSqueezing = 64 << 10

// Stalled measures for how long somebody waits for memory.
var Stalled Stall

// Squeeze takes from the caches in the kernel's heap what they can give, and the
// garbage, and reports whether there is more memory than before. It takes milliseconds.
func Squeeze() bool {
	heap.mu.Lock()
	before, list := heap.squeezed, heap.shrink
	heap.mu.Unlock()
	Stalled.Begin()
	defer Stalled.End()
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	heap.mu.Lock()
	done := heap.squeezed != before
	heap.mu.Unlock()
	if done { // somebody else has while we waited
		return true
	}
	n := int64(0)
	for _, shrink := range list {
		n += shrink()
	}
	if n < worthSqueezing {
		return false
	}
	debug.FreeOSMemory()
	time.Sleep(time.Millisecond) // clean-ups of what was collected drop more
	debug.FreeOSMemory()
	heap.mu.Lock()
	heap.squeezed++
	heap.mu.Unlock()
	return true
}

// Between two collections that Relieve asks for passes at least so much time: who is
// refused memory again and again may not keep the collector busy.
const relieveEvery = 100 * time.Millisecond

var (
	started     = time.Now()
	lastRelieve atomic.Int64 // time since started, in nanoseconds
)

// Relieve is for a call that found no frame and would fail: it squeezes the caches, or
// else gives back the kernel's garbage, and reports whether to try again. It takes
// milliseconds and is called without locks.
func Relieve() bool {
	if Squeeze() {
		return true
	}
	last, now := lastRelieve.Load(), int64(time.Since(started))
	if last != 0 && now-last < int64(relieveEvery) || !lastRelieve.CompareAndSwap(last, now) {
		return false
	}
	debug.FreeOSMemory()
	return true
}
