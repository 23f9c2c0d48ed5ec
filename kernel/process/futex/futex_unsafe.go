package futex

import "unsafe"

// before gives buckets an order in which to lock two of them.
func (b *bucket) before(o *bucket) bool {
	return uintptr(unsafe.Pointer(b)) < uintptr(unsafe.Pointer(o))
}
