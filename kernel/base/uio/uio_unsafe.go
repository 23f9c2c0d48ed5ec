package uio

import "unsafe"

// identical reports whether a and b are the same two words. It spares the call of the runtime
// that == of interfaces makes.
func identical(a, b Memory) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}
