package vm

import (
	"sync/atomic"
	"unsafe"
)

// Atomic access to user memory: b begins at an aligned word inside one page.

func load32(b []byte) uint32     { return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0]))) }
func store32(b []byte, v uint32) { atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[0])), v) }
func load64(b []byte) uint64     { return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0]))) }
func store64(b []byte, v uint64) { atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[0])), v) }

// swap32 stores new if b has old, and reports whether it did.
func swap32(b []byte, old, new uint32) bool {
	return atomic.CompareAndSwapUint32((*uint32)(unsafe.Pointer(&b[0])), old, new)
}

// address is where user memory is in the kernel's.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

func load(p *pte) pte { return atomic.LoadUint64(p) }
