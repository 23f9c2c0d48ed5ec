package ring

import "unsafe"

// view lays the structures over memory. The memory must be aligned to 8 bytes
// and at least a page, and stay mapped as long as the results are used.
func view(mem []byte) (*Control, []Slot) {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	return (*Control)(p), unsafe.Slice((*Slot)(unsafe.Add(p, ControlBytes)), (len(mem)-ControlBytes)/SlotBytes)
}

// Memory returns n bytes aligned to a page, which the collector frees.
func Memory(n int) []byte {
	b := make([]byte, n+PageBytes)
	off := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (PageBytes - 1)
	return b[off : off+n : off+n]
}
