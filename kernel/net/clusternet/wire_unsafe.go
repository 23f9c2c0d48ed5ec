package clusternet

import "unsafe"

// controlOf is the start of an area, which is aligned to a page.
func controlOf(mem []byte) *control { return (*control)(unsafe.Pointer(unsafe.SliceData(mem))) }
