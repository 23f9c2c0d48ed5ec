//go:build !hardtack_bounds

package checks

// Bounds says that the image compares what each system call allocates with its bound.
const Bounds = false

// SampleEvery is how many system calls pass between two that are measured.
const SampleEvery = 16

// BeginSites and PrintSites do something only where Bounds.
func BeginSites() {}

// PrintSites prints the calling goroutine's largest allocations.
func PrintSites() {}
