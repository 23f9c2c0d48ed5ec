package softdev

import (
	"sync/atomic"
	"unsafe"

	"hardtack/driver"
)

// Shared words are accessed as the driver does it, so that the race detector
// sees how the two sides are ordered.

func loadWord(b []byte) uint32     { return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0]))) }
func storeWord(b []byte, v uint32) { atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[0])), v) }

func alignedBytes(n int) []byte {
	b := make([]byte, n+driver.PageSize)
	off := -uintptr(unsafe.Pointer(&b[0])) & (driver.PageSize - 1)
	return b[off : off+uintptr(n) : off+uintptr(n)]
}
