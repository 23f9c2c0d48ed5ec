//go:build hardtack_cover

package main

import "sync/atomic"

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
		c := b.list()
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
