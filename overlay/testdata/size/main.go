// Command size prints how many bytes an unbuffered channel takes on the heap.
package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

func main() {
	debug.SetGCPercent(-1)
	const n = 100_000
	keep := make([]chan struct{}, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = make(chan struct{})
	}
	runtime.ReadMemStats(&after)
	// Other allocations are few: rounding leaves them out.
	fmt.Println((after.TotalAlloc - before.TotalAlloc) / n)
	runtime.KeepAlive(keep)
}
