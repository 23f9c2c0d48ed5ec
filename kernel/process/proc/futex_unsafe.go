package proc

import "unsafe"

// before gives buckets an order in which to lock two of them.
func (b *futexBucket) before(o *futexBucket) bool {
	return uintptr(unsafe.Pointer(b)) < uintptr(unsafe.Pointer(o))
}
