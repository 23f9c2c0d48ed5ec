package gt

import (
	"runtime"
	"sync"
	"unsafe"
)

// pinned holds what Addr was asked for: a uintptr alone keeps nothing alive.
var pinned struct {
	sync.Mutex
	runtime.Pinner
}

// Addr is the address of *p, for Sys. *p neither moves nor is collected while the
// program lives.
func Addr[T any](p *T) uintptr {
	pinned.Lock()
	defer pinned.Unlock()
	pinned.Pin(p)
	return uintptr(unsafe.Pointer(p))
}
