package nucleus

import (
	"unsafe"
)

//go:linkname pollOpen internal/poll.runtime_pollOpen
func pollOpen(fd uintptr) (unsafe.Pointer, int)

//go:linkname pollReset internal/poll.runtime_pollReset
func pollReset(pd unsafe.Pointer, mode int) int

//go:linkname pollWait internal/poll.runtime_pollWait
func pollWait(pd unsafe.Pointer, mode int) int

//go:linkname pollServerInit internal/poll.runtime_pollServerInit
func pollServerInit()

// ServeInterrupts runs bottom halves whenever a CPU has nothing else to do. It
// does not return: give it a goroutine of its own.
func ServeInterrupts() {
	pollServerInit()
	pd, e := pollOpen(fdIRQ)
	if e != 0 {
		panic("nucleus: the runtime's poller refused the interrupt descriptor")
	}
	for {
		RunPending()
		pollReset(pd, 'r')
		if irqs.pending.Load() == 0 {
			pollWait(pd, 'r')
		}
	}
}
