package syscall

import (
	"sync/atomic"
	"unsafe"
)

// setHandler replaces a handler that other threads call meanwhile. They load it with one
// instruction, and find the old or the new one. A function value is a pointer.
func setHandler(at *Handler, h Handler) {
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(at)), *(*unsafe.Pointer)(unsafe.Pointer(&h)))
}
