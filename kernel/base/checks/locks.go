// Package checks reads counters of kernels built for tests: the order of locks and the
// bytes allocated.
package checks

import (
	"bytes"
	"fmt"
	"runtime"
)

// ChecksLocks tells whether this image checks the order in which locks are taken.
func ChecksLocks() bool { return lockCounts != nil }

// LocksText is what was seen of that order: counts, then each pair of classes, named by
// one of the places where they are taken.
func LocksText() []byte {
	sites, orders, inverted, foreign := lockCounts()
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "places %d\norders %d\ninversions %d\nforeign %d\n", sites, orders, inverted, foreign)
	for i := range orders {
		from, to := lockOrderAt(i)
		fmt.Fprintf(b, "%s before %s\n", place(from), place(to))
	}
	return b.Bytes()
}

// place names a call.
func place(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return fmt.Sprintf("%s:%d", f.Function, f.Line)
}
