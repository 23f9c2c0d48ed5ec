//go:build hardtack_bounds

package checks

import "runtime"

// Bounds says that the image compares what each system call allocates with its bound.
// Functions that are points of reservation call BeginPoint and EndPoint in such an image
// (tool/image): what they allocate is not the call's.
const Bounds = true

// SampleEvery is how many system calls pass between two that are measured.
const SampleEvery = 1

// A Point is what the goroutine had allocated when a point began.
type Point struct {
	count uint64
	muted bool
}

// BeginPoint begins a point.
func BeginPoint() Point { return Point{*AllocatedCount(), muteSites(true)} }

// EndPoint takes what was allocated since then off the goroutine's count.
func EndPoint(p Point) {
	*AllocatedCount() = p.count
	muteSites(p.muted)
}

// BeginSites notes the calling goroutine's largest allocations from now on.
func BeginSites() { beginSites() }

// PrintSites prints them, each with those who called.
func PrintSites() {
	defer muteSites(muteSites(true))
	for i := 0; ; i++ {
		n, pcs := siteAt(i)
		if n == 0 {
			return
		}
		println("bounds:", n, "bytes by")
		frames := runtime.CallersFrames(pcs[:])
		for f, more := frames.Next(); f.PC != 0; f, more = frames.Next() {
			println("bounds:    ", f.Function, f.Line)
			if !more {
				break
			}
		}
	}
}
