package mem

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Caches in the kernel's heap (the tree of names with its inodes) use spare memory: the
// collector's soft limit grows by their size, and they are released before a program is
// killed for memory.
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

// HeapCache records that a cache grew by so many bytes. It stops the world briefly, so
// use it for large steps.
func HeapCache(more int64) {
	heap.mu.Lock()
	heap.cached += more
	setLimit(heap.limit + heap.cached)
	heap.mu.Unlock()
}

// OnPressure registers a function that shrinks a cache in the heap as far as possible and
// returns about how many bytes it released. It is called without locks.
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

// worthSqueezing is how much caches must have released for an allocation to be retried.
const worthSqueezing = 64 << 10

// Stalled measures the time that threads wait for memory.
var Stalled Stall

// Squeeze releases the caches in the kernel's heap and the garbage, and reports whether
// there is more memory than before. It takes milliseconds.
func Squeeze() bool { return squeeze(worthSqueezing) }

// SqueezeForFault is Squeeze for a page fault that found no frame, which a user can
// cause as often as it fills the caches: once the collector's share of time is used up,
// they must have given up a 64th of all memory.
func SqueezeForFault() bool {
	least := int64(worthSqueezing)
	if forced.spent() {
		least = max(least, int64(Total())*PageSize/64)
	}
	return squeeze(least)
}

func squeeze(least int64) bool {
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
	if n < least {
		return false
	}
	forced.charge(func() {
		debug.FreeOSMemory()
		time.Sleep(time.Millisecond) // clean-ups of what was collected drop more
		debug.FreeOSMemory()
	})
	heap.mu.Lock()
	heap.squeezed++
	heap.mu.Unlock()
	return true
}

// forced are the collections that calls and faults of user programs cause.
var forced = share{now: func() time.Duration { return time.Since(started) }}

var started = time.Now()

// ForkReserve is how many frames must be free for a new thread: what it will touch first, and
// what those that run already need to go on.
func ForkReserve() int { return max(64, Total()/128) }

// CallsWait reports whether a call that fails for want of frames waits for them and is made
// again.
func CallsWait() bool { return Total() != 0 && Spare() < ForkReserve() }

// Relieve is for a call that found no frame and would fail: it squeezes the caches, or
// else gives back the kernel's garbage, and reports whether to try again. It takes
// milliseconds and is called without locks. Repeated failures cannot keep the collector
// busy: then only the first calls are relieved. Where the machine is so short of frames that
// the failed call waits for some and is made again, it does nothing.
func Relieve() bool {
	if CallsWait() {
		return false
	}
	return forced.run(func() {
		if !Squeeze() {
			forced.charge(debug.FreeOSMemory)
		}
	})
}

// refusals counts what was refused for want of frames.
var refusals atomic.Uint32

// Refuse notes that something was refused for want of frames.
func Refuse() { refusals.Add(1) }

// Refused returns how often something was, by whomever it was asked for.
func Refused() uint32 { return refusals.Load() }
