//go:build hardtack_bounds

package checks

// Bounds says that the image compares what each system call allocates with its bound.
// Functions that are points of reservation call BeginPoint and EndPoint in such an image
// (tool/image): what they allocate is not the call's.
const Bounds = true

// SampleEvery is how many system calls pass between two that are measured.
const SampleEvery = 1

// BeginPoint is what the goroutine has allocated when a point begins.
func BeginPoint() uint64 { return *AllocatedCount() }

// EndPoint takes what was allocated since then off the goroutine's count.
func EndPoint(before uint64) { *AllocatedCount() = before }
