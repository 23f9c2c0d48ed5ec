//go:build hardtack_cover

package main

import (
	"sync/atomic"
	"unsafe"
)

// counterBlob is the counters of the whole program, as Go's runtime has them.
type counterBlob struct {
	counters *uint32
	n        uint64
}

//go:linkname counterList internal/coverage/cfile.getCovCounterList
func counterList() []counterBlob

// What a function's counters begin with, once it has run (internal/coverage/defs.go).
const (
	numCounters = iota
	packageID
	functionID
	firstCounter
)

// forgetEarly drops the counts of functions that ran only before Go's runtime had
// numbered the packages: they do not say which package they are of. These are those of
// the nucleus that boot the machine; they count as never run.
func forgetEarly() {
	for _, b := range counterList() {
		c := unsafe.Slice(b.counters, b.n)
		for i := 0; i < len(c); i++ {
			n := atomic.LoadUint32(&c[i+numCounters])
			if n == 0 {
				continue // between functions, or one that never ran
			}
			end := i + firstCounter + int(n)
			if atomic.LoadUint32(&c[i+packageID]) == 0 {
				for j := i + firstCounter; j < end; j++ {
					atomic.StoreUint32(&c[j], 0)
				}
			}
			i = end - 1
		}
	}
}
