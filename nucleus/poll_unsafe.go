package nucleus

import "unsafe"

//go:linkname pollOpen internal/poll.runtime_pollOpen
func pollOpen(fd uintptr) (unsafe.Pointer, int)

//go:linkname pollReset internal/poll.runtime_pollReset
func pollReset(pd unsafe.Pointer, mode int) int

//go:linkname pollWait internal/poll.runtime_pollWait
func pollWait(pd unsafe.Pointer, mode int) int

//go:linkname pollServerInit internal/poll.runtime_pollServerInit
func pollServerInit()
