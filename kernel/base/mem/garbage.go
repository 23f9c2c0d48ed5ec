package mem

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"hardtack/kernel/base/hook"
)

// SqueezeForAll empties the caches of the kernel's heap and collects its garbage while
// threads wait for memory, unless there seems to be little: of a large heap a collection takes
// long, and what it cannot free should not be waited for. It reports whether it did something.
// ledger is what the processes hold of the heap.
func SqueezeForAll(ledger int64) bool {
	heap.mu.Lock()
	list := heap.shrink
	heap.mu.Unlock()
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	n := int64(0)
	for _, shrink := range list {
		n += shrink()
	}
	if n < worthSqueezing && fruitless(ledger) {
		return giveAllBack() >= worthSqueezing
	}
	collect(ledger)
	return true
}

// GiveBack gives the free pages of the kernel's heap back, and reports whether that was worth
// looking again. The runtime's own collections leave them in the heap: after one, there is no
// garbage, and still no memory.
func GiveBack() bool {
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	return giveAllBack() >= worthSqueezing
}

// CollectForAll is SqueezeForAll without the caches: for what a victim leaves behind.
func CollectForAll(ledger int64) {
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	if fruitless(ledger) {
		giveAllBack()
	} else {
		collect(ledger)
	}
}

// SweepForAll collects garbage even where there seems to be little.
func SweepForAll(ledger int64) {
	heap.mu.Lock()
	list := heap.shrink
	heap.mu.Unlock()
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	for _, shrink := range list {
		shrink()
	}
	collect(ledger)
}

// doubtAfter is how long what the last collection found alive, and the ledger does not
// have, is taken to live.
const doubtAfter = 100 * time.Millisecond

// Doubtful reports whether much of the heap is neither in the ledger nor known to be alive
// since a moment ago: a 16th of all memory, besides what the kernel has for itself.
func Doubtful(ledger int64) bool {
	heap.squeezing.Lock()
	defer heap.squeezing.Unlock()
	if !state.known {
		return true
	}
	objects, _ := heapBytes()
	return objects-ledger-state.own > int64(Total())*PageSize/16 && time.Since(state.when) > doubtAfter
}

// state is what fruitless reads; guarded by heap.squeezing.
var state struct {
	samples [2]metrics.Sample
	known   bool      // others below say something
	other   int64     // bytes of the heap after the last collection here, without what the ledger told
	own     int64     // the least that other was: the kernel's own
	when    time.Time // of the last collection here
}

// collect collects the garbage, and notes what of the heap is not in the ledger. The caller
// holds heap.squeezing.
func collect(ledger int64) {
	if giveBack == nil {
		debug.FreeOSMemory()
	} else {
		// What pools keep would be garbage only after two collections. The connections of a
		// victim have buffers for megabytes there.
		endPools(true)
		runtime.GC()
		endPools(false)
		giveAllBack()
	}
	_, live := heapBytes()
	state.other = live - ledger
	if !state.known || state.other < state.own {
		state.own = max(state.other, 0)
	}
	state.known, state.when = true, time.Now()
}

// giveAllBack gives the heap's free pages back and returns how many bytes they were. Where there
// are none it sweeps: what the last collection found may wait for that, since the sweeper gives
// way to everybody. It ends also if others free pages as fast as it gives them back.
func giveAllBack() (bytes int64) {
	if giveBack == nil {
		return 0
	}
	for most, sweeps := int64(Total())*PageSize, Total()/sweptAtOnce; bytes < most; {
		n := giveBack(givenAtOnce)
		if n == 0 {
			if sweeps--; sweeps < 0 || !sweepSome(sweptAtOnce) {
				break
			}
			runtime.Gosched()
			continue
		}
		bytes += int64(n)
		Given.Call() // others run meanwhile, and take what they wait for
		runtime.Gosched()
	}
	return bytes
}

// givenAtOnce is how much of the heap is given back without a pause, and sweptAtOnce how many
// spans are swept.
const (
	givenAtOnce = 256 << 10
	sweptAtOnce = 32
)

// Given hears that some of the heap was given back: those who wait may be served.
var Given = hook.Default(func() {})

// heapBytes returns how many bytes objects take, and how many of them were alive after the last
// collection. The caller holds heap.squeezing.
func heapBytes() (objects, live int64) {
	s := &state.samples
	if s[0].Name == "" {
		s[0].Name, s[1].Name = "/memory/classes/heap/objects:bytes", "/gc/heap/live:bytes"
	}
	metrics.Read(s[:])
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
}

// fruitless reports that a collection would free little: less than a 128th of all memory,
// which is what a fork waits for. Where the heap itself takes a quarter of memory, it is also
// less than an eighth of what is alive: a collection takes time in proportion to that, and all
// that wait for memory wait for it.
//
// Garbage is what was allocated since the last collection, or what is neither in the ledger
// nor was found alive beside it then: objects of processes that have ended.
// The caller holds heap.squeezing.
func fruitless(ledger int64) bool {
	if !state.known {
		return false
	}
	objects, live := heapBytes()
	return garbage(objects, live, ledger, state.other) < leastGarbage(int64(Total())*PageSize, live)
}

func garbage(objects, live, ledger, other int64) int64 {
	return max(objects-live, objects-ledger-other)
}

// leastGarbage is how much garbage a collection is worth, of so much memory in all, if so much of
// the heap is alive.
func leastGarbage(total, live int64) int64 {
	if live > total/4 {
		return max(total/128, live/8)
	}
	return total / 128
}
