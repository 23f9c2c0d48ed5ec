package mem

import (
	"sync"
	"syscall"
	"unsafe"
)

var hostOnce sync.Once

// InitHost gives tests on Linux an arena of so many frames; the first call of
// a test binary decides.
func InitHost(frames int) {
	hostOnce.Do(func() {
		b, err := syscall.Mmap(-1, 0, (frames+1)*PageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			panic(err)
		}
		s := newHostSource(frames)
		checkZeroed = true
		counts := make([]int32, frames+1)
		Init(unsafe.Pointer(&b[0]), unsafe.Pointer(&counts[0]), s, frames)
		SetDirectLimit(uint64(len(b)))
	})
}
