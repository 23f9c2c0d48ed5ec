package wait

import (
	"sync/atomic"
	"unsafe"
)

//go:linkname cputicks runtime.cputicks
func cputicks() int64

// Ticks reads the time-stamp counter.
func Ticks() int64 { return cputicks() }

// ran is filled by the linker where the image is built with the overlay's topic "ran"
// (overlay/_runtime/ran_unsafe.go), and else stays nil.
//
//go:linkname ran
var ran func() *int64

// Clock tells for how long a goroutine has not run, in ticks of the time-stamp
// counter. The Go scheduler keeps it.
type Clock struct{ v atomic.Int64 }

// MyClock returns the calling goroutine's clock, which is its own for ever; nil where
// the image is built without one.
func MyClock() *Clock {
	if ran == nil {
		return nil
	}
	return (*Clock)(unsafe.Pointer(ran()))
}

// Off returns for how many ticks since tick 0 the goroutine has not run, at the time
// now. The goroutine itself may give any time.
func (c *Clock) Off(now int64) int64 {
	if c == nil {
		return 0
	}
	if v := c.v.Load(); v > 0 {
		return v // it runs: the time less what it has run
	} else {
		return now + v
	}
}
