package monitor

import (
	"sync/atomic"
	"unsafe"
)

// pages returns memory that is aligned as an area is.
func pages(n int) []byte {
	b := make([]byte, (n+1)*pageBytes)
	off := -int(uintptr(unsafe.Pointer(&b[0]))) & (pageBytes - 1)
	return b[off : off+n*pageBytes]
}

func wordAt(mem []byte, at int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&mem[at])) }
